// verdict.h: says in one sentence whether a run worked. Also reports the rule that led to this
// sentence, and other findings. Every command and page that judges a run uses this file, so all of
// them agree.
//
// *First* is the first phase, whose responses the untrained policy wrote. *Last* is the mean of the
// last tenth of the phases (trend.h). docs/did-it-work.md explains the rules.
//
// This file does not read files. The verdict depends only on series of numbers and a few facts.
#ifndef RLHF_FORMATS_VERDICT_VERDICT_H
#define RLHF_FORMATS_VERDICT_VERDICT_H

#include "verdict/measures.h"
#include "verdict/notes.h"

enum rlhf__verdict_kind {
    RLHF__VERDICT_NONE, // too short to judge, or there is nothing to judge yet
    RLHF__VERDICT_GOOD,
    RLHF__VERDICT_WARN,
    RLHF__VERDICT_BAD
};

struct rlhf__verdict_check {
    int32_t ok; // 1: passed, 0: failed, -1: the run did not measure it
    char *text; // "no step skipped"
};

enum { RLHF__VERDICT_CHECKS = 5 };

// Release with rlhf__verdict_finish. If the headline has fewer than two values, the members
// `first`, `last` and `best` are NaN.
struct rlhf__verdict {
    int32_t kind;
    // 1: the headline improved; -1: it got worse; 0: it stayed the same, or changed by less than
    // the digits shown.
    int32_t moved;
    struct rlhf__headline headline;
    double first, last, best, noise;
    int64_t best_phase, width; // width: number of values in `last`
    char *title;               // "Reward rose from 0.557 to 0.964"; never NULL
    char *text;                // a second sentence, or ""
    char *rule;                // the rule that led to the title, or ""
    struct rlhf__notes notes;  // the worst first
    struct rlhf__verdict_check check[RLHF__VERDICT_CHECKS];
    size_t n_checks;
};

// Judge a run. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__verdict_make(const struct rlhf__history *, struct rlhf__verdict *out,
                               struct rlhf__error *err);
void rlhf__verdict_finish(struct rlhf__verdict *); // accepts a zeroed verdict [any]

// _kind_name: returns the name of an enum rlhf__verdict_kind ("none", "good", "warn", "bad").
// _level_name: returns the name of a note's level ("info", "warn", "bad"). [any]
const char *rlhf__verdict_kind_name(int32_t kind);
const char *rlhf__note_level_name(int32_t level);

#endif
