/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <trace/record.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <graph/error.h>

#define USUAL_LIMIT        ((size_t)256 << 20)
#define SIGNAL_STACK_BYTES ((size_t)32 << 10)

_Atomic uint32_t weir__record_on;
_Thread_local struct weir__writer *weir__record_writer __attribute__((tls_model("initial-exec")));
bool weir__record_counter;

/* Held while this process reads its blocks, and while they are thinned out; taken before .lock. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
/* Guards what is below; arena and fd do not change while recording can be on. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir__arena *arena;
static int arena_fd = -1;
static struct weir__writer *writers; /* all */
static struct weir__writer *unused;  /* of threads that have ended */
static uint32_t nslots;
static pthread_key_t ends;
static uint32_t times_begun;
static _Atomic bool signal_stacks; /* relaxed: a wish */
static uint64_t cpu_before_ns;    /* processor time of own threads before the recording */
static _Atomic uint64_t ended_ns; /* and of those that are gone; relaxed: a sum */

/* ---- clock ---- */

static bool counter_is_steady(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) &&
           (d & 1u << 8) != 0; /* the same rate in every state, on every core */
#else
    return false;
#endif
}

struct weir__moment weir__record_moment(void)
{
    struct timespec now;
    struct weir__moment best = {0, 0};
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < 3; i++) { /* the reading that nothing came between */
        uint64_t before = weir__record_now();
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t took = weir__record_now() - before;
        if (took >= shortest) continue;
        shortest = took;
        best = (struct weir__moment){before + took / 2, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec};
    }
    return best;
}

/* ---- slots and blocks ---- */

static uint64_t count_records(const struct weir__slot *slot, uint64_t used)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < used; i += slot->words[i] >> 8 & 0xff) n++;
    return n;
}

static bool block_write(const struct weir__slot *slot, uint64_t used)
{
    /* Relaxed: who gets a number has it for itself. */
    if (atomic_load_explicit(&arena->taken, memory_order_relaxed) >= arena->nblocks) return false;
    uint64_t index = atomic_fetch_add_explicit(&arena->taken, 1, memory_order_relaxed);
    if (index >= arena->nblocks) return false;
    size_t bytes = offsetof(struct weir__slot, words) + used * 8;
    off_t at = (off_t)(WEIR__ARENA_BYTES + (WEIR__SLOTS + index) * (uint64_t)WEIR__SLOT_BYTES);
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pwrite(arena_fd, (const char *)slot + done, bytes - done, at + (off_t)done);
        if (n <= 0 && errno != EINTR) return false;
        if (n > 0) done += (size_t)n;
    }
    return true;
}

/* Make the writer's slot empty; what was in it is a block now, or dropped. */
static void slot_empty(struct weir__writer *writer)
{
    struct weir__slot *slot = writer->slot;
    uint64_t used = (uint64_t)(writer->at - slot->words);
    int error = errno;
    pthread_mutex_lock(&writer->lock);
    if (!block_write(slot, used))
        atomic_fetch_add_explicit(&arena->dropped, count_records(slot, used), memory_order_relaxed); /* a count */
    /* Release, in this order: a reader of another process sees the block's number passed and then the slot empty. */
    atomic_fetch_add_explicit(&slot->sequence, 1, memory_order_release);
    atomic_store_explicit(&slot->used, 0, memory_order_release);
    pthread_mutex_unlock(&writer->lock);
    writer->at = slot->words;
    pthread_mutex_lock(&lock);
    arena->newest = weir__record_moment();
    pthread_mutex_unlock(&lock);
    errno = error;
}

/* ---- threads ---- */

void weir__record_signal_stacks(void)
{
    atomic_store_explicit(&signal_stacks, true, memory_order_relaxed);
}

/* The memory goes with the slot from thread to thread. */
static void signal_stack_begin(struct weir__writer *writer)
{
    stack_t now, ours = {.ss_size = SIGNAL_STACK_BYTES};
    if (!atomic_load_explicit(&signal_stacks, memory_order_relaxed)) return;
    if (sigaltstack(NULL, &now) || !(now.ss_flags & SS_DISABLE)) return;
    if (!writer->signal_stack) writer->signal_stack = malloc(SIGNAL_STACK_BYTES);
    ours.ss_sp = writer->signal_stack;
    if (ours.ss_sp) (void)sigaltstack(&ours, NULL);
}

