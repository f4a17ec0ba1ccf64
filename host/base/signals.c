// signals.c: see signals.h.
#include "base/signals.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

// A handler can only reach what is static.
static volatile sig_atomic_t caught;
static volatile sig_atomic_t checkpoint;
static volatile sig_atomic_t json;

#define STOPPING "stopping; press again to stop at once"

// Async-signal-safe.
static void say_stopping(void) {
    static const char text[] = "\n" STOPPING "\n";
    static const char object[] =
        "{\"event\": \"log\", \"level\": \"info\", \"message\": \"" STOPPING "\"}\n";
    const size_t from = isatty(STDERR_FILENO) ? 0 : 1; // off the line with the ^C and the bar
    const ssize_t put = json ? write(STDERR_FILENO, object, sizeof object - 1)
                             : write(STDERR_FILENO, text + from, sizeof text - 1 - from);
    (void)put;
}

static void on_end(int number) {
    const int error = errno;
    if (caught) { // the default action, on return from here
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    caught = number;
    say_stopping();
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

void rlhf__signals_json(int on) { json = on; }

const volatile sig_atomic_t *rlhf__signals_flag(void) { return &caught; }

volatile sig_atomic_t *rlhf__signals_checkpoint(void) { return &checkpoint; }
