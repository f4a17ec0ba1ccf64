// scores.h: calls of a reward's score(), and what they gave.
#ifndef RLHF_HOST_CHECK_SCORES_H
#define RLHF_HOST_CHECK_SCORES_H

#include "check/reward_rows.h"
#include "check/watched.h"

// What out->seq holds before a call, by the side of the closed page.
enum { RLHF__UNWRITTEN_END = 0x7fc0dead, RLHF__UNWRITTEN_BEGIN = 0x4640e6b7 };

// What a call gave, by the number of the row in its set.
struct rlhf__scores {
    uint32_t *seq; // [n] bits
    uint8_t *verdict, *failed;
    rlhf_status status;
    int32_t reserved;
    double seconds;
};

// Of n rows; 0 when out of memory. Needs finish also then. [main]
int rlhf__scores_init(struct rlhf__scores *s, uint32_t n);
void rlhf__scores_finish(struct rlhf__scores *s);

// One call on an instance that is there, of those rows ([n]) of the set. side: enum
// rlhf__guard_side. elsewhere: from another thread, which [step] allows. What score() returned. A
// refusal is a fact. [main]
rlhf_status rlhf__check_score(struct rlhf__watched *t, const struct rlhf__row_set *set,
                              const uint32_t *rows, uint32_t n, int32_t side, int elsewhere,
                              struct rlhf__scores *to);
// The same with an instance of its own.
rlhf_status rlhf__check_score_afresh(struct rlhf__check *c, const struct rlhf__row_set *set,
                                     const uint32_t *rows, uint32_t n, int32_t side, int elsewhere,
                                     struct rlhf__scores *to);

// The first of n rows that both scored and paid differently; n: none. [any]
uint32_t rlhf__scores_differ(const struct rlhf__scores *a, const struct rlhf__scores *b,
                             uint32_t n);

// 1 when there is none; else a finding against rule: "row 3 is paid 1, and 2 <how>". [main]
int rlhf__scores_compare(struct rlhf__check *c, int32_t rule, const char *how,
                         const struct rlhf__scores *a, const struct rlhf__scores *b, uint32_t n);

#endif