static void signal_stack_end(const struct weir__writer *writer)
{
    stack_t now, none = {.ss_flags = SS_DISABLE};
    if (writer->signal_stack && !sigaltstack(NULL, &now) && now.ss_sp == writer->signal_stack)
        (void)sigaltstack(&none, NULL);
}

static void thread_record(struct weir__writer *writer)
{
    weir__record_head(writer->at, WEIR__RECORD_THREAD, 3, 0, (uint32_t)syscall(SYS_gettid));
    memset(writer->at + 1, 0, 16);
    prctl(PR_GET_NAME, writer->at + 1);
    weir__record_commit(3);
}

/* A new slot, with its blocks on the disk: a full one is found out here and not by a signal. */
static struct weir__writer *writer_make_locked(void)
{
    struct weir__writer *writer = nslots < WEIR__SLOTS ? calloc(1, sizeof *writer) : NULL;
    if (!writer) return NULL;
    off_t at = (off_t)(WEIR__ARENA_BYTES + nslots * (uint64_t)WEIR__SLOT_BYTES);
    if (fallocate(arena_fd, 0, at, WEIR__SLOT_BYTES) && errno != EOPNOTSUPP) {
        free(writer);
        return NULL;
    }
    writer->slot = (struct weir__slot *)((char *)arena + at);
    writer->slot->number = ++nslots;
    writer->at = writer->slot->words;
    writer->end = writer->slot->words + WEIR__SLOT_WORDS;
    pthread_mutex_init(&writer->lock, NULL);
    writer->next = writers;
    writers = writer;
    return writer;
}

static struct weir__writer *writer_get(void)
{
    int error = errno;
    pthread_mutex_lock(&lock);
    struct weir__writer *writer = unused;
    if (writer)
        unused = writer->next_unused;
    else if (arena)
        writer = writer_make_locked();
    pthread_mutex_unlock(&lock);
    errno = error;
    if (!writer) return NULL;
    writer->token = writer->began = 0;
    weir__record_writer = writer;
    (void)pthread_setspecific(ends, writer); /* without it the slot is lost to others, nothing else */
    if (writer->end - writer->at < 3) slot_empty(writer);
    thread_record(writer);
    signal_stack_begin(writer);
    return writer;
}

static void writer_put(void *arg)
{
    struct weir__writer *writer = arg;
    weir__record_writer = NULL;
    signal_stack_end(writer);
    pthread_mutex_lock(&lock);
    writer->next_unused = unused;
    unused = writer;
    pthread_mutex_unlock(&lock);
}

uint64_t *weir__record_room(unsigned words)
{
    struct weir__writer *writer = weir__record_writer;
    if (!writer && !(writer = writer_get())) {
        /* Relaxed: a count. The first page is there: recording has been on. */
        atomic_fetch_add_explicit(&arena->dropped, 1, memory_order_relaxed);
        return NULL;
    }
    if ((size_t)(writer->end - writer->at) < words) slot_empty(writer);
    return writer->at;
}

uint64_t weir__record_set_token(uint64_t token)
{
    struct weir__writer *writer = weir__record_writer ? weir__record_writer : writer_get();
    if (!writer) return 0;
    uint64_t before = writer->token;
    writer->token = token;
    return before;
}

uint64_t weir__record_new_token(void)
{
    static _Atomic uint64_t tokens; /* relaxed: uniqueness is all */
    return 1 + atomic_fetch_add_explicit(&tokens, 1, memory_order_relaxed);
}

void weir__record_read_begin(void)
{
    pthread_mutex_lock(&reading);
}

void weir__record_read_end(void)
{
    pthread_mutex_unlock(&reading);
}

void weir__record_hold(void)
{
    pthread_mutex_lock(&lock);
    for (struct weir__writer *writer = writers; writer; writer = writer->next) pthread_mutex_lock(&writer->lock);
}

void weir__record_let_go(void)
{
    for (struct weir__writer *writer = writers; writer; writer = writer->next) pthread_mutex_unlock(&writer->lock);
    pthread_mutex_unlock(&lock);
}

/* ---- texts ---- */

