#!/usr/bin/env bash
# The allocator beside another malloc: gives the public names of its archive the prefix hk_
# (malloc becomes hk_malloc), but for those of hakmem.h. A program made for a sanitizer or a fuzzer,
# which bring a malloc of their own, gets the same names.
#
#   rename.sh archive OBJCOPY from.a to.a names     renames, and writes the list of names
#   rename.sh object  OBJCOPY from.o to.o names     renames what the list has
set -euo pipefail

kind=$1 objcopy=$2 from=$3 to=$4 names=$5

if [ "$kind" = archive ]; then
    readelf -sW "$from" | awk '$5 ~ /GLOBAL|WEAK/ && $6 == "DEFAULT" && $7 != "UND" &&
        $8 !~ /^hakmem_/ { print $8, "hk_" $8 }' | sort -u > "$names"
    grep -q '^malloc hk_malloc$' "$names" # else there is nothing to test
fi
"$objcopy" --redefine-syms="$names" "$from" "$to"
