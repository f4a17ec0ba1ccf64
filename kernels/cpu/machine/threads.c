// threads.c: see threads.h. A futex is better than a condition variable here: nothing is locked,
// and the caller makes a system call only for threads that sleep.
#include "machine/threads.h"

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

// What a thread waits for. The caller of a region sets OFFERED. Whoever then sets WAITING, the
// thread or the caller, does the share.
enum { WAITING, ASLEEP, OFFERED, STOP };

struct worker {
    _Alignas(LINE) _Atomic uint32_t state;
    int share;
    struct rlhf__threads *all;
    pthread_t thread;
};

struct rlhf__threads {
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

static void finish_share(struct rlhf__threads *t) {
    if (atomic_fetch_sub(&t->left, 1) == 1 && atomic_load(&t->caller_sleeps)) futex_wake(&t->left);
}

static void *worker_main(void *arg) {
    struct worker *w = arg;
    struct rlhf__threads *t = w->all;
    char name[16];
    snprintf(name, sizeof name, "rlhf-cpu-%d", w->share);
    pthread_setname_np(pthread_self(), name);
    for (;;) {
        uint32_t state = spin(&w->state, WAITING, t->spin_ns);
        if (state == STOP) return NULL;
        if (state == WAITING && atomic_compare_exchange_strong(&w->state, &state, ASLEEP))
            while (atomic_load(&w->state) == ASLEEP)
                futex_wait(&w->state, ASLEEP);
        if (!take(w)) continue;
        if (modes_now() != t->modes) modes_set(t->modes);
        t->work(t->arg, w->share);
        finish_share(t);
    }
}

// Gives the worker a new state, and wakes it if it sleeps.
static void tell(struct worker *w, uint32_t state) {
    if (atomic_exchange(&w->state, state) == ASLEEP) futex_wake(&w->state);
}

// Does the shares that have not begun. The threads begin in ascending order, so the last ones are
// done first.
static void help(struct rlhf__threads *t, int shares) {
    for (int i = shares - 1; i > 0; i--)
        if (take(&t->worker[i])) {
            t->work(t->arg, i);
            finish_share(t);
        }
}

static void wait_for_all(struct rlhf__threads *t) {
    uint32_t left = atomic_load(&t->left);
    while (left) {
        const uint32_t now = spin(&t->left, left, t->spin_ns);
        if (now == left) {
            atomic_store(&t->caller_sleeps, 1);
            if (atomic_load(&t->left) == left) futex_wait(&t->left, left);
            atomic_store(&t->caller_sleeps, 0);
        }
        left = atomic_load(&t->left);
    }
}

void rlhf__threads_run(struct rlhf__threads *t, int shares, void (*work)(void *arg, int share),
                       void *arg) {
    t->work = work;
    t->arg = arg;
    t->modes = modes_now();
    atomic_store_explicit(&t->left, (uint32_t)shares, memory_order_relaxed);
    for (int i = 1; i < shares; i++)
        tell(&t->worker[i], OFFERED);
    work(arg, 0);
    finish_share(t);
    // Usually the others finish at about the same time, and there is nothing to help with.
    for (uint32_t left = atomic_load(&t->left), before = left + 1; left && left != before;) {
        before = left;
        left = spin(&t->left, left, 0);
    }
    if (atomic_load(&t->left)) help(t, shares);
    wait_for_all(t);
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
static int start(struct rlhf__threads *t) {
    pthread_attr_t attr;
    sigset_t before;
    int failed = pthread_attr_init(&attr);
    if (failed) return failed;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    block_signals(&before);
    for (int i = 1; i < t->threads && !failed; i++) {
        struct worker *w = &t->worker[i];
        w->share = i;
        w->all = t;
        failed = pthread_create(&w->thread, &attr, worker_main, w);
        t->started += !failed;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return failed;
}

int rlhf__threads_create(int threads, struct rlhf__threads **out) {
    const size_t bytes = sizeof(struct rlhf__threads) + (size_t)threads * sizeof(struct worker);
    struct rlhf__threads *t = aligned_alloc(LINE, bytes);
    *out = NULL;
    if (!t) return ENOMEM;
    memset(t, 0, bytes);
    t->threads = threads;
    t->spin_ns = threads > allowed_processors() ? SPIN_FEW_NS : SPIN_NS;
    const int failed = start(t);
    if (failed) {
        rlhf__threads_destroy(t);
        return failed;
    }
    *out = t;
    return 0;
}

void rlhf__threads_destroy(struct rlhf__threads *t) {
    if (!t) return;
    for (int i = 1; i <= t->started; i++)
        tell(&t->worker[i], STOP);
    for (int i = 1; i <= t->started; i++)
        pthread_join(t->worker[i].thread, NULL);
    free(t);
}
