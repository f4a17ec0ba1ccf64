// findings.h: detects problems at the end of a phase. The problems are: a policy that has
// collapsed, is far from the reference or jumped away from it; responses that are nearly all cut
// off; gradients that have exploded; a supervised loss that has diverged; and a policy that gives
// much less probability to the wanted responses of a file.
//
// The rules compare numbers of the phase with those of earlier phases. The earlier numbers are part
// of a checkpoint. phase_warnings.c collects the numbers and writes the messages.
#ifndef RLHF_HOST_REPORT_FINDINGS_H
#define RLHF_HOST_REPORT_FINDINGS_H

#include "base/error.h"
#include "history/rules.h"

#include <jansson.h>
#include <stdint.h>

#define RLHF__FAR_KL            RLHF__RULE_KL_FAR // nats per token from the reference, above
#define RLHF__COLLAPSED_ENTROPY RLHF__RULE_ALIKE  // share of the first phase's entropy, below
#define RLHF__KL_JUMP           0.5    // rise of the KL in one phase, nats per token, above
#define RLHF__NORM_EXPLODES     1000.0 // times the median gradient norm so far, above
#define RLHF__NORM_LARGE        10.0   // a norm up to this does not count as exploding
#define RLHF__CUT_OFF           0.95   // share of the responses, at least
#define RLHF__FALL              1.0    // nats per token that wanted texts lose, above

// The numbers of one phase. A number that was not measured is NaN.
struct rlhf__phase_numbers {
    double entropy;                    // nats per token: mean -log-prob of the sampled tokens
    double kl;                         // nats per token from the reference
    double correct;                    // share of right answers, if a reward checks answers
    double norm, norm_first, norm_max; // gradient norms: mean, first that is not 0, largest
    double cut_off; // share of responses that reached the length limit; NaN if all can reach it
    double loss;    // of supervised algorithms
    // For preference rows: the reference's log-prob of the wanted responses minus the policy's, in
    // nats per token.
    double fall;
};

enum rlhf__finding {
    RLHF__COLLAPSED = 1,
    RLHF__JUMPED = 2,
    RLHF__EXPLODED = 4,
    RLHF__ALL_CUT_OFF = 8,
    RLHF__DIVERGED = 16,
    RLHF__FELL = 32,
    RLHF__FAR = 64,
    // Reported with rlhf__findings_once. Other bits up to 1 << 21 stand for trends (findings.c).
    RLHF__FLAT_GROUPS = 1 << 11,
    RLHF__NO_CALLS = 1 << 22,
    RLHF__REWRITTEN = 1 << 23,
    RLHF__SKIPPED_STEPS = 1 << 24
};

// After one of these two findings, any later finding would only be a consequence of it.
#define RLHF__LOST (RLHF__COLLAPSED | RLHF__FAR)

// The new findings of a phase, and the values that the phase was compared with. After a finding of
// RLHF__LOST, no later phase has a new finding.
struct rlhf__found {
    uint32_t what; // bits of enum rlhf__finding; new in this phase
    uint32_t reserved;
    double kl_before, usual_norm;
};

enum { RLHF__FINDINGS_NORMS = 64 };

// Zero-initialize before the first phase. A checkpoint contains all members except `is_collapsed`
// and `is_far`.
struct rlhf__findings {
    int64_t phases; // phases so far
    double entropy; // of the first phase, nats per token
    double correct; // share of right answers in the first phase; NaN: not measured
    double kl;      // of the last phase, nats per token
    double loss;    // of the first phase; NaN: not known
    double norm[RLHF__FINDINGS_NORMS]; // mean gradient norms of the newest phases, oldest first
    int64_t norms;
    int64_t said;         // bits of enum rlhf__finding and of trends (findings.c) that are not to
                          // be reported any more
    int64_t reported;     // bits of enum rlhf__finding that were reported
    int64_t wild;         // the first phase that jumped or exploded, from 1; 0 = none
    int32_t is_collapsed; // 1: the policy of the last phase has collapsed
    int32_t is_far;       // 1: that policy is far from the reference
};

// A trend is reported from phase RLHF__TREND_PHASES onward, if it has lasted for RLHF__TREND_LASTED
// phases, including the current one.
enum { RLHF__TREND_PHASES = 10, RLHF__TREND_LASTED = 5 };

// Returns 1 if this note of the rules (history/rules.h) must be reported now, and marks the note as
// reported. A note is reported if it is a problem, has lasted, and has not been reported before.
// After a finding of RLHF__LOST, the only notes that are reported are a collapse and causes of the
// finding. [any]
int rlhf__findings_note(struct rlhf__findings *, const struct rlhf__run_note *);

// Returns 1 the first time that it is called with this bit of enum rlhf__finding in a run, also
// across resumes. [any]
int rlhf__findings_once(struct rlhf__findings *, uint32_t finding);

// Check the next phase. [any]
struct rlhf__found rlhf__findings_judge(struct rlhf__findings *,
                                        const struct rlhf__phase_numbers *);

// Convert the state to and from JSON. _save returns a new reference, or NULL if out of memory.
// _load accepts NULL for a state that was not stored; the next phase then counts as the first. The
// errors of _load: RLHF_E_INVALID. [main]
json_t *rlhf__findings_save(const struct rlhf__findings *);
rlhf_status rlhf__findings_load(struct rlhf__findings *, const json_t *, struct rlhf__error *err);

#endif
