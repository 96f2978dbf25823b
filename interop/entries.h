/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_ENTRIES_H
#define WEIR_INTEROP_ENTRIES_H

/*
 * What compiled programs, libomp and users of omp.h call, by the names and types that they know (LLVM 22's
 * libomptarget.so, version node VERS1.0; older names where they are gone from it). Each may be called from any thread
 * at any time, also before main() and from exit handlers. The functions that are nobody else's business are documented
 * where they are defined.
 */

#include <stddef.h>
#include <stdint.h>

struct weir__abi_ident;
struct weir__abi_descriptor;

/* ---- entries.c: registration ---- */
void __tgt_register_lib(struct weir__abi_descriptor *descriptor);
void __tgt_unregister_lib(struct weir__abi_descriptor *descriptor);
void __tgt_register_requires(int64_t bits);
void __tgt_init_all_rtls(void);
void __tgt_rtl_init(void);
void __tgt_rtl_deinit(void);

/* ---- launch.c ---- */
#define WEIR__MAPPED_ARRAYS                                                                                            \
    int32_t n, void **bases, void **begins, int64_t *sizes, int64_t *types, void **names, void **mappers
#define WEIR__PLAIN_ARRAYS int32_t n, void **bases, void **begins, int64_t *sizes, int64_t *types
#define WEIR__DEPENDENCES  int32_t ndeps, void *deps, int32_t nnoalias, void *noalias
int __tgt_target_kernel(struct weir__abi_ident *where, int64_t device, int32_t teams, int32_t threads, void *host,
                        void *args);
int __tgt_target_kernel_nowait(struct weir__abi_ident *where, int64_t device, int32_t teams, int32_t threads,
                               void *host, void *args, WEIR__DEPENDENCES);
int __tgt_target_mapper(struct weir__abi_ident *where, int64_t device, void *host, WEIR__MAPPED_ARRAYS);
int __tgt_target_nowait_mapper(struct weir__abi_ident *where, int64_t device, void *host, WEIR__MAPPED_ARRAYS,
                               WEIR__DEPENDENCES);
int __tgt_target_teams_mapper(struct weir__abi_ident *where, int64_t device, void *host, WEIR__MAPPED_ARRAYS,
                              int32_t teams, int32_t threads);
int __tgt_target_teams_nowait_mapper(struct weir__abi_ident *where, int64_t device, void *host, WEIR__MAPPED_ARRAYS,
                                     int32_t teams, int32_t threads, WEIR__DEPENDENCES);
int __tgt_target(int64_t device, void *host, WEIR__PLAIN_ARRAYS);
int __tgt_target_nowait(int64_t device, void *host, WEIR__PLAIN_ARRAYS, WEIR__DEPENDENCES);
int __tgt_target_teams(int64_t device, void *host, WEIR__PLAIN_ARRAYS, int32_t teams, int32_t threads);
int __tgt_target_teams_nowait(int64_t device, void *host, WEIR__PLAIN_ARRAYS, int32_t teams, int32_t threads,
                              WEIR__DEPENDENCES);
void __kmpc_push_target_tripcount_mapper(struct weir__abi_ident *where, int64_t device, uint64_t tripcount);
void __kmpc_push_target_tripcount(int64_t device, uint64_t tripcount);

/* ---- entries.c: data. The nowait forms have four more parameters in some compilers; they are never read. ---- */
void __tgt_target_data_begin_mapper(struct weir__abi_ident *where, int64_t device, WEIR__MAPPED_ARRAYS);
void __tgt_target_data_end_mapper(struct weir__abi_ident *where, int64_t device, WEIR__MAPPED_ARRAYS);
void __tgt_target_data_update_mapper(struct weir__abi_ident *where, int64_t device, WEIR__MAPPED_ARRAYS);
void __tgt_target_data_begin_nowait_mapper(struct weir__abi_ident *where, int64_t device, WEIR__MAPPED_ARRAYS);
void __tgt_target_data_end_nowait_mapper(struct weir__abi_ident *where, int64_t device, WEIR__MAPPED_ARRAYS);
void __tgt_target_data_update_nowait_mapper(struct weir__abi_ident *where, int64_t device, WEIR__MAPPED_ARRAYS);
void __tgt_target_data_begin(int64_t device, WEIR__PLAIN_ARRAYS);
void __tgt_target_data_end(int64_t device, WEIR__PLAIN_ARRAYS);
void __tgt_target_data_update(int64_t device, WEIR__PLAIN_ARRAYS);
void __tgt_target_data_begin_nowait(int64_t device, WEIR__PLAIN_ARRAYS);
void __tgt_target_data_end_nowait(int64_t device, WEIR__PLAIN_ARRAYS);
void __tgt_target_data_update_nowait(int64_t device, WEIR__PLAIN_ARRAYS);
int64_t __tgt_mapper_num_components(void *handle);
void __tgt_push_mapper_component(void *handle, void *base, void *begin, int64_t size, int64_t type, void *name);

