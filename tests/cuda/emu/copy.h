// copy.h: cp.async. A copy happens as late as its wait allows (with a seed, some copies happen
// immediately). Until then, its destination is NaN. So reading before the wait, or starting a copy
// into memory that other threads still read, gives wrong results.
#ifndef RLHF_TESTS_CUDA_EMU_COPY_H
#define RLHF_TESTS_CUDA_EMU_COPY_H

#include "shared.h"

namespace emu {

enum { COPIES = 256 };
struct copy {
    unsigned char *to;
    const unsigned char *from;
    unsigned bytes, width, group; // bytes read; the rest of width (4 or 16) is zero
};
struct copies { // of one thread, oldest first
    unsigned n, group, begun;
    copy all[COPIES];
};
inline copies under_way[MAX_THREADS];

inline void copy_run(const copy &c) { // the race detector sees a read and a write
    uint32_t v[4] = {0, 0, 0, 0};
    if (c.bytes == 16)
        for (int i = 0; i < 4; i++)
            v[i] = ((const uint32_t *)c.from)[i];
    else
        for (unsigned i = 0; i < c.bytes; i++)
            ((unsigned char *)v)[i] = c.from[i];
    for (unsigned i = 0; i < c.width / 4; i++)
        ((uint32_t *)c.to)[i] = v[i];
}

inline void copy_begin(void *to, const void *from, unsigned bytes, unsigned width, int line) {
    if (bytes > width) die("cp.async of more bytes than its width", line);
    if ((uintptr_t)to % width || (bytes && (uintptr_t)from % width))
        die("cp.async of an address that is not aligned to its width", line);
    if (!is_shared(to, width)) die("cp.async to what is not the block's shared memory", line);
    copies &q = under_way[self->linear];
    const copy c = {(unsigned char *)to, (const unsigned char *)from, bytes, width, q.group};
    if (seed && hash(block_serial << 24 | (uint64_t)self->linear << 12 | q.begun++) & 1) {
        copy_run(c);
        return;
    }
    if (q.n == COPIES) die("too many copies under way for the emulation", line);
    for (unsigned i = 0; i < width / 4; i++)
        ((uint32_t *)to)[i] = ~0u;
    q.all[q.n++] = c;
}
inline void copy_commit() { under_way[self->linear].group++; }

// Waits for all groups except the newest `keep`.
inline void copy_wait(unsigned keep) {
    copies &q = under_way[self->linear];
    unsigned k = 0;
    for (; k < q.n && q.all[k].group + keep < q.group; k++)
        copy_run(q.all[k]);
    q.n -= k;
    memmove(q.all, q.all + k, q.n * sizeof *q.all);
}

EMU_UNSEEN inline void copies_end() {
    copies &q = under_way[self->linear];
    if (q.n) die("a thread leaves without waiting for its copies (cp.async)", self->line);
    q.group = q.begun = 0;
}

} // namespace emu

// Copies the first `bytes` bytes of `from` to shared memory, and zeroes the rest of the `width`
// bytes.
inline void emu_cp_async(void *to, const void *from, unsigned bytes, unsigned width,
                         int line = __builtin_LINE()) {
    emu::copy_begin(to, from, bytes, width, line);
}
inline void emu_cp_async_commit() { emu::copy_commit(); }
inline void emu_cp_async_wait(int left) { emu::copy_wait((unsigned)left); }

#endif
