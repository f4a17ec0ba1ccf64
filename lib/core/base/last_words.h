// last_words.h: an end of the program that the host did not decide is told by name: on a fatal
// signal, or when code of others calls exit() or ends the main thread, one sentence on standard
// error says which plugin and function was running (running.h).
//
// What nothing inside a process can see is not told: _exit(), execve(), SIGKILL.
#ifndef RLHF_HOST_LAST_WORDS_H
#define RLHF_HOST_LAST_WORDS_H

// Install for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, for exit() and for pthread_exit() of the
// calling thread, which is the one to watch. After the sentence of a signal the earlier action
// follows: a core dump and the signal's status by default. exit() ends with status 1. [main]
void rlhf__last_words_install(void);

// 1: the sentence is the message of a JSON object, as log lines are then, but without a time.
// [main]
void rlhf__last_words_json(int on);

// Give fatal signals their default action back, for a child whose parent tells how it ended. [main]
void rlhf__last_words_silence(void);

#endif
