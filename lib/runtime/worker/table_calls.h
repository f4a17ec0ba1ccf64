// table_calls.h: parts of the calls that a worker's service tables send to the host.
#ifndef RLHF_LIB_RUNTIME_WORKER_TABLE_CALLS_H
#define RLHF_LIB_RUNTIME_WORKER_TABLE_CALLS_H

#include "plugin/service_args.h"
#include "worker/worker_host.h"

// Returns the struct that contains the table. Every rlhf_host in a worker is the first member of
// such a struct. [any]
struct rlhf__worker_host *rlhf__table_behind(const rlhf_host *api);

// Returns RLHF_OK if a function of a service that computes with a model, or that opens an object,
// may be called on this thread; otherwise reports why not, and returns RLHF_E_INVALID. [any]
rlhf_status rlhf__table_here(struct rlhf__worker_host *t);

// Begin a call that opens an object, or a call for an open object. The lock is held until
// rlhf__table_end. [any]
void rlhf__table_begin_open(struct rlhf__worker_host *t, uint32_t kind, const char *path);
void rlhf__table_begin(struct rlhf__worker_host *t, uint32_t kind, uint32_t handle);
void rlhf__table_end(struct rlhf__worker_host *t);

void rlhf__table_close(struct rlhf__worker_host *t, uint32_t handle); // [any]

// Copy the items of a reply to an array of `n` items. If the reply does not have exactly `n` items,
// returns RLHF_E_INTERNAL and does not change the array. [any]
rlhf_status rlhf__table_items(struct rlhf__wire *in, size_t size, size_t n, void *out);

// Append ragged rows to the frame: ids, offset[n + 1], prompt_len[n]. [any]
void rlhf__table_rows(struct rlhf__worker_host *t, uint32_t n, const int32_t *ids,
                      const int32_t *offset, const int32_t *prompt_len);

// Read where the ids of a call go. Errors: those of RLHF__TAKE. [any]
rlhf_status rlhf__table_take_ids(const rlhf_host *host, rlhf_encode_out *out,
                                 const rlhf_encode_out *from);
// Send a call that makes ids, whose arguments are in the frame, and take them. [any]
rlhf_status rlhf__table_ids(struct rlhf__worker_host *t, const rlhf_encode_out *out,
                            rlhf_encode_out *to);

// encode() and decode() of a tokenizer or a language model. [any]
rlhf_status rlhf__table_encode(const rlhf_host *host, uint32_t handle, const rlhf_encode_in *how,
                               rlhf_encode_out *to);
rlhf_status rlhf__table_decode(const rlhf_host *host, uint32_t handle, const rlhf_decode_in *how,
                               rlhf_decode_out *to);

#endif
