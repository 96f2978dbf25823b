/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * The interop queries by libomp's version node as well. Programs are linked with those of libomp, which look for the
 * offload runtime behind itself; where this library comes before libomp they would find nothing. Part of the shared
 * library only: an executable has no version nodes.
 */
#include "interop/entries.h"

#define QUERY(result, name, parameters, arguments)                                                                     \
    result weir__front_##name parameters;                                                                              \
    __attribute__((visibility("default"))) result weir__front_##name parameters                                        \
    {                                                                                                                  \
        return name arguments;                                                                                         \
    }                                                                                                                  \
    __asm__(".symver weir__front_" #name ", " #name "@VERSION")

#define GETTER (struct weir__interop * object, int property, int *code_out)
#define TEXT   (struct weir__interop * object, int number)
QUERY(intptr_t, omp_get_interop_int, GETTER, (object, property, code_out));
QUERY(void *, omp_get_interop_ptr, GETTER, (object, property, code_out));
QUERY(const char *, omp_get_interop_str, GETTER, (object, property, code_out));
QUERY(const char *, omp_get_interop_name, TEXT, (object, number));
QUERY(const char *, omp_get_interop_type_desc, TEXT, (object, number));
QUERY(const char *, omp_get_interop_rc_desc, TEXT, (object, number));
QUERY(int, omp_get_num_interop_properties, (struct weir__interop * object), (object));
