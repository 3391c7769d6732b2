# Arrays, substitution, pipes and subshells: bash forks hundreds of times.
set -euo pipefail
declare -A count
for ((i = 0; i < 20000; i++)); do
    key="k$((i * 7919 % 613))"
    count[$key]=$((${count[$key]:-0} + i))
done
for key in "${!count[@]}"; do echo "$key ${count[$key]}"; done | sort | sha256sum
text=$(seq 1 3000 | tr '\n' ' ')
text=${text// 1/ one-}
echo "${#text} ${text: -40}"
for i in $(seq 150); do (echo "$i" | sed 's/1/x/'); done | paste -sd, | md5sum
mapfile -t lines < <(seq 100000 | awk '$1 % 3 == 0')
echo "${#lines[@]} ${lines[33332]}"
