// chunk.h: memory cut from chunks that lie in pages of 2 MiB: a packed weight of 1 MiB is read at
// the pace of a large one (decoding 32 rows of GPT-2 124M is bound by it, bench/README.md), and
// what is given back is kept for the next who asks.
//
// What it is not: it counts nothing and zeroes nothing; memory.c does.
#ifndef RLHF_CPU_CHUNK_H
#define RLHF_CPU_CHUNK_H

#include <stdint.h>

#define RLHF__CHUNK_BYTES ((uint64_t)32 << 20) // more than that cannot be cut

struct rlhf__chunk;

// `bytes` of memory, a multiple of 64 and aligned to it, contents undefined; NULL when there is
// none. *all is the list of chunks, NULL at first.
void *rlhf__chunk_cut(struct rlhf__chunk **all, uint64_t bytes);

// Give back what was cut, with the bytes it was cut with. Whole pages of 2 MiB that nobody uses any
// more go back to the system, a chunk that nobody uses does as a whole.
void rlhf__chunk_return(struct rlhf__chunk **all, void *p, uint64_t bytes);

#endif
