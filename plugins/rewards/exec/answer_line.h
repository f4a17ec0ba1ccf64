// answer_line.h: one line that a program answers with: a number, or an object with one.
#ifndef RLHF_PLUGINS_EXEC_ANSWER_LINE_H
#define RLHF_PLUGINS_EXEC_ANSWER_LINE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RLHF__LINE_METRICS = 16, // most of one line
    RLHF__LINE_NAME = 96,    // most bytes of a metric's name, its NUL among them
    RLHF__LINE_WHY = 160
};

struct rlhf__line {
    double reward; // NaN where the program gives none (null, NaN)
    int64_t index; // of the row that it answers, -1 where it does not say
    uint32_t n_metrics;
    int32_t verdict; // enum rlhf_verdict
    struct {
        double value;
        char name[RLHF__LINE_NAME];
    } metric[RLHF__LINE_METRICS];
};

// Read a line of n bytes without its end: a number as C and JSON write them, NaN and Infinity of
// either case among them, null, or {"reward": number or null, "index": 0 up, "metrics": {name:
// number or null}, "verdict": "right", "wrong", true, false or null}, of which only the reward has
// to be there. Returns 1, or 0 with the reason in why[RLHF__LINE_WHY], which has bytes of the line
// in it. [any]
int rlhf__line_read(const char *line, size_t n, struct rlhf__line *out, char *why);

// The object alone, parsed. [any]
int rlhf__line_object(json_t *object, struct rlhf__line *out, char *why);

// 1 when a metric may have that name: shorter than RLHF__LINE_NAME and of characters that a table
// and a terminal can show. [any]
int rlhf__line_name(const char *name);

#endif
