// nccl_api.h: the part of NCCL that this collective uses. We declare it here so that builds do not
// need NVIDIA's headers. Names, values and sizes are those of nccl.h, 2.14 and newer. If nccl.h is
// installed, tests/mpi/nccl_header.c compares these declarations with it.
#ifndef RLHF_PLUGINS_COLLECTIVES_NCCL_API_H
#define RLHF_PLUGINS_COLLECTIVES_NCCL_API_H

#include <stddef.h>

struct nccl_comm; // ncclComm: a communicator

// ncclUniqueId: rank 0 makes one, and all ranks join the communicator with it.
struct nccl_id {
    char internal[128];
};

// Results and types. All other results are failures.
enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7, NCCL_INT8 = 0 };

// ncclConfig_t of NCCL 2.14. Newer libraries have a longer struct, but `version` tells them to read
// only the members of 2.14. The longer struct has its first additional member where this struct has
// `unset`, so `unset` contains NCCL's value for "not set".
enum { NCCL_LEAST = 21400 };
#define NCCL_MAGIC 0xcafebeefU
#define NCCL_UNSET (-2147483647 - 1)
struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, unset;
};

// X(our name, NVIDIA's name, type of the result, parameters). CUDA's stream is a pointer.
#define NCCL_FUNCTIONS(X)                                                                          \
    X(get_version, ncclGetVersion, int, (int *version))                                            \
    X(get_id, ncclGetUniqueId, int, (struct nccl_id * id))                                         \
    X(init, ncclCommInitRankConfig, int,                                                           \
      (struct nccl_comm * *comm, int ranks, struct nccl_id id, int rank,                           \
       struct nccl_config *config))                                                                \
    X(group_start, ncclGroupStart, int, (void))                                                    \
    X(group_end, ncclGroupEnd, int, (void))                                                        \
    X(send, ncclSend, int,                                                                         \
      (const void *at, size_t n, int type, int peer, struct nccl_comm *comm, void *stream))        \
    X(recv, ncclRecv, int,                                                                         \
      (void *at, size_t n, int type, int peer, struct nccl_comm *comm, void *stream))              \
    X(async_error, ncclCommGetAsyncError, int, (struct nccl_comm * comm, int *state))              \
    X(finalize, ncclCommFinalize, int, (struct nccl_comm * comm))                                  \
    X(destroy, ncclCommDestroy, int, (struct nccl_comm * comm))                                    \
    X(abort, ncclCommAbort, int, (struct nccl_comm * comm))                                        \
    X(error_text, ncclGetErrorString, const char *, (int result))                                  \
    X(last_error, ncclGetLastError, const char *, (struct nccl_comm * comm))

struct nccl_api {
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define NCCL_MEMBER(name, of_nvidia, type, parameters) type(*name) parameters;
    NCCL_FUNCTIONS(NCCL_MEMBER)
#undef NCCL_MEMBER
    int version; // 22105 is 2.21.5
};

// Opens libnccl.so.2, which stays open, and returns 1. If the library cannot be used, returns 0 and
// writes the reason to why[cap], as a sentence.
int nccl_api_open(struct nccl_api *, char *why, size_t cap);

// Writes a version as text: "2.21.5".
void nccl_version_text(int version, char out[32]);

#endif
