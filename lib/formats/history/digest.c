// digest.c: see digest.h.
#include "history/digest.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHAIN "rlhf-chain-1\n"

// Hash floats. As in the run's text files, -0 counts as 0, and all numbers that are not finite
// count as equal.
static void put_floats(struct rlhf__sha256 *s, const float *x, int32_t n) {
    float room[64];
    for (int32_t at = 0, m = 0; at < n; at += m) {
        for (m = 0; m < 64 && at + m < n; m++) {
            const float v = x[at + m];
            room[m] = !isfinite(v) ? NAN : v == 0 ? 0.0f : v;
        }
        rlhf__sha256_put(s, room, (size_t)m * sizeof *room);
    }
}

void rlhf__chain_put_row(struct rlhf__sha256 *s, const struct rlhf__chain_row *r) {
    const int32_t head[4] = {r->group, r->finished, r->prompt_length, r->n};
    rlhf__sha256_put(s, &r->source, sizeof r->source);
    rlhf__sha256_put(s, head, sizeof head);
    rlhf__sha256_put(s, r->ids, (size_t)r->n * sizeof *r->ids);
    put_floats(s, r->logp, r->n_logp);
    if (r->n_segments == 0) return;
    rlhf__sha256_put(s, r->segment, (size_t)r->n_segments * sizeof *r->segment);
    rlhf__sha256_put(s, r->end, strlen(r->end) + 1);
}

void rlhf__chain_put_reward(struct rlhf__sha256 *s, float score, const float *token, int32_t n) {
    put_floats(s, &score, 1);
    put_floats(s, token, n);
}

void rlhf__chain_put_paid(struct rlhf__sha256 *s, const float *paid, int32_t n, int32_t verdict) {
    put_floats(s, paid, n);
    rlhf__sha256_put(s, &verdict, sizeof verdict);
}

void rlhf__chain_put_metric(struct rlhf__sha256 *s, const char *name, double value) {
    if (!isfinite(value)) value = (double)NAN;
    if (value == 0) value = 0;
    rlhf__sha256_put(s, name, strlen(name) + 1);
    rlhf__sha256_put(s, &value, sizeof value);
}

int rlhf__chain_is_steady(const char *metric) {
    static const char *const ratios[] = {"/idle_ratio", "/waiting"}; // of two times
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
        const size_t length = strlen(metric), end = strlen(ratios[i]);
        if (length > end && strcmp(metric + length - end, ratios[i]) == 0) return 0;
    }
    for (const char *part = metric; part; part = strchr(part, '/')) {
        part += *part == '/';
        const size_t n = strcspn(part, "/");
        if (n == 4 && (strncmp(part, "time", n) == 0 || strncmp(part, "perf", n) == 0)) return 0;
    }
    return 1;
}

static void put_text(struct rlhf__sha256 *s, const char *text) {
    rlhf__sha256_put(s, text, strlen(text));
}

static void start(struct rlhf__sha256 *s, const char *before, int64_t phase) {
    char number[32];
    rlhf__sha256_init(s);
    put_text(s, CHAIN);
    put_text(s, before);
    snprintf(number, sizeof number, "\n%" PRId64 "\n", phase);
    put_text(s, number);
}

static void put_line(struct rlhf__sha256 *s, const char *what, const char *value) {
    put_text(s, what);
    put_text(s, value ? value : "none");
    put_text(s, "\n");
}

void rlhf__chain_head(const char *before, const struct rlhf__chain_link *link,
                      char head[RLHF__HEX]) {
    struct rlhf__sha256 s;
    start(&s, before, link->phase);
    put_line(&s, "rows ", link->rows);
    put_line(&s, "rewards ", link->rewards);
    put_line(&s, "metrics ", link->metrics);
    rlhf__sha256_hex(&s, head);
}

void rlhf__chain_begin(const char *before, int64_t phase, const char *begin, char head[RLHF__HEX]) {
    struct rlhf__sha256 s;
    start(&s, before, phase);
    put_line(&s, "begin ", begin);
    rlhf__sha256_hex(&s, head);
}
