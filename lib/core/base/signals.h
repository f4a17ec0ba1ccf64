// signals.h: signals that request something become flags, which the loop polls. SIGINT, SIGTERM and
// SIGHUP ask to end, SIGUSR1 asks for a checkpoint. last_words.h handles signals of faults.
//
// The handlers' state is global and exists only here.
#ifndef RLHF_HOST_SIGNALS_H
#define RLHF_HOST_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

// Install the handlers. The first signal that asks to end is recorded, and a line on standard error
// says what happens next. The second one, whichever signal it is, prints a line and ends the
// program at once. SIGHUP stays ignored if it was (nohup). SIGPIPE and SIGXFSZ are ignored, so that
// a closed pipe, or a file that may not grow, becomes an error of write(). [main]
void rlhf__signals_install(void);

// 1: the handlers print JSON objects like the log, but without a time. [main]
void rlhf__signals_json(int on);

// The handlers print nothing from now on: another process prints it. [main]
void rlhf__signals_quiet(void);

// Set the current phase, counted from 1, or 0 outside of phases. The first signal's message
// promises to finish this phase. seconds is the estimated time to its end; below 0: unknown. [main]
void rlhf__signals_phase(int64_t phase, double seconds);

// Set what a second signal during a phase prints about the newest checkpoint: "phase 20 is kept; go
// on: ...". Not printed as JSON. A text of more than 500 bytes is ignored. [main]
void rlhf__signals_kept(const char *text);

// Begin (on = 1) or end (on = 0) a dialogue, in which Ctrl-C ends one answer and not the program.
// During a dialogue, SIGINT prints nothing and sets the returned flag; the reader of the flag
// resets it to 0. After the dialogue, SIGINT asks to end again. The flag is valid for the program's
// life. [main]
volatile sig_atomic_t *rlhf__signals_dialogue(int on);

// Record a signal that asks to end, without a message: another process got it. [main]
void rlhf__signals_adopt(int number);

// Starts a thread that receives only the signals of faults in that thread. The calling thread
// receives all other signals. Returns 1, or 0 if the thread cannot be started. [any]
int rlhf__signals_thread(pthread_t *thread, void *(*work)(void *), void *arg);

// Points at 0 until a signal asks to end, then at the signal's number. Valid for the program's
// life. [any]
const volatile sig_atomic_t *rlhf__signals_flag(void);

// Points at 1 from SIGUSR1 until the reader sets it to 0. Valid for the program's life. [any]
volatile sig_atomic_t *rlhf__signals_checkpoint(void);

#endif
