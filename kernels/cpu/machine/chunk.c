// chunk.c: see chunk.h. A best-fit allocator. The free ranges of a chunk are in a list, which is
// sorted by address and stored in the ranges themselves.
#include "machine/chunk.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE ((uint64_t)2 << 20)

struct range {
    struct range *next;
    uint64_t bytes;
};

struct rlhf__chunk {
    struct rlhf__chunk *next;
    void *map;
    char *from; // RLHF__CHUNK_BYTES of whole pages
    struct range *free;
};

static struct rlhf__chunk *chunk_open(void) {
    struct rlhf__chunk *c = malloc(sizeof *c);
    if (!c) return NULL;
    c->map = mmap(NULL, RLHF__CHUNK_BYTES + PAGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c->map == MAP_FAILED) {
        free(c);
        return NULL;
    }
    c->from = (char *)c->map + (PAGE - (uintptr_t)c->map % PAGE) % PAGE;
    madvise(c->from, RLHF__CHUNK_BYTES, MADV_HUGEPAGE); // this is only a hint, so it may fail
    c->free = (struct range *)(void *)c->from;
    *c->free = (struct range){NULL, RLHF__CHUNK_BYTES};
    return c;
}

// The link to the smallest free range of a chunk that is large enough, or NULL.
static struct range **closest(struct rlhf__chunk *c, uint64_t bytes) {
    struct range **found = NULL;
    for (struct range **at = &c->free; *at; at = &(*at)->next)
        if ((*at)->bytes >= bytes && (!found || (*at)->bytes < (*found)->bytes)) found = at;
    return found;
}

// Cuts `bytes` from the range that *at points to, and returns their address.
static void *cut(struct range **at, uint64_t bytes) {
    struct range *r = *at;
    if (r->bytes == bytes) {
        *at = r->next;
        return r;
    }
    struct range *rest = (struct range *)(void *)((char *)r + bytes);
    *rest = (struct range){r->next, r->bytes - bytes};
    *at = rest;
    return r;
}

void *rlhf__chunk_cut(struct rlhf__chunk **all, uint64_t bytes) {
    if (bytes > RLHF__CHUNK_BYTES) return NULL;
    struct range **found = NULL;
    for (struct rlhf__chunk *c = *all; c; c = c->next) {
        struct range **at = closest(c, bytes);
        if (at && (!found || (*at)->bytes < (*found)->bytes)) found = at;
    }
    if (found) return cut(found, bytes);
    struct rlhf__chunk *c = chunk_open();
    if (!c) return NULL;
    c->next = *all;
    *all = c;
    return cut(&c->free, bytes);
}

// Merges r with the next range if they are adjacent.
static void join(struct range *r) {
    struct range *next = r->next;
    if (!next || (char *)r + r->bytes != (char *)next) return;
    *r = (struct range){next->next, r->bytes + next->bytes};
}

// Return to the system the pages of the free range r that overlap the freed bytes p[0 .. bytes - 1]
// or the range header that may follow these bytes. Pages that are only partly in r are kept, and so
// is the page with r's own header.
static void release_pages(struct range *r, const char *p, uint64_t bytes) {
    const uintptr_t low = ((uintptr_t)r + sizeof *r + PAGE - 1) / PAGE * PAGE;
    const uintptr_t high = ((uintptr_t)r + r->bytes) / PAGE * PAGE;
    const uintptr_t first = (uintptr_t)p / PAGE * PAGE;
    const uintptr_t end = ((uintptr_t)p + bytes + sizeof *r + PAGE - 1) / PAGE * PAGE;
    const uintptr_t from = low > first ? low : first, to = high < end ? high : end;
    if (from < to) madvise((char *)r + (from - (uintptr_t)r), to - from, MADV_DONTNEED);
}

static void put(struct rlhf__chunk *c, char *p, uint64_t bytes) {
    struct range *before = NULL, *r = (struct range *)(void *)p;
    for (struct range *i = c->free; i && (char *)i < p; i = i->next)
        before = i;
    *r = (struct range){before ? before->next : c->free, bytes};
    if (before)
        before->next = r;
    else
        c->free = r;
    join(r);
    if (before) join(before);
    if (before && before->next != r) r = before; // join() merged r into it
    release_pages(r, p, bytes);
}

void rlhf__chunk_return(struct rlhf__chunk **all, void *p, uint64_t bytes) {
    struct rlhf__chunk **at = all;
    while ((char *)p < (*at)->from || (char *)p >= (*at)->from + RLHF__CHUNK_BYTES)
        at = &(*at)->next;
    struct rlhf__chunk *c = *at;
    put(c, p, bytes);
    if (c->free->bytes < RLHF__CHUNK_BYTES) return;
    *at = c->next;
    munmap(c->map, RLHF__CHUNK_BYTES + PAGE);
    free(c);
}
