#!/usr/bin/env bash
# Makes the object of libhakmem_prefixed.a: every function that include/hakmem_prefixed.h declares
# gets its prefix (malloc becomes hk_malloc), and no other name but those of hakmem.h stays visible.
#
#   prefix.sh OBJCOPY hakmem.o hakmem_prefixed.h to.o
set -euo pipefail

objcopy=$1 from=$2 header=$3 to=$4

names=$(grep -o '\bhk_[a-z0-9_]*(' "$header" | tr -d '(' | sort -u)
sed 's/^hk_\(.*\)/\1 hk_\1/' <<< "$names" > "$to.renamed"
{
    echo "$names"
    readelf -sW "$from" | awk '$5 == "GLOBAL" && $7 != "UND" && $8 ~ /^hakmem_/ { print $8 }'
} > "$to.kept"
"$objcopy" --redefine-syms="$to.renamed" "$from" "$to.all"
"$objcopy" --keep-global-symbols="$to.kept" "$to.all" "$to"
rm -f "$to.renamed" "$to.kept" "$to.all"
