#!/usr/bin/env perl
# Finds circles among the modules of crates: modules that import each other, directly or by way of others.
# A module and its children may name each other; children among themselves may not.
# The same for the C files of a crate. A header imports the files that it includes, and the headers that define the
# functions and macros that it uses: an including file may bring these, so that the lines of includes alone hide circles.
#
#   scripts/circles.pl crates/record/whit-capture  judges crates; exit code 1 where one has a circle
#   scripts/circles.pl --self-test          checks circles that have to be found, and others that may be
use strict;
use warnings;
use File::Find qw(find);

# Texts of a crate's modules, by path: 'session/wait'; the crate itself is ''.
sub modules {
    my ($root) = @_;
    my %text;
    find({ no_chdir => 1, wanted => sub {
        return unless m{\Q$root\E/(.+)\.rs$};
        my $module = $1 =~ s{(?:^|/)mod$}{}r;
        $module = '' if $module eq 'lib' || $module eq 'main';
        open my $file, '<', $_ or die "$_: $!\n";
        local $/;
        $text{$module} = <$file>;
    } }, $root);
    # Tests name what they like.
    delete $text{$_} for grep { m{(?:^|/|_)tests(?:/|$)} } keys %text;
    return \%text;
}

# The longest path of modules that the words lead to.
sub resolve {
    my ($text, @words) = @_;
    while (1) {
        my $module = join '/', @words;
        return $module if exists $text->{$module};
        return undef unless @words;
        pop @words;
    }
}

