// probe_rest.c: children that continue to compute after score() has returned.
#include "worker/probe.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 120 };

_Noreturn static void burn(void) {
    volatile unsigned long n = 0;
    for (;;)
        n++;
}

static void continue_it(int number) { (void)number; }

// Sets 600 timers, one for each tenth of a second of the next minute. Each sends SIGCONT, which
// continues a stopped process.
static void set_timers(void) {
    signal(SIGCONT, continue_it);
    for (long i = 1; i <= 600; i++) {
        struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
        const struct itimerspec once = {{0, 0}, {i / 10, i % 10 * 100000000 + 1}};
        timer_t timer;
        if (timer_create(CLOCK_MONOTONIC, &how, &timer) == 0) timer_settime(timer, 0, &once, NULL);
    }
}

// Returns only when the child is ready, because the child may be stopped as soon as score() has
// returned.
static long leave_behind(int wakes) {
    int ready[2];
    char byte = 0;
    if (pipe(ready) != 0) return -1;
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_NAME, "probe-burner");
        signal(SIGXCPU, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        alarm(SECONDS); // so that processes do not stay for ever
        if (wakes) set_timers();
        if (write(ready[1], &byte, 1) == 1) burn();
        _exit(1);
    }
    close(ready[1]);
    const long got = read(ready[0], &byte, 1);
    close(ready[0]);
    return got;
}

// Leaves a child that computes and ignores the soft limit of its processor time.
long probe_burns(const struct bait *b) {
    (void)b;
    return leave_behind(0);
}

// Leaves a child that also wakes itself when it is stopped.
long probe_wakes(const struct bait *b) {
    (void)b;
    return leave_behind(1);
}
