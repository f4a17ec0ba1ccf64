// memory_use.c: see memory_plan.h. Addresses are invented: they count up from an address that is
// never mapped.
#include "estimate/memory_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- bytes by owner and use ----

const char *rlhf__use_name(int32_t use) {
    static const char *const names[] = {"weights",     "packed weights", "gradients", "moments",
                                        "activations", "cache",          "workspace", "rows",
                                        "undo copy",   "program"};
    return use >= 0 && use < RLHF__USES ? names[use] : "memory";
}

uint32_t rlhf__uses_owner(struct rlhf__uses *u, const char *name) {
    uint32_t i = 0;
    while (i < u->n && strcmp(u->name[i], name) != 0)
        i++;
    if (i == RLHF__OWNERS) return i - 1;
    if (i == u->n) snprintf(u->name[u->n++], sizeof u->name[0], "%s", name);
    return i;
}

uint64_t rlhf__uses_total(const struct rlhf__uses *u) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < u->n; i++)
        for (int32_t k = 0; k < RLHF__USES; k++)
            sum += u->bytes[i][k];
    return sum;
}

// ---- allocations ----

// The first address: on x86-64, Linux and the sanitizers leave this range unmapped.
#define FIRST ((uint64_t)1 << 46)

struct rlhf__allocation {
    uint64_t at, bytes;
    uint32_t owner;
    int32_t use; // -1: released
};

void rlhf__allocations_grow(struct rlhf__allocations *l, uint32_t owner, int32_t use,
                            uint64_t bytes) {
    l->uses.bytes[owner][use] += bytes;
    l->now += bytes;
    if (l->now <= l->peak) return;
    l->peak = l->now;
    l->at_peak = l->uses;
}

static void shrink(struct rlhf__allocations *l, uint32_t owner, int32_t use, uint64_t bytes) {
    l->uses.bytes[owner][use] -= bytes;
    l->now -= bytes;
}

rlhf_status rlhf__allocations_refuse(struct rlhf__allocations *l, uint64_t bytes) {
    snprintf(l->error, sizeof l->error, "out of memory: %llu bytes asked for",
             (unsigned long long)bytes);
    return RLHF_E_NOMEM;
}

rlhf_status rlhf__allocations_add(struct rlhf__allocations *l, uint64_t bytes, int32_t use,
                                  rlhf_dev *out) {
    *out = NULL;
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 256;
        struct rlhf__allocation *more = realloc(l->block, cap * sizeof *more);
        if (more) l->block = more;
        if (more) l->cap = cap;
    }
    if (l->n == l->cap || bytes > RLHF__ALLOCATIONS_MOST || l->next > RLHF__ALLOCATIONS_MOST)
        return rlhf__allocations_refuse(l, bytes);
    l->block[l->n++] = (struct rlhf__allocation){FIRST + l->next, bytes, l->owner, use};
    *out = (rlhf_dev)(uintptr_t)(FIRST + l->next);
    l->next += (bytes + 127) / 64 * 64;
    rlhf__allocations_grow(l, l->owner, use, bytes);
    return RLHF_OK;
}

static struct rlhf__allocation *find(const struct rlhf__allocations *l, rlhf_dev dev) {
    const uint64_t at = (uintptr_t)dev;
    size_t from = 0, to = l->n; // Binary search for the last block that does not begin after `at`.
    while (to - from > 1) {
        const size_t mid = from + (to - from) / 2;
        if (l->block[mid].at <= at)
            from = mid;
        else
            to = mid;
    }
    if (l->n == 0 || l->block[from].at > at || l->block[from].use < 0) return NULL;
    return &l->block[from];
}

void rlhf__allocations_remove(struct rlhf__allocations *l, rlhf_dev dev) {
    struct rlhf__allocation *b = dev ? find(l, dev) : NULL;
    if (!b) return;
    shrink(l, b->owner, b->use, b->bytes);
    b->use = -1;
    while (l->n && l->block[l->n - 1].use < 0)
        l->n--;
}

void rlhf__allocations_set_use(struct rlhf__allocations *l, rlhf_dev dev, int32_t use) {
    struct rlhf__allocation *b = dev ? find(l, dev) : NULL;
    if (!b) return;
    l->uses.bytes[b->owner][b->use] -= b->bytes;
    l->uses.bytes[b->owner][use] += b->bytes;
    b->use = use;
    if (l->now == l->peak) l->at_peak = l->uses;
}

void rlhf__allocations_finish(struct rlhf__allocations *l) { free(l->block); }
