// pool.c: see pool.h. A futex is better than a condition variable here: nothing is locked, and the
// caller makes a system call only for threads that sleep.
#include "machine/pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#define LINE        64u               // bytes of a cache line
#define STACK_BYTES ((size_t)1 << 20) // the hot loops need a tenth of this
#define SPIN_NS     ((int64_t)50 * 1000)
#define SPIN_FEW_NS ((int64_t)2 * 1000) // with more threads than processors

// What a thread of the pool waits for. The caller of a region sets OFFERED. Whoever then sets
// WAITING, the thread or the caller, does the share.
enum { WAITING, ASLEEP, OFFERED, STOP };

struct worker {
    _Alignas(LINE) _Atomic uint32_t state;
    int share;
    struct rlhf__pool *pool;
    pthread_t thread;
};

struct rlhf__pool {
    int threads, started; // with the caller; without
    int64_t spin_ns;
    // the region: constant while one of its shares is not finished
    void (*work)(void *arg, int share);
    void *arg;
    uint64_t modes;
    _Alignas(LINE) _Atomic uint32_t left; // number of shares that are not finished
    _Atomic uint32_t caller_sleeps;
    struct worker worker[]; // [threads]; the first one is not used
};

// ---- floating-point modes ----

#if defined(__x86_64__)
#define EXCEPTIONS 0x3fu // exceptions that have occurred, which are not modes
static uint64_t modes_now(void) { return _mm_getcsr() & ~EXCEPTIONS; }
static void modes_set(uint64_t modes) { _mm_setcsr((uint32_t)modes); }
#elif defined(__aarch64__)
static uint64_t modes_now(void) {
    uint64_t modes;
    __asm__ volatile("mrs %0, fpcr" : "=r"(modes));
    return modes;
}
static void modes_set(uint64_t modes) { __asm__ volatile("msr fpcr, %0" ::"r"(modes)); }
#endif

// ---- waiting ----

static void futex_wait(_Atomic uint32_t *word, uint32_t value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void relax(void) {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Spins until *word is not `value`, for about `ns` nanoseconds, and at least for 32 looks. Returns
// the last value seen.
static uint32_t spin(_Atomic uint32_t *word, uint32_t value, int64_t ns) {
    for (int64_t end = 0;;) {
        for (int i = 0; i < 32; i++) {
            const uint32_t now = atomic_load_explicit(word, memory_order_acquire);
            if (now != value) return now;
            relax();
        }
        if (ns == 0) return value;
        const int64_t now = now_ns();
        if (end == 0) end = now + ns;
        if (now >= end) return value;
    }
}

// ---- shares ----

// Takes the share that worker w was offered. Returns 0 if there is none.
static int take(struct worker *w) {
    uint32_t offered = OFFERED;
    return atomic_compare_exchange_strong(&w->state, &offered, WAITING);
}

static void finish_share(struct rlhf__pool *p) {
    if (atomic_fetch_sub(&p->left, 1) == 1 && atomic_load(&p->caller_sleeps)) futex_wake(&p->left);
}

static void *worker_main(void *arg) {
    struct worker *w = arg;
    struct rlhf__pool *p = w->pool;
    char name[16];
    snprintf(name, sizeof name, "rlhf-cpu-%d", w->share);
    pthread_setname_np(pthread_self(), name);
    for (;;) {
        uint32_t state = spin(&w->state, WAITING, p->spin_ns);
        if (state == STOP) return NULL;
        if (state == WAITING && atomic_compare_exchange_strong(&w->state, &state, ASLEEP))
            while (atomic_load(&w->state) == ASLEEP)
                futex_wait(&w->state, ASLEEP);
        if (!take(w)) continue;
        if (modes_now() != p->modes) modes_set(p->modes);
        p->work(p->arg, w->share);
        finish_share(p);
    }
}

// Gives the worker a new state, and wakes it if it sleeps.
static void tell(struct worker *w, uint32_t state) {
    if (atomic_exchange(&w->state, state) == ASLEEP) futex_wake(&w->state);
}

// Does the shares that have not begun. The threads begin in ascending order, so the last ones are
// done first.
static void help(struct rlhf__pool *p, int shares) {
    for (int i = shares - 1; i > 0; i--)
        if (take(&p->worker[i])) {
            p->work(p->arg, i);
            finish_share(p);
        }
}

static void wait_for_all(struct rlhf__pool *p) {
    uint32_t left = atomic_load(&p->left);
    while (left) {
        const uint32_t now = spin(&p->left, left, p->spin_ns);
        if (now == left) {
            atomic_store(&p->caller_sleeps, 1);
            if (atomic_load(&p->left) == left) futex_wait(&p->left, left);
            atomic_store(&p->caller_sleeps, 0);
        }
        left = atomic_load(&p->left);
    }
}

void rlhf__pool_run(struct rlhf__pool *p, int shares, void (*work)(void *arg, int share),
                    void *arg) {
    p->work = work;
    p->arg = arg;
    p->modes = modes_now();
    atomic_store_explicit(&p->left, (uint32_t)shares, memory_order_relaxed);
    for (int i = 1; i < shares; i++)
        tell(&p->worker[i], OFFERED);
    work(arg, 0);
    finish_share(p);
    // Usually the others finish at about the same time, and there is nothing to help with.
    for (uint32_t left = atomic_load(&p->left), before = left + 1; left && left != before;) {
        before = left;
        left = spin(&p->left, left, 0);
    }
    if (atomic_load(&p->left)) help(p, shares);
    wait_for_all(p);
}

// ---- creation ----

static int allowed_processors(void) {
    enum { MOST = 1 << 13 };
    cpu_set_t *set = CPU_ALLOC(MOST);
    const size_t bytes = CPU_ALLOC_SIZE(MOST);
    int n = 0;
    if (set && sched_getaffinity(0, bytes, set) == 0) n = CPU_COUNT_S(bytes, set);
    CPU_FREE(set);
    return n;
}

// Blocks all signals but those of faults, which a handler of the program may report.
static void block_signals(sigset_t *before) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

// The new threads inherit the signal mask.
static int start(struct rlhf__pool *p) {
    pthread_attr_t attr;
    sigset_t before;
    int failed = pthread_attr_init(&attr);
    if (failed) return failed;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    block_signals(&before);
    for (int i = 1; i < p->threads && !failed; i++) {
        struct worker *w = &p->worker[i];
        w->share = i;
        w->pool = p;
        failed = pthread_create(&w->thread, &attr, worker_main, w);
        p->started += !failed;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return failed;
}

int rlhf__pool_create(int threads, struct rlhf__pool **out) {
    const size_t bytes = sizeof(struct rlhf__pool) + (size_t)threads * sizeof(struct worker);
    struct rlhf__pool *p = aligned_alloc(LINE, bytes);
    *out = NULL;
    if (!p) return ENOMEM;
    memset(p, 0, bytes);
    p->threads = threads;
    p->spin_ns = threads > allowed_processors() ? SPIN_FEW_NS : SPIN_NS;
    const int failed = start(p);
    if (failed) {
        rlhf__pool_destroy(p);
        return failed;
    }
    *out = p;
    return 0;
}

void rlhf__pool_destroy(struct rlhf__pool *p) {
    if (!p) return;
    for (int i = 1; i <= p->started; i++)
        tell(&p->worker[i], STOP);
    for (int i = 1; i <= p->started; i++)
        pthread_join(p->worker[i].thread, NULL);
    free(p);
}