/* The copy that a slot keeps of a text, to know it again. */
static char *text_copy(const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

static uint32_t text_write(struct weir__text *slot, const char *text, size_t length)
{
    static _Atomic uint32_t numbers; /* relaxed: uniqueness is all */
    unsigned words = 1 + (unsigned)(length + 8) / 8;
    uint64_t *at = weir__record_claim(words);
    if (!at) return 0;
    uint32_t number = 1 + atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
    weir__record_head(at, WEIR__RECORD_STRING_TEXT, words, (unsigned)length, number);
    at[words - 1] = 0;
    memcpy(at + 1, text, length);
    weir__record_commit(words);
    free((char *)slot->text);
    *slot = (struct weir__text){text, text_copy(text, length), number};
    return number;
}

uint32_t weir__record_text(const char *text)
{
    if (!text) return 0;
    struct weir__writer *writer = weir__record_writer ? weir__record_writer : writer_get();
    if (!writer) return 0;
    struct weir__text *slot = &writer->texts[((uintptr_t)text >> 3 ^ (uintptr_t)text >> 11) % 256];
    /* The same address may hold another text by now. */
    if (slot->key == text && slot->text && !strncmp(slot->text, text, WEIR__RECORD_STRING)) return slot->number;
    return text_write(slot, text, strnlen(text, WEIR__RECORD_STRING));
}

/* ---- what the system knows ---- */

void weir__record_thread_ends(void)
{
    struct timespec used;
    if (!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used))
        atomic_fetch_add_explicit(&ended_ns, (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec,
                                  memory_order_relaxed);
}

/* The first word of a small file. False: there is none. */
static bool read_word(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, bytes - 1) : -1;
    if (fd >= 0) close(fd);
    if (n <= 0) return false;
    text[n] = '\0';
    text[strcspn(text, " \n")] = '\0';
    return true;
}

/* Processor time of the living threads whose name begins with "weir-" (proc(5)). */
static uint64_t own_threads_ns(void)
{
    DIR *tasks = opendir("/proc/self/task");
    uint64_t sum = 0;
    for (const struct dirent *entry; tasks && (entry = readdir(tasks));) {
        char path[320], word[32];
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        if (entry->d_name[0] == '.' || !read_word(path, word, sizeof word) || strncmp(word, "weir-", 5)) continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name);
        if (read_word(path, word, sizeof word)) sum += strtoull(word, NULL, 10);
    }
    if (tasks) closedir(tasks);
    return sum;
}

static uint64_t cpu_ns(void)
{
    return atomic_load_explicit(&ended_ns, memory_order_relaxed) + own_threads_ns();
}

/* Of this program: what getrusage() tells may be from before exec. proc(5). 0: not known. */
static uint64_t peak_kb(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[256];
    uint64_t kb = 0;
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmHWM:", 6)) kb = strtoull(line + 6, NULL, 10);
    if (status) fclose(status);
    return kb;
}

