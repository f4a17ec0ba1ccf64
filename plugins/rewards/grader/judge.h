// judge.h: the graders that ask a model: score_model and label_model. The model is that of a
// service for chat completions (POST .../v1/chat/completions), which the user named.
#ifndef RLHF_REWARDS_GRADER_JUDGE_H
#define RLHF_REWARDS_GRADER_JUDGE_H

#include "grader/spec.h"
#include "http/requests.h"

// The caller sets `host`, `o` and `model`. All other members must be zero.
struct rlhf__grader_judge {
    const rlhf_host *host;
    const struct rlhf__http_options *o;
    const char *model; // in place of the graders' models; NULL: theirs
    struct rlhf__http_client client;
    struct rlhf__requests requests; // requests of the last call
};

// Checks the options and connects once. Errors: those of rlhf__http_open. [main]
rlhf_status rlhf__grader_judge_open(struct rlhf__grader_judge *);
void rlhf__grader_judge_close(struct rlhf__grader_judge *); // [main]

// Set grade[i] of each row to the grade, or to NaN if the model's answer is no grade or the row has
// no question because a field of the sample is missing. Set failed[i] to 1 if the service did not
// answer; `why` (RLHF__WHY bytes) is then the reason. Errors: RLHF_E_CANCELLED, RLHF_E_NOMEM.
// [step]
rlhf_status rlhf__grader_judge_ask(struct rlhf__grader_judge *, const struct rlhf__grader *,
                                   const rlhf_reward_in *, double *grade, uint8_t *failed,
                                   char *why);

// Append the request about row i. Returns 1, or 0 if a field is missing. Errors set to->full.
// [step]
int rlhf__grader_judge_write(const struct rlhf__grader_judge *, const struct rlhf__grader *,
                             const struct rlhf__template_from *, struct rlhf__bytes *to);

// Read the grade from a service's answer; NaN if it is none. [any]
double rlhf__grader_judge_read(const struct rlhf__grader *, const char *body, size_t n);

#endif
