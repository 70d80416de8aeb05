#!/usr/bin/env bash
# Plays the interface of terminals on a recording: docs/images/terminal.cast, for asciinema, and a picture of its first
# screen, docs/images/terminal.png. `cast.sh RECORDING`; whit and whit-terminal are those of PATH. Needs tmux, chromium.
set -euo pipefail
RECORDING=$(realpath "${1:?usage: cast.sh RECORDING}")
. "$(dirname "$0")/env.sh"

OUT=$ROOT/target/pictures
CAST=docs/images/terminal.cast
# Seconds that a screen stays in the cast.
STAY=2
# Each line: the keys of tmux, and a text that the screen has after them.
STEPS='|? keys
Down Down|3/
Enter|- 
o|with all that they call
v|▏
v|Waits in
Enter|- '

for tool in tmux chromium whit whit-terminal; do
    have "$tool" || fail "$tool is missing"
done
mkdir -p "$OUT" docs/images
terminal() { tmux -L "whit-cast-$$" "$@"; }
trap 'terminal kill-server 2>/dev/null || true' EXIT
terminal -f /dev/null new-session -d -x 80 -y 24 "env -u NO_COLOR TERM=tmux-256color whit report -i '$RECORDING'"

# The screen with its colours, once it has the text.
screen_with() {
    local try
    for try in $(seq 100); do
        if terminal capture-pane -p | grep -qF -e "$1"; then
            terminal capture-pane -e -p
            return
        fi
        sleep 0.3
    done
    fail "the interface never showed: $1 ($try looks)"
}

printf '{"version": 2, "width": 80, "height": 24, "title": "whit report on a terminal"}\n' >"$CAST"
time=0
while IFS='|' read -r keys text; do
    # shellcheck disable=SC2086 # several keys
    [ -z "$keys" ] || terminal send-keys $keys
    # A key is drawn at once; its text may stand there before.
    sleep 0.5
    screen_with "$text" >"$OUT/screen.txt"
    [ "$time" != 0 ] || cp "$OUT/screen.txt" "$OUT/first.txt"
    TIME=$time perl -0777 -MJSON::PP -ne '
        s/\n\z//; s/\n/\r\n/g; utf8::decode($_);
        print JSON::PP->new->ascii->canonical->encode([$ENV{TIME} + 0, "o", "\e[0m\e[H\e[2J$_"]), "\n";
    ' "$OUT/screen.txt" >>"$CAST"
    time=$((time + STAY))
done <<<"$STEPS"

# The first screen as a page: SGR sequences become spans.
perl -0777 -ne '
    my @colours = qw(#000 #c33 #2a2 #a80 #36c #a3a #088 #bbb);
    my %is;
    s/&/&amp;/g; s/</&lt;/g;
    s{\e\[([\d;]*)m}{
        my @codes = split /;/, length $1 ? $1 : "0";
        while (@codes) {
            my $code = shift @codes;
            if ($code == 0) { %is = () }
            elsif ($code == 38) { shift @codes; $is{colour} = $colours[(shift @codes) % 8] }
            elsif ($code >= 30 && $code <= 37) { $is{colour} = $colours[$code - 30] }
            elsif ($code == 39) { delete $is{colour} }
            else { $is{$code} = 1 }
        }
        my ($text, $back) = ($is{colour} // "#222", "transparent");
        ($text, $back) = ("#fff", "#222") if $is{7};
        "</span><span style=\"color:$text;background:$back" . ($is{1} ? ";font-weight:bold" : "")
            . ($is{4} ? ";text-decoration:underline" : "") . ($is{2} ? ";opacity:.7" : "") . "\">"
    }ge;
    s/\e[()][A-Z0-9]//g;
    print "<meta charset=utf-8><pre style=\"margin:12px;font:15px/19px DejaVu Sans Mono,monospace;width:80ch\"><span>$_</span></pre>";
' "$OUT/first.txt" >"$OUT/first.html"
quietly "$OUT/picture.log" chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=2 \
    --window-size=760,480 --screenshot="$ROOT/docs/images/terminal.png" "file://$OUT/first.html"
say "$CAST, docs/images/terminal.png"
