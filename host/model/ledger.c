// ledger.c: see ledger.h. Addresses count up from a place where nothing is; what is kept of an
// allocation is its place, its length and whose it is.
#include "model/ledger.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST ((uint64_t)1 << 40) // bytes; an address below is nobody's

struct rlhf__ledger_block {
    uint64_t at, bytes;
    uint32_t owner;
    int32_t use; // -1: released
};

void rlhf__ledger_grow(struct rlhf__ledger *l, uint32_t owner, int32_t use, uint64_t bytes) {
    l->uses.bytes[owner][use] += bytes;
    l->now += bytes;
    if (l->now <= l->peak) return;
    l->peak = l->now;
    l->at_peak = l->uses;
}

static void shrink(struct rlhf__ledger *l, uint32_t owner, int32_t use, uint64_t bytes) {
    l->uses.bytes[owner][use] -= bytes;
    l->now -= bytes;
}

rlhf_status rlhf__ledger_none(struct rlhf__ledger *l, uint64_t bytes) {
    snprintf(l->error, sizeof l->error, "out of memory: %llu bytes asked for",
             (unsigned long long)bytes);
    return RLHF_E_NOMEM;
}

rlhf_status rlhf__ledger_take(struct rlhf__ledger *l, uint64_t bytes, int32_t use, rlhf_dev *out) {
    *out = NULL;
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 256;
        struct rlhf__ledger_block *more = realloc(l->block, cap * sizeof *more);
        if (more) l->block = more;
        if (more) l->cap = cap;
    }
    if (l->n == l->cap || bytes > RLHF__LEDGER_MOST || l->next > RLHF__LEDGER_MOST)
        return rlhf__ledger_none(l, bytes);
    l->block[l->n++] = (struct rlhf__ledger_block){FIRST + l->next, bytes, l->owner, use};
    *out = (rlhf_dev)(uintptr_t)(FIRST + l->next);
    l->next += (bytes + 127) / 64 * 64;
    rlhf__ledger_grow(l, l->owner, use, bytes);
    return RLHF_OK;
}

static struct rlhf__ledger_block *find(const struct rlhf__ledger *l, rlhf_dev dev) {
    const uint64_t at = (uintptr_t)dev;
    size_t from = 0, to = l->n; // the last block that does not begin behind it
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

void rlhf__ledger_give(struct rlhf__ledger *l, rlhf_dev dev) {
    struct rlhf__ledger_block *b = dev ? find(l, dev) : NULL;
    if (!b) return;
    shrink(l, b->owner, b->use, b->bytes);
    b->use = -1;
    while (l->n && l->block[l->n - 1].use < 0)
        l->n--;
}

void rlhf__ledger_retag(struct rlhf__ledger *l, rlhf_dev dev, int32_t use) {
    struct rlhf__ledger_block *b = dev ? find(l, dev) : NULL;
    if (!b) return;
    l->uses.bytes[b->owner][b->use] -= b->bytes;
    l->uses.bytes[b->owner][use] += b->bytes;
    b->use = use;
    if (l->now == l->peak) l->at_peak = l->uses;
}

void rlhf__ledger_finish(struct rlhf__ledger *l) { free(l->block); }
