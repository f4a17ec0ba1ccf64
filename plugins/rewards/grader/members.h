// members.h: reads the members of an object in a grader's file. Messages name the file, the place
// in it, what was found and what is expected.
#ifndef RLHF_REWARDS_GRADER_MEMBERS_H
#define RLHF_REWARDS_GRADER_MEMBERS_H

#include <jansson.h>
#include <rlhf/host.h>

enum { RLHF__MEMBERS_PATH = 96 };

// All is borrowed.
struct rlhf__members {
    const rlhf_host *host;
    const char *file;              // its path
    const json_t *v;               // the object
    char path[RLHF__MEMBERS_PATH]; // its place in the file, a JSON Pointer
};

// Return RLHF_E_INVALID with a message: what is wrong at a place; that the member `key` is not what
// is expected. [main]
rlhf_status rlhf__members_refuse(const struct rlhf__members *, const char *path, const char *what);
rlhf_status rlhf__members_expected(const struct rlhf__members *, const char *key, const char *what);

// Returns the member, or NULL. A null counts as missing, because a downloaded job has members that
// are null. [any]
const json_t *rlhf__members_get(const struct rlhf__members *, const char *key);

// Refuses members that are not in the list, which has a space around each name. [main]
rlhf_status rlhf__members_check(const struct rlhf__members *, const char *all);

// Read a text, a number, or one of n words, whose index is stored. A missing number leaves *out as
// it is; the others must be there. [main]
rlhf_status rlhf__members_text(const struct rlhf__members *, const char *key, const char **out);
rlhf_status rlhf__members_number(const struct rlhf__members *, const char *key, double *out);
rlhf_status rlhf__members_word(const struct rlhf__members *, const char *key,
                               const char *const *words, size_t n, int32_t *out);

#endif
