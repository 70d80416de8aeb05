#!/usr/bin/env perl
# Counts functions of tests that sleep for a fixed time. Such a test is slow on a quiet machine and fails on a busy one:
# wait for a condition (whit_testing::wait), or move the times of files and clocks.
# Loads that sleep because their waits are recorded count too. Shell and Python programs within tests do not.
#
#   scripts/sleeps.pl              judges the tree; exit code 1 above the limit
#   scripts/sleeps.pl -v           lists each function with its file and line
#   scripts/sleeps.pl --self-test  checks functions that have to be counted, and others that must not be
use strict;
use warnings;
use File::Basename qw(dirname);

# Most functions in the tree. The number falls, but for those that let a recorder record for a while.
my $LIMIT = 15;

my $SLEEP = qr/\bthread::sleep\(|(?<![\w.:])sleep\((?!\))|\bwaitForTimeout\(|\bsetTimeout\([^()]*,\s*[1-9]/;
my $FUNCTION = qr/^\s*(?:(?:pub(?:\([^)]*\))?|async|const|unsafe|export)\s+)*(?:fn|function)\s+(\w+)|^(?:test|it)\((['"`].*)/;

# Lines and names of functions that sleep, in the text of a file.
sub sleeping {
    my ($path, $text) = @_;
    my $is_test = $path =~ m{(?:^|/|_)tests?(?:/|\.rs$|\.js$)};
    my ($function, %seen, @found) = ('the file');
    my $number = 0;
    for my $line (split /\n/, $text) {
        $number++;
        $is_test = 1 if $line =~ /^#\[cfg\((?:all\()?test\b/ && $text !~ /^\Q$line\E\n(?:#.*\n)*mod \w+;/m;
        next unless $is_test;
        $function = $1 // $2 if $line =~ $FUNCTION;
        next if $line =~ m{^\s*(?://|\*)} || $line !~ $SLEEP;
        push @found, [$number, $function] unless $seen{$function}++;
    }
    return @found;
}

sub self_test {
    my @cases = (
        ['a/tests/x.rs', "fn a() {\n    std::thread::sleep(TIME);\n    std::thread::sleep(TIME);\n}\n", 1],
        ['a/src/x.rs', "fn a() {\n    std::thread::sleep(TIME);\n}\n", 0],
        ['a/src/x.rs', "#[cfg(test)]\nmod tests;\nfn a() {\n    std::thread::sleep(TIME);\n}\n", 0],
        ['a/src/x.rs', "#[cfg(test)]\nmod tests {\n    fn a() {\n        std::thread::sleep(TIME);\n    }\n}\n", 1],
        ['a/tests/x.rs', "const LOAD: &str = \"\nimport time\ntime.sleep(1)\";\n", 0],
        ['a/src/x/tests.rs', "fn a() {\n    // No thread::sleep here.\n    wait_until(\"it ends\", || is_over());\n}\n", 0],
        ['web/test/x.test.js', "test('a', async () => {\n  await page.waitForTimeout(300);\n});\n", 1],
    );
    for my $case (@cases) {
        my ($path, $text, $count) = @$case;
        my @found = sleeping($path, $text);
        die "$path has $count, not " . @found . ":\n$text" unless @found == $count;
    }
}

if (@ARGV && $ARGV[0] eq '--self-test') {
    self_test();
    exit 0;
}
chdir dirname($0) . '/..' or die "$0: $!\n";
my $count = 0;
for my $path (split /\n/, `git ls-files --cached --others --exclude-standard 'crates/*.rs' 'guest/*.rs' 'web/test/*.test.js'`) {
    # Its functions wait for conditions, and look for them again and again.
    next if $path eq 'crates/judge/whit-testing/src/wait.rs';
    open my $file, '<', $path or next;
    local $/;
    for my $found (sleeping($path, <$file>)) {
        $count++;
        print "$path:$found->[0]: $found->[1]\n" if @ARGV && $ARGV[0] eq '-v';
    }
}
if ($count > $LIMIT) {
    print "$count functions of tests sleep: above the limit of $LIMIT (scripts/sleeps.pl -v)\n";
    exit 1;
}
print "scripts/sleeps.pl: the tree has $count, the limit is $LIMIT: lower it\n" if $count < $LIMIT;
