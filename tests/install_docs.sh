#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The documentation tells what is there: programs, commands, links, environment variables, packages.
. "$SOURCE/tests/install_shell.sh"
cd "$SOURCE"
documents=(README.md docs/*.md)

# region FILE [NAME]: the lines between the markers, without the indentation they share.
region() {
    awk -v open="/* [snippet${2:+ $2}] */" '
        { text = $0; sub(/^[ ]+/, "", text) }
        inside && text == "/* [end] */" { exit }
        inside { lines[n++] = $0; if (text != "") { indent = match($0, /[^ ]/) - 1; if (n == 1 || indent < least) least = indent } }
        text == open { inside = 1 }
        END { for (i = 0; i < n; i++) print substr(lines[i], least + 1) }' "$1"
}

# Every C block stands behind "<!-- FILE [NAME] -->" and equals that region.
for document in "${documents[@]}"; do
    awk -v out="$scratch/block" '
        /^<!-- docs\/snippets\// { source = $2; name = $3 == "-->" ? "" : $3; next }
        /^```c$/ { inside = 1; file = out "." ++n; print source, name > (file ".of"); printf "" > file; source = name = ""; next }
        /^```/ { if (inside) { close(file); close(file ".of") } inside = 0 }
        inside { print > file }' "$document"
    for of in "$scratch"/block.*.of; do
        [ -e "$of" ] || continue
        read -r source name <"$of" || true
        if [ -z "$source" ]; then
            fail "$document: a C block without its source"
        elif ! region "$source" "$name" | diff - "${of%.of}" >"$scratch/diff"; then
            cat "$scratch/diff"
            fail "$document: the block of $source $name differs"
        fi
        echo "$source" >>"$scratch/shown"
    done
    rm -f "$scratch"/block.*
done
for source in docs/snippets/*.c; do
    grep -qx "$source" "$scratch/shown" || fail "no document shows $source"
done

# Commands and links.
for command in tools/demo tools/test; do
    grep -q "^$command\b" README.md || fail "README.md does not name $command"
    [ -x "$command" ] || fail "$command is not executable"
done
for document in "${documents[@]}"; do
    while read -r link; do
        [ -e "$(dirname "$document")/$link" ] || fail "$document: the link $link leads nowhere"
    done < <(grep -oE '\]\([^)#:]+' "$document" | cut -c3-)
    while read -r path; do
        [ -e "$path" ] || fail "$document: $path does not exist"
    done < <(grep -oE '\b(tools|benchmarks|docs|cmake|tests)/[a-z_-]+[a-z0-9_./-]*[a-z]' "$document" | sort -u)
done

# Environment: the table of the command, the document and the sources know the same variables.
sed -n 's/^ *[XYT]("\(WEIR_[A-Z_]*\)".*/\1/p' tools/environment.h | sort >"$scratch/table"
sed -n 's/^| `\(WEIR_[A-Z_]*\)` .*/\1/p' docs/environment.md | sort >"$scratch/documented"
grep -rhoE '"WEIR_[A-Z_]+"' graph devices exec interop trace --include='*.c' --include='*.h' | tr -d '"' | grep -v '^WEIR_E_' | sort -u >"$scratch/read"
diff "$scratch/table" "$scratch/documented" || fail "docs/environment.md and tools/environment.h differ"
diff "$scratch/table" "$scratch/read" || fail "tools/environment.h and the sources differ"
while IFS= read -r line; do
    name=$(cut -d'"' -f2 <<<"$line") standard=$(cut -d'"' -f4 <<<"$line") meaning=$(cut -d'"' -f6 <<<"$line")
    read -r least most < <(cut -d'"' -f3 <<<"$line" | tr -d ',u')
    grep -qF "| \`$name\` | $least to $most | $standard | $meaning |" docs/environment.md || fail "docs/environment.md: the row of $name"
done < <(tr -d '\n' <tools/environment.h | sed 's/\\ */ /g; s/X("/\nX("/g; s/Y("/\nY("/g' | grep '^X("')
while IFS= read -r line; do
    IFS='"' read -r _ name _ words _ standard _ meaning _ <<<"$line"
    grep -qF "| \`$name\` | $words | $standard | $meaning |" docs/environment.md || fail "docs/environment.md: the row of $name"
done < <(tr -d '\n' <tools/environment.h | sed 's/\\ */ /g; s/Y("/\nY("/g' | grep '^Y("')

while IFS='"' read -r _ name _ values _ standard _ meaning _; do
    grep -qF "| \`$name\` | $values | $standard | $meaning |" docs/environment.md || fail "docs/environment.md: the row of $name"
done < <(tr -d '\n' <tools/environment.h | sed 's/\\ */ /g; s/T("/\nT("/g' | grep '^T("')

# Packages: each has its reason.
while read -r package; do
    grep -q "^| \`$package\`" docs/dependencies.md || fail "docs/dependencies.md does not tell why $package"
done < <(grep -v '^#' tools/packages)
finish
