// signals.c: see signals.h.
#include "base/signals.h"

#include "base/alternate.h"
#include "base/clock.h"
#include "base/running.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define FIRST_WAIT 5  // seconds until a message names the running function
#define NEXT_WAIT  60 // seconds until that message is repeated

// Handlers can only use static variables.
static volatile sig_atomic_t caught;
static volatile sig_atomic_t checkpoint;
static volatile sig_atomic_t json;
static volatile sig_atomic_t quiet;
static volatile sig_atomic_t at_once;     // the first signal ends the program
static volatile sig_atomic_t interrupted; // by Ctrl-C in a dialogue
static _Atomic int64_t phase_now;         // 0: none
static volatile sig_atomic_t abandons_it; // the phase is not finished after a signal
static _Atomic int64_t phase_end_ms;      // of rlhf__seconds(); 0: not known
static char kept[512];                    // text for a second signal, about the newest checkpoint
static _Atomic int32_t kept_whole;        // 1: `kept` is complete
static _Atomic int32_t nothing_kept;      // 1: no checkpoint has been written

static void append(char *out, size_t cap, const char *text) {
    const size_t at = strlen(out), n = strlen(text);
    if (at + n < cap) memcpy(out + at, text, n + 1);
}

static void append_number(char *out, size_t cap, int64_t v) {
    char digits[24], *at = digits + sizeof digits - 1;
    *at = '\0';
    do
        *--at = (char)('0' + v % 10);
    while (v /= 10);
    append(out, cap, at);
}

// Print a line on standard error in the format of a log line. Async-signal-safe.
static void say(const char *what) {
    char text[750] = "", now[RLHF__UTC_BYTES];
    if (quiet) return;
    if (json) {
        rlhf__utc(now);
        append(text, sizeof text, "{\"time\": \"");
        append(text, sizeof text, now);
        append(text, sizeof text, "\", \"event\": \"log\", \"level\": \"info\", \"message\": \"");
    } else if (isatty(STDERR_FILENO)) { // begin a new line after the ^C and the progress bar
        append(text, sizeof text, "\n");
    }
    append(text, sizeof text, what);
    append(text, sizeof text, json ? "\"}\n" : "\n");
    if (rlhf__alternate_keep(text)) return; // the next drawing shows it; printed at the end
    const ssize_t put = write(STDERR_FILENO, text, strlen(text));
    (void)put;
}

// Appends the message for a signal outside of phases: "stopping when reward mine.so is done; press
// again to stop at once". The host cannot abort a plugin function that runs in the
// host's process, so it must wait until the function returns.
static void put_waiting(char *out, size_t cap) {
    char who[400];
    append(out, cap, "stopping");
    // rlhf__running_task leaves out what JSON would have to escape.
    if (rlhf__running_task(who, sizeof who)) {
        append(out, cap, " when ");
        append(out, cap, who);
        append(out, cap, " is done");
    }
    append(out, cap, "; press again to stop at once");
}

static void put_again(char *out, size_t cap, int number) {
    append(out, cap, number == SIGINT ? "; Ctrl-C again: at once" : "; a second signal: at once");
}

// Appends the part of the message about the checkpoint. Outside of rewards, the phase is finished
// and a checkpoint follows. If a reward is running, the host ends the reward's programs and workers
// soon after the signal. A reward that has not returned by then leaves the phase unfinished: the
// run returns to the end of the previous phase. In phase 1 of several processes there is no
// previous phase, so nothing is kept.
static void put_keeping(char *out, size_t cap, int64_t phase) {
    char who[400];
    if (!rlhf__running_task(who, sizeof who) || strncmp(who, "reward ", 7) != 0) {
        append(out, cap, ", then a checkpoint");
        return;
    }
    append(out, cap, phase > 1 ? " if " : " and writing a checkpoint if ");
    append(out, cap, who);
    append(out, cap, " answers soon, ");
    if (phase == 1) {
        append(out, cap, "else stopping with nothing kept");
        return;
    }
    append(out, cap, "else going back to the end of phase ");
    append_number(out, cap, phase - 1);
    append(out, cap, "; then a checkpoint");
}

