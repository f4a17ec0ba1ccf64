// findings.h: what is wrong with a phase: a policy that has collapsed or jumped away from its
// reference, responses that are nearly all cut off, exploding gradients, a loss on rows of a file
// that has diverged, wanted responses of a file that the policy no longer gives.
//
// Rules about numbers and their history, which is part of a checkpoint. phase_warnings.h collects
// the numbers and writes the messages.
#ifndef RLHF_HOST_FINDINGS_H
#define RLHF_HOST_FINDINGS_H

#include "base/error.h"

#include <jansson.h>
#include <stdint.h>

#define RLHF__COLLAPSED_KL      1.0    // nats a token from the reference, above
#define RLHF__COLLAPSED_ENTROPY 0.1    // share of the first phase's entropy, below
#define RLHF__KL_JUMP           0.5    // nats a token that the KL rises in one phase, above
#define RLHF__NORM_EXPLODES     1000.0 // times the median gradient norm so far, above
#define RLHF__NORM_LARGE        10.0   // a norm that is not larger does not explode
#define RLHF__CUT_OFF           0.95   // share of the responses, at least
#define RLHF__FALL              1.0    // nats a token that wanted texts lose, above
#define RLHF__LOSS_FACTOR       2.0    // a loss has diverged above the first phase's times this
#define RLHF__LOSS_MARGIN       2.0    // plus this: batches of any loss differ by less

// Of one phase; NaN: not measured.
struct rlhf__phase_numbers {
    double entropy;                    // nats a token: mean -log-prob of the sampled tokens
    double kl;                         // nats a token from the reference
    double correct;                    // share of right answers, where a reward can tell
    double norm, norm_first, norm_max; // gradient norms: mean, first that is not 0, largest
    double cut_off; // share of the responses that reached the length limit; NaN: none ends earlier
    double loss;    // of supervised algorithms
    double fall;    // of preferences: nats a token that the policy gives the wanted responses less
                    // than the reference
};

enum rlhf__finding {
    RLHF__COLLAPSED = 1,
    RLHF__JUMPED = 2,
    RLHF__EXPLODED = 4,
    RLHF__ALL_CUT_OFF = 8,
    RLHF__DIVERGED = 16,
    RLHF__FELL = 32
};

// New findings of a phase, with the values they were compared with. Nothing is new once a collapse
// has been found.
struct rlhf__found {
    uint32_t what;             // bits of enum rlhf__finding that no phase before had
    int32_t by_kl, by_entropy; // why it has collapsed
    double kl_before, usual_norm;
};

enum { RLHF__FINDINGS_NORMS = 64 };

// Zero-initialise: before the first phase. All but `is_collapsed` is part of a checkpoint.
struct rlhf__findings {
    int64_t phases;                    // seen
    double entropy;                    // of the first one, nats a token
    double correct;                    // share of right answers in it; NaN: nothing can tell
    double kl;                         // of the last one, nats a token
    double loss;                       // of the first one; NaN: not known
    double norm[RLHF__FINDINGS_NORMS]; // mean gradient norms of the newest phases, oldest first
    int64_t norms;
    int64_t said;         // bits of enum rlhf__finding
    int64_t wild;         // the first phase seen that jumped or exploded, from 1; 0 = none
    int32_t is_collapsed; // 1: the policy of the last phase has collapsed
    int32_t reserved;
};

// Judge the next phase. [any]
struct rlhf__found rlhf__findings_judge(struct rlhf__findings *,
                                        const struct rlhf__phase_numbers *);

// State as JSON (new reference, NULL when out of memory) and back; NULL: a run that kept none,
// whose next phase is taken for the first. Errors: RLHF_E_INVALID. [main]
json_t *rlhf__findings_save(const struct rlhf__findings *);
rlhf_status rlhf__findings_load(struct rlhf__findings *, const json_t *, struct rlhf__error *err);

#endif
