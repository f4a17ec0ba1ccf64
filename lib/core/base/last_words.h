// last_words.h: reports an end of the program that the host did not choose: a fatal signal, or
// foreign code that calls exit() or ends the main thread. One sentence on standard error then says
// which plugin and which function was running (running.h).
//
// A process cannot see _exit(), execve() and SIGKILL, so they are not reported.
#ifndef RLHF_HOST_LAST_WORDS_H
#define RLHF_HOST_LAST_WORDS_H

// Install the handlers for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, for exit(), and for
// pthread_exit() of the calling thread, which becomes the watched thread (running.h). After
// reporting a signal, the handler runs the previous action: by default, the program dumps core and
// ends with the signal's status. After reporting exit(), the program ends with status 1. [main]
void rlhf__last_words_install(void);

// Install the signal handlers again after a library has replaced them. The library's handlers are
// not called. [main]
void rlhf__last_words_renew(void);

// Begin the sentence with this text, e.g. "rank 2 on b: ", if several processes share standard
// error. [main]
void rlhf__last_words_prefix(const char *text);

// With on = 1, print the sentence as a JSON object, in the format of the log's JSON lines but
// without a time. [main]
void rlhf__last_words_json(int on);

// Restore the default action of fatal signals in a child. Its parent reports how it ended. [main]
void rlhf__last_words_silence(void);

#endif
