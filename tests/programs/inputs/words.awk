# Counts, joins and sorts words: strings that grow, arrays that are deleted.
{ for (i = 1; i <= NF; i++) { count[$i]++; trail[$i % 500] = trail[$i % 500] "," $i } }
NR % 1000 == 0 { for (key in trail) { total += length(trail[key]) } delete trail }
END {
    n = asorti(count, order)
    for (i = 1; i <= n; i += 997) print order[i], count[order[i]]
    print n, total, gensub(/(.)(.)/, "\\2\\1", "g", order[n])
}