void weir__record_resources(void)
{
    uint64_t used = cpu_ns(), peak = peak_kb();
    pthread_mutex_lock(&lock);
    if (arena) {
        atomic_store_explicit(&arena->peak_kb, peak, memory_order_relaxed);
        atomic_store_explicit(&arena->cpu_ns, used > cpu_before_ns ? used - cpu_before_ns : 0, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- start, stop ---- */

static void in_child(void)
{
    /* The mapping is the parent's. Relaxed: one thread. */
    atomic_store_explicit(&weir__record_on, 0, memory_order_relaxed);
    weir__record_writer = NULL;
    arena = NULL;
    writers = unused = NULL;
    nslots = 0;
    arena_fd = -1;
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&reading, NULL);
}

static void once_only(void)
{
    weir__record_counter = counter_is_steady();
    (void)pthread_key_create(&ends, writer_put);
    (void)pthread_atfork(NULL, NULL, in_child);
}

static int file_open(const char *file, int *rc_out)
{
    int fd = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : memfd_create("weir-trace", MFD_CLOEXEC);
    if (fd < 0) {
        *rc_out =
            weir__fail(WEIR_E_SYSTEM, "%s cannot be opened: %s", file ? file : "memory for records", strerror(errno));
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        close(fd);
        *rc_out = weir__fail(WEIR_E_BUSY, "%s is in use by another process", file ? file : "memory");
        return -1;
    }
    return fd;
}

static int arena_make(size_t limit, const char *file)
{
    size_t nblocks = (limit ? limit : USUAL_LIMIT) / WEIR__SLOT_BYTES,
           bytes = WEIR__ARENA_BYTES + (size_t)WEIR__SLOTS * WEIR__SLOT_BYTES;
    int rc = WEIR_OK, fd = file_open(file, &rc);
    void *memory = MAP_FAILED;
    if (fd < 0) return rc;
    if (!ftruncate(fd, 0) && !ftruncate(fd, (off_t)bytes) &&
        (!fallocate(fd, 0, 0, WEIR__ARENA_BYTES) || errno == EOPNOTSUPP))
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (memory == MAP_FAILED) {
        rc = weir__fail(WEIR_E_NO_MEMORY, "no room for records: %s", strerror(errno));
        close(fd);
        return rc;
    }
    arena = memory;
    arena_fd = fd;
    arena->version = WEIR__ARENA_VERSION;
    arena->pid = (uint32_t)getpid();
    arena->nblocks = nblocks;
    arena->counter = weir__record_counter;
    arena->begin = arena->newest = weir__record_moment();
    ssize_t n = readlink("/proc/self/exe", arena->program, sizeof arena->program - 1);
    if (n < 0) arena->program[0] = '\0';
    arena->magic = WEIR__ARENA_MAGIC;
    return WEIR_OK;
}

static bool names_things(unsigned kind)
{
    return kind == WEIR__RECORD_THREAD || kind == WEIR__RECORD_STRING_TEXT || kind == WEIR__RECORD_STREAM ||
           kind == WEIR__RECORD_SCOPE || kind == WEIR__RECORD_MEMORY;
}

/* Leave only what names things: threads know it to be there. The rest of the block goes back to the system; on an error
 * it stays as it is. */
static void block_thin(uint64_t index, struct weir__slot *block)
{
    const size_t head = offsetof(struct weir__slot, words);
    off_t at = (off_t)(WEIR__ARENA_BYTES + (WEIR__SLOTS + index) * (uint64_t)WEIR__SLOT_BYTES);
    uint64_t left = 0, used;
    if (pread(arena_fd, block, sizeof *block, at) < (ssize_t)head) return;
    used = atomic_load_explicit(&block->used, memory_order_relaxed); /* a copy */
    for (uint64_t i = 0, n; i < used && (n = block->words[i] >> 8 & 0xff) != 0; i += n) {
        if (!names_things(block->words[i] & 0xff)) continue;
        memmove(block->words + left, block->words + i, n * 8);
        left += n;
    }
    atomic_store_explicit(&block->used, left, memory_order_relaxed);
    size_t bytes = head + left * 8, keep = (bytes + 4095) & ~(size_t)4095;
    if (pwrite(arena_fd, block, bytes, at) != (ssize_t)bytes || keep >= sizeof *block) return;
    (void)fallocate(arena_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at + (off_t)keep,
                    (off_t)(sizeof *block - keep));
}

/* Begin once more: readers leave out what happened before .begin, and what is in blocks goes. */
static int begin_anew(size_t limit)
{
    struct weir__slot *block = malloc(sizeof *block);
    if (!block) return weir__fail(WEIR_E_NO_MEMORY, "no memory to begin a recording");
    weir__record_hold();
    uint64_t taken = atomic_load_explicit(&arena->taken, memory_order_relaxed); /* held: nobody writes a block */
    if (taken > arena->nblocks) taken = arena->nblocks;
    for (uint64_t i = 0; i < taken; i++) block_thin(i, block);
    atomic_store_explicit(&arena->taken, taken, memory_order_relaxed);
    atomic_store_explicit(&arena->dropped, 0, memory_order_relaxed); /* a count */
    arena->nblocks = taken + (limit ? limit : USUAL_LIMIT) / WEIR__SLOT_BYTES;
    arena->begin = arena->newest = weir__record_moment();
    weir__record_let_go();
    free(block);
    return WEIR_OK;
}

int weir__record_start(size_t limit, const char *file, bool resume)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int rc = WEIR_OK;
    pthread_once(&once, once_only);
    pthread_mutex_lock(&reading);
    if (!weir__record_is_on()) {
        uint64_t before = cpu_ns();
        if (arena && !resume) rc = begin_anew(limit);
        pthread_mutex_lock(&lock);
        if (!arena) rc = arena_make(limit, file);
        if (!rc && !resume) cpu_before_ns = before;
        /* Release: pairs with the acquire in record.h, and with that of a device that takes times. */
        if (!rc) atomic_store_explicit(&weir__record_on, ++times_begun, memory_order_release);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_unlock(&reading);
    return rc;
}

void weir__record_stop(void)
{
    atomic_store_explicit(&weir__record_on, 0, memory_order_relaxed); /* see weir__record_is_on() */
}

const struct weir__arena *weir__record_arena(int *fd_out)
{
    pthread_mutex_lock(&lock);
    const struct weir__arena *result = arena;
    if (arena) arena->newest = weir__record_moment();
    *fd_out = arena_fd;
    pthread_mutex_unlock(&lock);
    return result;
}
