// test_threads.c: the threads of the CPU backend: every share of a region is done once, whichever
// thread does it, and what the threads inherit. Loops that are divided among them.
#include "support/check.h"
#include "support/floats.h"

#include "machine/split.h"
#include "machine/threads.h"

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 16 };

static struct rlhf__threads *threads_of(int threads) {
    struct rlhf__threads *all = NULL;
    assert_int_equal(rlhf__threads_create(threads, &all), 0);
    assert_non_null(all);
    return all;
}

static void pause_us(long us) { nanosleep(&(struct timespec){0, us * 1000}, NULL); }

// ---- regions ----

struct count {
    int done[MOST]; // not atomic: two threads must not have the same share
};

static void count_share(void *arg, int share) {
    struct count *c = arg;
    c->done[share]++;
}

// Between some of the regions the threads fall asleep.
static void every_share_is_done_once(void **state) {
    (void)state;
    static const int sizes[] = {2, 3, MOST};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct rlhf__threads *all = threads_of(sizes[s]);
        struct count c = {{0}};
        int want[MOST] = {0};
        for (int i = 0; i < 5000; i++) {
            const int shares = 1 + i % sizes[s];
            rlhf__threads_run(all, shares, count_share, &c);
            for (int k = 0; k < shares; k++)
                want[k]++;
            if (i % 500 == 0) pause_us(300);
        }
        assert_memory_equal(c.done, want, sizeof want);
        rlhf__threads_destroy(all);
    }
    rlhf__threads_destroy(NULL);
}

// Regions in which share 0 ends only when another thread has begun share 1.
struct together {
    _Atomic int begun;
    pthread_t thread;
    char name[16];
    sigset_t blocked;
    float third; // rounded in the thread's mode
};

static void meet(void *arg, int share) {
    struct together *t = arg;
    if (share == 0) {
        while (!atomic_load(&t->begun))
            pause_us(10);
        return;
    }
    t->thread = pthread_self();
    pthread_getname_np(t->thread, t->name, sizeof t->name);
    pthread_sigmask(SIG_BLOCK, NULL, &t->blocked);
    const volatile float one = 1, three = 3;
    t->third = one / three;
    atomic_store(&t->begun, 1);
}

// Signals of the user go to the program's own threads, but a fault can be reported. The modes of
// the caller hold in each region, also after they have changed.
static void what_threads_inherit(void **state) {
    (void)state;
    struct rlhf__threads *all = threads_of(2);
    struct together t = {0};
    fenv_t before;
    rlhf__threads_run(all, 2, meet, &t);
    assert_false(pthread_equal(t.thread, pthread_self()));
    assert_string_equal(t.name, "rlhf-cpu-1");
    assert_true(sigismember(&t.blocked, SIGINT) && sigismember(&t.blocked, SIGTERM));
    assert_false(sigismember(&t.blocked, SIGSEGV));
    assert_true(t.third > 0.3333333135f);
    fegetenv(&before);
    change_floats();
    t = (struct together){0};
    rlhf__threads_run(all, 2, meet, &t);
    fesetenv(&before);
    assert_true(t.third <= 0.3333333135f);
    t = (struct together){0};
    rlhf__threads_run(all, 2, meet, &t);
    assert_true(t.third > 0.3333333135f);
    rlhf__threads_destroy(all);
    sigset_t own;
    pthread_sigmask(SIG_BLOCK, NULL, &own);
    assert_false(sigismember(&own, SIGINT));
}

// A child process has only the thread that called fork(), which does all shares.
static void a_child_does_all_shares(void **state) {
    (void)state;
    struct rlhf__threads *all = threads_of(4);
    struct count c = {{0}};
    rlhf__threads_run(all, 4, count_share, &c);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(20); // a child that waits for a thread it does not have is ended
        for (int i = 0; i < 10; i++)
            rlhf__threads_run(all, 4, count_share, &c);
        for (int k = 0; k < 4; k++)
            if (c.done[k] != 11) _exit(2);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    rlhf__threads_destroy(all);
}

static void *run_own_threads(void *arg) {
    struct rlhf__threads *all = NULL;
    struct count *c = arg;
    if (rlhf__threads_create(3, &all) != 0) return NULL;
    for (int i = 0; i < 2000; i++)
        rlhf__threads_run(all, 3, count_share, c);
    rlhf__threads_destroy(all);
    return NULL;
}

static void threads_of_several_callers(void **state) {
    (void)state;
    pthread_t other[3];
    struct count c[3] = {{{0}}};
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&other[i], NULL, run_own_threads, &c[i]), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(other[i], NULL);
        for (int k = 0; k < 3; k++)
            assert_int_equal(c[i].done[k], 2000);
    }
}

// ---- loops ----

enum { LONGEST = 100 };

struct marks {
    int done[LONGEST], own[LONGEST];
    _Atomic int busy[MOST]; // 1: a body has this number
    _Atomic int shared;     // 1: two bodies had the same number at the same time
};

static void mark(const void *job, int64_t i) {
    struct marks *m = *(struct marks *const *)job;
    m->done[i]++;
}

static void mark_own(const void *job, int64_t i, int own) {
    struct marks *m = *(struct marks *const *)job;
    if (atomic_exchange(&m->busy[own], 1)) atomic_store(&m->shared, 1);
    m->done[i]++;
    m->own[i] = own;
    atomic_store(&m->busy[own], 0);
}

static void check_marks(const struct marks *m, int64_t n, int threads) {
    for (int64_t i = 0; i < LONGEST; i++) {
        assert_int_equal(m->done[i], i < n);
        assert_in_range(m->own[i], 0, threads - 1);
    }
    assert_int_equal(m->shared, 0);
}

static void check_loops(const struct rlhf__cpu *cpu, int threads, int64_t n) {
    struct marks run = {.done = {0}}, own = run, *m = &run;
    rlhf__split_run(cpu, threads, n, mark, &m);
    check_marks(m, n, threads);
    m = &own;
    rlhf__split_run_own(cpu, threads, n, mark_own, &m);
    check_marks(m, n, threads);
    const int64_t shares = n < threads ? n : threads;
    for (int64_t i = 0, at = 0; i < shares; i++) { // consecutive ranges, the longer ones first
        const int64_t len = n / shares + (i < n % shares);
        for (const int64_t end = at + len; at < end; at++)
            assert_int_equal(own.own[at], i);
    }
    for (int64_t chunk = 1; chunk <= 9; chunk += 4) {
        struct marks dealt = {.done = {0}};
        m = &dealt;
        rlhf__split_deal(cpu, threads, n, chunk, mark_own, &m);
        check_marks(m, n, threads);
        for (int64_t i = 1; i < n; i++)
            if (i % chunk) assert_int_equal(dealt.own[i], dealt.own[i - 1]);
    }
}

static void loops(void **state) {
    (void)state;
    for (int threads = 1; threads <= 5; threads += 2) {
        struct rlhf__cpu cpu = {.threads = threads};
        if (threads > 1) cpu.workers = threads_of(threads);
        static const int64_t sizes[] = {0, 1, 2, 4, 5, 7, 63, LONGEST};
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int used = 1; used <= threads; used++)
                check_loops(&cpu, used, sizes[s]);
        rlhf__threads_destroy(cpu.workers);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_share_is_done_once), cmocka_unit_test(what_threads_inherit),
        cmocka_unit_test(a_child_does_all_shares), cmocka_unit_test(threads_of_several_callers),
        cmocka_unit_test(loops)};
    return cmocka_run_group_tests_name("kernels: threads", tests, NULL, NULL);
}
