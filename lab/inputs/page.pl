# A text as a page of the web: classes, links, lists, tables, unclosed tags. Argument: text.
use strict;
use warnings;

print "<!DOCTYPE html><html><head><title>page</title></head><body>\n";
while (my $line = <>) {
    my ($head, @words) = split ' ', $line;
    my $items = join '', map {
        "<li class='item k" . length($_) * 7 % 40 . "'><a href=\"/p/$_\">$_ $head</a>" } @words;
    my $cells = join '', map { "<td data-n=" . ord($_) . ">$_</td>" } @words[0 .. $#words / 2];
    print qq(<div id="s$." class="section c${\ ($. % 13)}"><h2>$head</h2>\n),
        "<p>@words<br><em>$head</em>&nbsp;&copy;</p>\n",
        "<ul>$items</ul><table><tr>$cells</tr></table></div>\n";
}
print "</body></html>\n";