// Appends "finishing phase 87 (about 1 s), then a checkpoint; Ctrl-C again: at once".
static void put_phase(char *out, size_t cap, int number, int64_t phase) {
    if (abandons_it) {
        append(out, cap, "stopping within phase ");
        append_number(out, cap, phase);
        append(out, cap, ", with nothing kept");
        put_again(out, cap, number);
        return;
    }
    const int64_t end = phase_end_ms, left = (end - (int64_t)(rlhf__seconds() * 1e3) + 500) / 1000;
    append(out, cap, "finishing phase ");
    append_number(out, cap, phase);
    if (end) {
        append(out, cap, " (about ");
        append_number(out, cap, left > 1 ? left : 1);
        append(out, cap, " s)");
    }
    put_keeping(out, cap, phase);
    put_again(out, cap, number);
}

// If the program is still waiting, print what it waits for.
static void on_wait(int number) {
    char who[400], text[600] = "still waiting for ";
    const int error = errno;
    (void)number;
    if (rlhf__running_task(who, sizeof who)) {
        append(text, sizeof text, who);
        put_again(text, sizeof text, (int)caught);
        say(text);
    }
    alarm(NEXT_WAIT);
    errno = error;
}

static void handle(int number, void (*handler)(int));

// Set the alarm, unless a plugin uses the alarm itself.
static void wait_for_it(void) {
    struct sigaction before;
    if (sigaction(SIGALRM, NULL, &before) != 0 || before.sa_handler != SIG_DFL) return;
    handle(SIGALRM, on_wait);
    alarm(FIRST_WAIT);
}

// Async-signal-safe. Whoever sends SIGTERM, such as mpirun, Slurm or systemd, often sends SIGKILL
// soon after it, so the message for SIGTERM also has the text about the newest checkpoint.
static void say_stopping(int number) {
    const int64_t phase = phase_now;
    char text[1200] = "";
    if (phase)
        put_phase(text, sizeof text, number, phase);
    else
        put_waiting(text, sizeof text);
    if (phase && number == SIGTERM && kept_whole && !json) {
        append(text, sizeof text, "; if the run is killed first: ");
        append(text, sizeof text, kept);
    }
    say(text);
    if (phase) wait_for_it();
}

// Async-signal-safe.
static void say_stopped(void) {
    char text[640] = "stopped at once";
    rlhf__alternate_close();
    if (phase_now && kept_whole && !json) { // not in JSON, where the command would need escapes
        append(text, sizeof text, "; ");
        append(text, sizeof text, kept);
    } else if (phase_now && nothing_kept) {
        append(text, sizeof text, "; nothing is kept, because the run has no checkpoint yet");
    } else if (phase_now) {
        append(text, sizeof text, "; the work since the last checkpoint is lost");
    }
    say(text);
}

static void on_end(int number) {
    const int error = errno;
    if (caught || at_once) { // the default action runs when this handler returns
        if (caught) say_stopped();
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    caught = number;
    say_stopping(number);
    errno = error;
}

static void on_interrupt(int number) {
    (void)number;
    interrupted = 1;
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

void rlhf__signals_break_calls(int on) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction act;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], NULL, &act);
        act.sa_flags = on ? act.sa_flags & ~SA_RESTART : act.sa_flags | SA_RESTART;
        sigaction(numbers[i], &act, NULL);
    }
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

volatile sig_atomic_t *rlhf__signals_dialogue(int on) {
    interrupted = 0;
    handle(SIGINT, on ? on_interrupt : on_end);
    return &interrupted;
}

void rlhf__signals_kept(const char *text) {
    kept_whole = 0;
    atomic_signal_fence(memory_order_seq_cst);
    kept[0] = '\0';
    if (text) append(kept, sizeof kept, text);
    nothing_kept = !text;
    atomic_signal_fence(memory_order_seq_cst);
    kept_whole = kept[0] != '\0'; // a text that is too long is left out
}

void rlhf__signals_json(int on) { json = on; }

void rlhf__signals_at_once(int on) { at_once = on; }

void rlhf__signals_quiet(void) { quiet = 1; }

void rlhf__signals_phase(int64_t phase, double seconds, int abandons) {
    abandons_it = abandons;
    const double end = (rlhf__seconds() + seconds) * 1e3;
    phase_end_ms = seconds >= 0 && end < 1e15 ? (int64_t)ceil(end) : 0;
    phase_now = phase;
}

void rlhf__signals_adopt(int number) {
    if (!caught) caught = number;
}

const volatile sig_atomic_t *rlhf__signals_flag(void) { return &caught; }

volatile sig_atomic_t *rlhf__signals_checkpoint(void) { return &checkpoint; }

int rlhf__signals_thread(pthread_t *thread, void *(*work)(void *), void *arg) {
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int started = pthread_create(thread, NULL, work, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}
