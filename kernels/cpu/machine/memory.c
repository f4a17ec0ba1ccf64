// memory.c: counted allocations of the CPU backend, and its workspaces.
#include "chunk.h"
#include "context.h"
#include "split.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGN      64u
#define HUGE_ALIGN ((uint64_t)2 << 20)
#define MAP_FROM   ((uint64_t)32 << 20) // larger blocks are mapped, so they are zero already
#ifdef RLHF_SANITIZED                   // because it checks the bounds of malloc's blocks
#define CUT_FROM MAP_FROM
#else
#define CUT_FROM ((uint64_t)64 << 10) // smaller blocks come from malloc
#endif

// The header of every allocation. Its size is 64 bytes, so the caller's memory, which follows it,
// is aligned to 64 bytes.
struct rlhf__heap_block {
    struct rlhf__heap_block *prev, *next;
    uint64_t bytes;
    void *map; // separate mapping, or NULL
    uint64_t map_bytes;
    uint64_t cut; // bytes cut from a chunk, or 0; if map is NULL as well, it is from malloc
    uint64_t reserved[2];
};

_Static_assert(sizeof(struct rlhf__heap_block) == ALIGN, "the block header is one alignment unit");

struct spread {
    char *to;
    const char *from; // NULL: zeros
    uint64_t bytes;
};

static void spread_piece(const void *job, int64_t i) {
    const struct spread *s = job;
    const uint64_t at = (uint64_t)i * HUGE_ALIGN;
    const size_t n = rlhf__split_len(s->bytes, HUGE_ALIGN, (uint64_t)i);
    if (s->from)
        memcpy(s->to + at, s->from + at, n);
    else
        memset(s->to + at, 0, n);
}

// Touches the bytes for the first time, from many threads. The bytes are divided among the threads
// as in the static loops that use them later. So a NUMA machine allocates each part near the thread
// that uses it.
static void spread(const struct rlhf__cpu *cpu, char *to, const char *from, uint64_t bytes) {
    rlhf__split_run(cpu, cpu->threads, (int64_t)rlhf__split_count(bytes, HUGE_ALIGN), spread_piece,
                    &(const struct spread){to, from, bytes});
}

static struct rlhf__heap_block *block_map(uint64_t total) {
    const uint64_t map_bytes = total + HUGE_ALIGN;
    void *map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return NULL;
    void *p = (char *)map + (HUGE_ALIGN - (uintptr_t)map % HUGE_ALIGN) % HUGE_ALIGN;
    // so that GEMMs have fewer TLB misses; only a hint, so it may fail
    madvise(p, total, MADV_HUGEPAGE);
    struct rlhf__heap_block *b = p;
    b->map = map;
    b->map_bytes = map_bytes;
    return b;
}

// Get zeroed memory of `total` bytes for a block. The block remembers the source of the memory.
// Returns NULL if memory runs out.
static struct rlhf__heap_block *block_get(struct rlhf__cpu *cpu, uint64_t total) {
    if (total >= MAP_FROM) return block_map(total);
    void *p = NULL;
    if (total >= CUT_FROM)
        p = rlhf__chunk_cut(&cpu->chunks, total);
    else if (posix_memalign(&p, ALIGN, total))
        return NULL;
    if (!p) return NULL;
    spread(cpu, p, NULL, total);
    struct rlhf__heap_block *b = p;
    b->cut = total >= CUT_FROM ? total : 0;
    return b;
}

rlhf_status rlhf__cpu_mem_alloc(struct rlhf__cpu *cpu, uint64_t bytes, void **out) {
    *out = NULL;
    // Refuse more memory than the machine has. Linux might grant it, and kill the process later.
    const uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    struct rlhf__heap_block *b = NULL;
    if (bytes <= machine)
        b = block_get(cpu, (bytes + sizeof(struct rlhf__heap_block) + ALIGN - 1) / ALIGN * ALIGN);
    if (!b)
        return rlhf__cpu_fail(cpu, RLHF_E_NOMEM, "out of memory: %llu bytes asked for",
                              (unsigned long long)bytes);
    b->bytes = bytes;
    b->next = cpu->blocks;
    if (b->next) b->next->prev = b;
    cpu->blocks = b;
    cpu->bytes += bytes;
    *out = b + 1;
    return RLHF_OK;
}

