#!/usr/bin/env perl
# Measures the language of documents and comments: long sentences, sentences that begin with a
# relative word, relative clauses without a noun, private words, and doc lines that restate a name or say nothing.
# Tables, code blocks, inline code and quoted output are left out. Names in code have no private words either.
#
#   scripts/prose.pl              judges the tree by scripts/prose.limits; exit code 1 above a limit
#   scripts/prose.pl -v           lists each finding with its file and line
#   scripts/prose.pl FILE...      judges these files; the limit is 0
#   scripts/prose.pl -            judges standard input as plain text (whit --help | scripts/prose.pl -)
#   scripts/prose.pl --only=long  lists one category (long, opening, relative, private, names, restated, vague)
#   scripts/prose.pl --lower      writes lower limits where the tree has fewer findings
#   scripts/prose.pl --self-test  checks sentences that have to be counted, and others that must not be
use strict;
use warnings;
use utf8;
use File::Basename qw(dirname);
use File::Find qw(find);

# Longest sentence that is not counted, in words.
my $LONGEST = 40;

my @CATEGORIES = qw(long opening relative private names restated vague);
my %TITLE = (
    long     => "sentences above $LONGEST words",
    opening  => 'sentences that begin with What, Who, Whose, Of …',
    relative => 'relative clauses without a noun',
    private  => 'private words',
    names    => 'private words in names',
    restated => 'doc lines that restate a name',
    vague    => 'doc lines that say nothing',
);

my $OPENING = qr/^(?:What|Whatever|Who|Whoever|Whose|Whosever|Whom|Of(?! course\b))\b/;

# Free relative clauses: "is told what it did", "for who does not need them", "of which two".
my @RELATIVE = (
    qr/\b(?:of|to|from|by|for|with|in|than|about|behind|beside|on|at|into|as|like|and|or) what\b(?! if\b)/i,
    qr/\bwhat (?:is|was|are|were|has|had|does|did|it|they|he|she|we|you|one|there|whit|perf|nobody|others|the kernel|the recorder|comes|came|goes|runs|becomes|became|stands|remains|follows|belongs|happens|happened)\b/i,
    qr/\b(?:whoever|whomever|whosever|whatever(?! (?:the|its|their)\b))\b/i,
    qr/\b(?:by|for|of|to|with|than|from|is|was|says?|knows?) whom?\b(?! to\b)/i,
    qr/\b(?:nobody|somebody|everybody|anybody|he|they)\b[^.,;:]{0,40}? who(?:se|m)?\b/i,
    qr/\bof (?:which|whom)\b/i,
    qr/\bsuch (?:a one|ones)\b/i,
);

# The words of specs and commits that mean nothing to a reader of the repository.
my @PRIVATE = (
    qr/\bcarriers?\b/i,
    qr/\bbells?\b/i,
    qr/\bcomings\b/i,
    qr/\b(?:a|the|its|each|every|no) came\b/i,
    qr/\b(?:told|tells?|telling) of\b/i,
    qr/\b(?:is|are|was|were|be|been|being) told\b(?! (?:apart|from)\b)/i,
    qr/\bto be had\b/i,
    qr/\b(?:finds?|found|finding) (?:no )?room\b/i,
    qr/\bthe seed\b(?! (?:that|of)\b)/i,
    qr/\b(?:was|were|is|are) aimed at\b/i,
    qr/\bthe talk\b/i,
    qr/\bresidues?\b/i,
    qr/\bballast\b/i,
    qr/(?<!carries its own )\bbills?\b/i,
    qr/\bbeside[- ]rings?\b/i,
    qr/\bheed(?:s|ed|ing)?\b/i,
    qr/\bside[- ]bands?\b/i,
);

# Private words of names, in names that are cut at "_" and at capitals. A stand-in is a term.
my $NAME_WORD = qr/(?<![a-z0-9])(?:told|tell|tells|telling|beside|goes|go_on|nobody|somebody|whose|stands|stand(?!_ins?(?![a-z0-9])))(?![a-z0-9])/;

my %STOP = map { $_ => 1 } qw(a an the of to in on for is are be this that its it and or by with at from as);
# Words that name nothing: a doc line of one to three of them ("Where.", "All of them.") says nothing.
my %EMPTY = map { $_ => 1 } qw(
    which what where why when how who whom whose many much often long far not no its it their they them those these this
    that one ones a an the all none nothing something anything everything everybody nobody somebody other others only as
    shown given written run said asked wanted must may can never always now more less least most latest last first both
    either neither together with without same different of for to from in at by on yes and or so is are was were be has
    had did does do itself each every any too also else here there then before after again);
