// checker.h: compares the answer in a response with the gold answer of its data row, for all
// rewards that need this (answer.so, length.so). It has the options, the gold answers and the
// comparison.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_CHECKER_H
#define RLHF_PLUGINS_REWARDS_ANSWER_CHECKER_H

#include "answer/read.h"

#include <rlhf/plugin.h>
#include <rlhf/service.h>

// The option `where`.
enum rlhf__answer_where {
    RLHF__WHERE_ANY = 0,
    RLHF__WHERE_MARKED = 1,
    RLHF__WHERE_MARKER = 2,
    RLHF__WHERE_BOXED = 3,
    RLHF__WHERE_HASHES = 4,
    RLHF__WHERE_LAST_NUMBER = 5,
    RLHF__WHERE_WHOLE = 6
};

struct rlhf__answer_options {
    const char *field, *marker, *after;
    double tolerance, relative;
    int32_t where, compare, percent, units, ignore_case;
};

enum { RLHF__N_ANSWER_OPTIONS = 10 };
extern const rlhf_opt rlhf__answer_opts[RLHF__N_ANSWER_OPTIONS];

// The name of a place (enum rlhf__answer_where). [any]
const char *rlhf__answer_where_name(int32_t where);

// rlhf_plugin.why_unused for these options. Returns NULL for other keys. [any]
const char *rlhf__answer_why_unused(const struct rlhf__answer_options *, const char *key);

// The right answer, as read from a data row.
struct rlhf__gold {
    rlhf_str text; // cleaned; borrowed from the checker
    struct rlhf__answer_reading number;
    int32_t is_number;
};

struct rlhf__answer_verdict {
    int32_t correct;
    int32_t found;  // 1: the response has an answer, right or wrong
    int32_t marked; // 1: the answer is after the marker, in a box or after ####
};

struct rlhf__checker {
    const rlhf_host *host;
    const rlhf_row_service *rows;
    const struct rlhf__answer_options *options; // outlives the checker
    rlhf_str row;                               // the row that `gold` was read from
    struct rlhf__gold gold;
    char *gold_bytes, *bytes; // memory of the cleaned texts
    uint64_t gold_cap, cap;
};

// Prepare a checker with these options. Errors: RLHF_E_UNSUPPORTED if the host lacks the service
// that reads rows, RLHF_E_INVALID if options contradict each other. [main]
rlhf_status rlhf__checker_init(struct rlhf__checker *, const rlhf_host *,
                               const struct rlhf__answer_options *);
void rlhf__checker_finish(struct rlhf__checker *); // accepts a zeroed checker [main]

// Read the gold answer of a row (rlhf_reward_in.meta) into c->gold. Errors: RLHF_E_INVALID (the row
// or its answer is missing or empty, or the answer must be a number but is not), RLHF_E_NOMEM.
// [step]
rlhf_status rlhf__checker_gold(struct rlhf__checker *c, rlhf_str row);

// Forget the gold answer that was read last. Call this first in each call by the host: the checker
// recognizes a row by its address, but the host may have stored another row at the same address
// since the last call. [step]
void rlhf__checker_forget(struct rlhf__checker *c);

// Judge a response to the row. Errors: those of rlhf__checker_gold. [step]
rlhf_status rlhf__checker_judge(struct rlhf__checker *c, rlhf_str row, rlhf_str response,
                                struct rlhf__answer_verdict *out);

#endif
