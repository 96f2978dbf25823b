#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# packages.sh <release> <folder>: the OpenMP runtime of an LLVM release from its Debian packages, unpacked below <folder> and
# not installed. Prints where its libraries are. Exit code 77: it cannot be had, and why.
set -u
release=$1 folder=$2
libraries=$folder/$release/usr/lib/llvm-$release/lib
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
if [[ ! -e $folder/$release/complete ]]; then
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || { echo "skipped: no Debian packages here"; exit 77; }
    rm -rf "${folder:?}/$release"
    mkdir -p "$folder/$release/packages"
    cd "$folder/$release/packages" || exit 1
    timeout -k 5 120 apt-get -q -o Acquire::Retries=0 -o Acquire::http::Timeout=15 download \
        "libomp5-$release" "libomp-$release-dev" >../log 2>&1 ||
        { echo "skipped: the packages of libomp $release cannot be had: $(grep -m 1 '^E:' ../log)"; exit 77; }
    for package in *.deb; do dpkg -x "$package" .. || exit 1; done
    touch ../complete
fi
echo "$libraries"
