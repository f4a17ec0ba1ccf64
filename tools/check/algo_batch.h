// algo_batch.h: a minibatch that is made to match an algorithm's plan, and calls of the algorithm
// with arrays in guarded memory.
#ifndef RLHF_TOOLS_CHECK_ALGO_BATCH_H
#define RLHF_TOOLS_CHECK_ALGO_BATCH_H

#include "check/probe.h"

enum {
    RLHF__ALGO_ROWS = 256,
    RLHF__ALGO_TOKENS = 2048,
    RLHF__ALGO_LABELS = 3,
    RLHF__ALGO_HEADS = 5,
    RLHF__ALGO_REWARDS = 2
};

// Heads in this order: logp, entropy, kl, value, score. The score head has space for
// RLHF__ALGO_LABELS numbers per row; the other heads have a number per token.
struct rlhf__algo_batch {
    rlhf_plan plan;
    int32_t n, total, n_labels;
    int32_t offset[RLHF__ALGO_ROWS + 1], prompt_len[RLHF__ALGO_ROWS], group[RLHF__ALGO_ROWS];
    int64_t source[RLHF__ALGO_ROWS];
    uint32_t row[RLHF__ALGO_ROWS];
    int32_t label[RLHF__ALGO_ROWS], ids[RLHF__ALGO_TOKENS];
    rlhf_str meta[RLHF__ALGO_ROWS]; // data rows: in every second row; NULL in the others
    uint8_t finished[RLHF__ALGO_ROWS], use[RLHF__ALGO_ROWS], left_out[RLHF__ALGO_TOKENS];
    int64_t version[RLHF__ALGO_ROWS];
    float score[RLHF__ALGO_ROWS], token_reward[RLHF__ALGO_TOKENS];
    float old[RLHF__ALGO_TOKENS], sampled[RLHF__ALGO_TOKENS], ref[RLHF__ALGO_TOKENS];
    float value_old[RLHF__ALGO_TOKENS];
    float named[RLHF_NAMED_MAX][RLHF__ALGO_TOKENS]; // of the plan's named models
    float reward_score[RLHF__ALGO_ROWS * RLHF__ALGO_REWARDS];
    float advantage[RLHF__ALGO_TOKENS], returns[RLHF__ALGO_TOKENS];
    double carry_row[RLHF__ALGO_ROWS * RLHF_CARRY_MAX];
    double carry_token[RLHF__ALGO_TOKENS * RLHF_CARRY_MAX];
    float head[RLHF__ALGO_HEADS][RLHF__ALGO_TOKENS];
    float d[RLHF__ALGO_HEADS][RLHF__ALGO_TOKENS]; // derivatives of the last loss()
    int32_t leaves_out;                           // 1: left_out is set
    int32_t shard;                                // of the next loss()
};

// Properties of head h (0 .. 4): its bit, its name, and how many numbers it has for all rows of the
// batch together (0 if the head is not planned). [any]
uint32_t rlhf__algo_head_bit(int32_t h);
const char *rlhf__algo_head_name(int32_t h);
int32_t rlhf__algo_head_len(const struct rlhf__algo_batch *b, int32_t h);

// Make rows that match the plan. If `spread` is 0, all rows have the same reward. [main]
void rlhf__algo_batch_make(struct rlhf__algo_batch *b, const rlhf_plan *plan, int32_t spread);

// Make a batch for the plan. The caller frees *out. `spread` is as in rlhf__algo_batch_make. Fails
// if memory runs out, or if a group is larger than a batch; reports only the latter. After a
// failure, *out is NULL and the result is 0. [main]
int rlhf__algo_batch_new(struct rlhf__check *c, const rlhf_plan *plan, int32_t spread,
                         struct rlhf__algo_batch **out);

// Create an instance and get its plan for this number of shards. Returns 0 if create() or plan()
// fails, or if the plan is not valid; reports the failures of plan() and its plan. Call
// rlhf__probe_finish in any case. [main]
int rlhf__algo_open(struct rlhf__check *c, uint32_t shards, struct rlhf__probe *t, rlhf_plan *plan);

// Call advantages() and store the results in the batch. Does nothing if the plan's rows come from a
// file and the plan does not recompute log-probs. [main]
rlhf_status rlhf__algo_batch_advantages(struct rlhf__probe *t, struct rlhf__algo_batch *b,
                                        int32_t side, struct rlhf__error *err);

// Call loss() for the rows `from` to `to` - 1, without the rows that the algorithm has excluded.
// Adds the result to *loss, and replaces the derivatives of these rows in the member `d`. [main]
rlhf_status rlhf__algo_batch_loss(struct rlhf__probe *t, struct rlhf__algo_batch *b, int32_t from,
                                  int32_t to, int32_t side, double *loss, struct rlhf__error *err);

#endif
