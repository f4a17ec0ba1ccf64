// signals.h: turns signals that request something into flags, which the main loop polls. SIGINT,
// SIGTERM and SIGHUP ask the program to end; SIGUSR1 asks for a checkpoint. For the signals of
// faults, see last_words.h.
//
// The handlers' state is global. Only signals.c has access to it.
#ifndef RLHF_CORE_BASE_SIGNALS_H
#define RLHF_CORE_BASE_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

// Install the handlers. The first signal that asks to end is recorded, and a line on standard error
// announces what happens next. A second such signal, of the same kind or not, prints a line and
// ends the program at once. SIGHUP stays ignored if it was ignored at the start (nohup). SIGPIPE
// and SIGXFSZ are ignored, so that write() returns an error for a closed pipe, or for a file that
// may not grow. [main]
void rlhf__signals_install(void);

// If `on` is 1, the handlers print JSON lines like those of the log. [main]
void rlhf__signals_json(int on);

// If `on` is 1, the first signal that asks to end ends the program at once, without a message. For
// work that leaves nothing unfinished, such as reading files. [main]
void rlhf__signals_at_once(int on);

// If `on` is 1, a signal that asks to end interrupts a system call that waits, such as read(),
// which then fails with EINTR. Otherwise the call goes on after the handler. Set it only for calls
// that may wait for other programs, and look at rlhf__signals_flag() after setting it. [main]
void rlhf__signals_break_calls(int on);

// From now on the handlers print nothing, because another process prints the messages. [main]
void rlhf__signals_quiet(void);

// Set the current phase, counted from 1, or 0 outside of phases. The first signal's message
// announces that this phase will be finished or, if `abandons` is 1, that it will not be, because
// there is nothing to keep yet. `seconds` is the estimated time until the phase ends, or negative
// if that time is unknown. [main]
void rlhf__signals_phase(int64_t phase, double seconds, int abandons);

// Set the text that SIGTERM and a second signal print during a phase. It tells the user about the
// newest checkpoint: "phase 20 is kept; go on: ...". JSON output does not contain the text. A text
// of more than 511 bytes is ignored. If the run has no checkpoint yet, pass NULL. [main]
void rlhf__signals_kept(const char *text);

// Begin (`on` = 1) or end (`on` = 0) a dialogue, in which Ctrl-C aborts only the current answer and
// not the program. During a dialogue, SIGINT prints nothing and sets the returned flag. The code
// that reads the flag resets it to 0. After the dialogue, SIGINT again asks the program to end. The
// flag is valid until the program ends. [main]
volatile sig_atomic_t *rlhf__signals_dialogue(int on);

// Record a signal that another process received and that asks the program to end. Prints nothing.
// [main]
void rlhf__signals_adopt(int number);

// Starts a thread that receives only the signals of faults in the thread itself. The calling thread
// keeps receiving all other signals. Returns 1, or 0 if the thread cannot be started. [any]
int rlhf__signals_thread(pthread_t *thread, void *(*work)(void *), void *arg);

// Returns a pointer to a flag. The flag is 0 until a signal asks the program to end, and then it is
// that signal's number. The pointer is valid until the program ends. [any]
const volatile sig_atomic_t *rlhf__signals_flag(void);

// Returns a pointer to a flag. SIGUSR1 sets the flag to 1, and the code that reads it resets it to
// 0. The pointer is valid until the program ends. [any]
volatile sig_atomic_t *rlhf__signals_checkpoint(void);

#endif
