// scores.h: calls a reward's score() and stores the results.
#ifndef RLHF_HOST_CHECK_SCORES_H
#define RLHF_HOST_CHECK_SCORES_H

#include "check/probe.h"
#include "check/reward_rows.h"

// Initial values of out->seq, by the side of the inaccessible page.
enum { RLHF__UNWRITTEN_END = 0x7fc0dead, RLHF__UNWRITTEN_BEGIN = 0x4640e6b7 };

// Results of a call, by the row's number in its set.
struct rlhf__scores {
    uint32_t *seq; // [n] bits
    uint8_t *verdict, *failed;
    rlhf_status status;
    int32_t reserved;
    double seconds;
};

// For n rows; returns 0 if out of memory. Needs finish in any case. [main]
int rlhf__scores_init(struct rlhf__scores *s, uint32_t n);
void rlhf__scores_finish(struct rlhf__scores *s);

// Call an existing instance for these rows ([n]) of the set. side: enum rlhf__guard_side.
// elsewhere: call from another thread, which [step] allows. Returns the status of score(). A
// refusal is reported as a fact. [main]
rlhf_status rlhf__check_score(struct rlhf__probe *t, const struct rlhf__row_set *set,
                              const uint32_t *rows, uint32_t n, int32_t side, int elsewhere,
                              struct rlhf__scores *to);
// The same with a new instance.
rlhf_status rlhf__check_score_afresh(struct rlhf__check *c, const struct rlhf__row_set *set,
                                     const uint32_t *rows, uint32_t n, int32_t side, int elsewhere,
                                     struct rlhf__scores *to);

// The first of n rows that both scored, with different results; n: none. [any]
uint32_t rlhf__scores_differ(const struct rlhf__scores *a, const struct rlhf__scores *b,
                             uint32_t n);

// 1 if there is none; otherwise report a finding against rule: "row 3 has the score 1, and 2
// <how>". [main]
int rlhf__scores_compare(struct rlhf__check *c, int32_t rule, const char *how,
                         const struct rlhf__scores *a, const struct rlhf__scores *b, uint32_t n);

#endif
