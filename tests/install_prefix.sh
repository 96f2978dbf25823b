#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Everything lies where it is promised, and an installation may be moved.
. "$SOURCE/tests/install_shell.sh"

rm -rf "$PREFIX"
cmake --install "$BUILD" --prefix "$PREFIX" >/dev/null
for path in bin/weir lib/libweir.so lib/libweir.a lib/cmake/weir/weir-config.cmake lib/pkgconfig/weir.pc \
    include/weir/weir.h; do
    [ -e "$PREFIX/$path" ] || fail "$path is missing"
done
names=()
[ "$OPENMP" != ON ] ||
    names=(libomptarget.so libomptarget.so.15 libomptarget.so.16 libomptarget.so.19.1 libomptarget.so.22.1)
for name in "${names[@]}"; do
    [ "$(readlink -f "$PREFIX/lib/weir/$name")" = "$(readlink -f "$PREFIX/lib/libweir.so")" ] ||
        fail "lib/weir/$name is not libweir.so"
done
installed=$(cd "$PREFIX/include/weir" && echo *.h) wanted=$(cd "$SOURCE/include/weir" && echo *.h)
[ "$installed" = "$wanted" ] || fail "headers installed: $installed, not $wanted"

cp -a "$PREFIX" "$scratch/moved"
expect_code 0 "library   $scratch/moved/lib/libweir.so" "$scratch/moved/bin/weir" info
[[ $(PKG_CONFIG_PATH=$scratch/moved/lib/pkgconfig pkg-config --cflags weir) == *"$scratch/moved"* ]] ||
    fail "weir.pc names its first place after a move"
expect_code 0 "host:0" "$PREFIX/bin/weir" info
version=$(sed -n 's/^project(weir VERSION \([0-9.]*\).*/\1/p' "$SOURCE/CMakeLists.txt")
expect_code 0 "weir $version" "$PREFIX/bin/weir" --version
[ "$(PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig pkg-config --modversion weir)" = "$version" ] || fail "weir.pc's version"
finish
