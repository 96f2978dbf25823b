#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Interop queries give the same answers in every order of the libraries: programs bind them to the library that comes first
# on the link line, and libomp asks the offload runtime behind itself.
. "$SOURCE/tests/install_shell.sh"
compiler=${WEIR_TEST_CLANG:-clang-22}
command -v "$compiler" >/dev/null || { echo "skipped: $compiler is not installed"; exit 77; }

cat >"$scratch/query.c" <<'END'
#include <omp.h>
#include <stdio.h>
int main(void)
{
    omp_interop_t o = omp_interop_none;
    int rc = 99;
#pragma omp target
    {
    }
#pragma omp interop init(targetsync : o) device(0)
    printf("%d", o != omp_interop_none);
    printf(" %d", (int)omp_get_interop_int(o, omp_ipr_device_num, &rc));
    printf(" %d", rc);
    printf(" %s", omp_get_interop_str(o, omp_ipr_fr_name, &rc));
    printf(" %d", omp_get_interop_ptr(o, omp_ipr_targetsync, &rc) != NULL);
    printf(" %s", omp_get_interop_name(o, omp_ipr_device));
    printf(" %d", omp_get_num_interop_properties(o));
    printf(" %d", omp_get_interop_type_desc(o, omp_ipr_device) != NULL);
    printf(" %s", omp_get_interop_rc_desc(o, omp_irc_success));
    (void)omp_get_interop_int(omp_interop_none, omp_ipr_device_num, &rc);
    printf(" %d\n", rc);
    return 0;
}
END
cat >"$scratch/plain.c" <<'END'
#include <omp.h>
#include <stdio.h>
int main(void)
{
    int rc = 99;
    printf("%ld", (long)omp_get_interop_int(omp_interop_none, omp_ipr_device_num, &rc));
    printf(" %d", omp_get_interop_ptr(omp_interop_none, omp_ipr_targetsync, NULL) != NULL);
    printf(" %d\n", omp_get_num_interop_properties(omp_interop_none));
    return 0;
}
END
want="1 0 0 weir 1 device 3 1 success -1"

# What is linked, and how weir comes to it.
object() { "$compiler" -O1 -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu "$scratch/query.c" -o "$scratch/$1" "${@:2}"; }
expect() {
    local output
    output=$(env "$2" timeout -k 5 60 "$scratch/$1" 2>&1) || true
    [[ $output == "$want" ]] || fail "$1 with $2: '$output', not '$want'"
}
behind=LD_LIBRARY_PATH=$PREFIX/lib/weir preloaded=LD_PRELOAD=$PREFIX/lib/libweir.so
object usual
expect usual "$behind"
expect usual "$preloaded"
# libomptarget in front of libomp.
"$compiler" -print-file-name=libomptarget.so >"$scratch/where"
if [[ -e $(cat "$scratch/where") ]]; then
    object reversed -Wl,--push-state,--no-as-needed "$(cat "$scratch/where")" -Wl,--pop-state
    expect reversed "$behind"
    expect reversed "$preloaded"
fi
# weir itself on the link line, in front of libomp and behind it.
object front "-L$PREFIX/lib" -Wl,--no-as-needed -lweir "-Wl,-rpath,$PREFIX/lib"
expect front "$behind"
expect front A=1
object back -Wl,--no-as-needed -lomp "-L$PREFIX/lib" -lweir "-Wl,-rpath,$PREFIX/lib"
expect back "$behind"

# libomp alone links and answers: no target code, no offload runtime.
"$compiler" -O1 -fopenmp "$scratch/plain.c" -o "$scratch/plain" || fail "libomp alone does not link"
[[ $(timeout -k 5 60 "$scratch/plain") == "0 0 0" ]] || fail "libomp alone does not answer 0"
[[ $(env "$preloaded" timeout -k 5 60 "$scratch/plain") == "0 0 3" ]] || fail "weir without target code does not answer"
finish
