/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The functions of a plugin library. */
#include <devices/plugin/internal.h>

#include <dlfcn.h>
#include <string.h>

struct name {
    const char *name;
    size_t place; /* in struct rtl */
};
#define RTL_NAME(name_, result, arguments) {"__tgt_rtl_" #name_, offsetof(struct rtl, name_)},
static const struct name needed[] = {RTL_NEEDED(RTL_NAME)};
static const struct name optional[] = {RTL_OPTIONAL(RTL_NAME)};

/* The first of them that is missing. */
static const char *find(struct rtl *rtl, const struct name *names, size_t n)
{
    const char *missing = NULL;
    for (size_t i = 0; i < n; i++) {
        void *function = dlsym(rtl->library, names[i].name);
        memcpy((char *)rtl + names[i].place, &function, sizeof function);
        if (!function && !missing) missing = names[i].name;
    }
    return missing;
}

/* Functions that are of no use without another one. */
static const char *group_missing(const struct rtl *rtl)
{
    const struct {
        const char *name;
        bool there;
    } events[] = {{"__tgt_rtl_create_event", rtl->create_event},
                  {"__tgt_rtl_record_event", rtl->record_event},
                  {"__tgt_rtl_wait_event", rtl->wait_event},
                  {"__tgt_rtl_sync_event", rtl->sync_event},
                  {"__tgt_rtl_destroy_event", rtl->destroy_event}};
    const size_t n = sizeof events / sizeof events[0];
    const char *missing = NULL;
    size_t there = 0;
    for (size_t i = 0; i < n; i++) {
        there += events[i].there;
        if (!events[i].there && !missing) missing = events[i].name;
    }
    if (there && there < n) return missing;
    if (!rtl->launch_kernel && !rtl->run_target_team_region)
        return "__tgt_rtl_run_target_team_region or __tgt_rtl_launch_kernel";
    bool async = rtl->data_submit_async || rtl->data_retrieve_async || rtl->run_target_team_region_async;
    return (async || there) && !rtl->synchronize ? "__tgt_rtl_synchronize" : NULL;
}

int weir__rtl_find(struct rtl *rtl, const char **missing_out)
{
    const char *missing = find(rtl, needed, sizeof needed / sizeof needed[0]);
    (void)find(rtl, optional, sizeof optional / sizeof optional[0]);
    *missing_out = missing ? missing : group_missing(rtl);
    return *missing_out ? WEIR_E_NO_DEVICE : WEIR_OK;
}
