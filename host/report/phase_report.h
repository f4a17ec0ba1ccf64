// phase_report.h: reports a phase: the host's own metrics, text statistics of the responses,
// samples, and the progress line.
#ifndef RLHF_HOST_REPORT_PHASE_REPORT_H
#define RLHF_HOST_REPORT_PHASE_REPORT_H

#include "learn/phase.h"
#include "report/findings.h"
#include "report/report.h"

// Set objective/scores, completions/*, val/sequence_lengths and val/num_stop_token_ids. They
// describe the phase's responses as first sampled, before some of them are replaced. [main]
rlhf_status rlhf__completions_measure(const struct rlhf__phase *p, struct rlhf__error *err);

// Returns 1 if both hold: responses can stop before the length limit (at one of the model's end
// tokens or at sampling.stop), and their texts are not cut at a period. [any]
int rlhf__responses_may_end(const struct rlhf__config *, const struct rlhf__model *policy);

// Choose samples among the rows that the phase trains on, and store them in p->report->chosen.
// `prompts` contains the prompts of the responses; it is NULL if the rows come from a file. [main]
rlhf_status rlhf__phase_samples(const struct rlhf__phase *p, const struct rlhf__prompts *prompts,
                                struct rlhf__error *err);

#define RLHF__ENTROPY_METRIC "objective/entropy_per_token"
#define RLHF__REWARD_METRIC  "objective/scores" // mean reward of the phase's responses

// Returns the mean -log-prob of the sampled tokens, in nats, or NaN if there are no sampled tokens.
// [any]
double rlhf__rows_entropy(const struct rlhf__rows *);

// Set objective/entropy_per_token, lr, episode, optim/*, time/*, perf/* and sampling/*. Call this
// after the algorithm's phase_end(). p->count->sequences must already include this phase;
// p->count->phase must not include it yet. [main]
void rlhf__phase_metrics(const struct rlhf__phase *p);

// Write and show the samples and the progress line of a phase whose metrics are set. is_last is 1
// if early stopping ends the run after this phase. Errors: those of writing samples. [main]
rlhf_status rlhf__phase_show(const struct rlhf__phase *p, int is_last, struct rlhf__error *err);

// If a warning of this phase (counted from 1) was logged after the call of rlhf__phase_show, and
// the samples were not shown there, write and show them now. [main]
rlhf_status rlhf__phase_show_warned(const struct rlhf__phase *p, int64_t phase,
                                    struct rlhf__error *err);

// ---- phase_warnings.c: warnings at the end of a phase, before the phase is counted ----
//
// There are three kinds of warnings. Warnings about findings (findings.h) give the likely cause and
// the setting to change. The other two kinds are about a phase without a learning signal, and about
// a reward model whose scores start far from the scale to which it was fitted.

// Check a phase after the algorithm's phase_end() and log new findings. With rows of a file, checks
// only the gradients, the loss and the log-probs of the wanted responses. [main]
void rlhf__phase_warnings(struct rlhf__findings *, const struct rlhf__phase *);

// If an adapter has never moved, the run fails after this many phases without a learning signal. A
// resumed run starts counting from 0.
enum { RLHF__STILL_PHASES = 16 };

// Check whether the phase, whose metrics are set, gave a learning signal. Without this check, a run
// that learns nothing would look like any other run. `*count` counts the phases without a signal.
// Three warnings are logged once per run:
// - All compared responses have the same reward. This warning is omitted if `findings` has reported
//   the policy as lost (RLHF__LOST), which is then the cause.
// - No gradient reached an adapter that still has its initial weights.
// - Steps were skipped because the loss or a gradient was not finite.
//
// Errors: RLHF_E_NUMERIC if the run trains an adapter that has not moved since the start of the
// run, in two cases:
// - the phase took steps with a nonzero gradient and learning rate;
// - RLHF__STILL_PHASES phases gave no learning signal, or the run's last phase gave none. [main]
rlhf_status rlhf__check_learning(const struct rlhf__phase *p, struct rlhf__count *count,
                                 struct rlhf__findings *findings, struct rlhf__error *err);

// Warn if the scores of a bt_rm.so reward in a run's first phase are far from mean 0 and standard
// deviation 1. Coefficients such as algo.kl_coef are chosen for that scale. The phase's metrics
// must already be set. [main]
void rlhf__calibration_note(const struct rlhf__phase *p);

#endif
