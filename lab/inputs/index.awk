# Counts words and pairs of words, joins the lines of each, and sorts them.
{
    before = ""
    for (i = 1; i <= NF; i++) {
        word = tolower($i)
        gsub(/[^a-z]/, "", word)
        count[word]++
        if (length(lines[word]) < 400) lines[word] = lines[word] " " NR
        if (before != "") pairs[before, word]++
        before = word
    }
}
END {
    number = asorti(count, order)
    for (i = 1; i <= number; i++) total += length(lines[order[i]]) * count[order[i]]
    number = asort(pairs, sorted)
    print length(count), total, number, sorted[number]
}
