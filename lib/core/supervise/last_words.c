// last_words.c: see last_words.h. The variables are static, because signal handlers can reach
// nothing else.
#include "supervise/last_words.h"

#include "base/alternate.h"
#include "base/clock.h"
#include "base/running.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    int number;
    const char *text;
} fatal[] = {
    {SIGSEGV, "segmentation fault"}, {SIGBUS, "bus error"}, {SIGFPE, "arithmetic exception"},
    {SIGILL, "illegal instruction"}, {SIGABRT, "aborted"},
};

#define N_FATAL     (sizeof fatal / sizeof *fatal)
#define LEAST_STACK 32768

static struct sigaction earlier[N_FATAL];
static pthread_key_t main_thread;
static volatile sig_atomic_t json;
static char prefix[96]; // "rank 2 on b: "

static void append(char *out, size_t cap, const char *text) {
    size_t at = strlen(out), n = strlen(text);
    if (at + n + 1 > cap) return;
    memcpy(out + at, text, n + 1);
}

// Remove the bytes that are not allowed in a JSON string, in place.
static void keep_plain(char *text) {
    char *to = text;
    for (const char *c = text; *c; c++)
        if (*c != '"' && *c != '\\' && (unsigned char)*c >= ' ') *to++ = *c;
    *to = '\0';
}

// Write "rlhf-host: error: <who>: <what>", or a log line as JSON, in one write. Async-signal-safe.
static void say(const char *what) {
    rlhf__alternate_close();
    char who[512], text[1024] = "", now[RLHF__UTC_BYTES];
    if (!rlhf__running_describe(who, sizeof who)) append(who, sizeof who, "the host");
    if (json) {
        rlhf__utc(now);
        append(text, sizeof text, "{\"time\": \"");
        append(text, sizeof text, now);
        append(text, sizeof text, "\", \"event\": \"log\", \"level\": \"error\", \"message\": \"");
    } else {
        if (isatty(STDERR_FILENO)) append(text, sizeof text, "\n"); // keep the progress line
        append(text, sizeof text, "rlhf-host: error: ");
    }
    append(text, sizeof text, prefix);
    append(text, sizeof text, who);
    append(text, sizeof text, ": ");
    append(text, sizeof text, what);
    append(text, sizeof text, json ? "\"}\n" : "\n");
    const ssize_t put = write(STDERR_FILENO, text, strlen(text));
    (void)put;
}

static void on_fatal(int number, siginfo_t *info, void *context) {
    (void)context;
    const char *text = "fatal signal";
    for (size_t i = 0; i < N_FATAL; i++)
        if (fatal[i].number == number) {
            text = fatal[i].text;
            sigaction(number, &earlier[i], NULL);
        }
    say(text);
    // If a process sent the signal, raise it again. It stays pending until this handler returns.
    // Then the previous action, which was restored above, handles it. A fault needs no such help:
    // after the handler returns, the same instruction faults again.
    if (info->si_code <= 0) raise(number);
}

// If no plugin call is recorded, an exit() on the main thread comes from the host itself and is not
// reported.
static void on_exit_call(void) {
    char who[16];
    if (rlhf__running_is_main() ? !rlhf__running_describe(who, sizeof who)
                                : getpid() != rlhf__running_home())
        return;
    say("called exit(), which a plugin may not");
    fflush(NULL);
    _exit(1);
}

// Runs when the thread ends by pthread_exit(), not when main returns.
static void on_thread_end(void *value) {
    (void)value;
    if (!rlhf__running_is_main()) return;
    say("ended the main thread, which a plugin may not");
    fflush(NULL);
    _exit(1);
}

// After a stack overflow, the handler needs a separate stack. Its size depends on the CPU, because
// the kernel saves all registers there, including AMX tiles. If memory runs out, the program
// continues without this stack.
static void stack_for_handlers(void) {
    static stack_t own;
    const long size = sysconf(_SC_SIGSTKSZ);
    own.ss_size = (size_t)(size < LEAST_STACK ? LEAST_STACK : size);
    own.ss_sp = malloc(own.ss_size);
    if (own.ss_sp) sigaltstack(&own, NULL);
}

static struct sigaction own_action(void) {
    struct sigaction act;
    memset(&act, 0, sizeof act);
    act.sa_sigaction = on_fatal;
    act.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&act.sa_mask);
    return act;
}

void rlhf__last_words_install(void) {
    static int mark;
    const struct sigaction act = own_action();
    rlhf__running_watch();
    stack_for_handlers();
    for (size_t i = 0; i < N_FATAL; i++)
        sigaction(fatal[i].number, &act, &earlier[i]);
    atexit(on_exit_call);
    if (pthread_key_create(&main_thread, on_thread_end) == 0)
        pthread_setspecific(main_thread, &mark);
}

void rlhf__last_words_renew(void) {
    const struct sigaction act = own_action();
    for (size_t i = 0; i < N_FATAL; i++)
        sigaction(fatal[i].number, &act, NULL);
}

void rlhf__last_words_prefix(const char *text) {
    snprintf(prefix, sizeof prefix, "%.90s", text);
    keep_plain(prefix);
}

void rlhf__last_words_json(int on) { json = on; }

void rlhf__last_words_silence(void) {
    for (size_t i = 0; i < N_FATAL; i++)
        signal(fatal[i].number, SIG_DFL);
}
