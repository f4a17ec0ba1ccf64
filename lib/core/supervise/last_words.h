// last_words.h: reports an end of the program that the host did not choose: a fatal signal, or
// foreign code that calls exit() or ends the main thread. The report is one sentence on standard
// error. It names the plugin and the function that was running (running.h).
//
// A process cannot notice _exit(), execve() or SIGKILL, so these are not reported.
#ifndef RLHF_CORE_SUPERVISE_LAST_WORDS_H
#define RLHF_CORE_SUPERVISE_LAST_WORDS_H

// Install the handlers for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, for exit(), and for
// pthread_exit() of the calling thread. That thread becomes the watched thread (running.h). After
// reporting a signal, the handler runs the previous action. By default, that action dumps core and
// ends the program with the signal's status. After reporting exit() or pthread_exit(), the handler
// ends the program with status 1. [main]
void rlhf__last_words_install(void);

// Install the signal handlers again after a library has replaced them. The library's handlers are
// no longer called. [main]
void rlhf__last_words_renew(void);

// Put `text`, for example "rank 2 on b: ", before the sentence that reports the end. The prefix
// tells the user which of several processes that share standard error has ended. [main]
void rlhf__last_words_prefix(const char *text);

// If `on` is 1, the sentence that reports the end is printed as a JSON object, in the format of the
// log's JSON lines. [main]
void rlhf__last_words_json(int on);

// Restore the default action of fatal signals in a child process. The parent reports how the child
// ended. [main]
void rlhf__last_words_silence(void);

#endif
