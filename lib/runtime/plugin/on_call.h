// on_call.h: which function of a plugin runs, and on which thread. Some functions of rlhf_host may
// be called only during a call of the plugin, on the thread of that call (rlhf/base.h).
#ifndef RLHF_LIB_RUNTIME_PLUGIN_ON_CALL_H
#define RLHF_LIB_RUNTIME_PLUGIN_ON_CALL_H

#include <stdatomic.h>
#include <stddef.h>

// Zero-initialize.
struct rlhf__on_call {
    _Atomic(const char *) inside; // "score()"; NULL: no call runs
    _Atomic(const char *) last;   // the last function that returned; NULL: none
    atomic_uintptr_t thread;      // of the call
};

// Begin and end a call on this thread. `function` is static. _begin returns what _end needs: the
// function that called the host, which called the plugin again, or NULL. [any]
const char *rlhf__on_call_begin(struct rlhf__on_call *, const char *function);
void rlhf__on_call_end(struct rlhf__on_call *, const char *outer);

// Returns NULL if a call runs on this thread. Otherwise writes to out[cap] where this thread is
// ("after score() had returned") and returns `out`. [any]
const char *rlhf__on_call_where(struct rlhf__on_call *, char *out, size_t cap);

// Like rlhf__on_call_where, but writes why this thread may not call a function of a service that
// computes with a model, or that opens an object. [any]
const char *rlhf__on_call_service(struct rlhf__on_call *, char *out, size_t cap);

#endif
