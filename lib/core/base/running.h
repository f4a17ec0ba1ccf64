// running.h: records which plugin function is running on this thread. The host records every call
// of a plugin while the call runs, so that a report of a crash or exit inside the call can name the
// plugin. Each recorded call also begins in the standard floating-point environment, and the
// caller's environment is restored after it.
//
// The handlers of signals and of exit read the record (last_words.h, signals.h). The record
// consists of strings and does not depend on the plugin types.
#ifndef RLHF_CORE_BASE_RUNNING_H
#define RLHF_CORE_BASE_RUNNING_H

#include "base/float_env.h"

#include <stddef.h>
#include <sys/types.h>

struct rlhf__running {
    const char *kind, *name, *function; // "reward", "mine.so", "score()"; NULL = the host itself
    pid_t pid;                          // the process that made the call
    struct rlhf__float_env floats; // of the caller; set only in what rlhf__running_begin returns
};

// Record a call on this thread. The strings are borrowed until the call ends. Returns the previous
// record, which rlhf__running_end restores. Calls can be nested. [any]
struct rlhf__running rlhf__running_begin(const char *kind, const char *name, const char *function);

// Call this after the plugin function has returned. Restores the caller's floating-point
// environment. If the function returned in a child process that the plugin forked, reports this on
// standard error and ends the child with status 1. [any]
void rlhf__running_end(const struct rlhf__running *before);

// Make the calling thread the watched thread. If another thread crashes or exits and has no record,
// the report names the plugin function that runs on the watched thread. main() calls this function
// once. [main]
void rlhf__running_watch(void);

// Returns 1 if the calling thread and process called rlhf__running_watch. Async-signal-safe. [any]
int rlhf__running_is_main(void);

// Returns the id of the process that called rlhf__running_watch, or 0 before that call.
// Async-signal-safe. [any]
pid_t rlhf__running_home(void);

// Write the name of the running function to `out`, NUL-ended: "reward mine.so, score()". The names
// lack quotes, backslashes and control characters. If the calling thread has no record but the
// watched thread has one, the text is about that thread and begins with "another thread during".
// Returns 1, or 0 with "" in `out` if only the host is running. Async-signal-safe. [any]
int rlhf__running_describe(char *out, size_t cap);

// The same for a person who waits, without functions: "reward mine.so", or what a model does:
// "sampling (model llama.so)". Async-signal-safe. [any]
int rlhf__running_task(char *out, size_t cap);

#endif
