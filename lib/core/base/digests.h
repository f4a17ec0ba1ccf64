// digests.h: computes the SHA-256 of the large files of a folder, on threads that read the files
// while they are written. Put an rlhf__digests into rlhf__folder.digests before the files are
// opened with rlhf__file_writer_open. After a file is written, its digest can be read.
#ifndef RLHF_CORE_BASE_DIGESTS_H
#define RLHF_CORE_BASE_DIGESTS_H

#include "base/hash.h"

struct rlhf__digests; // opaque

// Returns NULL if out of memory. [main]
struct rlhf__digests *rlhf__digests_open(void);

// Waits for the threads, then frees the digests. The argument may be NULL. [main]
void rlhf__digests_close(struct rlhf__digests *);

// Write the digest of the file `name` to `hex`, as 64 hexadecimal digits and a NUL. Waits for the
// thread that hashes the file. Returns 0 if there is no digest, because the file is small, no
// thread could be started, reading failed, or `d` is NULL. [main]
int rlhf__digests_get(struct rlhf__digests *d, const char *name, char hex[65]);

// ---- for the writer of a file ----

struct rlhf__digest; // the digest of one file that is being written; opaque

// Start a thread that hashes the file `name`. The thread reads from `fd` and owns it. Returns NULL
// and closes `fd` if no thread could be started. [main]
struct rlhf__digest *rlhf__digest_start(struct rlhf__digests *, const char *name, int fd);

// Tell the thread that the file has this many bytes now. [main]
void rlhf__digest_grown(struct rlhf__digest *, uint64_t size);

// Tell the thread that writing has ended. If `whole` is 0, the file is incomplete, and its digest
// is dropped. Does nothing if the first argument is NULL. [main]
void rlhf__digest_end(struct rlhf__digest *, int whole);

#endif
