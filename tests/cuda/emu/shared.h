// shared.h: shared memory of a block. Every variable has separate pages, which are followed by an
// inaccessible page. The same is true of the launch's dynamic part. All these pages are filled with
// NaN (all bits set) when a block starts.
#ifndef RLHF_TESTS_CUDA_EMU_SHARED_H
#define RLHF_TESTS_CUDA_EMU_SHARED_H

#include "fiber.h"

namespace emu {

enum { SHARED_DEFAULT = 48 * 1024, SHARED_MAX = 227 * 1024, SLOTS = 1024 };

// Memory that ends at an inaccessible page.
struct guarded {
    unsigned char *map;
    size_t bytes; // readable, whole pages
};
inline guarded guarded_map(size_t bytes) {
    guarded g;
    g.bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    g.map = (unsigned char *)mmap(NULL, g.bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
                                  -1, 0);
    if (g.map == MAP_FAILED) die("no memory for shared memory", 0);
    g.map += PAGE;
    mprotect(g.map, g.bytes, PROT_READ | PROT_WRITE);
    return g;
}

struct slot { // one SHARED variable
    uint64_t block;
    unsigned char *p;
    unsigned bytes;
    char token; // for the race detector: the variable exists
};
inline slot *slots[SLOTS]; // all slots that were ever used
inline unsigned n_slots;
inline guarded dyn;
inline unsigned char *dyn_shared; // dynamic shared memory of the launch
inline unsigned dyn_bytes, static_bytes;
inline uint64_t block_serial; // identifies blocks over the life of the process

EMU_UNSEEN inline void *shared_take(slot *s, unsigned bytes) {
    if (s->block == block_serial) {
        EMU_TSAN(__tsan_acquire(&s->token));
        return s->p;
    }
    const unsigned used = (bytes + 15) / 16 * 16;
    // The race detector must believe that the launcher fills the memory before the block starts.
    EMU_TSAN(__tsan_switch_to_fiber(launcher_tsan, 1));
    if (!s->p) {
        if (n_slots == SLOTS) die("too many SHARED variables for the emulation", 0);
        const guarded g = guarded_map(used);
        s->p = g.map + g.bytes - used;
        s->bytes = bytes;
        slots[n_slots++] = s;
    }
    s->block = block_serial;
    memset(s->p, 0xff, used);
    EMU_TSAN(__tsan_release(&s->token); __tsan_switch_to_fiber(self->tsan, 1);
             __tsan_acquire(&s->token));
    static_bytes += used;
    if (static_bytes > SHARED_DEFAULT) die("more than 48 KiB of static shared memory", 0);
    if (static_bytes + dyn_bytes > SHARED_MAX) die("more than 227 KiB of shared memory", 0);
    return s->p;
}

EMU_UNSEEN inline void shared_begin() {
    block_serial++;
    static_bytes = 0;
    if (!dyn.map) dyn = guarded_map(SHARED_MAX);
    dyn_shared = dyn.map + dyn.bytes - (dyn_bytes + 127) / 128 * 128;
    memset(dyn_shared, 0xff, (size_t)(dyn.map + dyn.bytes - dyn_shared));
}

// Returns whether [p, p + bytes) is shared memory of the block.
EMU_UNSEEN inline bool is_shared(const void *p, unsigned bytes) {
    const unsigned char *at = (const unsigned char *)p;
    static const slot *last; // a kernel usually asks for the same slot again
    const auto inside = [=](const slot *s) {
        return s->block == block_serial && at >= s->p && at + bytes <= s->p + s->bytes;
    };
    if (at >= dyn_shared && at + bytes <= dyn_shared + dyn_bytes) return true;
    if (last && inside(last)) return true;
    for (unsigned i = 0; i < n_slots; i++)
        if (inside(slots[i])) {
            last = slots[i];
            return true;
        }
    return false;
}

// Returns true if p is in the inaccessible page after a piece of shared memory. `text` then
// receives the end of an error message.
inline bool describe_shared(const void *p, char *text, size_t cap) {
    const unsigned char *at = (const unsigned char *)p, *end = dyn.map + dyn.bytes;
    size_t bytes = dyn_bytes;
    for (unsigned i = 0; i < n_slots && !(at >= end && at < end + PAGE); i++) {
        bytes = slots[i]->bytes;
        end = slots[i]->p + (bytes + 15) / 16 * 16;
    }
    if (at < end || at >= end + PAGE) return false;
    snprintf(text, cap, "address %p is %zu bytes past the end of %zu bytes of shared memory", p,
             (size_t)(at - end), bytes);
    return true;
}

} // namespace emu

template <class T> using emu_type = T; // lets an array type precede its name
#define SHARED(T, name)                                                                            \
    static emu::slot name##_slot;                                                                  \
    emu_type<T> &name =                                                                            \
        *(emu_type<T> *)emu::shared_take(&name##_slot, (unsigned)sizeof(emu_type<T>))
#define DYN_SHARED(name) unsigned char *const name = emu::dyn_shared

#endif
