/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * The mock's time. Each stream is a queue of items; the first one that is not over is the head. Records and waits take
 * no time; work ends when the clock has moved by its duration since it became the head. Whoever finds that work is over
 * marks the stream busy, gives the lock up, lets the work take effect, and removes it. Notices are delivered likewise.
 */

#include <devices/mock/private.h>

#include <stdlib.h>
#include <string.h>

/* How many functions of the mock's user this thread is in: those must not wait for themselves. */
static _Thread_local uint32_t depth;

static uint64_t duration_of(struct weir__mock *mock, const struct weir__mock_work *work, uint32_t device)
{
    const struct weir__mock_options *options = &mock->options;
    if (options->clock == WEIR__MOCK_AUTOMATIC) return 0;
    if (options->item_duration)
        return options->item_duration(options->item_duration_arg, (enum weir__mock_item)work->kind, device,
                                      work->number);
    if (!options->random_seed) return options->duration;
    mock->random = mock->random * 6364136223846793005u + 1442695040888963407u;
    return 1 + (mock->random >> 33) % options->duration;
}

void weir__mock_queue_locked(struct weir__mock_stream *stream, struct weir__mock_work *work)
{
    struct weir__mock *mock = stream->object.mock;
    if (work->kind <= WEIR__MOCK_HOST_FUNCTION) {
        work->number = ++mock->work_queued;
        work->fail = weir__mock_item_plan_locked(mock);
        work->duration = duration_of(mock, work, stream->object.device->number);
    }
    work->next = NULL;
    *stream->tail = work;
    stream->tail = &work->next;
    stream->queued++;
    mock->items_left++;
    if (mock->options.clock == WEIR__MOCK_AUTOMATIC) weir__mock_pump_locked(mock);
    pthread_cond_broadcast(&mock->changed);
}

void weir__mock_notify_locked(struct weir__mock *mock, struct weir__mock_notify *notify, int status)
{
    notify->status = status;
    notify->next = NULL;
    *mock->ready_tail = notify;
    mock->ready_tail = &notify->next;
}

static void record_reached_locked(struct weir__mock_stream *stream, const struct weir__mock_wait *point)
{
    struct weir__mock_event *event = point->event;
    event->done = point->generation;
    event->status = stream->object.device->lost ? WEIR_E_DEVICE : stream->stretch;
    stream->stretch = 0;
    for (struct weir__mock_notify **link = &event->notifies; *link;) {
        struct weir__mock_notify *notify = *link;
        if (notify->generation <= event->done) {
            *link = notify->next;
            weir__mock_notify_locked(stream->object.mock, notify, event->status);
        } else {
            link = &notify->next;
        }
    }
}

static bool waits_satisfied(const struct weir__mock_work *work)
{
    for (size_t i = 0; i < work->count; i++)
        if (work->more[i].wait.event->done < work->more[i].wait.generation) return false;
    return true;
}

void weir__mock_copy_now(const struct weir__copy *copy)
{
    size_t rows = copy->count[0] ? copy->count[0] : 1, planes = copy->count[1] ? copy->count[1] : 1;
    for (size_t plane = 0; plane < planes; plane++)
        for (size_t row = 0; row < rows; row++)
            memmove((char *)copy->to + (planes > 1 ? plane * copy->to_pitch[1] : 0) +
                        (rows > 1 ? row * copy->to_pitch[0] : 0),
                    (const char *)copy->from + (planes > 1 ? plane * copy->from_pitch[1] : 0) +
                        (rows > 1 ? row * copy->from_pitch[0] : 0),
                    copy->bytes);
}

/* Without the lock. */
static int take_effect(struct weir__mock_work *work)
{
    switch (work->kind) {
    case WEIR__MOCK_LAUNCH:
        work->launch.function(&work->more[0].argument);
        return 0;
    case WEIR__MOCK_COPY:
        weir__mock_copy_now(&work->copy);
        return 0;
    case WEIR__MOCK_FILL:
        memset(work->fill.to, work->fill.value, work->fill.bytes);
        return 0;
    case WEIR__MOCK_HOST_FUNCTION:
        return work->host.function(work->host.arg);
    default:
        return 0;
    }
}

static void run_work_locked(struct weir__mock_stream *stream, struct weir__mock_work *work)
{
    struct weir__mock *mock = stream->object.mock;
    int status = work->fail;
    if (!status) {
        stream->busy = true;
        mock->running++;
        pthread_mutex_unlock(&mock->lock);
        depth++;
        status = take_effect(work);
        depth--;
        pthread_mutex_lock(&mock->lock);
        mock->running--;
        stream->busy = false;
    }
    if (status > 0) status = WEIR_E_TASK;
    if (status == WEIR_E_DEVICE) stream->object.device->lost = true;
    if (!stream->stretch) stream->stretch = status;
    if (!stream->unreported) stream->unreported = status;
    mock->work_ended++;
}

/* The head's work is over, or its device was lost before it could begin. */
static void remove_head_locked(struct weir__mock_stream *stream)
{
    struct weir__mock_work *work = stream->head;
    stream->head = work->next;
    if (!stream->head) stream->tail = &stream->head;
    stream->ended++;
    stream->object.mock->items_left--;
    if (!work->kept) free(work);
    pthread_cond_broadcast(&stream->object.mock->changed);
}

