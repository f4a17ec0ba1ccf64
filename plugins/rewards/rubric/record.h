// record.h: a file of answers, a JSON line for each. A question that it has is not asked again, so
// a resumed or repeated run gets the same answers without the judge.
#ifndef RLHF_REWARDS_RUBRIC_RECORD_H
#define RLHF_REWARDS_RUBRIC_RECORD_H

#include <rlhf/host.h>

// 128 bits that tell a question from others.
struct rlhf__question {
    uint64_t word[2];
};
struct rlhf__question rlhf__question_of(const char *criterion, const char *text, size_t n); // [any]

struct rlhf__recorded_answer {
    struct rlhf__question question;
    double score; // NaN: the criterion was lost
};

// Zeroed except for host and path (NULL: nothing is recorded).
struct rlhf__record {
    const rlhf_host *host;
    const char *path;
    struct rlhf__recorded_answer *answer; // [n] an open-addressed table of `room` entries
    uint64_t n, room;
    int32_t fd, opened;
};

// Read the file, if that was not done yet, and open it for appending. A last line that was cut off
// is ignored. Errors: RLHF_E_IO, RLHF_E_NOMEM, RLHF_E_INVALID with the line. [step]
rlhf_status rlhf__record_open(struct rlhf__record *);

// Returns the answer, or NULL. [step]
const struct rlhf__recorded_answer *rlhf__record_find(const struct rlhf__record *,
                                                      struct rlhf__question);

// Add an answer, also to the file. why: of a lost criterion, else NULL. Errors: RLHF_E_IO,
// RLHF_E_NOMEM. [step]
rlhf_status rlhf__record_add(struct rlhf__record *, struct rlhf__question, const char *criterion,
                             double score, const char *why);
void rlhf__record_finish(struct rlhf__record *); // [main]

#endif
