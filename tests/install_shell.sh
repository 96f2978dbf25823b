# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Sourced by the shell tests: the tests' few words. Every script gets SOURCE, BUILD and PREFIX from the environment.
set -euo pipefail
export LC_ALL=C
failures=0

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# expect_code CODE TEXT command…: the command exits with CODE and its output contains TEXT.
expect_code() {
    local code=$1 text=$2 output rc=0
    shift 2
    output=$("$@" 2>&1 </dev/null) || rc=$?
    [ "$rc" -eq "$code" ] || fail "'$*' exited with $rc, not $code: $output"
    [[ $output == *"$text"* ]] || fail "'$*' does not say '$text' but: $output"
}

# A scratch folder that goes away with the script.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

finish() {
    [ "$failures" -eq 0 ] || exit 1
    echo "ok"
}
