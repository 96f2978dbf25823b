/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <weir/context.h>
#include <weir/error.h>
#include <weir/host.h>
#include <weir/task.h>
#include <weir/trace.h>

#endif
