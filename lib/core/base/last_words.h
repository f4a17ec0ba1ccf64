// last_words.h: reports an end of the program that the host did not choose. On a fatal signal, or
// when foreign code calls exit() or ends the main thread, one sentence on standard error says which
// plugin and function was running (running.h).
//
// A process cannot see and therefore does not report _exit(), execve() and SIGKILL.
#ifndef RLHF_HOST_LAST_WORDS_H
#define RLHF_HOST_LAST_WORDS_H

// Install for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, for exit(), and for pthread_exit() of
// the calling thread, which is the watched one. After the sentence of a signal the previous action
// runs: by default a core dump and the signal's status. exit() ends with status 1. [main]
void rlhf__last_words_install(void);

// 1: the sentence is the message of a JSON object, as log lines are then, but without a time.
// [main]
void rlhf__last_words_json(int on);

// Restore the default action of fatal signals, for a child whose parent reports how it ended.
// [main]
void rlhf__last_words_silence(void);

#endif
