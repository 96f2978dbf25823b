#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# `weir run` says what is wrong and why, and sets up what the program needs.
. "$SOURCE/tests/install_shell.sh"
weir=$PREFIX/bin/weir

expect_code 2 "usage: weir run" "$weir"
expect_code 0 "usage: weir run" "$weir" --help
expect_code 0 "usage: weir run" "$weir" run --help
expect_code 0 "usage: weir run" "$weir" run --log 2 -h
expect_code 2 "no command 'walk'" "$weir" walk
expect_code 2 "wants a program" "$weir" run
expect_code 2 "no option '--fast'" "$weir" run --fast ./program
expect_code 2 "--devices wants a number from 1 to 254, not '0'" "$weir" run --devices 0 ./program
expect_code 2 "--window wants a number" "$weir" run --window
expect_code 2 "not '12x'" "$weir" run --window=12x ./program
expect_code 2 "--log wants a number from 0 to 4" "$weir" run --log loud ./program
expect_code 2 "--summary takes no value" "$weir" run --summary=yes ./program
expect_code 2 "takes no argument" "$weir" info here
for command in info --help --version; do
    expect_code 1 "cannot write" bash -c "'$weir' $command >/dev/full"
    expect_code 1 "cannot write" bash -c "'$weir' $command >&-"
done

# What is in effect, with the limits that the library has.
expect_code 0 "WEIR_WINDOW=16777216" env WEIR_WINDOW=16777216 "$weir" info
for word in 16777217 0 12x; do
    expect_code 0 "WEIR_WINDOW=$word is not a number from 1 to 16777216: 4096" env WEIR_WINDOW="$word" "$weir" info
    expect_code 0 "weir: WEIR_WINDOW=$word is not a number from 1 to 16777216: 4096 is used" env WEIR_WINDOW="$word" WEIR_LOG=2 "$weir" info
done
expect_code 0 "weir: WEIR_WORKERS=257 is not a number from 1 to 256" env WEIR_WORKERS=257 WEIR_LOG=2 "$weir" info
expect_code 0 "weir: WEIR_HOST_DEVICES=255 is not a number from 1 to 254" env WEIR_HOST_DEVICES=255 WEIR_LOG=2 "$weir" info
expect_code 0 "weir: WEIR_STREAMS=513 is not a number from 1 to 512" env WEIR_STREAMS=513 WEIR_LOG=2 "$weir" info
expect_code 0 "weir: WEIR_HOST_SHORT_NS=1us is not a number from 0 to 999999999: 1000 is used" env WEIR_HOST_SHORT_NS=1us WEIR_LOG=2 "$weir" info
expect_code 0 "weir: WEIR_HOST_DELAY_US=-1 is not a number from 0 to 999999: 0 is used" env WEIR_HOST_DELAY_US=-1 WEIR_LOG=2 "$weir" info
expect_code 0 "weir: WEIR_HOST_DELAY_SEED=18446744073709551616 is not a number from 0 to 18446744073709551615: 0 is used" \
    env WEIR_HOST_DELAY_SEED=18446744073709551616 WEIR_LOG=2 "$weir" info
expect_code 0 "weir: WEIR_SUMMARY=2 is not a number from 0 to 1" env WEIR_SUMMARY=2 WEIR_LOG=2 "$weir" info

# Levels of messages.
expect_code 0 "weir: device 0: host:0, " env WEIR_LOG=3 "$BUILD/docs/snippets/snippet_library_call"
expect_code 0 "weir: host:0: stream 0" env WEIR_LOG=3 "$BUILD/docs/snippets/snippet_library_call"
expect_code 0 "weir: host:0: stream 0: task " env WEIR_LOG=4 "$BUILD/docs/snippets/snippet_library_call"
[[ $(WEIR_LOG=3 "$BUILD/docs/snippets/snippet_library_call" 2>&1) != *"stream 0: task"* ]] || fail "a task is told of at level 3"
[[ $(WEIR_LOG=2 "$BUILD/docs/snippets/snippet_library_call" 2>&1) != *"weir: "* ]] || fail "level 2 tells of what is in order"

expect_code 127 "not found in PATH" "$weir" run no_such_program
expect_code 127 "No such file" "$weir" run "$scratch/none"
expect_code 126 "is a folder" "$weir" run "$scratch"
echo text >"$scratch/text"
expect_code 126 "is not executable" "$weir" run "$scratch/text"
chmod +x "$scratch/text"
expect_code 126 "is not an ELF program" "$weir" run "$scratch/text"
printf '#!/bin/sh\n' >"$scratch/script" && chmod +x "$scratch/script"
expect_code 126 "is a script" "$weir" run "$scratch/script"
: >"$scratch/empty" && chmod +x "$scratch/empty"
expect_code 126 "is empty" "$weir" run "$scratch/empty"
cat >"$scratch/exit.c" <<'EOF'
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    const char *names[] = {"LD_PRELOAD", "LD_LIBRARY_PATH", "WEIR_SUMMARY", "WEIR_HOST_DEVICES", "WEIR_WINDOW", "WEIR_LOG"};
    for (int i = 0; i < 6; i++) printf("%s=%s\n", names[i], getenv(names[i]) ? getenv(names[i]) : "");
    return argc > 1 ? atoi(argv[1]) : 0;
}
EOF
gcc -static "$scratch/exit.c" -o "$scratch/static"
expect_code 126 "is linked statically" "$weir" run "$scratch/static"
gcc "$scratch/exit.c" -o "$scratch/plain"
expect_code 126 "does not use libomptarget" "$weir" run "$scratch/plain"
expect_code 126 "dlopen: LD_LIBRARY_PATH=$PREFIX/lib/weir program" "$weir" run "$scratch/plain"
head -c 1000 "$scratch/plain" >"$scratch/cut" && chmod +x "$scratch/cut"
expect_code 126 "" "$weir" run "$scratch/cut"

# A program that needs the library under LLVM's name only has weir's to find.
gcc "$scratch/exit.c" -Wl,--no-as-needed "$PREFIX/lib/libweir.so" -o "$scratch/direct"
expect_code 0 "WEIR_WINDOW=64" "$weir" run --window 64 "$scratch/direct"
expect_code 0 "WEIR_HOST_DEVICES=3" "$weir" run --devices=3 -- "$scratch/direct"
expect_code 0 "WEIR_LOG=2" "$weir" run --log 2 "$scratch/direct"
expect_code 0 "LD_PRELOAD=$PREFIX/lib/libweir.so" "$weir" run "$scratch/direct"
expect_code 0 "LD_LIBRARY_PATH=$PREFIX/lib/weir:/nowhere" env LD_LIBRARY_PATH=/nowhere "$weir" run "$scratch/direct"
expect_code 7 "WEIR_SUMMARY=1" "$weir" run --summary "$scratch/direct" 7
(cd "$scratch" && PATH=$scratch:$PATH expect_code 5 "WEIR_LOG=0" "$weir" run --log=0 direct 5)

# The summary of a context that is destroyed; install_openmp.sh has one that lives until the end.
expect_code 0 "weir: 2 tasks (0 on devices, 0 failed, 0 cancelled), 1 edge:" env WEIR_SUMMARY=1 "$BUILD/docs/snippets/snippet_first"

# Without the library beside it the command refuses.
mkdir -p "$scratch/alone/bin" && cp "$weir" "$scratch/alone/bin/"
expect_code 126 "the installation is not complete" "$scratch/alone/bin/weir" run "$scratch/direct"
cp -a "$PREFIX" "$scratch/with space"
expect_code 126 "cannot preload" "$scratch/with space/bin/weir" run "$scratch/direct"
finish
