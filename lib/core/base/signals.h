// signals.h: signals that request something, as flags that the loop polls: SIGINT, SIGTERM and
// SIGHUP to end, SIGUSR1 for a checkpoint. last_words.h handles the signals of faults.
//
// The handlers' state is global and exists only here.
#ifndef RLHF_HOST_SIGNALS_H
#define RLHF_HOST_SIGNALS_H

#include <signal.h>
#include <stdint.h>

// Install the handlers. The first signal that asks to end is recorded and answered by a line on
// standard error that says what happens next. The second one, of either kind, prints a line and
// ends the program at once. SIGHUP stays ignored if it was (nohup). SIGPIPE and SIGXFSZ are
// ignored, so that a closed pipe and a file that may not grow become errors of write(). [main]
void rlhf__signals_install(void);

// 1: the handlers print JSON objects like the log, but without a time. [main]
void rlhf__signals_json(int on);

// Set the current phase, from 1, which the first signal's message promises to finish; 0 outside
// phases. seconds: estimated time to its end; below 0: unknown. [main]
void rlhf__signals_phase(int64_t phase, double seconds);

// What a second signal says in a phase of the newest checkpoint: "phase 20 is kept; go on: ...". A
// text of more than 500 bytes is ignored. [main]
void rlhf__signals_kept(const char *text);

// Points at 0 until a signal asked to end, then at its number. Valid for the program's life. [any]
const volatile sig_atomic_t *rlhf__signals_flag(void);

// Points at 1 from SIGUSR1 until the reader sets it to 0. Valid for the program's life. [any]
volatile sig_atomic_t *rlhf__signals_checkpoint(void);

#endif
