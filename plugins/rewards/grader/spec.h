// spec.h: reads a grader from a JSON file, which holds the grader itself or a fine-tuning job of
// the hosted service (its method.reinforcement.grader). docs/rewards/grader.md describes the types.
#ifndef RLHF_REWARDS_GRADER_SPEC_H
#define RLHF_REWARDS_GRADER_SPEC_H

#include "grader/formula.h"
#include "grader/template.h"

#include <jansson.h>

enum { RLHF__GRADER_KEY = 40, RLHF__GRADER_MESSAGES = 64, RLHF__GRADER_PATH = 96 };

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
    char path[RLHF__GRADER_PATH];         // its place in the file as a JSON Pointer, for messages
    int32_t type, how;                    // how: enum rlhf__string_check or rlhf__similarity
    struct rlhf__template text[2];        // input and reference
    struct rlhf__grader_message *message; // [n_messages]
    uint32_t n_messages;
    const char *model;
    double low, high, pass;                    // range of scores; pass_threshold, NaN: none
    const json_t *sampling, *labels, *passing; // NULL: none
};

// Zero-initialize, then set `host` and `path`.
struct rlhf__grader_spec {
    const rlhf_host *host;
    const char *path; // of the file, borrowed
    json_t *file;
    uint32_t n;
    struct rlhf__grader *of; // [n]
    int32_t multi;           // 1: the grade is the formula's value
    struct rlhf__formula formula;
    double pass; // as in struct rlhf__grader, of the whole
};

// Read the file. The message of RLHF_E_INVALID has the file, the place in it, what was found and
// what is expected. Release with rlhf__grader_spec_finish, even after a failure. [main]
rlhf_status rlhf__grader_spec_read(struct rlhf__grader_spec *);

// The same for a file that was parsed already; takes over the reference to it. [main]
rlhf_status rlhf__grader_spec_take(struct rlhf__grader_spec *, json_t *file);
void rlhf__grader_spec_finish(struct rlhf__grader_spec *); // [main]

// Check that a data row has every value that a template reads as {{ item.X }}. Errors:
// RLHF_E_INVALID. [main]
rlhf_status rlhf__grader_spec_check_row(const struct rlhf__grader_spec *, rlhf_str row);

// 1 if a list of labels has this one. [any]
int rlhf__grader_has_label(const json_t *labels, const char *label);

#endif
