// running.h: records which plugin function runs on this thread, around every call that leaves the
// host, so that a crash or exit inside it can be reported by name.
//
// Signal and exit handlers read the record (signals.h); it holds strings and knows no plugins.
#ifndef RLHF_HOST_RUNNING_H
#define RLHF_HOST_RUNNING_H

#include <stddef.h>
#include <sys/types.h>

struct rlhf__running {
    const char *kind, *name, *function; // "reward", "org.x.y", "score()"; NULL = the host itself
    pid_t pid;                          // of the process that made the call
    int reserved;
};

// Record a call on this thread; the strings are borrowed until its end. Returns the previous
// record, which rlhf__running_end restores. Calls nest. [any]
struct rlhf__running rlhf__running_begin(const char *kind, const char *name, const char *function);

// The call returned. If it returned in another process (a child that the plugin forked), reports
// that on standard error and ends that process with status 1. [any]
void rlhf__running_end(const struct rlhf__running *before);

// Make the calling thread the reference: code on a thread without a record was started by whatever
// runs on this one. Called once, by main(). [main]
void rlhf__running_watch(void);

// 1 on the thread and in the process of rlhf__running_watch. Async-signal-safe. [any]
int rlhf__running_is_main(void);

// The process that called rlhf__running_watch, 0 before. Async-signal-safe. [any]
pid_t rlhf__running_home(void);

// "reward org.x.y, score()", or another thread that it started, into out, NUL-ended; 0 (and "")
// while only the host runs. Async-signal-safe. [any]
int rlhf__running_describe(char *out, size_t cap);

#endif
