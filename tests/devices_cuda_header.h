/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_DEVICES_CUDA_HEADER_H
#define WEIR_TESTS_DEVICES_CUDA_HEADER_H

/* Compiled only if the layouts of our structures are those of cuda.h. Returns 0. */
int weir_test_layouts(void);

#endif
