# An inverted index of the words in the named files: what `make run` measures when it is given no
# command. Millions of small strings and growing arrays, all from the process's malloc.
use strict;
use warnings;

my %places;
for my $file (@ARGV) {
    open my $in, '<', $file or die "$file: $!\n";
    while (my $line = <$in>) {
        push @{ $places{lc $_}{$file} }, $. for $line =~ /\w+/g;
    }
}
my @common = sort { keys %{ $places{$b} } <=> keys %{ $places{$a} } || $a cmp $b } keys %places;
print scalar(@common), " words, most widely used: $common[0]\n";
