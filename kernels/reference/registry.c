// registry.c: device buffers of the reference backend and their page protection. See registry.h.
#include "registry.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// The index of the first buffer with base > p.
static uint64_t upper_bound(const struct rlhf__ref_registry *g, const char *p) {
    uint64_t lo = 0, hi = g->n;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (g->sorted[mid]->base > p)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

// Maps a buffer so that its end is close to the guard page after it.
static int map_guarded(struct rlhf__ref_buffer *b) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t used = (b->bytes + 63) / 64 * 64;
    b->map_bytes = (used ? used + page - 1 : page) / page * page;
    void *m = mmap(NULL, b->map_bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) return 0;
    b->map = m;
    b->base = b->map + (b->map_bytes - used);
    return 1;
}

static int map_plain(struct rlhf__ref_buffer *b) {
    uint64_t used = (b->bytes + 63) / 64 * 64;
    b->base = aligned_alloc(64, used ? used : 64);
    if (b->base) memset(b->base, 0, used);
    return b->base != NULL;
}

static void unmap(struct rlhf__ref_buffer *b) {
    if (b->map)
        munmap(b->map, b->map_bytes + (uint64_t)sysconf(_SC_PAGESIZE));
    else
        free(b->base);
    free(b);
}

static int reserve_slot(struct rlhf__ref_registry *g) {
    if (g->n < g->cap) return 1;
    uint64_t cap = g->cap ? 2 * g->cap : 64;
    struct rlhf__ref_buffer **p = realloc(g->sorted, cap * sizeof *p);
    if (!p) return 0;
    g->sorted = p;
    g->cap = cap;
    return 1;
}

uint64_t rlhf__ref_machine_bytes(void) {
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

rlhf_status rlhf__ref_registry_add(struct rlhf__ref_registry *g, uint64_t bytes,
                                   struct rlhf__ref_buffer **out) {
    if (bytes > rlhf__ref_machine_bytes() || !reserve_slot(g)) return RLHF_E_NOMEM;
    struct rlhf__ref_buffer *b = calloc(1, sizeof *b);
    if (!b) return RLHF_E_NOMEM;
    b->bytes = bytes;
    if (!(g->guard ? map_guarded(b) : map_plain(b))) {
        free(b);
        return RLHF_E_NOMEM;
    }
    uint64_t at = upper_bound(g, b->base);
    memmove(g->sorted + at + 1, g->sorted + at, (g->n - at) * sizeof *g->sorted);
    g->sorted[at] = b;
    g->n++;
    g->bytes += bytes;
    *out = b;
    return RLHF_OK;
}

struct rlhf__ref_buffer *rlhf__ref_registry_find(const struct rlhf__ref_registry *g,
                                                 const char *p) {
    uint64_t at = upper_bound(g, p);
    if (at == 0) return NULL;
    struct rlhf__ref_buffer *b = g->sorted[at - 1];
    return (uint64_t)(p - b->base) <= b->bytes ? b : NULL;
}

int rlhf__ref_registry_remove(struct rlhf__ref_registry *g, const char *base) {
    uint64_t at = upper_bound(g, base);
    if (at == 0 || g->sorted[at - 1]->base != base) return 0;
    g->bytes -= g->sorted[at - 1]->bytes;
    unmap(g->sorted[at - 1]);
    memmove(g->sorted + at - 1, g->sorted + at, (g->n - at) * sizeof *g->sorted);
    g->n--;
    return 1;
}

// mprotect of a whole mapping fails only if the kernel cannot allocate more map entries. If the
// program continued, the buffer would keep its old protection, and a later access would cause a
// fault that is hard to explain. So this function aborts the process.
static void protect(const struct rlhf__ref_registry *g, struct rlhf__ref_buffer *b, int how) {
    if (g->guard && mprotect(b->map, b->map_bytes, how) != 0) abort();
}

void rlhf__ref_registry_open(const struct rlhf__ref_registry *g, struct rlhf__ref_buffer *b) {
    if (b->opened++ == 0) protect(g, b, PROT_READ | PROT_WRITE);
}

void rlhf__ref_registry_shut(const struct rlhf__ref_registry *g, struct rlhf__ref_buffer *b) {
    if (--b->opened == 0) protect(g, b, PROT_NONE);
}

void rlhf__ref_registry_finish(struct rlhf__ref_registry *g) {
    for (uint64_t i = 0; i < g->n; i++)
        unmap(g->sorted[i]);
    free(g->sorted);
    memset(g, 0, sizeof *g);
}
