// check_rows.h: rows for a reward to score, either generated or from the author.
#ifndef RLHF_TOOLS_CHECK_CHECK_ROWS_H
#define RLHF_TOOLS_CHECK_CHECK_ROWS_H

#include "base/json.h"
#include "check/guard.h"

#include <rlhf/reward.h>

enum rlhf__row_texts {
    RLHF__ROWS_PLAIN = 0,
    RLHF__ROWS_EMPTY = 1,   // no response text, one response token
    RLHF__ROWS_INVALID = 2, // invalid UTF-8, zero bytes included
    RLHF__ROWS_BARE = 3     // no data rows
};

struct rlhf__check_row {
    char *prompt, *response, *meta; // not NUL-terminated
    uint32_t n_prompt, n_response, n_meta;
    int32_t *ids; // [n_ids]
    int32_t n_ids, prompt_len, group;
    uint64_t finished;
};

struct rlhf__row_set {
    struct rlhf__check_row *row; // [n], groups of four
    uint32_t n;
    int32_t texts; // enum rlhf__row_texts
};

// Make n rows from the author's rows in `given`, which are used in turn. If `given` is NULL or
// empty, generates rows. Returns 0 if out of memory. Call rlhf__row_set_finish even then. [main]
int rlhf__row_set_make(struct rlhf__row_set *s, uint32_t n, int32_t texts, const json_t *given);
void rlhf__row_set_finish(struct rlhf__row_set *s);

// A call's arrays, in guarded memory. The inputs are read-only.
struct rlhf__row_call {
    struct rlhf__guards *guards;
    rlhf_reward_in in;
    rlhf_reward_out out;
};

// Build the arrays for a call with n rows of `s`; `rows` has their indices in `s`, in order. `side`
// is an enum rlhf__guard_side, `flags` has the reward's flags, and `unwritten` is the initial value
// of out.seq. Returns 0 if out of memory. Call rlhf__row_call_finish even then. [main]
int rlhf__row_call_make(struct rlhf__row_call *c, struct rlhf__child_log *log,
                        const struct rlhf__row_set *s, const uint32_t *rows, uint32_t n,
                        int32_t side, uint32_t flags, uint32_t unwritten);
void rlhf__row_call_finish(struct rlhf__row_call *c);

#endif