/* Let the head end if it can. False: it cannot at the present time. */
static bool advance_stream_locked(struct weir__mock_stream *stream)
{
    struct weir__mock *mock = stream->object.mock;
    struct weir__mock_work *work = stream->head;
    if (!work || stream->busy) return false;
    bool lost = stream->object.device->lost;
    if (work->kind == WEIR__MOCK_RECORD) {
        record_reached_locked(stream, &work->point);
    } else if (work->kind == WEIR__MOCK_FREE) {
        if (weir__mock_memory_remove_locked(stream->object.device, work->address)) free(work->address);
    } else if (work->kind == WEIR__MOCK_WAIT) {
        if (!lost && !waits_satisfied(work)) return false;
    } else if (!lost) {
        if (!work->started) {
            work->started = true;
            work->finish = mock->now + work->duration;
        }
        if (work->finish > mock->now) return false;
        run_work_locked(stream, work);
    } else {
        mock->work_ended++;
    }
    remove_head_locked(stream);
    return true;
}

static bool deliver_locked(struct weir__mock *mock)
{
    struct weir__mock_notify *notify = mock->ready;
    if (!notify) return false;
    mock->ready = notify->next;
    if (!mock->ready) mock->ready_tail = &mock->ready;
    mock->running++;
    pthread_mutex_unlock(&mock->lock);
    depth++;
    notify->done(notify->arg, notify->status);
    depth--;
    free(notify);
    pthread_mutex_lock(&mock->lock);
    mock->running--;
    pthread_cond_broadcast(&mock->changed);
    return true;
}

bool weir__mock_pump_locked(struct weir__mock *mock)
{
    bool any = false;
    for (bool again = true; again; any |= again) {
        again = false;
        /* The list only grows at its front, so it stays walkable while the lock is given up. */
        for (struct weir__mock_stream *stream = mock->streams; stream; stream = stream->next)
            while (advance_stream_locked(stream)) again = true;
        while (deliver_locked(mock)) again = true;
    }
    return any;
}

static bool next_finish_locked(struct weir__mock *mock, uint64_t *finish_out)
{
    bool found = false;
    *finish_out = UINT64_MAX;
    for (struct weir__mock_stream *stream = mock->streams; stream; stream = stream->next) {
        const struct weir__mock_work *work = stream->head;
        if (!work || stream->busy || work->kind > WEIR__MOCK_HOST_FUNCTION || !work->started) continue;
        if (work->finish < *finish_out) *finish_out = work->finish;
        found = true;
    }
    return found;
}

bool weir__mock_step_locked(struct weir__mock *mock)
{
    uint64_t finish;
    if (weir__mock_pump_locked(mock)) return true; /* the lock was given up: the caller looks again at what it wants */
    if (!next_finish_locked(mock, &finish)) return false;
    if (finish > mock->now) mock->now = finish;
    weir__mock_pump_locked(mock);
    return true;
}

void weir__mock_block_locked(struct weir__mock *mock)
{
    if (mock->options.clock == WEIR__MOCK_AUTO_ADVANCE && weir__mock_step_locked(mock)) return;
    if (mock->options.clock == WEIR__MOCK_AUTOMATIC && weir__mock_pump_locked(mock)) return;
    if (depth && mock->options.clock != WEIR__MOCK_TICKER)
        weir__mock_violation_locked(mock, "a function in stream order or a notice blocks");
    pthread_cond_wait(&mock->changed, &mock->lock);
}

void *weir__mock_ticker(void *arg)
{
    struct weir__mock *mock = arg;
    pthread_mutex_lock(&mock->lock);
    while (!mock->stopping)
        if (!weir__mock_step_locked(mock)) pthread_cond_wait(&mock->changed, &mock->lock);
    pthread_mutex_unlock(&mock->lock);
    return NULL;
}

void weir__mock_advance(struct weir__mock *mock, uint64_t ticks)
{
    pthread_mutex_lock(&mock->lock);
    uint64_t target = mock->now + ticks, finish;
    weir__mock_pump_locked(mock);
    while (next_finish_locked(mock, &finish) && finish <= target) {
        if (finish > mock->now) mock->now = finish;
        weir__mock_pump_locked(mock);
    }
    if (target > mock->now) mock->now = target;
    weir__mock_pump_locked(mock);
    pthread_mutex_unlock(&mock->lock);
}

size_t weir__mock_run(struct weir__mock *mock)
{
    pthread_mutex_lock(&mock->lock);
    for (;;) {
        if (weir__mock_step_locked(mock)) continue;
        /* Nothing can end now. Work that another thread is running may make more possible. */
        if (!mock->running || depth) break;
        pthread_cond_wait(&mock->changed, &mock->lock);
    }
    size_t left = mock->items_left;
    pthread_mutex_unlock(&mock->lock);
    return left;
}

uint64_t weir__mock_now(struct weir__mock *mock)
{
    pthread_mutex_lock(&mock->lock);
    uint64_t now = mock->now;
    pthread_mutex_unlock(&mock->lock);
    return now;
}

uint64_t weir__mock_items_queued(struct weir__mock *mock)
{
    pthread_mutex_lock(&mock->lock);
    uint64_t n = mock->work_queued;
    pthread_mutex_unlock(&mock->lock);
    return n;
}

uint64_t weir__mock_items_ended(struct weir__mock *mock)
{
    pthread_mutex_lock(&mock->lock);
    uint64_t n = mock->work_ended;
    pthread_mutex_unlock(&mock->lock);
    return n;
}

void weir__mock_lose_device(struct weir__mock *mock, uint32_t number)
{
    pthread_mutex_lock(&mock->lock);
    if (number < mock->options.devices) {
        mock->devices[number].lost = true;
        weir__mock_pump_locked(mock);
        pthread_cond_broadcast(&mock->changed);
    }
    pthread_mutex_unlock(&mock->lock);
}