my $ABBREVIATION = qr/(?:\b(?:e\.g|i\.e|etc|vs|cf|ca|approx|resp|vol|no|fig|St|Dr)|\b[A-Z])\.$/;

# Findings of one run: [category, file, line, text].
my @findings;

sub found { push @findings, [@_]; }

# Puts one word where code, links, addresses and quotations stand.
sub plain {
    my ($text) = @_;
    $text =~ s/``[^`]*(?:`[^`]+)*``/CODE/g;
    $text =~ s/`[^`]*`/CODE/g;
    $text =~ s/«[^»]*»/QUOTED/g;
    $text =~ s/“[^”]*”/QUOTED/g;
    $text =~ s/(?<![\w"])"[^"]{1,200}"(?!\w)/QUOTED/g;
    $text =~ s/!?\[([^\]]*)\]\([^)]*\)/$1/g;
    $text =~ s/\[([^\]]*)\]\[[^\]]*\]/$1/g;
    $text =~ s{<?https?://\S+}{ADDRESS}g;
    $text =~ s/(?<!\w)[*_]{1,3}(?=\S)//g;
    $text =~ s/(?<=\S)[*_]{1,3}(?!\w)//g;
    return $text;
}

# Cuts a paragraph into sentences, each with the line it begins on. A paragraph is a list of [line, text].
sub sentences {
    my @lines = @_;
    my ($joined, @starts) = ('');
    for (@lines) {
        push @starts, [length $joined, $_->[0]];
        $joined .= $_->[1] . ' ';
    }
    # Code and quotations may go over a line's end, so a mark keeps the lines apart in the plain text.
    my $marked = join ' ', map { "\x01$_->[0]\x02$_->[1]" } @lines;
    $marked =~ s/(`[^`]*`)/my $c = $1; my $m = join '', $c =~ m{\x01\d+\x02}g; (my $p = $c) =~ s{\x01\d+\x02}{}g; $m . $p/ge;
    $marked = plain($marked);
    my (@out, $current);
    my $line = $lines[0][0];
    my $at = $line;
    $current = '';
    for my $word (split ' ', $marked) {
        $line = $1 while $word =~ s/\x01(\d+)\x02//;
        next if $word eq '';
        $at = $line if $current eq '';
        $current .= ($current eq '' ? '' : ' ') . $word;
        next unless $word =~ /[.!?][)"'*_»]*$/ and $word !~ $ABBREVIATION;
        push @out, [$at, $current];
        $current = '';
    }
    push @out, [$at, $current] if $current ne '';
    return @out;
}

sub judge_sentence {
    my ($file, $line, $sentence) = @_;
    my $words = grep { /[A-Za-z0-9]/ } split ' ', $sentence;
    found('long', $file, $line, "$words words: $sentence") if $words > $LONGEST;
    my $question = $sentence =~ /\?[)"'*_]*$/;
    (my $bare = $sentence) =~ s/^[^A-Za-z]+//;
    found('opening', $file, $line, $sentence) if !$question and $bare =~ $OPENING;
    if (!$question) {
        # One clause is one finding, whichever patterns it fits.
        my $rest = $sentence;
        my $clauses = 0;
        for my $pattern (@RELATIVE) {
            $clauses++ while $rest =~ s/$pattern/ - /;
        }
        found('relative', $file, $line, $sentence) for 1 .. $clauses;
    }
    for my $pattern (@PRIVATE) {
        found('private', $file, $line, "$&: $sentence") while $sentence =~ /$pattern/g;
    }
}

sub judge_paragraph {
    my ($file, @lines) = @_;
    return unless @lines;
    judge_sentence($file, @$_) for sentences(@lines);
}

# Markdown, and comments without their marks: [line, text] each.
sub judge_markdown {
    my ($file, @lines) = @_;
    my ($fence, $generated, @paragraph) = ('', 0);
    my $flush = sub { judge_paragraph($file, @paragraph); @paragraph = (); };
    for (@lines) {
        my ($number, $text) = @$_;
        $generated = 1 if $text =~ /^<!-- generated\b/;
        if ($generated) {
            $generated = 0 if $text =~ /^<!-- end of generated\b/;
            next;
        }
        if ($fence) {
            $fence = '' if $text =~ /^\s*\Q$fence\E/;
        } elsif ($text =~ /^\s*(```|~~~)/) {
            $flush->();
            $fence = $1;
        } elsif ($text =~ /^\s*$/ or $text =~ /^\s*\|/ or $text =~ /^\[[^\]]+\]: / or $text =~ /^\s*<!--.*-->\s*$/) {
            $flush->();
        } elsif (!@paragraph and $text =~ /^ {4,}\S/ and $text !~ /^\s*(?:[-*+]|\d+[.)])\s/) {
            # An indented block is code.
        } elsif ($text =~ /^#+\s+(.*)/) {
            $flush->();
            judge_paragraph($file, [$number, $1]);
        } elsif ($text =~ /^\s*(?:[-*+]|\d+[.)])\s+(.*)/) {
            $flush->();
            push @paragraph, [$number, $1];
        } else {
            $text =~ s/^\s*(?:>\s?)*//;
            push @paragraph, [$number, $text];
        }
    }
    $flush->();
}

