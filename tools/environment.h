/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TOOLS_ENVIRONMENT_H
#define WEIR_TOOLS_ENVIRONMENT_H

/*
 * Every environment variable that weir reads: name, least and most value, value when it is not set, meaning. `weir info`
 * prints this table and `weir run` takes its limits from it; a test compares it with docs/environment.md and the sources.
 */
#define WEIR_ENVIRONMENT_TABLE(X)                                                                                      \
    X("WEIR_LOG", 0, 4, "1",                                                                                           \
      "messages on stderr: 0 none, 1 errors, 2 warnings, 3 information (devices, streams), 4 every task and copy on a device")\
    X("WEIR_SUMMARY", 0, 1, "0", "1: one line at exit: tasks, edges and how they were realised")                       \
    X("WEIR_TRACE_LIMIT", 1, 65536, "256", "MiB of records that are kept for the pictures; more are dropped and counted") \
    X("WEIR_WORKERS", 1, 256, "one per core, at least 2", "threads for host tasks of the graph API")                   \
    X("WEIR_HOST_DEVICES", 1, 254, "1, in OpenMP programs 4", "how many CPU devices there are")                        \
    X("WEIR_WINDOW", 1, 16777216, "4096", "tasks in flight per scope before the submitter helps or waits; not of target nowait") \
    X("WEIR_SHIM", 0, 1, "1",                                                                                          \
      "0: leave the dependences of target tasks to libomp also where weir stands in front of it")                      \
    X("WEIR_STREAMS", 1, 512, "the backend's advice", "streams per device that weir opens on its own")                 \
    X("WEIR_HOST_SHORT_NS", 0, 999999999, "1000",                                                                         \
      "kernels that take less run on the thread that makes the target task, if nothing has to be waited for; 0: none")  \
    X("WEIR_HOST_DELAY_US", 0, 999999, "0",                                                                            \
      "for tests: longest random delay before a CPU device runs a piece of work")                                      \
    X("WEIR_HOST_DELAY_SEED", 0, 18446744073709551615u, "0", "for tests: start of the random sequence of those delays")

/* The same for variables that take a word: name, words, value when it is not set, meaning. */
#define WEIR_ENVIRONMENT_WORDS(Y)                                                                                      \
    Y("WEIR_DEVICE", "host, cuda, plugin, all", "all",                                                                         \
      "which devices there are besides one CPU device at least; cuda: programs compiled for x86-64 use CUDA devices, which only an emulated driver can run; plugin: they use the devices of a plugin")

/* The same for those that hold a text. %p in a file's name is the number of the process. */
#define WEIR_ENVIRONMENT_TEXTS(T)                                                                                      \
    T("WEIR_PLUGIN", "file", "libomptarget.rtl.x86_64.so",                                                             \
      "the plugin library of LLVM 14 to 16 for WEIR_DEVICE=plugin")                                                    \
    T("WEIR_GRAPH", "file .svg, .dot or .html", "none", "at exit, a picture of the tasks and of what waited for what") \
    T("WEIR_TRACE", "file", "none", "at exit, a timeline as JSON for Perfetto or chrome://tracing")                    \
    T("WEIR_REPORT", "0, 1, json or file", "0",                                                                        \
      "at exit, a report on stderr or in a file: tasks, edges, waits, fallbacks; as JSON for json and files .json")    \
    T("WEIR_RECORD", "file", "none", "the records that pictures are made of, to be drawn by weir draw at any time")

#endif
