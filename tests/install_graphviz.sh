#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A graph drawn by Graphviz.
. "$SOURCE/tests/install_shell.sh"
command -v dot >/dev/null || { echo "skipped: Graphviz is not installed"; exit 77; }
cd "$scratch"
export LD_LIBRARY_PATH=$PREFIX/lib
expect_code 0 "" env WEIR_GRAPH=g.svg WEIR_RECORD=r.weir "$BUILD/docs/snippets/snippet_first"
expect_code 0 "" "$PREFIX/bin/weir" draw --graph=again.svg r.weir
for file in g.svg again.svg; do
    grep -q '</svg>' $file || fail "$file is no picture"
    grep -q 'set' $file || fail "$file does not show the tasks"
done
finish