# Plain text such as --help: a blank line, another indentation or a row of a list begins a paragraph.
sub judge_plain {
    my ($file, @lines) = @_;
    my ($column, @paragraph) = (0);
    my $flush = sub { judge_paragraph($file, @paragraph); @paragraph = (); };
    for (@lines) {
        my ($number, $text) = @$_;
        if ($text =~ /^\s*$/) {
            $flush->();
            next;
        }
        # A row is "  -a, --all  Everything": its text stands in a column, and goes on there.
        if ($text =~ /^(\s+\S+(?: \S+)*\s{2,})(\S.*)/) {
            $flush->();
            ($column, $text) = (length $1, $2);
        } else {
            $text =~ /^(\s*)(.*)/;
            $flush->() if $column != length $1;
            ($column, $text) = (length $1, $2);
            next if $text =~ /^-{1,2}[A-Za-z]/;    # an option whose text stands below
        }
        push @paragraph, [$number, $text];
    }
    $flush->();
}

sub name_words {
    my ($name) = @_;
    $name =~ s/([a-z0-9])([A-Z])/$1_$2/g;
    return map { stem($_) } grep { $_ ne '' } split /_/, lc $name;
}

sub stem {
    my ($word) = @_;
    $word = lc $word;
    $word =~ s/(?:ies|y)$/i/ or $word =~ s/(?<=\w{3})(?:ing|ed|es|s|e)$//;
    return $word;
}

# A single doc line without a noun, a verb or code.
sub judge_vague {
    my ($file, $line, $text) = @_;
    my @words = $text =~ /[\w`']+/g;
    found('vague', $file, $line, $text) if @words and @words <= 3 and !grep { !$EMPTY{ lc $_ } } @words;
}

# A single doc line says nothing if the item's name has all of its words.
sub judge_restated {
    my ($file, $line, $text, $item) = @_;
    $item =~ s/^\s*(?:pub(?:\([^)]*\))?\s+)?(?:default\s+|async\s+|unsafe\s+|extern\s+(?:"[^"]*"\s+)?)*//;
    $item =~ s/^const\s+(?=fn\b|unsafe\b)//;
    $item =~ s/^unsafe\s+//;
    my $name = $item =~ /^(?:fn|struct|enum|union|trait|type|const|static(?:\s+mut)?|mod|macro_rules!)\s+([A-Za-z_]\w*)/ ? $1
        : $item =~ /^([A-Za-z_]\w*)\s*(?:[:,({=]|$)/ ? $1
        : return;
    my %in_name = map { $_ => 1 } name_words($name);
    my @words = grep { !$STOP{ lc $_ } } map { split /[_\W]+/ } split ' ', $text;
    @words = grep { $_ ne '' } @words;
    return unless @words;
    for (@words) {
        return unless $in_name{ stem($_) };
    }
    found('restated', $file, $line, "$text ($name)");
}

# The words of a name: "NobodyRan" and "nobody_ran" are "nobody_ran".
sub split_name {
    my ($name) = @_;
    $name =~ s/([a-z0-9])([A-Z])/$1_$2/g;
    $name =~ s/([A-Z])([A-Z][a-z])/$1_$2/g;
    return lc $name;
}

sub judge_name {
    my ($file, $line, $name, $text) = @_;
    # The user of this name has this number.
    return if $name eq 'NOBODY' and $text =~ /\b65_?534\b/;
    my ($word) = split_name($name) =~ /($NAME_WORD)/ or return;
    found('names', $file, $line, "$word: $name");
}

# Code with blanks in place of comments and literals. Characters keep their places.
sub bare_code {
    my ($file, $text) = @_;
    my $blank = sub { (my $s = $_[0]) =~ s/[^\n]/ /g; $s };
    my $comment = qr{//[^\n]*|/\*.*?(?:\*/|\z)}s;
    my $string = qr/"(?:[^"\\]|\\.)*(?:"|\z)/s;
    my $literal = $file =~ /\.rs$/ ? qr/(?<!\w)b?r(#*)".*?(?:"\g{-1}|\z)|$string|'(?:\\.[^'\n]*|[^'\\\n])'/s
        : $file =~ /\.m?js$/ ? qr/$string|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*(?:`|\z)/s
        : qr/$string|'(?:[^'\\\n]|\\.)*'/s;
    $text =~ s/($comment|$literal)/$blank->($1)/ge;
    # Places in a text of single bytes are found at once.
    $text =~ tr/\x00-\x7f/?/c;
    utf8::downgrade($text);
    return $text;
}

