/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Images that the dynamic loader has loaded. None of these functions is to be called with the lock held: the loader
 * runs foreign code and has a lock of its own. */
#ifndef WEIR_EMULATOR_IMAGE_H
#define WEIR_EMULATOR_IMAGE_H

#include "internal.h"

struct loaded_image {
    void *library;
    int file;
    uint64_t start, end;           /* all of it */
    uint64_t data_start, data_end; /* pages of variables */
};

/* 0 and the size, or the error code for what is no image of the host's processor. */
int emulator__image_bytes(const void *image, size_t *bytes_out);
int emulator__image_load(const void *image, size_t bytes, struct loaded_image *loaded);
void emulator__image_unload(const struct loaded_image *loaded);
/* NULL if the image itself does not define it. */
void *emulator__image_symbol(const struct loaded_image *loaded, const char *name, size_t *bytes_out);
/* Is this the address of a function, not of a variable? */
bool emulator__image_is_code(const void *address);

#endif