/* ---- entries.c: the rest ---- */
void __tgt_target_nowait_query(void **handle);
void __tgt_set_info_flag(uint32_t level);
int __tgt_print_device_info(int64_t device);
int __tgt_activate_record_replay(int64_t device, uint64_t memory_bytes, void *address, uint8_t record, uint8_t save,
                                 uint64_t *offset_out);
int __tgt_target_kernel_replay(struct weir__abi_ident *where, int64_t device, void *host, void *memory,
                               int64_t memory_bytes, void **args, ptrdiff_t *offsets, int32_t n, int32_t teams,
                               int32_t threads, uint64_t tripcount);
void ompx_dump_mapping_tables(void);

/* ---- device_api.c ---- */
int __tgt_get_num_devices(void);
int omp_get_max_task_priority(void);
int omp_get_max_task_priority_(void); /* Fortran's */
int omp_get_num_devices(void);
int omp_get_initial_device(void);
int omp_get_device_num(void);
int omp_get_device_from_uid(const char *uid);
const char *omp_get_uid_from_device(int device);

/* ---- memory.c ---- */
void *omp_target_alloc(size_t bytes, int device);
void omp_target_free(void *address, int device);
void *llvm_omp_target_alloc_device(size_t bytes, int device);
void *llvm_omp_target_alloc_host(size_t bytes, int device);
void *llvm_omp_target_alloc_shared(size_t bytes, int device);
void llvm_omp_target_free_device(void *address, int device);
void llvm_omp_target_free_host(void *address, int device);
void llvm_omp_target_free_shared(void *address, int device);
void *llvm_omp_target_lock_mem(void *address, size_t bytes, int device);
void llvm_omp_target_unlock_mem(void *address, int device);
void *llvm_omp_target_dynamic_shared_alloc(void);
void *llvm_omp_get_dynamic_shared(void);
int omp_target_is_present(const void *address, int device);
int omp_target_is_accessible(const void *address, size_t bytes, int device);
int omp_target_associate_ptr(const void *host, const void *memory, size_t bytes, size_t offset, int device);
int omp_target_disassociate_ptr(const void *host, int device);
void *omp_get_mapped_ptr(const void *host, int device);

/* ---- memory_copy.c ---- */
int omp_target_memcpy(void *to, const void *from, size_t bytes, size_t to_offset, size_t from_offset, int to_device,
                      int from_device);
int omp_target_memcpy_rect(void *to, const void *from, size_t element_bytes, int ndims, const size_t *volume,
                           const size_t *to_offsets, const size_t *from_offsets, const size_t *to_dims,
                           const size_t *from_dims, int to_device, int from_device);
void *omp_target_memset(void *to, int value, size_t bytes, int device);

/* ---- memory_async.c; @depends[ndepends] are depend objects, read before return ---- */
int omp_target_memcpy_async(void *to, const void *from, size_t bytes, size_t to_offset, size_t from_offset,
                            int to_device, int from_device, int ndepends, void **depends);
int omp_target_memcpy_rect_async(void *to, const void *from, size_t element_bytes, int ndims, const size_t *volume,
                                 const size_t *to_offsets, const size_t *from_offsets, const size_t *to_dims,
                                 const size_t *from_dims, int to_device, int from_device, int ndepends, void **depends);
void *omp_target_memset_async(void *to, int value, size_t bytes, int device, int ndepends, void **depends);

/* ---- interop_entries.c ---- */
struct weir__interop;
struct weir__abi_depend;
struct weir__abi_depend_pack;
struct weir__abi_interop_context;
struct weir__abi_interop_prefer;
void __tgt_interop_init(struct weir__abi_ident *where, int32_t gtid, void **variable, int32_t type, int32_t device,
                        int32_t n, struct weir__abi_depend *depends, int32_t nowait);
void __tgt_interop_use(struct weir__abi_ident *where, int32_t gtid, void **variable, int32_t device, int32_t n,
                       struct weir__abi_depend *depends, int32_t nowait);
void __tgt_interop_destroy(struct weir__abi_ident *where, int32_t gtid, void **variable, int32_t device, int32_t n,
                           struct weir__abi_depend *depends, int32_t nowait);
/* Older names of the three. */
void __kmpc_interop_init(struct weir__abi_ident *where, int32_t gtid, void **variable, int32_t type, int32_t device,
                         int32_t n, struct weir__abi_depend *depends, int32_t nowait);
void __kmpc_interop_use(struct weir__abi_ident *where, int32_t gtid, void **variable, int32_t device, int32_t n,
                        struct weir__abi_depend *depends, int32_t nowait);
void __kmpc_interop_destroy(struct weir__abi_ident *where, int32_t gtid, void **variable, int32_t device, int32_t n,
                            struct weir__abi_depend *depends, int32_t nowait);
struct weir__interop *__tgt_interop_get(struct weir__abi_ident *where, int32_t type, int64_t device, int32_t nprefers,
                                        struct weir__abi_interop_prefer *prefers,
                                        struct weir__abi_interop_context *context, struct weir__abi_depend_pack *pack);
