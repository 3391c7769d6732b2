# A text as a history for git fast-import: each commit changes some lines of three of 80 files.
# Argument: text, of which the first 8,000 lines fill the files.
use strict;
use warnings;

my @text = <>;
my @files = map { my $file = $_; [@text[$file * 100 .. $file * 100 + 99]] } 0 .. 79;
my @changes = @text[8000 .. $#text];
for my $number (0 .. $#changes / 16) {
    my @new = @changes[$number * 16 .. $number * 16 + 15];
    my $time = 1_000_000_000 + $number * 60;
    print "commit refs/heads/main\ncommitter A <a\@b> $time +0000\n";
    print 'data ', length $new[0], "\n$new[0]\n";
    for my $which ($number ? map { ($number * 7919 + $_ * $_ * 31) % 80 } 1 .. 3 : 0 .. 79) {
        my $lines = $files[$which];
        for my $line (grep { defined } @new) {
            $lines->[($number * 40503 + length($line) * $which) % @$lines] = $line;
        }
        splice @$lines, $number % @$lines, 0, $new[1] // '';
        my $body = join '', @$lines;
        print "M 100644 inline part${\ ($which % 9)}/file$which.txt\n",
            'data ', length $body, "\n$body\n";
    }
}
