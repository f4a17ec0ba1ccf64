// split.c: see split.h.
#include "machine/split.h"

#include "machine/threads.h"

#include <stdatomic.h>

struct loop {
    void (*body)(const void *job, int64_t i);
    rlhf__split_body *body_own; // or this
    const void *job;
    int64_t n, chunk;
    int shares;
    _Atomic int64_t next; // the next i to give to a thread
};

// The first i of a share.
static int64_t first_of(const struct loop *l, int share) {
    const int64_t more = l->n % l->shares;
    return l->n / l->shares * share + (share < more ? share : more);
}

static void run_range(void *arg, int share) {
    const struct loop *l = arg;
    const int64_t end = first_of(l, share + 1);
    for (int64_t i = first_of(l, share); i < end; i++)
        l->body(l->job, i);
}

static void run_range_own(void *arg, int share) {
    const struct loop *l = arg;
    const int64_t end = first_of(l, share + 1);
    for (int64_t i = first_of(l, share); i < end; i++)
        l->body_own(l->job, i, share);
}

static void run_chunks(void *arg, int share) {
    struct loop *l = arg;
    for (;;) {
        const int64_t i0 = atomic_fetch_add_explicit(&l->next, l->chunk, memory_order_relaxed);
        if (i0 >= l->n) return;
        const int64_t end = l->n - i0 < l->chunk ? l->n : i0 + l->chunk;
        for (int64_t i = i0; i < end; i++)
            l->body_own(l->job, i, share);
    }
}

static void run(const struct rlhf__cpu *cpu, int threads, int64_t most, void (*work)(void *, int),
                struct loop *l) {
    l->shares = most < threads ? (int)most : threads;
    if (l->shares > 1)
        rlhf__threads_run(cpu->workers, l->shares, work, l);
    else if (l->shares == 1)
        work(l, 0);
}

void rlhf__split_run(const struct rlhf__cpu *cpu, int threads, int64_t n,
                     void (*body)(const void *job, int64_t i), const void *job) {
    run(cpu, threads, n, run_range, &(struct loop){.body = body, .job = job, .n = n});
}

void rlhf__split_run_own(const struct rlhf__cpu *cpu, int threads, int64_t n,
                         rlhf__split_body *body, const void *job) {
    run(cpu, threads, n, run_range_own, &(struct loop){.body_own = body, .job = job, .n = n});
}

void rlhf__split_deal(const struct rlhf__cpu *cpu, int threads, int64_t n, int64_t chunk,
                      rlhf__split_body *body, const void *job) {
    run(cpu, threads, (n + chunk - 1) / chunk, run_chunks,
        &(struct loop){.body_own = body, .job = job, .n = n, .chunk = chunk});
}
