// chunk.h: memory that is cut from chunks with 2 MiB pages, so that a packed weight of 1 MiB is
// read as fast as a large one. The speed of these reads limits decoding (32 rows of GPT-2 124M,
// bench/README.md). Freed memory is kept for later requests.
//
// These functions do not count or zero the memory; memory.c does.
#ifndef RLHF_CPU_CHUNK_H
#define RLHF_CPU_CHUNK_H

#include <stdint.h>

#define RLHF__CHUNK_BYTES ((uint64_t)32 << 20) // the largest request

struct rlhf__chunk;

// Returns `bytes` of memory, aligned to 64, or NULL if memory runs out. `bytes` must be a multiple
// of 64. The contents are undefined. *all is the list of chunks, NULL at first.
void *rlhf__chunk_cut(struct rlhf__chunk **all, uint64_t bytes);

// Give back a range. `bytes` must be the size with which the range was cut. The system gets back
// each 2 MiB page that is completely unused, and each chunk that is completely free.
void rlhf__chunk_return(struct rlhf__chunk **all, void *p, uint64_t bytes);

#endif
