#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# libweir.so gives away what its headers declare and what OpenMP programs ask for, nothing else.
. "$SOURCE/tests/install_shell.sh"

nm -D --defined-only --with-symbol-versions "$PREFIX/lib/libweir.so" | awk '$2 != "A" {print $3}' | sort >"$scratch/all"

# Functions of the public headers: names before "(" in declarations, comments and macros left out.
cat "$PREFIX"/include/weir/*.h | gcc -fpreprocessed -dD -E -P -xc - 2>/dev/null | grep -v '^#' |
    grep -oE '\bweir_[a-z][a-z_]*\(' | tr -d '(' | sort -u >"$scratch/declared"
sed -n 's/@@WEIR_0\.1$//p' "$scratch/all" >"$scratch/public"
diff "$scratch/declared" "$scratch/public" >"$scratch/diff" ||
    { cat "$scratch/diff"; fail "the functions in WEIR_0.1 are not those of the headers"; }

# The rest: names and nodes of cmake/weir_openmp.map.
grep -v '@@WEIR_0\.1$' "$scratch/all" >"$scratch/rest" || true
shim=
while read -r name; do
    case $name in
    __tgt_*@*VERS1.0 | omp_*@*VERS1.0 | ompx_*@*VERS1.0 | llvm_omp_*@*VERS1.0) ;;
    __kmpc_push_target_tripcount*@*VERS1.0 | __kmpc_interop_*@@VERS1.0) ;;
    __kmpc_get_target_task_*@@VERS1.0 | __kmpc_set_async_info@@VERS1.0 | __kmpc_target_task_yield@@VERS1.0) ;;
    __kmpc_*@@VERSION | omp_get_max_task_priority*@@VERSION) shim="$shim $name" ;;
    omp_get_*@VERSION) shim="$shim ${name/@/@@}" ;; # for programs, not for those who link with this library
    *) fail "$name leaves the library" ;;
    esac
done <"$scratch/rest"
# Each of libomp's own names is one that libomp has, in the same node.
libomp=$(ldconfig -p | awk '/libomp\.so\.5 / && !n++ {print $NF}') # reads on: a broken pipe would end the script
if [[ -n $libomp ]]; then
    nm -D --defined-only --with-symbol-versions "$libomp" | awk '{print $3}' >"$scratch/libomp"
    for name in $shim; do grep -qxF "$name" "$scratch/libomp" || fail "$name is none of libomp's"; done
fi

[[ $OPENMP == ON ]] || { finish; exit; }
# The plugin for LLVM's libomptarget: what its header declares, under both names that are looked for.
plugins=$PREFIX/lib/weir/plugins
nm -D --defined-only --with-symbol-versions "$plugins/libomptarget.rtl.x86_64.so" | awk '$2 != "A" {print $3}' |
    sort >"$scratch/plugin"
grep -oE '\b__tgt_rtl_[a-z_]+\(' "$SOURCE/interop/plugin/plugin.h" | tr '(' '@' | sed 's/$/@VERS1.0/' | sort -u >"$scratch/wanted"
diff "$scratch/wanted" "$scratch/plugin" >"$scratch/diff" ||
    { cat "$scratch/diff"; fail "the plugin's functions are not those of its header"; }
[[ $(readlink -f "$plugins/libomptarget.rtl.x86_64.nextgen.so") == $(readlink -f "$plugins/libomptarget.rtl.x86_64.so") ]] ||
    fail "no plugin under the name that LLVM 16 looks for first"
finish
