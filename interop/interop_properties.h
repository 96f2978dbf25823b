/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_INTEROP_PROPERTIES_H
#define WEIR_INTEROP_INTEROP_PROPERTIES_H

/*
 * What an interoperability object can be asked (OpenMP 5.2 section 18.12): names and numbers of omp.h, which are the
 * same in LLVM 14 to 22.
 */

#include <stdint.h>

struct weir__interop;

/* Below 0 OpenMP's, from 0 on weir's own. */
enum weir__interop_property {
    WEIR__IPR_FIRST = -9,
    WEIR__IPR_TARGETSYNC = -9,
    WEIR__IPR_DEVICE_CONTEXT = -8,
    WEIR__IPR_DEVICE = -7,
    WEIR__IPR_PLATFORM = -6,
    WEIR__IPR_DEVICE_NUM = -5,
    WEIR__IPR_VENDOR_NAME = -4,
    WEIR__IPR_VENDOR = -3,
    WEIR__IPR_FR_NAME = -2,
    WEIR__IPR_FR_ID = -1,
    WEIR__IPR_EVENT = 0,  /* position on the stream at which the newest construct ended what came before; 0: none yet */
    WEIR__IPR_STREAM = 1, /* number of the stream, as in messages of weir; never used again in the process */
    WEIR__IPR_WAITING = 2, /* tasks of constructs with nowait that are not complete */
    WEIR__IPR_OWN = 3,     /* how many of these */
};

enum weir__interop_code {
    WEIR__IRC_NO_VALUE = 1,
    WEIR__IRC_SUCCESS = 0,
    WEIR__IRC_EMPTY = -1,
    WEIR__IRC_OUT_OF_RANGE = -2,
    WEIR__IRC_TYPE_INT = -3,
    WEIR__IRC_TYPE_PTR = -4,
    WEIR__IRC_TYPE_STR = -5,
    WEIR__IRC_OTHER = -6,
};

/* Vendors of OpenMP implementations in the Additional Definitions document: the program's compiler and host runtime. */
#define WEIR__INTEROP_VENDOR      9
#define WEIR__INTEROP_VENDOR_NAME "llvm"

enum weir__interop_kind { WEIR__INTEROP_INT, WEIR__INTEROP_POINTER, WEIR__INTEROP_TEXT };

/*
 * One property, asked by the getter for @kind. @object may be NULL (omp_interop_none) or destroyed: EMPTY.
 * @code_out  may be NULL.
 * Returns  the value; 0 if the code is not SUCCESS. Any thread. Never blocks, except when a stream is made: a target
 * object gets its stream when it is asked for.
 */
intptr_t weir__interop_get(struct weir__interop *object, int property, enum weir__interop_kind kind, int *code_out);

/* Its name; NULL out of range. */
const char *weir__interop_property_name(int property);
/* Its type in C, of this object or, for NULL, in general; NULL out of range. */
const char *weir__interop_type_text(const struct weir__interop *object, int property);
/* What a code means; for NULL and EMPTY also why the calling thread's newest init failed, if it did: thread-local then.
 */
const char *weir__interop_code_text(const struct weir__interop *object, int code);

#endif