int __tgt_interop_use60(struct weir__abi_ident *where, struct weir__interop *object,
                        struct weir__abi_interop_context *context, struct weir__abi_depend_pack *pack);
int __tgt_interop_release(struct weir__abi_ident *where, struct weir__interop *object,
                          struct weir__abi_interop_context *context, struct weir__abi_depend_pack *pack);
void __tgt_target_sync(struct weir__abi_ident *where, int32_t gtid, void *task, void *event);
int ompx_interop_add_completion_callback(struct weir__interop *object,
                                         void (*function)(struct weir__interop *object, void *arg), void *arg);
intptr_t omp_get_interop_int(struct weir__interop *object, int property, int *code_out);
void *omp_get_interop_ptr(struct weir__interop *object, int property, int *code_out);
const char *omp_get_interop_str(struct weir__interop *object, int property, int *code_out);
const char *omp_get_interop_name(struct weir__interop *object, int property);
const char *omp_get_interop_type_desc(struct weir__interop *object, int property);
const char *omp_get_interop_rc_desc(struct weir__interop *object, int code);
const char *omp_get_interop_rec_desc(struct weir__interop *object, int code);
int omp_get_num_interop_properties(struct weir__interop *object);

/* ---- task_queries.c ---- */
struct weir__abi_async_info;
struct weir__abi_waiting;
int32_t __kmpc_get_target_task_npredecessors(struct weir__abi_ident *where, int32_t gtid);
int32_t __kmpc_get_target_task_waiting_list(struct weir__abi_ident *where, int32_t gtid, int32_t n,
                                            struct weir__abi_waiting *list);
int32_t __kmpc_set_async_info(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_async_info *info);
int32_t __kmpc_target_task_yield(struct weir__abi_ident *where, int32_t gtid);

/* ---- shim.c: libomp's own, version node VERSION (OpenMP runtime of LLVM 19) ---- */
struct weir__abi_task;
struct weir__abi_depend;
struct weir__abi_task *__kmpc_omp_task_alloc(struct weir__abi_ident *where, int32_t gtid, int32_t flags, size_t bytes,
                                             size_t shareds, int32_t (*entry)(int32_t gtid, void *task));
struct weir__abi_task *__kmpc_omp_target_task_alloc(struct weir__abi_ident *where, int32_t gtid, int32_t flags,
                                                    size_t bytes, size_t shareds,
                                                    int32_t (*entry)(int32_t gtid, void *task), int64_t device);
int32_t __kmpc_omp_task(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *task);
int32_t __kmpc_omp_task_with_deps(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *task, int32_t n,
                                  struct weir__abi_depend *depends, int32_t nnoalias, struct weir__abi_depend *noalias);
int32_t __kmpc_omp_taskwait(struct weir__abi_ident *where, int32_t gtid);
void __kmpc_omp_taskwait_deps_51(struct weir__abi_ident *where, int32_t gtid, int32_t n,
                                 struct weir__abi_depend *depends, int32_t nnoalias, struct weir__abi_depend *noalias,
                                 int32_t nowait);
void __kmpc_omp_wait_deps(struct weir__abi_ident *where, int32_t gtid, int32_t n, struct weir__abi_depend *depends,
                          int32_t nnoalias, struct weir__abi_depend *noalias);
void __kmpc_fork_call(struct weir__abi_ident *where, int32_t n, void (*microtask)(int32_t *gtid, int32_t *tid, ...),
                      ...);
int32_t __kmpc_barrier_master(struct weir__abi_ident *where, int32_t gtid);
int32_t __kmpc_barrier_master_nowait(struct weir__abi_ident *where, int32_t gtid);
void __kmpc_end_barrier_master(struct weir__abi_ident *where, int32_t gtid);
int32_t __kmpc_reduce(struct weir__abi_ident *where, int32_t gtid, int32_t n, size_t bytes, void *data,
                      void (*function)(void *to, void *from), void *lock);
void __kmpc_end_reduce(struct weir__abi_ident *where, int32_t gtid, void *lock);
void __kmpc_copyprivate(struct weir__abi_ident *where, int32_t gtid, size_t bytes, void *data,
                        void (*function)(void *to, void *from), int32_t did_it);
void __kmpc_barrier(struct weir__abi_ident *where, int32_t gtid);
int32_t __kmpc_cancel_barrier(struct weir__abi_ident *where, int32_t gtid);
void __kmpc_taskgroup(struct weir__abi_ident *where, int32_t gtid);
void __kmpc_end_taskgroup(struct weir__abi_ident *where, int32_t gtid);
void *__kmpc_taskred_init(int32_t gtid, int32_t n, void *data);
void *__kmpc_taskred_modifier_init(struct weir__abi_ident *where, int32_t gtid, int32_t is_worksharing, int32_t n,
                                   void *data);
void __kmpc_task_reduction_modifier_fini(struct weir__abi_ident *where, int32_t gtid, int32_t is_worksharing);
void __kmpc_set_thread_limit(struct weir__abi_ident *where, int32_t gtid, int32_t limit);

#endif