static void block_put(struct rlhf__cpu *cpu, struct rlhf__heap_block *b) {
    if (b->map)
        munmap(b->map, b->map_bytes);
    else if (b->cut)
        rlhf__chunk_return(&cpu->chunks, b, b->cut);
    else
        free(b);
}

void rlhf__cpu_mem_free(struct rlhf__cpu *cpu, void *ptr) {
    if (!ptr) return;
    struct rlhf__heap_block *b = (struct rlhf__heap_block *)ptr - 1;
    if (b->prev)
        b->prev->next = b->next;
    else
        cpu->blocks = b->next;
    if (b->next) b->next->prev = b->prev;
    cpu->bytes -= b->bytes;
    block_put(cpu, b);
}

void rlhf__cpu_mem_free_all(struct rlhf__cpu *cpu) {
    struct rlhf__heap_block *b = cpu->blocks;
    cpu->blocks = NULL;
    cpu->bytes = 0;
    while (b) {
        struct rlhf__heap_block *next = b->next;
        block_put(cpu, b);
        b = next;
    }
}

rlhf_status rlhf__cpu_workspace(struct rlhf__cpu *cpu, enum rlhf__cpu_ws which, uint64_t bytes,
                                void **out) {
    struct rlhf__buffer *w = &cpu->ws[which];
    if (w->bytes < bytes) {
        rlhf__cpu_mem_free(cpu, w->ptr);
        w->ptr = NULL;
        w->bytes = 0;
        RLHF_TRY(rlhf__cpu_mem_alloc(cpu, bytes, &w->ptr));
        w->bytes = bytes;
    }
    *out = w->ptr;
    return RLHF_OK;
}

// ---- the table's functions ----

static rlhf_status alloc(void *ctx, uint64_t bytes, rlhf_dev *out) {
    void *p = NULL;
    rlhf_status st = rlhf__cpu_mem_alloc(ctx, bytes, &p);
    *out = rlhf__cpu_dev(p);
    return st;
}

static void release(void *ctx, rlhf_dev p) { rlhf__cpu_mem_free(ctx, rlhf__cpu_mem(p)); }

static uint64_t bytes_in_use(void *ctx) { return ((struct rlhf__cpu *)ctx)->bytes; }

static rlhf_status upload(void *ctx, rlhf_dev dst, const void *host_src, uint64_t bytes) {
    if (bytes) spread(ctx, rlhf__cpu_mem(dst), host_src, bytes);
    return RLHF_OK;
}

static rlhf_status download(void *ctx, void *host_dst, rlhf_dev src, uint64_t bytes) {
    (void)ctx;
    if (bytes) memcpy(host_dst, rlhf__cpu_mem(src), bytes);
    return RLHF_OK;
}

static rlhf_status wait_for_all(void *ctx) {
    (void)ctx;
    return RLHF_OK;
}

// ---- host memory and copies; everything is complete when a call returns ----

static rlhf_status alloc_host(void *ctx, uint64_t bytes, void **out) {
    return rlhf__cpu_mem_alloc(ctx, bytes, out);
}

static void release_host(void *ctx, void *p) { rlhf__cpu_mem_free(ctx, p); }

static rlhf_status mark(void *ctx, uint64_t *ticket) {
    *ticket = ++((struct rlhf__cpu *)ctx)->tickets;
    return RLHF_OK;
}

static rlhf_status wait_for(void *ctx, uint64_t ticket) {
    struct rlhf__cpu *cpu = ctx;
    if (ticket <= cpu->tickets) return RLHF_OK;
    return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "wait: ticket %llu, mark gave 1 to %llu",
                          (unsigned long long)ticket, (unsigned long long)cpu->tickets);
}

void rlhf__cpu_fill_memory(rlhf_compute *t) {
    t->alloc = alloc;
    t->release = release;
    t->bytes_in_use = bytes_in_use;
    t->upload = upload;
    t->download = download;
    t->sync = wait_for_all;
    t->alloc_host = alloc_host;
    t->release_host = release_host;
    t->upload_async = upload;
    t->download_async = download;
    t->mark = mark;
    t->wait = wait_for;
}
