// blocks.cu: see blocks.h.
#include "blocks.h"

#include <stdlib.h>
#include <string.h>

// The number of blocks that start at or before p.
static uint32_t before(const struct rlhf__cuda_blocks *l, const void *p) {
    uint32_t low = 0, high = l->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (l->all[middle].at <= (const char *)p)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int rlhf__cuda_blocks_add(struct rlhf__cuda_blocks *l, void *at, uint64_t bytes, uint64_t serial) {
    if (l->n == l->cap) {
        const uint32_t cap = l->cap ? 2 * l->cap : 64;
        void *all = realloc(l->all, cap * sizeof *l->all);
        if (!all) return 0;
        l->all = (struct rlhf__cuda_block *)all;
        l->cap = cap;
    }
    const uint32_t i = before(l, at);
    memmove(l->all + i + 1, l->all + i, (l->n - i) * sizeof *l->all);
    l->all[i] = {(char *)at, bytes, serial};
    l->n++;
    return 1;
}

struct rlhf__cuda_block *rlhf__cuda_blocks_find(const struct rlhf__cuda_blocks *l, const void *p) {
    const uint32_t i = before(l, p);
    if (!i) return NULL;
    struct rlhf__cuda_block *b = &l->all[i - 1];
    const uint64_t into = (uint64_t)((const char *)p - b->at);
    return into < b->bytes || into == 0 ? b : NULL;
}

void rlhf__cuda_blocks_remove(struct rlhf__cuda_blocks *l, struct rlhf__cuda_block *b) {
    const uint32_t i = (uint32_t)(b - l->all);
    memmove(b, b + 1, (l->n - i - 1) * sizeof *b);
    l->n--;
}
