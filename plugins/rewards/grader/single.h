// single.h: a grader of any type but multi, read from an object of the file (members.h).
#ifndef RLHF_REWARDS_GRADER_SINGLE_H
#define RLHF_REWARDS_GRADER_SINGLE_H

#include "grader/members.h"
#include "grader/template.h"

enum { RLHF__GRADER_KEY = 40, RLHF__GRADER_MESSAGES = 64 };

enum rlhf__grader_type {
    RLHF__GRADER_STRING_CHECK = 0,
    RLHF__GRADER_TEXT_SIMILARITY = 1,
    RLHF__GRADER_SCORE_MODEL = 2,
    RLHF__GRADER_LABEL_MODEL = 3,
    RLHF__GRADER_PYTHON = 4,
    RLHF__GRADER_MULTI = 5
};

enum rlhf__string_check { RLHF__CHECK_EQ, RLHF__CHECK_NE, RLHF__CHECK_LIKE, RLHF__CHECK_ILIKE };

enum rlhf__similarity {
    RLHF__SIMILAR_FUZZY,
    RLHF__SIMILAR_BLEU,
    RLHF__SIMILAR_GLEU,
    RLHF__SIMILAR_METEOR,
    RLHF__SIMILAR_ROUGE_1, // and so on
    RLHF__SIMILAR_ROUGE_5 = RLHF__SIMILAR_ROUGE_1 + 4,
    RLHF__SIMILAR_ROUGE_L
};

struct rlhf__grader_message {
    const char *role; // borrowed from the file
    struct rlhf__template content;
};

// A grader of any type but multi. Texts are borrowed from the file.
struct rlhf__grader {
    char key[RLHF__GRADER_KEY + 1];       // its name in the formula; "grade" if it is the only one
    char path[RLHF__MEMBERS_PATH];        // its place in the file as a JSON Pointer, for messages
    int32_t type, how;                    // how: enum rlhf__string_check or rlhf__similarity
    struct rlhf__template text[2];        // input and reference
    struct rlhf__grader_message *message; // [n_messages]
    uint32_t n_messages;
    const char *model;
    double low, high, pass;                    // range of scores; pass_threshold, NaN: none
    const json_t *sampling, *labels, *passing; // NULL: none
};

// Read the grader. `key` is its name, which is copied. nested: 1 in a grader of type multi. Release
// it with rlhf__grader_finish, even after a failure. Errors: RLHF_E_INVALID, RLHF_E_NOMEM. [main]
rlhf_status rlhf__grader_read(const struct rlhf__members *, const char *key, int nested,
                              struct rlhf__grader *);
void rlhf__grader_finish(struct rlhf__grader *, const rlhf_host *); // [main]

// 1 if a template reads a value that is missing; `what` then names it. [any]
int rlhf__grader_lacks(const struct rlhf__grader *, const struct rlhf__template_from *, char *what,
                       size_t cap);

// 1 if a list of labels has this one. [any]
int rlhf__grader_has_label(const json_t *labels, const char *label);

#endif
