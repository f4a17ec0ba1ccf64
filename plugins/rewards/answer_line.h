// answer_line.h: parses one line of a program's answer: a number, or a JSON object with a number.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_LINE_H
#define RLHF_PLUGINS_REWARDS_ANSWER_LINE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RLHF__LINE_METRICS = 16, // most metrics in a line
    RLHF__LINE_NAME = 96,    // size of a metric's name with its NUL
    RLHF__LINE_WHY = 160
};

struct rlhf__line {
    double reward; // NaN if the program gives no number (null or NaN)
    int64_t index; // index of the row that it answers, -1 if it is missing
    uint32_t n_metrics;
    int32_t verdict; // enum rlhf_verdict
    struct {
        double value;
        char name[RLHF__LINE_NAME];
    } metric[RLHF__LINE_METRICS];
};

// Parses a line of n bytes, without its line break. Allowed are:
//   a number in C or JSON notation; null; NaN, Infinity, true and false in upper or lower case
//   an object with "reward": number, true, false or null, and these optional keys:
//       "index": 0 or more; "metrics": {name: number or null};
//       "verdict": "right", "wrong", true, false or null
// Returns 1, or 0 with the reason in why[RLHF__LINE_WHY]. The reason may quote bytes of the line.
// [any]
int rlhf__line_read(const char *line, size_t n, struct rlhf__line *out, char *why);

// Like rlhf__line_read, for an object that is already parsed. [any]
int rlhf__line_object(json_t *object, struct rlhf__line *out, char *why);

// Returns 1 if the name is valid for a metric: it must be shorter than RLHF__LINE_NAME and have
// only characters that tables and terminals can show. [any]
int rlhf__line_name(const char *name);

#endif
