// running.h: records which plugin function is running on this thread. The host makes a record
// around every call of a plugin, so that a crash or exit inside the call can be reported with the
// plugin's name.
//
// The handlers of signals and of exit read the record (last_words.h, signals.h). The record
// consists of strings and does not depend on the plugin types.
#ifndef RLHF_CORE_BASE_RUNNING_H
#define RLHF_CORE_BASE_RUNNING_H

#include <stddef.h>
#include <sys/types.h>

struct rlhf__running {
    const char *kind, *name, *function; // "reward", "mine.so", "score()"; NULL = the host itself
    pid_t pid;                          // the process that made the call
    int reserved;
};

// Record a call on this thread. The strings are borrowed until the call ends. Returns the previous
// record, which rlhf__running_end restores. Calls can be nested. [any]
struct rlhf__running rlhf__running_begin(const char *kind, const char *name, const char *function);

// Called when the plugin function has returned. If it returned in another process (a child that the
// plugin forked), report that on standard error and end that process with status 1. [any]
void rlhf__running_end(const struct rlhf__running *before);

// Make the calling thread the watched thread. If another thread that has no record crashes or
// exits, the report names the plugin function that runs on the watched thread. Called once, by
// main(). [main]
void rlhf__running_watch(void);

// Returns 1 if the calling thread and process are those that called rlhf__running_watch.
// Async-signal-safe. [any]
int rlhf__running_is_main(void);

// Returns the process that called rlhf__running_watch, or 0 before that call. Async-signal-safe.
// [any]
pid_t rlhf__running_home(void);

// Write the name of the running function to `out`, NUL-ended: "reward mine.so, score()", without
// quotes, backslashes and control characters in the names. If only the watched thread runs a
// plugin, and another thread calls this, the text begins with "another thread during". Returns 1,
// or 0 with "" in `out` if only the host is running. Async-signal-safe. [any]
int rlhf__running_describe(char *out, size_t cap);

#endif
