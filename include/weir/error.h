/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#if defined(__GNUC__) || defined(__clang__)
#define WEIR_MUST_CHECK __attribute__((warn_unused_result))
#else
#define WEIR_MUST_CHECK
#endif

/*
 * Every function that can fail returns int: 0 (WEIR_OK) or one of these negative codes.
 * Code, name and text come from this one table.
 */
#define WEIR_ERROR_TABLE(X)                                                                        \
    X(OK, 0, "no error")                                                                           \
    X(E_INVALID, -1, "invalid argument")                                                           \
    X(E_NO_MEMORY, -2, "out of memory")                                                            \
    X(E_VERSION, -3, "size or version of a structure is not supported")                            \
    X(E_NOT_ISSUED, -4, "a predecessor is not issued yet")                                         \
    X(E_PREDECESSOR, -5, "a predecessor failed, the task was cancelled")                           \
    X(E_DEVICE, -6, "the device failed")                                                           \
    X(E_NO_DEVICE, -7, "no such device")                                                           \
    X(E_UNSUPPORTED, -8, "the device cannot do this")                                              \
    X(E_NOT_FOUND, -9, "not found")                                                                \
    X(E_BUSY, -10, "the object is in use")                                                         \
    X(E_STATE, -11, "the object is in the wrong state for this call")                              \
    X(E_SYSTEM, -12, "the operating system refused")                                               \
    X(E_FORKED, -13, "the process was forked: this context belongs to the parent")                 \
    X(E_IMAGE, -14, "the image is not valid")                                                      \
    X(E_TASK, -15, "the task's function reported a failure")                                       \
    X(E_PENDING, -16, "not complete yet")

enum weir_error {
#define WEIR_X(name, code, text) WEIR_##name = (code),
    WEIR_ERROR_TABLE(WEIR_X)
#undef WEIR_X
};

/**
 * The name of a code, such as "WEIR_E_DEVICE".
 * Returns  static text, never NULL; "WEIR_E_UNKNOWN" for other numbers.
 * Threads  any thread. Never blocks.
 */
const char *weir_error_name(int code);

/**
 * What a code means, in one English phrase.
 * Returns  static text, never NULL.
 * Threads  any thread. Never blocks.
 */
const char *weir_error_string(int code);

/**
 * The whole story of the calling thread's newest failure: which call, which task (name, file and line
 * where the task has them), which device, how many tasks were cancelled because of it.
 * Returns  text owned by the thread, valid until its next failing weir call; "" if nothing failed yet.
 * Threads  any thread. Never blocks, never allocates.
 */
const char *weir_error_text(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
