// signals.c: see signals.h.
#include "base/signals.h"

#include "base/running.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

// A handler can only reach what is static.
static volatile sig_atomic_t caught;
static volatile sig_atomic_t checkpoint;
static volatile sig_atomic_t json;

static void append(char *out, size_t cap, const char *text) {
    const size_t at = strlen(out), n = strlen(text);
    if (at + n < cap) memcpy(out + at, text, n + 1);
}

// "stopping when reward org.x.y, score() has returned; press again to stop at once": code of a
// plugin in this process cannot be ended for itself. Async-signal-safe.
static void say_stopping(void) {
    char who[400], text[600] = "";
    if (json)
        append(text, sizeof text, "{\"event\": \"log\", \"level\": \"info\", \"message\": \"");
    else if (isatty(STDERR_FILENO)) // off the line with the ^C and the bar
        append(text, sizeof text, "\n");
    append(text, sizeof text, "stopping");
    // An id has letters, digits, '.', '_' and '-' alone, so it is what JSON takes.
    if (rlhf__running_describe(who, sizeof who)) {
        append(text, sizeof text, " when ");
        append(text, sizeof text, who);
        append(text, sizeof text, " has returned");
    }
    append(text, sizeof text, "; press again to stop at once");
    append(text, sizeof text, json ? "\"}\n" : "\n");
    const ssize_t put = write(STDERR_FILENO, text, strlen(text));
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
