// fault.h: libraries for LD_PRELOAD that make the n-th operation of a kind fail. The n-th operation
// is the same in every run of a program. fault_files.so counts operations that change files, and
// fault_alloc.so counts allocations. Both contain fault.c.
//
// FAULT=<how>:<n>       kill          SIGKILL before the operation
//                       torn          SIGKILL after half of the bytes of a write
//                       int           SIGINT before the operation, which then succeeds
//                       enospc, eio, erofs, enomem   the operation fails with that error
//                       count         nothing goes wrong
//                       n             1 = the first; "7+" = the seventh and all after it
// FAULT_COUNT=<file>    receives the number of operations when the program exits by itself
// FAULT_LOG=<file>      receives a line for each operation on files: its name, a space, the path
//
// Only the process that was started counts operations, not its children. The libraries use system
// calls and glibc's __libc_ functions for everything, so that they neither allocate nor count their
// own operations.
#ifndef RLHF_TESTS_FAULT_H
#define RLHF_TESTS_FAULT_H

#include <stddef.h>

// Counts one operation. Returns 0, or 1 with errno set if the operation must fail. Does not return
// if the program is to be killed. If a write is to be torn, first writes half of bytes[n] to fd. If
// `bytes` is NULL, the operation is not a write.
int fault_strikes(int fd, const void *bytes, size_t n);

// Writes operation `op` to FAULT_LOG. The operation is on `path` in the directory `dir` or, if
// `path` is NULL, on the descriptor `dir` itself. Paths are written as absolute ones, and errno is
// preserved. Operations are make (a new name), open, empty, write, sync and remove. A rename has
// two lines: "from" with the old path and "rename" with the new path.
void fault_note(const char *op, int dir, const char *path);

#endif
