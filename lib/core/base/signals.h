// signals.h: signals that ask for something, as flags that the loop polls: SIGINT, SIGTERM and
// SIGHUP to end, SIGUSR1 for a checkpoint. Signals that tell of a fault are last_words.h's.
//
// What a handler needs is state of the program and lives here and nowhere else.
#ifndef RLHF_HOST_SIGNALS_H
#define RLHF_HOST_SIGNALS_H

#include <signal.h>
#include <stdint.h>

// Install the handlers. The first signal that asks to end is noted and answered by a line on
// standard error that says what follows; the second one says so and ends the program at once,
// whichever the two are. SIGHUP stays ignored where it was (nohup). SIGPIPE and SIGXFSZ
// are ignored, so that a closed pipe and a file that may not grow are errors of the write. [main]
void rlhf__signals_install(void);

// 1: what the handlers say is a JSON object, as log lines are then, but without a time. [main]
void rlhf__signals_json(int on);

// Set the current phase, from 1, which the first signal's message promises to finish; 0 outside
// phases. seconds: estimated time to its end; below 0: unknown. [main]
void rlhf__signals_phase(int64_t phase, double seconds);

// Points at 0 until a signal asked to end, then at its number. Valid for the program's life. [any]
const volatile sig_atomic_t *rlhf__signals_flag(void);

// Points at 1 from SIGUSR1 until the reader sets it to 0. Valid for the program's life. [any]
volatile sig_atomic_t *rlhf__signals_checkpoint(void);

#endif
