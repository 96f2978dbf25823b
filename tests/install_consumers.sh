#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs that find an installed weir with CMake and with pkg-config, shared and static, in C and C++.
. "$SOURCE/tests/install_shell.sh"
consumer=$SOURCE/tests/install_consumer

cmake -G Ninja -S "$consumer" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$PREFIX" -DCMAKE_BUILD_TYPE=Release >"$scratch/log" &&
    cmake --build "$scratch/build" >>"$scratch/log" || { cat "$scratch/log"; fail "find_package(weir)"; }
for program in shared static cxx; do
    "$scratch/build/$program" || fail "the $program program of find_package(weir) exited with $?"
done

export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig
read -ra flags < <(pkg-config --cflags --libs weir)
gcc "$consumer/consumer.c" "${flags[@]}" -o "$scratch/pc"
LD_LIBRARY_PATH=$PREFIX/lib "$scratch/pc" || fail "the program of pkg-config exited with $?"
read -ra flags < <(pkg-config --static --cflags --libs weir | sed 's/-lweir\b/-l:libweir.a/')
gcc "$consumer/consumer.c" "${flags[@]}" -o "$scratch/pcs" && "$scratch/pcs" || fail "the static program of pkg-config"

# Opened while a program runs, by an interpreter for example.
cat >"$scratch/open.c" <<'EOF'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW);
        const char *(*name)(int) = library ? (const char *(*)(int))dlsym(library, "weir_error_name") : 0;
        if (!library || (i == 1 && (!name || name(0)[0] == 0))) return puts(dlerror()), 1;
        dlclose(library);
        if (i == 1 && name(0)[0] == 0) return 1; /* it stays */
    }
    return 0;
}
EOF
gcc "$scratch/open.c" -o "$scratch/open"
"$scratch/open" "$PREFIX/lib/libweir.so" $([ "$OPENMP" = ON ] && echo "$PREFIX/lib/weir/libomptarget.so.22.1") || fail "dlopen()"

headers=("$SOURCE"/include/weir/*.h)
for header in "${headers[@]}"; do
    printf '#include <weir/%s>\nint main(void) { return 0; }\n' "$(basename "$header")" >"$scratch/one.c"
    for language in "gcc -xc -std=c11" "g++ -xc++ -std=c++17" "clang-22 -xc -std=c11" "clang++-22 -xc++ -std=c++17"; do
        read -ra words <<<"$language"
        command -v "${words[0]}" >/dev/null || continue
        "${words[@]}" -Wall -Wextra -Wpedantic -Werror -I"$PREFIX/include" -fsyntax-only "$scratch/one.c" ||
            fail "$(basename "$header") with $language"
    done
done
if command -v clang++-22 >/dev/null; then
    clang++-22 -std=c++17 -Wall -Wextra -Werror "$consumer/consumer.cpp" -I"$PREFIX/include" -L"$PREFIX/lib" -lweir \
        -o "$scratch/clang"
    LD_LIBRARY_PATH=$PREFIX/lib "$scratch/clang" || fail "the program of clang++ exited with $?"
fi
finish
