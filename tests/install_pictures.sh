#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The demo's graph and timeline in a browser: used as a reader does, and drawn to PNG, which stay in $BUILD/pictures to be
# looked at.
. "$SOURCE/tests/install_shell.sh"
program=$BUILD/benchmarks/cholesky
command -v chromium >/dev/null || { echo "skipped: chromium is not installed"; exit 77; }
[ -x "$program" ] || { echo "skipped: the demo is not built"; exit 77; }
export HOME=$scratch # the browser's profile
unset LD_LIBRARY_PATH
pictures=$BUILD/pictures
mkdir -p "$pictures"
cd "$pictures"

browse() {
    timeout -s KILL 100 chromium --headless --no-sandbox --disable-gpu --no-first-run "$@" 2>"$scratch/log" ||
        fail "chromium: $(tail -n 3 "$scratch/log")"
}
# draw PAGE SIZE: PAGE.png of it
draw() {
    rm -f "$1.png"
    browse --window-size="$2" --screenshot="$PWD/$1.png" "file://$PWD/$1"
    [ "$(stat -c %s "$1.png" 2>/dev/null || echo 0)" -gt 10000 ] || fail "$1.png shows nothing"
}

expect_code 0 "PASS" "$PREFIX/bin/weir" run --graph demo.html --trace demo.json "$program" 128 32 2
expect_code 0 "PASS" "$PREFIX/bin/weir" run --trace again.json "$program" 384 64 6
draw demo.html 1400,900

# Errors of the page's own script are caught from its begin on.
{
    sed '0,/<head>/s|<head>|<head><script>var pageErrors=[];onerror=text=>{pageErrors.push(text)}</script>|; $ s|</body></html>$||' demo.html
    echo "<script>"
    cat "$SOURCE/tests/page_check.js"
    echo "</script></body></html>"
} >"$scratch/used.html"
grep -q pageErrors "$scratch/used.html" || fail "the page has no head"
browse --dump-dom "file://$scratch/used.html" >"$scratch/dom"
grep -q '<title>[1-9][0-9]* edges told their reasons</title>' "$scratch/dom" ||
    fail "the page: $(grep -o '<title>[^<]*' "$scratch/dom")"

# The timeline, by its rules and as lanes.
for file in demo again; do
    "$BUILD/tests/timeline_check" $file.json || fail "$file.json"
done
{
    echo '<!DOCTYPE html><html><head><meta charset="utf-8"></head><body style="margin:0"><script>const timeline='
    cat again.json
    echo ';</script><script>'
    cat "$SOURCE/tests/lanes.js"
    echo '</script></body></html>'
} >again.html
draw again.html 1400,620
browse --dump-dom "file://$PWD/again.html" >"$scratch/dom"
grep -q '<title>[1-9][0-9]* lanes, [1-9][0-9]* arrows</title>' "$scratch/dom" || fail "the lanes: $(grep -o '<title>[^<]*' "$scratch/dom")"
finish
