// signals.c: see signals.h.
#include "base/signals.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

// A handler can only reach what is static.
static volatile sig_atomic_t caught;
static volatile sig_atomic_t checkpoint;

static void on_end(int number) {
    static const char text[] = "\nstopping; press again to stop at once\n";
    const int error = errno;
    if (caught) { // the default action, on return from here
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    caught = number;
    const size_t from = isatty(STDERR_FILENO) ? 0 : 1; // off the line with the ^C and the bar
    const ssize_t put = write(STDERR_FILENO, text + from, sizeof text - 1 - from);
    (void)put;
    errno = error;
}

static void on_checkpoint(int number) {
    (void)number;
    checkpoint = 1;
}

static void handle(int number, void (*handler)(int)) {
    struct sigaction act;
    memset(&act, 0, sizeof act);
    act.sa_handler = handler;
    act.sa_flags = SA_RESTART;
    sigemptyset(&act.sa_mask);
    sigaction(number, &act, NULL);
}

void rlhf__signals_install(void) {
    struct sigaction before;
    handle(SIGINT, on_end);
    handle(SIGTERM, on_end);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        handle(SIGHUP, on_end);
    handle(SIGUSR1, on_checkpoint);
    handle(SIGPIPE, SIG_IGN);
    handle(SIGXFSZ, SIG_IGN);
}

const volatile sig_atomic_t *rlhf__signals_flag(void) { return &caught; }

volatile sig_atomic_t *rlhf__signals_checkpoint(void) { return &checkpoint; }