# The place behind the bracket that opens at a place.
sub bracket_end {
    my ($code, $at) = @_;
    my $depth = 0;
    pos($$code) = $at;
    while ($$code =~ /([(\[{])|[)\]}]/g) {
        $depth += defined $1 ? 1 : -1;
        return pos $$code if $depth <= 0;
    }
    return length $$code;
}

# Text with blanks in place of its brackets and of their content.
sub flat {
    my ($text) = @_;
    my $depth = 0;
    $text =~ s/([(\[{])|([)\]}])|([^()\[\]{}]+)/
        if (defined $1) { $depth++; ' ' } elsif (defined $2) { $depth--; ' ' } else { $depth ? ' ' x length $3 : $3 }/gex;
    return $text;
}

# Names that a pattern binds: no constructors, no paths, no fields before a pattern of their own.
sub bindings {
    my ($pattern, $at) = @_;
    my @names;
    push @names, [$at + $-[1], $1]
        while $pattern =~ /(?<![\w:.'])(?:r#)?([a-z_]\w*)\b(?!\s*(?:::|[!({.]|:(?!:)\s*[a-z_(&\[{]))/g;
    return @names;
}

# A pattern with its type, or a parameter: the names before the colon that stands in no bracket.
sub typed_bindings {
    my ($text, $at) = @_;
    my $end = flat($text) =~ /(?<!:):(?!:)|\sin\s/ ? $-[0] : length $text;
    return bindings(substr($text, 0, $end), $at);
}

# The parameters of a function behind its name.
sub parameters {
    my ($code, $at) = @_;
    pos($$code) = $at;
    if ($$code =~ /\G\s*</gc) {
        my $depth = 1;
        $depth += $1 eq '<' ? 1 : -1 while $depth and $$code =~ /(<|(?<![-=])>)/g;
    }
    $$code =~ /\G\s*\(/gc or return;
    my $from = pos $$code;
    return parameter_list(substr($$code, $from, bracket_end($code, $from - 1) - 1 - $from), $from);
}

sub parameter_list {
    my ($list, $from) = @_;
    my ($flat, @names) = (flat($list));
    while ($flat =~ /[^,]+/g) {
        my ($begin, $end) = ($-[0], $+[0]);
        push @names, typed_bindings(substr($list, $begin, $end - $begin), $from + $begin);
    }
    return @names;
}

# The pattern of the arm whose arrow stands at a place, without its condition.
sub arm {
    my ($code, $arrow) = @_;
    my $from = $arrow > 400 ? $arrow - 400 : 0;
    my ($text, $depth) = (substr($$code, $from, $arrow - $from), 0);
    my $begin = length $text;
    while ($begin > 0) {
        my $mark = substr $text, $begin - 1, 1;
        if ($mark =~ /[)\]}]/) {
            # A block before the arm ends the arm before it; a pattern goes on behind its own brace.
            last if $mark eq '}' and !$depth and substr($text, $begin) =~ /\S/ and substr($text, $begin) !~ /^\s*(?:if\b|\||$)/;
            $depth++;
        } elsif ($mark =~ /[(\[{]/) {
            last unless $depth--;
        } elsif (!$depth and $mark =~ /[,;]/) {
            last;
        }
        $begin--;
    }
    my $pattern = substr $text, $begin;
    $pattern =~ s/\sif\b.*//s;
    return ($pattern, $from + $begin);
}

# Definitions of a Rust file: [place, name] each. Uses are left out, since a name is mended at its definition.
sub rust_definitions {
    my ($code) = @_;
    my @names;
    my $item = qr/fn|struct|enum|union|trait|type|mod|const(?!\s+(?:fn|unsafe|extern|async)\b)|static(?:\s+mut)?|macro_rules!/;
    while ($$code =~ /(?<![\w'])($item)\s+(?:r#)?([A-Za-z_]\w*)/g) {
        my ($kind, $place, $name, $end) = ($1, $-[2], $2, $+[2]);
        push @names, [$place, $name];
        if ($kind eq 'fn') {
            push @names, parameters($code, $end);
        } elsif ($kind =~ /^(?:struct|enum|union)$/) {
            pos($$code) = $end;
            if ($$code =~ /\G[^{;]*\{/gc) {
                my $from = pos $$code;
                my $body = substr $$code, $from, bracket_end($code, $from - 1) - 1 - $from;
                push @names, [$from + $-[1], $1] while $body =~ /(?<![\w:'])(?:r#)?([a-z_]\w*)\s*:(?!:)/g;
                if ($kind eq 'enum') {
                    (my $variants = flat($body)) =~ tr/#/ /;
                    push @names, [$from + $-[1], $1] while $variants =~ /(?:^|,)\s*([A-Za-z_]\w*)/g;
                }
            }
        }
        pos($$code) = $end;
    }
    push @names, [$-[1], $1] while $$code =~ /\bas\s+([A-Za-z_]\w*)\s*[,;}]/g;
    push @names, typed_bindings($1, $-[1]) while $$code =~ /\blet\s+([^=;]{1,400})/g;
    push @names, bindings($1, $-[1]) while $$code =~ /\bfor\s+(?!<)((?:[^;{}]|\{[^{};]*\}){1,200}?)\s+in\b/g;
    push @names, parameter_list($1, $-[1]) while $$code =~ /(?:[(,={;]|\bmove|\breturn|=>|^)\s*\|([^|;]{1,300})\|/g;
    push @names, bindings(arm($code, $-[0])) while $$code =~ /=>/g;
    my %seen;
    return sort { $a->[0] <=> $b->[0] } grep { !$seen{ $_->[0] }++ } @names;
}

# Names in C and JavaScript, each at its first place: they have few keywords that begin a definition.
sub first_uses {
    my ($code) = @_;
    my (%seen, @names);
    while ($$code =~ /([A-Za-z_]\w*)/g) {
        push @names, [$-[1], $1] unless $seen{$1}++;
    }
    return @names;
}

sub judge_names {
    my ($file, $text) = @_;
    my $code = bare_code($file, $text);
    my @lines = split /\n/, $text;
    my ($line, $at) = (1, 0);
    for ($file =~ /\.rs$/ ? rust_definitions(\$code) : first_uses(\$code)) {
        my ($place, $name) = @$_;
        $line += substr($code, $at, $place - $at) =~ tr/\n//;
        $at = $place;
        judge_name($file, $line, $name, $lines[$line - 1] // '');
    }
}

# Comments of Rust, C and JavaScript.
sub judge_source {
    my ($file, @lines) = @_;
    my (@block, $mark, $inside);
    my $rust = $file =~ /\.rs$/;
    my $flush = sub {
        judge_markdown($file, @block);
        @block = ();
        $mark = '';
    };
    $mark = '';
    my @doc;    # the doc line before the item that comes
    for (@lines) {
        my ($number, $text) = @$_;
        if ($inside) {
            my $ends = $text =~ s{\*/.*}{};
            $text =~ s/^\s*\*\s?//;
            push @block, [$number, $text];
            if ($ends) { $inside = 0; $flush->(); }
        } elsif ($text =~ m{^\s*(//[/!]?)(?!/)\s?(.*)}) {
            my ($kind, $comment) = ($1, $2);
            $flush->() if $kind ne $mark;
            $mark = $kind;
            next if $comment =~ /^SPDX/;
            $comment =~ s/^SAFETY:\s*//;
            push @block, [$number, $comment];
            if ($kind eq '///') { push @doc, [$number, $comment]; }
        } elsif ($text =~ m{^\s*/\*+\s?(.*)}) {
            $flush->();
            my $comment = $1;
            $inside = $comment !~ s{\*/.*}{};
            push @block, [$number, $comment] unless $comment =~ /^\s*SPDX/;
            $flush->() unless $inside;
        } else {
            $flush->() if @block;
            if ($text =~ m{^[^"']*\s(?://|/\*) ([^"]*)$}) {
                my $comment = $1;
                $comment =~ s{\s*\*/.*}{};
                judge_markdown($file, [$number, $comment]);
            }
            next if $text =~ /^\s*#!?\[/;    # attributes stand between a doc line and its item
            if ($rust and @doc == 1) {
                judge_vague($file, @{ $doc[0] });
                judge_restated($file, @{ $doc[0] }, $text) if $text !~ /^\s*$/;
            }
            @doc = ();
        }
    }
    $flush->() if @block;
}

sub lines_of {
    my ($text) = @_;
    my $n = 0;
    return map { [++$n, $_] } split /\n/, $text;
}

sub judge_text {
    my ($file, $text) = @_;
    if ($file =~ /\.md$/) { judge_markdown($file, lines_of($text)); }
    elsif ($file =~ /\.(?:rs|c|h|cpp|hpp|cc|js|mjs)$/) { judge_source($file, lines_of($text)); judge_names($file, $text); }
    else { judge_plain($file, lines_of($text)); }
}

sub judge_file {
    my ($file) = @_;
    open my $in, '<:encoding(UTF-8)', $file or die "prose.pl: cannot read $file: $!\n";
    local $/;
    judge_text($file, scalar <$in>);
}

# Documents and source of the tree. What benchmarks printed and what is vendored is left out.
sub tree {
    my (@documents, @source);
    push @documents, grep { -f } qw(README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md RELEASE.md SECURITY.md);
    my $add = sub {
        my ($into, $pattern, @folders) = @_;
        @folders = grep { -d } @folders or return;
        find({ no_chdir => 1, preprocess => sub { sort grep { !/^(?:target|corpus|node_modules|vendor|artifacts|snapshots)$/ } @_ },
            wanted => sub { push @$into, $_ if -f and /$pattern/ } }, @folders);
    };
    $add->(\@documents, qr/\.md$/, 'docs');
    $add->(\@source, qr/\.(?:rs|c|h|cpp|js)$/, qw(crates bench guest fuzz web/src));
    @source = grep { !m{/(?:vmlinux|bpf_helper_defs)[^/]*\.h$} } @source;
    return (documents => \@documents, source => \@source);
}

sub counts {
    my %count = map { $_ => 0 } @CATEGORIES;
    $count{ $_->[0] }++ for @findings;
    return %count;
}

sub show {
    my ($only) = @_;
    for (sort { $a->[1] cmp $b->[1] or $a->[2] <=> $b->[2] } @findings) {
        next if $only and $_->[0] ne $only;
        print "$_->[1]:$_->[2]: $_->[0]: $_->[3]\n";
    }
}

sub read_limits {
    my ($file) = @_;
    my %limit;
    open my $in, '<', $file or die "prose.pl: cannot read $file: $!\n";
    while (<$in>) {
        next if /^\s*(?:#|$)/;
        my ($area, $category, $number) = /^(\w+)\s+(\w+)\s+(\d+)\s*$/ or die "prose.pl: $file:$.: not a limit: $_";
        $limit{$area}{$category} = $number;
    }
    return \%limit;
}

sub write_limits {
    my ($file, $limit) = @_;
    open my $out, '>', $file or die "prose.pl: cannot write $file: $!\n";
    print $out "# Most findings that scripts/prose.pl allows in the tree. Numbers only fall: scripts/prose.pl --lower.\n";
    for my $area (qw(documents source)) {
        print $out "$area $_ $limit->{$area}{$_}\n" for @CATEGORIES;
    }
    close $out or die "prose.pl: cannot write $file: $!\n";
}

# Judges the tree; 1 if a limit is exceeded.
sub judge_tree {
    my ($verbose, $only, $lower) = @_;
    my $limits = "scripts/prose.limits";
    my $limit = -f $limits ? read_limits($limits) : {};
    my %tree = tree();
    my $above = 0;
    my $fewer = 0;
    for my $area (qw(documents source)) {
        @findings = ();
        judge_file($_) for @{ $tree{$area} };
        show($only) if $verbose;
        my %count = counts();
        for my $category (@CATEGORIES) {
            my $most = $limit->{$area}{$category};
            my $state = '';
            if (!defined $most) {
                $limit->{$area}{$category} = $count{$category};
                $state = ', no limit yet';
                $fewer = 1;
            } elsif ($count{$category} > $most) {
                $state = ": above the limit of $most";
                $above = 1;
            } elsif ($count{$category} < $most) {
                $limit->{$area}{$category} = $count{$category} if $lower;
                $state = ", limit $most" . ($lower ? ', lowered' : '');
                $fewer = 1;
            }
            printf "%-10s %5d %s%s\n", $area, $count{$category}, $TITLE{$category}, $state;
        }
    }
    if ($lower) { write_limits($limits, $limit); }
    elsif ($fewer) { print "Fewer than allowed: scripts/prose.pl --lower makes that the limit.\n"; }
    print "List them with file and line: scripts/prose.pl -v\n" if $above and !$verbose;
    return $above;
}

# Each case: name of a file, its text, and the findings that it has to have.
sub self_test {
    my $long = join(' ', ('word') x 41) . '.';
    my $short = join(' ', ('word') x 40) . '.';
    my $words30 = join(' ', ('word') x 30);
    my @cases = (
        ['a.md', $long, { long => 1 }],
        ['a.md', $short, {}],
        ['a.md', "$short $short", {}],
        ['a.md', "- $short\n- $short\n", {}],
        ['a.md', "| $long |\n", {}],
        ['a.md', "```\n$long\nWhat it is.\n```\n", {}],
        ['a.md', "Text `" . ('word ' x 41) . "` ends.", {}],
        ['a.md', "Text `code over\ntwo lines` ends. What it is.", { opening => 1, relative => 1 }],
        ['a.md', "It says «" . ('word ' x 41) . "» and ends.", {}],
        ['a.md', 'It prints "what it is told of".', {}],
        ['a.md', "What is kept is short.", { opening => 1, relative => 1 }],
        ['a.md', "What is kept?", {}],
        ['a.md', "Whoever asks gets it.", { opening => 1, relative => 1 }],
        ['a.md', "**Whose switches.** Those of all.", { opening => 1 }],
        ['a.md', "## What differs\n", { opening => 1 }],
        ['a.md', "Of these, two remain.", { opening => 1 }],
        ['a.md', "Of course it does.", {}],
        ['a.md', "Often it does. Whatever-like names. Whole CPUs.", { opening => 1, relative => 1 }],
        ['a.md', "A sentence e.g. What follows.", { relative => 1 }],
        ['a.md', "It depends on what the kernel did.", { relative => 1 }],
        ['a.md', "Nobody waits for symbols who does not need them.", { relative => 1 }],
        ['a.md', "Ten events, of which two are pinned.", { relative => 1 }],
        ['a.md', "The user who runs it sees the thread that ended.", {}],
        ['a.md', "The command whose name is given runs.", {}],
        ['a.md', "The carrier rings a bell.", { private => 2 }],
        ['a.md', "The reader is told of comings.", { private => 3 }],
        ['a.md', "Threads can be told apart.", {}],
        ['a.md', "Threads are told apart.", {}],
        ['a.md', "It cannot be told from others.", {}],
        ['a.md', "Every recording carries its own bill.", {}],
        ['a.md', "The bill is printed.", { private => 1 }],
        ['a.md', "A record found no room.", { private => 1 }],
        ['a.md', "The label is dumbbell-shaped and the thread came back.", {}],
        ['a.md', "<!-- generated -->\nThe carrier.\n<!-- end of generated -->\nThe bell.", { private => 1 }],
        ['a.rs', "/// The name.\nname: String,\n", { restated => 1 }],
        ['a.rs', "/// Name of the thread.\npub fn thread_name() {}\n", { restated => 1 }],
        ['a.rs', "/// Opens the events.\n#[inline]\npub(crate) fn open_events(&self) {\n", { restated => 1 }],
        ['a.rs', "/// Opens the events of a CPU.\nfn open_events() {}\n", {}],
        ['a.rs', "/// The name.\n/// It is unique.\nname: String,\n", {}],
        ['a.rs', "/// Where.\noffset: u64,\n", { vague => 1 }],
        ['a.rs', "    /// All of them.\n    #[must_use]\n    fn all() {\n", { vague => 1 }],
        ['a.rs', "/// All events.\nfn all() {}\n/// `k`\nkernel: bool,\n/// Where it is.\n/// Absolute.\npath: u8,\n", {}],
        ['a.rs', "/// In the side band.\na: u8,\n/// No side-band records.\nb: u8,\n/// The sideband.\nc: u8,\n", { private => 2 }],
        ['a.rs', "// What is kept.\nlet a = 1; // the bell\nlet s = \"the carrier\";\n", { opening => 1, relative => 1, private => 1 }],
        ['a.rs', "let s = \"// the bell\";\n", {}],
        ['a.c', "/* The bell\n * rings. */\nint bell;\n", { private => 1 }],
        ['a.rs', "fn is_told() {}\nconst fn tells() {}\nstruct Told;\nenum E { A }\nmod beside;\ntype Whose = u8;\n", { names => 5 }],
        ['a.rs', "const TOLD_PERCENT: f64 = 5.0;\nstatic BESIDE: [u8; 2] = [0; 2];\ntrait TellsTime {}\nunion GoesOn { a: u8 }\n", { names => 4 }],
        ['a.rs', "enum Owner {\n    #[default]\n    Nobody,\n    Mm(Told),\n    CannotTell { told: u8 },\n    Mixed = 3,\n}\n", { names => 3 }],
        ['a.rs', "pub(crate) enum E<T: Tells> {\n    /// It runs a function of a thread.\n    A(fn(u8) -> T),\n    #[serde(rename = \"x\")]\n    NobodyRan,\n}\n", { names => 1 }],
        ['a.rs', "struct S<'a> {\n    pub told: &'a str,\n    pub(crate) ins_are_told: bool,\n    beside: Vec<u8>,\n}\n", { names => 3 }],
        ['a.rs', "fn f(told: u8, mut beside: &[u8], whose: impl Fn(u8)) {}\n", { names => 3 }],
        ['a.rs', "let told = 1;\nlet (a, mut beside): (u8, u8) = b;\nlet Some(told) = a else { return };\nlet tell: u8;\n", { names => 4 }],
        ['a.rs', "if let Some(SideBand::Function(told)) = it && it.told == 1 {}\nfor (a, told) in all {}\nfor told in told {}\n", { names => 3 }],
        ['a.rs', "let f = |told| told + 1;\nall.map(|(a, told): (u8, u8)| a);\nall.filter(|told| told.ok());\nmove |tell: &dyn Fn()| tell();\n", { names => 4 }],
        ['a.rs', "match a {\n    Some(told) => told,\n    E::Told { told, .. } if beside => 1,\n    E::Told(_) | E::Beside => 2,\n}\n", { names => 2 }],
        ['a.rs', "use a::told;\nuse a::b as told;\nlet a = it.told + told(it.tell(), E::Nobody) + S { told: 1, beside }.told;\n", { names => 1 }],
        ['a.rs', "// told\nlet a = \"told: u8\";\nlet b = r#\"let told = \"x\"\"#;\nlet c = '\"'; /* let told; */ let told = '\\'';\n", { names => 1 }],
        ['a.rs', "fn a_stand_in_is_no_name() {}\nlet stand_in = 1;\nstruct StandIn;\nlet (standalone, foretold, goesby) = a;\n", {}],
        ['a.rs', "fn rows_stand_inside() {}\nfn it_goes() {}\nfn go_on() {}\nfn let_go() {}\nfn go_only() {}\n", { names => 3 }],
        ['a.rs', "const NOBODY: u32 = 65_534;\nconst NOBODY: u32 = 7;\nfn nobody() -> u32 { 65534 }\n", { names => 2 }],
        ['a.rs', "\n\nfn f() {\n    let is_told = 1;\n}\n", { names => 1 }],
        ['a.c', "#define TOLD 1\nu32 told_at(u64 whose)\n{\n\treturn told_at(TOLD) + stand_in;\n}\n", { names => 3 }],
        ['a.js', "export function cannotBeTold(a) { return `\${told}` + 'tell' + /x/; }\nthis.#tell(a);\nconst whose = 1;\n", { names => 3 }],
        ['help', "  -a, --all  The bell\n  -b, --bell  Everything\n", { private => 1 }],
        ['help', "Usage\n\n      --cpus\n          What is recorded\n", { opening => 1, relative => 1 }],
        ['help', "  a     $words30\n  b     $words30\n", {}],
        ['help', "  -a, --all  $words30\n             $words30\n", { long => 1 }],
        ['help', "  -a, --all  It says\n             what is recorded\n", { relative => 1 }],
    );
    my $failed = 0;
    for (@cases) {
        my ($file, $text, $expected) = @$_;
        @findings = ();
        judge_text($file, $text);
        my %count = counts();
        for my $category (grep { !$TITLE{$_} } keys %$expected) {
            print "FAILED: no category $category in $file: $text\n";
            $failed++;
        }
        for my $category (@CATEGORIES) {
            my $want = $expected->{$category} // 0;
            next if $count{$category} == $want;
            print "FAILED: $count{$category} instead of $want ($category) in $file: $text\n";
            $failed++;
        }
    }
    @findings = ();
    judge_text('a.md', "One line.\n\nA long line\nends here. The bell\nrings.\n");
    judge_text('a.rs', "fn f() {\n    g();\n\n    let told = 1;\n}\n");
    if (grep { ($_->[2] // 0) != 4 } @findings[0, 1]) {
        print "FAILED: a finding is not at its line\n";
        $failed++;
    }
    printf "%d sentences, %d failed\n", scalar @cases, $failed;
    return $failed ? 1 : 0;
}

binmode STDOUT, ':encoding(UTF-8)';
my ($verbose, $only, $lower, $self_test, @files) = (0, '', 0, 0);
for (@ARGV) {
    if ($_ eq '-v') { $verbose = 1; }
    elsif (/^--only=(.*)/) {
        ($verbose, $only) = (1, $1);
        die "prose.pl: no category '$only': one of @CATEGORIES\n" unless $TITLE{$only};
    }
    elsif ($_ eq '--lower') { $lower = 1; }
    elsif ($_ eq '--self-test') { $self_test = 1; }
    elsif ($_ eq '-' or !/^-/) { push @files, $_; }
    else { die "prose.pl: no option '$_'; the head of the script lists them\n"; }
}
exit self_test() if $self_test;
if (@files) {
    for (@files) {
        if ($_ eq '-') {
            binmode STDIN, ':encoding(UTF-8)';
            local $/;
            judge_text('standard input', scalar <STDIN>);
        } else {
            judge_file($_);
        }
    }
    show($only) if $verbose;
    my %count = counts();
    printf "%5d %s\n", $count{$_}, $TITLE{$_} for @CATEGORIES;
    exit(@findings ? 1 : 0);
}
chdir dirname($0) . '/..' or die "prose.pl: cannot go to the repository: $!\n";
exit judge_tree($verbose, $only, $lower);
