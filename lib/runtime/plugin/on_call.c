// on_call.c: see on_call.h.
#include "plugin/on_call.h"

#include <stdint.h>
#include <stdio.h>

static uintptr_t this_thread(void) {
    static _Thread_local char here; // its address differs between threads
    return (uintptr_t)&here;
}

const char *rlhf__on_call_begin(struct rlhf__on_call *c, const char *function) {
    const char *outer = atomic_load(&c->inside);
    atomic_store(&c->thread, this_thread());
    atomic_store(&c->inside, function);
    return outer;
}

void rlhf__on_call_end(struct rlhf__on_call *c, const char *outer) {
    atomic_store(&c->last, atomic_load(&c->inside));
    atomic_store(&c->inside, outer);
}

const char *rlhf__on_call_where(struct rlhf__on_call *c, char *out, size_t cap) {
    const char *inside = atomic_load(&c->inside), *last = atomic_load(&c->last);
    if (inside && atomic_load(&c->thread) == this_thread()) return NULL;
    if (inside)
        snprintf(out, cap, "from another thread than the one that called %s", inside);
    else if (last)
        snprintf(out, cap, "after %s had returned", last);
    else
        snprintf(out, cap, "outside of a call");
    return out;
}

const char *rlhf__on_call_service(struct rlhf__on_call *c, char *out, size_t cap) {
    char where[96];
    if (!rlhf__on_call_where(c, where, sizeof where)) return NULL;
    snprintf(out, cap,
             "it called a service %s; only encode, decode, and functions of rows may be called "
             "there",
             where);
    return out;
}
