use strict;
use warnings;
use Digest::SHA qw(sha256_hex);

my (%count, @words);
my $state = 42;
for my $i (1 .. 300_000) {
    $state = ($state * 1103515245 + 12345) % 2147483648;
    my $word = 'w' . ($state >> 12) % 5003 . 'x' x ($state % 60);
    $count{$word}++;
    push @words, $word if $i % 10 == 0;
}
my $text = join ' ', sort @words;
(my $short = $text) =~ s/(w\d+)x+/$1/g;
my @back = map { scalar reverse } split / /, $short;
my %groups;
push @{ $groups{ length $_ } }, $_ for @back;
print scalar(keys %count), ' ', length($text), ' ', sha256_hex(join ',', @back), "\n";
print join(' ', map { "$_:" . @{ $groups{$_} } } sort { $a <=> $b } keys %groups), "\n";
