// chunk.h: memory cut from chunks backed by 2 MiB pages. In such a chunk, a packed weight of 1 MiB
// is read as fast as a large one. Decoding is limited by the speed of these reads (32 rows of GPT-2
// 124M, bench/README.md). Freed memory is kept for the next request.
//
// It does not count or zero the memory; memory.c does.
#ifndef RLHF_CPU_CHUNK_H
#define RLHF_CPU_CHUNK_H

#include <stdint.h>

#define RLHF__CHUNK_BYTES ((uint64_t)32 << 20) // the largest request

struct rlhf__chunk;

// Get `bytes` of memory, a multiple of 64 and aligned to 64. Its contents are undefined; NULL when
// out of memory. *all is the list of chunks, NULL at first.
void *rlhf__chunk_cut(struct rlhf__chunk **all, uint64_t bytes);

// Give back a range; `bytes` is the size with which it was cut. Whole 2 MiB pages that are no
// longer used return to the system, and so does a chunk that is completely free.
void rlhf__chunk_return(struct rlhf__chunk **all, void *p, uint64_t bytes);

#endif
