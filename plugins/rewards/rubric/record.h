// record.h: a file of a judge's answers, with a line of JSON for each. If the answer to a question
// is in the file, the judge is not asked. So a resumed or repeated run gets the same answers
// without the judge.
#ifndef RLHF_REWARDS_RUBRIC_RECORD_H
#define RLHF_REWARDS_RUBRIC_RECORD_H

#include <rlhf/host.h>

// A hash of 128 bits, which identifies a question.
struct rlhf__question {
    uint64_t word[2];
};
struct rlhf__question rlhf__question_of(const char *criterion, const char *text, size_t n); // [any]

struct rlhf__recorded_answer {
    struct rlhf__question question;
    double score; // NaN: the criterion is lost
};

// Zero-initialize, then set `host` and `path` (NULL: answers are not recorded).
struct rlhf__record {
    const rlhf_host *host;
    const char *path;
    struct rlhf__recorded_answer *answer; // [n] an open-addressed table of `room` entries
    uint64_t n, room;
    int32_t fd, opened;
};

// The first call reads the file and opens it for appending; later calls do nothing. A last line
// that was cut off is ignored. Errors: RLHF_E_IO, RLHF_E_NOMEM, RLHF_E_INVALID with the line
// number. [step]
rlhf_status rlhf__record_open(struct rlhf__record *);

// Returns the answer to a question, or NULL. [step]
const struct rlhf__recorded_answer *rlhf__record_find(const struct rlhf__record *,
                                                      struct rlhf__question);

// Add an answer to the record and to its file. If the criterion is lost, `why` is the reason,
// otherwise NULL. Errors: RLHF_E_IO, RLHF_E_NOMEM. [step]
rlhf_status rlhf__record_add(struct rlhf__record *, struct rlhf__question, const char *criterion,
                             double score, const char *why);
void rlhf__record_finish(struct rlhf__record *); // [main]

#endif
