/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_DEVICES_PLUGIN_INTERNAL_H
#define WEIR_DEVICES_PLUGIN_INTERNAL_H

/*
 * Private to devices/plugin: a plugin library of LLVM's as devices.
 *
 * A stream is a queue of items and a thread that hands them to the plugin one by one, so no slot blocks whatever the
 * plugin does. Where it has events, the thread only issues: work goes to the plugin's own queue of the stream, records
 * and waits to its events. Else each item is over when the thread goes on, there is no feature WAIT, and edges between
 * streams are realised by the host.
 *
 * Locks: of a stream, of an event; none inside the other, and none held during a call of the plugin or of anybody else.
 */

#include <pthread.h>
#include <stdbool.h>

#include <devices/device.h>
#include <devices/plugin/interface.h>

/* Made once in a process for each library, and kept: a plugin is initialised once. */
struct rtl_backend {
    struct rtl_backend *next;
    struct rtl rtl;
    uint32_t count;
    bool events;   /* the plugin has events, and they are some */
    char name[64]; /* of the library's file, for texts */
    pthread_mutex_t lock;
    bool *initialised;          /* initialised[count], under lock */
    struct rtl_module *modules; /* loaded and unloaded, under lock */
};

struct rtl_device {
    struct rtl_backend *backend;
    int32_t id;
};

/* LLVM's libomptarget never takes an image away, so a plugin may look at it and its table for as long as it lives. */
struct rtl_module {
    struct rtl_module *next; /* in .modules */
    struct rtl_backend *backend;
    struct rtl_image image;  /* a copy; the names of the entries are in it */
    struct rtl_table *table; /* the plugin's; NULL: the image has no entries */
    uint32_t own, n, known;  /* of the image's table; with its other variables; whose addresses the plugin told */
    struct rtl_entry entries[];
};

enum rtl_item_kind { RTL_COPY, RTL_FILL, RTL_LAUNCH, RTL_FUNCTION, RTL_RECORD, RTL_WAIT, RTL_SETTLE };

struct rtl_event {
    struct rtl_device *device;
    struct rtl_stream *stream; /* of the newest record, under lock */
    void *handle;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    /* Under lock; records counted by 1, 2, …: queued here, handed to the plugin, seen done. */
    uint64_t queued, issued, done;
    bool nothing; /* the newest was handed over while nothing was queued: it is done */
    int status;
};

struct rtl_item {
    struct rtl_item *next;
    enum rtl_item_kind kind;
    union {
        struct weir__copy copy;
        struct {
            void *to;
            size_t bytes;
            uint8_t value;
        } fill;
        struct weir__launch launch; /* its arguments follow the item */
        struct {
            int (*call)(void *arg);
            void *arg;
        } function;
        struct {
            struct rtl_event *event;
            uint64_t number;
        } event;
    };
    uint64_t args[];
};

struct rtl_stream {
    struct rtl_device *device;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t queued, moved;
    /* Under lock. */
    struct rtl_item *first, **last;
    uint64_t put, done; /* items */
    bool ending;
    int failure; /* the first one that nobody was told of */
    pthread_t teller;
    bool tells;
    pthread_cond_t noticed;
    struct rtl_notice *notices, **last_notice;
    /* Of the thread alone, and of who destroys the stream behind it. */
    struct rtl_async async;
};

/* Leave the thread's text for last_error. Returns @code. */
int weir__rtl_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *weir__rtl_error(void *device);

/* Look for the functions of rtl->library. @missing_out: the first that is needed and is not there. */
WEIR_MUST_CHECK int weir__rtl_find(struct rtl *rtl, const char **missing_out);

int weir__rtl_module_load(void *device, const void *image, size_t bytes, void **module_out);
void weir__rtl_module_unload(void *module);
int weir__rtl_module_symbol(void *module, const char *name, void **address_out, size_t *bytes_out);
/*
 * The entries of a device image, as old ones, with names that point into @image: first the *own_out of the image's own
 * table, then its other variables; *n_out in all. None and *entries_out NULL: the image has no such table. Returns  0;
 * WEIR_E_IMAGE; WEIR_E_NO_MEMORY.
 */
WEIR_MUST_CHECK int weir__rtl_image_entries(char *image, size_t bytes, struct rtl_entry **entries_out,
                                            uint32_t *own_out, uint32_t *n_out);

int weir__rtl_stream_create(void *device, void *owner, int32_t priority, void **stream_out);
void weir__rtl_stream_destroy(void *stream);
void *weir__rtl_stream_native(void *stream);
int weir__rtl_stream_sync(void *stream);
int weir__rtl_copy(void *stream, const struct weir__copy *copy);
int weir__rtl_fill(void *stream, void *to, uint8_t value, size_t bytes);
int weir__rtl_launch(void *stream, const struct weir__launch *launch);
int weir__rtl_host_function(void *stream, int (*function)(void *arg), void *arg);
/* Hand one item to the plugin. On the stream's thread. 0 or WEIR_E_*. */
WEIR_MUST_CHECK int weir__rtl_item_run(struct rtl_stream *stream, struct rtl_item *item);
/* What the plugin has queued is done. */
WEIR_MUST_CHECK int weir__rtl_settle(struct rtl_stream *stream);
/* An item with room for @nargs words behind it, to be filled and put. NULL: no memory, with a text. */
struct rtl_item *weir__rtl_item_new(enum rtl_item_kind kind, uint32_t nargs);
void weir__rtl_put(struct rtl_stream *stream, struct rtl_item *item);

int weir__rtl_event_create(void *device, void **event_out);
int weir__rtl_event_record(void *stream, void *event);
int weir__rtl_event_wait(void *stream, void *const *events, size_t n);
int weir__rtl_event_query(void *event);
int weir__rtl_event_sync(void *event);
void weir__rtl_event_destroy(void *event);
int weir__rtl_event_notify(void *event, void (*done)(void *arg, int status), void *arg);
/* Until record @number is done: its status. BLOCKS. */
int weir__rtl_event_wait_for(struct rtl_event *event, uint64_t number);
/* The two items, on the stream's thread. */
WEIR_MUST_CHECK int weir__rtl_event_issue(struct rtl_stream *stream, struct rtl_event *event, uint64_t number);
WEIR_MUST_CHECK int weir__rtl_event_hold(struct rtl_stream *stream, struct rtl_event *event, uint64_t number);

#endif
