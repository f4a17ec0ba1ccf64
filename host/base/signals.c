// signals.c: see signals.h.
#include "base/signals.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t caught; // a handler can only reach what is static

static void on_signal(int number) {
    static const char text[] = "\nstopping; press again to stop at once\n";
    const int error = errno;
    caught = number;
    const ssize_t put = write(STDERR_FILENO, text, sizeof text - 1); // the only way to say it here
    (void)put;
    errno = error;
    // SA_RESETHAND gave the default action back: the next one ends the program.
}

void rlhf__signals_install(void) {
    struct sigaction act;
    memset(&act, 0, sizeof act);
    act.sa_handler = on_signal;
    act.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    act.sa_handler = SIG_IGN;
    act.sa_flags = 0;
    sigaction(SIGPIPE, &act, NULL);
}

const volatile sig_atomic_t *rlhf__signals_flag(void) { return &caught; }
