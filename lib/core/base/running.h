// running.h: whose code runs on this thread: the plugin and its function, on record around every
// call that leaves the host, so that an end of the program in there can be told by name.
//
// The record is what signal and exit handlers read (signals.h); it knows strings, not plugins.
#ifndef RLHF_HOST_RUNNING_H
#define RLHF_HOST_RUNNING_H

#include <stddef.h>
#include <sys/types.h>

struct rlhf__running {
    const char *kind, *name, *function; // "reward", "org.x.y", "score()"; NULL = the host itself
    pid_t pid;                          // of the process that made the call
    int reserved;
};

// Put a call on record for this thread; the strings are borrowed until its end. Returns what was
// on record before, which rlhf__running_end takes back. Calls nest. [any]
struct rlhf__running rlhf__running_begin(const char *kind, const char *name, const char *function);

// The call returned. When it returned in another process (a child that the plugin forked), says so
// on standard error and ends that process with status 1. [any]
void rlhf__running_end(const struct rlhf__running *before);

// The calling thread is the one that others are judged by: what runs on a thread without a record
// was started by what runs on this one. Once, by main(). [main]
void rlhf__running_watch(void);

// 1 on the thread and in the process of rlhf__running_watch. Async-signal-safe. [any]
int rlhf__running_is_main(void);

// The process that called rlhf__running_watch, 0 before. Async-signal-safe. [any]
pid_t rlhf__running_home(void);

// "reward org.x.y, score()", or a thread beside that, into out, NUL-ended; 0 (and "") while only
// the host runs. Async-signal-safe. [any]
int rlhf__running_describe(char *out, size_t cap);

#endif
