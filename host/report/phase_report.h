// phase_report.h: reports a phase: the host's own metrics, text statistics of the responses,
// samples, and the progress line.
#ifndef RLHF_HOST_REPORT_PHASE_REPORT_H
#define RLHF_HOST_REPORT_PHASE_REPORT_H

#include "learn/phase.h"
#include "report/report.h"

// Set objective/scores, completions/*, val/sequence_lengths and val/num_stop_token_ids. They
// describe the phase's responses as first sampled, before some of them are replaced. [main]
rlhf_status rlhf__completions_measure(const struct rlhf__phase *p, struct rlhf__error *err);

// Returns 1 if both hold: responses can stop before the length limit (at one of the model's end
// tokens or at sampling.stop), and their texts are not cut at a period. [any]
int rlhf__responses_may_end(const struct rlhf__config *, const struct rlhf__model *policy);

// ---- first_rewards.c ----

// In the first phase, before the first update: log the range of the rewards and in how many groups
// they differ. If they do not differ, log that there is no reward signal. [main]
void rlhf__phase_first_rewards(const struct rlhf__phase *p);

// ---- phase_report.c ----

// Choose samples among the rows that the phase trains on, and store them in p->report->chosen.
// `prompts` contains the prompts of the responses; it is NULL if the rows come from a file. [main]
rlhf_status rlhf__phase_samples(const struct rlhf__phase *p, const struct rlhf__prompts *prompts,
                                struct rlhf__error *err);

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

// ---- phase_warnings.c: what the rules (verdict/rules.h) cannot see ----

// Log what only the phase's rows show about a finding of the rules: an end token that the responses
// contain, the advantage that is not finite, the metrics of the rewards. [main]
void rlhf__phase_details(const struct rlhf__phase *p, const char *finding);

// If an adapter has never moved, the run fails after this many phases without a learning signal. A
// resumed run starts counting from 0.
enum { RLHF__STILL_PHASES = 16 };

// Check whether the phase, whose metrics are set, gave a learning signal. Without this check, a run
// that learns nothing would look like any other run. `*count` counts the phases without a signal.
// Warns once if no gradient reached an adapter that still has its initial weights.
//
// Errors: RLHF_E_NUMERIC if the run trains an adapter that has not moved since the start of the
// run, in two cases:
// - the phase took steps with a nonzero gradient and learning rate;
// - RLHF__STILL_PHASES phases gave no learning signal, or the run's last phase gave none. [main]
rlhf_status rlhf__check_learning(const struct rlhf__phase *p, struct rlhf__count *count,
                                 struct rlhf__error *err);

#endif
