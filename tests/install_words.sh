#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Tracked files name no host of a package registry and no place on somebody's machine; sources carry the licence line.
. "$SOURCE/tests/install_shell.sh"
cd "$SOURCE"
# The checkout may belong to somebody else.
tracked() { git -c safe.directory='*' "$@"; }
if ! tracked rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    echo "skipped: not a git checkout"
    exit 77
fi

# In pieces, so that this file does not contain them.
for word in "deb""ian.org" "npm""js" "/wo""rk/" "/ho""me/" "/ro""ot/"; do
    if tracked grep -nIF -e "$word" -- . ':!LICENSE'; then fail "'$word' in a tracked file"; fi
done
for word in "TO""DO" "FIX""ME" "XX""X"; do
    if tracked grep -nIwF -e "$word" -- . ':!LICENSE'; then fail "'$word' in a tracked file"; fi
done
while read -r file; do
    head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception' || fail "$file: no licence line"
done < <(tracked ls-files -- '*.c' '*.h' '*.cpp' '*.sh' '*.cmake' '*CMakeLists.txt' '*.map')
finish