# Which modules a module names: { from => { to => 1 } }.
sub imports {
    my ($text) = @_;
    my %edges;
    for my $from (keys %$text) {
        my $code = $text->{$from};
        $code =~ s{#\[cfg\((?:test|all\(test,[^]]*)\)\]\s*mod tests \{.*}{}s;
        $code =~ s{//[^\n]*}{}g;
        $code =~ s{pub\((?:super|crate|in [\w:]+)\)}{pub}g;
        my @here = split m{/}, $from;
        while ($code =~ /\b(crate|super|self)((?:::\w+)+)?(?:::\{([^}]*)\})?/g) {
            my ($base, $rest, $list) = ($1, $2 // '', $3);
            next if $base eq 'self' && $rest eq '' && !defined $list;
            my @at = $base eq 'crate' ? () : @here;
            pop @at if $base eq 'super';
            my @words = grep { $_ ne '' } split /::/, $rest;
            while (@words && $words[0] eq 'super') { shift @words; pop @at }
            my @ends = defined $list ? map { [split /::/, s/\s//gr] } split(/,/, $list) : ([]);
            for my $end (@ends) {
                my $to = resolve($text, @at, @words, @$end);
                $edges{$from}{$to} = 1 if defined $to && $to ne $from;
            }
        }
        # A child by its name alone.
        while ($code =~ /^\s*(?:pub )?use (\w+)::/mg) {
            my $to = join '/', @here, $1;
            $edges{$from}{$to} = 1 if exists $text->{$to};
        }
    }
    return \%edges;
}

# Texts of a crate's C files, by path from the crate's folder.
sub c_files {
    my ($root) = @_;
    my %text;
    find({ no_chdir => 1, wanted => sub {
        return unless m{^\Q$root\E/(.+\.[ch])$};
        my $path = $1;
        open my $file, '<', $_ or die "$_: $!\n";
        local $/;
        $text{$path} = <$file>;
    } }, $root);
    return \%text;
}

# The path that an include names: from the folder of the including file.
sub included {
    my ($from, $name) = @_;
    my @path = split m{/}, $from;
    pop @path;
    for my $part (split m{/}, $name) {
        if ($part eq '..') { pop @path } elsif ($part ne '.') { push @path, $part }
    }
    return join '/', @path;
}

# Which C files a C file imports: { from => { to => 1 } }.
sub c_imports {
    my ($text) = @_;
    my (%code, %edges, %homes);
    for my $path (keys %$text) {
        my $code = $text->{$path} =~ s{/\*.*?\*/|//[^\n]*}{}gsr;
        while ($code =~ /^\s*#\s*include\s+"([^"]+)"/mg) {
            my $to = included($path, $1);
            $edges{$path}{$to} = 1 if exists $text->{$to};
        }
        # Names of types are not those of functions.
        $code =~ s/__attribute__\s*\(\(.*?\)\)|\b(?:struct|union|enum)\s+\w+//gs;
        # Functions with a body, and macros.
        while ($code =~ /^(?:#\s*define\s+(\w+)|\w[^;{}()#]*\b(\w+)\([^;{}]*\)\s*\{)/mg) {
            $homes{$1 // $2}{$path} = 1;
        }
        $code{$path} = $code;
    }
    # Where several files define a name, the including file chooses.
    my %home = map { $_ => keys %{ $homes{$_} } } grep { keys %{ $homes{$_} } == 1 } keys %homes;
    for my $from (keys %code) {
        while ($code{$from} =~ /\b([A-Za-z_]\w*)\b/g) {
            my $to = $home{$1};
            $edges{$from}{$to} = 1 if defined $to && $to ne $from && $to =~ /\.h$/;
        }
    }
    return \%edges;
}

# Modules that reach each other among these.
sub circles {
    my ($edges, @modules) = @_;
    my %among = map { $_ => 1 } @modules;
    my %reach;
    for my $start (@modules) {
        my @open = ($start);
        while (defined(my $at = pop @open)) {
            for my $to (grep { $among{$_} } keys %{ $edges->{$at} // {} }) {
                push @open, $to unless $reach{$start}{$to}++;
            }
        }
    }
    my (%seen, @circles);
    for my $one (sort @modules) {
        next if $seen{$one};
        my @circle = grep { $_ eq $one || ($reach{$one}{$_} && $reach{$_}{$one}) } @modules;
        $seen{$_} = 1 for @circle;
        next if @circle < 2;
        # A module and its children: may these do without it?
        my ($top) = sort { length $a <=> length $b } @circle;
        my @below = grep { $_ ne $top } @circle;
        my $is_family = !grep { $top ne '' && index($_, "$top/") != 0 } @below;
        push @circles, $is_family ? circles($edges, @below) : [sort @circle];
    }
    return @circles;
}

sub found {
    my ($text, $imports) = @_;
    my $edges = $imports->($text);
    return map { join(' ', map { $_ eq '' ? 'lib' : $_ } @$_) } circles($edges, keys %$text);
}

sub self_test {
    my @cases = (
        ['two modules', 'a b', { a => 'use crate::b::X;', b => 'use super::a::Y;' }],
        ['one way', '', { a => 'use crate::b::{X, Y};', b => '// use crate::a::Z;' }],
        ['three', 'a b c/d', { a => 'use crate::b;', b => 'fn x() { crate::c::d::y() }', c => '',
            'c/d' => 'use crate::{a::X, e};' }],
        ['a family', '', { a => 'mod b; use b::X;', 'a/b' => 'use super::Y; pub(super) fn f() {}' }],
        ['siblings', 'a/b a/c', { a => 'mod b;', 'a/b' => 'use super::c::Y;', 'a/c' => 'use super::b::Z;' }],
        ['tests', '', { a => "use crate::b::X;", b => "#[cfg(test)]\nmod tests { use crate::a::Y; }" }],
        ['tests of a feature', '', { a => "use crate::b::X;",
            b => qq(#[cfg(all(test, feature = "sim"))]\nmod tests { use crate::a::Y; }) }],
    );
    my @c_cases = (
        ['headers', 'bpf/a.h bpf/b.h', { 'bpf/a.h' => '#include "b.h"', 'bpf/b.h' => '#include "../bpf/a.h"' }],
        ['headers one way', '', { 'bpf/a.h' => '#include "b.h"', 'bpf/b.h' => '/* #include "a.h" */',
            'bpf/c.c' => qq(#include "b.h"\n#include "a.h") }],
        ['a function that the including file brings', 'a.h b.h', { 'a.h' => qq(#include "b.h"\nstatic int f(int x)\n{\n}),
            'b.h' => "static inline int g(void)\n{\n\treturn f(1);\n}" }],
        ['a macro', 'a.h b.h', { 'a.h' => qq(#include "b.h"\n#define MAX 4), 'b.h' => 'int all[MAX];' }],
        ['a function of the program', '', { 'a.c' => qq(#include "b.h"\nint f(void)\n{\n}),
            'b.h' => "int f(void);\nint g(void) { return f(); }" }],
        ['a type of the same name', '', { 'a.h' => qq(#include "b.h"\nint f(void)\n{\n}), 'b.h' => 'struct f { int x; };' }],
    );
    my @judged = map({ [@$_, { '' => '', %{ $_->[2] } }, \&imports] } @cases), map({ [@$_, $_->[2], \&c_imports] } @c_cases);
    my $wrong = 0;
    for (@judged) {
        my ($name, $wanted, undef, $text, $imports) = @$_;
        my $found = join '; ', found($text, $imports);
        next if $found eq $wanted;
        print "$name: '$found', not '$wanted'\n";
        $wrong++;
    }
    return $wrong ? 1 : 0;
}

exit self_test() if @ARGV == 1 && $ARGV[0] eq '--self-test';
die "usage: scripts/circles.pl CRATE...\n" unless @ARGV;
my $circles = 0;
for my $crate (@ARGV) {
    for my $circle (found(modules("$crate/src"), \&imports), found(c_files($crate), \&c_imports)) {
        print "$crate: import each other: $circle\n";
        $circles++;
    }
}
exit($circles ? 1 : 0);
