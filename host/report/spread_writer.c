// spread_writer.c: see spread_writer.h.
#include "report/spread_writer.h"

#include "report/distribution.h"
#include "report/jsonl.h"

#include <stdio.h>
#include <stdlib.h>

struct rlhf__spread {
    struct rlhf__jsonl file;
};

rlhf_status rlhf__spread_open(const struct rlhf__folder *run, int64_t keep_phase,
                              struct rlhf__log *log, struct rlhf__spread **out,
                              struct rlhf__error *err) {
    struct rlhf__spread *s = *out = calloc(1, sizeof *s);
    if (!s) return RLHF__NOMEM(err, "out of memory for %s/spread.jsonl", run->path);
    const rlhf_status st = rlhf__jsonl_open(run, "spread.jsonl", keep_phase, log, &s->file, err);
    if (st == RLHF_OK) return st;
    free(s);
    *out = NULL;
    return st;
}

void rlhf__spread_close(struct rlhf__spread *s) {
    if (!s) return;
    rlhf__jsonl_close(&s->file);
    free(s);
}

rlhf_status rlhf__spread_sync(struct rlhf__spread *s, struct rlhf__error *err) {
    return rlhf__jsonl_sync(&s->file, err);
}

// ---- one number per row or response token: the functions write them to x and return n ----

static size_t rewards(const struct rlhf__rows *e, uint32_t flags, double *x) {
    (void)flags;
    for (uint32_t i = 0; i < e->n; i++)
        x[i] = (double)e->reward[i];
    return e->n;
}

static size_t lengths(const struct rlhf__rows *e, uint32_t flags, double *x) {
    for (uint32_t i = 0; i < e->n; i++)
        x[i] = flags & RLHF__SPREAD_RESPONSES ? (double)rlhf__rows_response_tokens(e, i, i + 1)
                                              : (double)(e->offset[i + 1] - e->offset[i]);
    return e->n;
}

static size_t divergences(const struct rlhf__rows *e, uint32_t flags, double *x) {
    const float *old = e->token[RLHF__LOGP_OLD], *ref = e->token[RLHF__LOGP_REF];
    (void)flags;
    for (uint32_t i = 0; i < e->n; i++)
        x[i] = rlhf__rows_response_sum(e, i, old, ref);
    return e->n;
}

static size_t advantages(const struct rlhf__rows *e, uint32_t flags, double *x) {
    size_t n = 0;
    (void)flags;
    for (uint32_t i = 0; i < e->n; i++)
        for (int32_t t = e->offset[i] + e->prompt_len[i]; t < e->offset[i + 1]; t++)
            if (rlhf__rows_is_response(e, t)) x[n++] = (double)e->token[RLHF__ADVANTAGE][t];
    return n;
}

static const struct part {
    const char *name;
    uint32_t needs; // the flag that must be set; 0: none
    size_t (*take)(const struct rlhf__rows *, uint32_t flags, double *x);
} parts[] = {{"reward", RLHF__SPREAD_REWARD, rewards},
             {"length", 0, lengths},
             {"kl", RLHF__SPREAD_REFERENCE, divergences},
             {"advantage", RLHF__SPREAD_ADVANTAGE, advantages}};

// Append a part to the line.
static void put_part(const struct part *part, const struct rlhf__rows *e, uint32_t flags, double *x,
                     struct rlhf__buf *line) {
    struct rlhf__distribution d = {0};
    if ((flags & part->needs) == part->needs) rlhf__distribution_of(x, part->take(e, flags, x), &d);
    rlhf__buf_printf(line, ", \"%s\": ", part->name);
    rlhf__distribution_json(&d, line);
}

rlhf_status rlhf__spread_write(struct rlhf__spread *s, int64_t phase, const struct rlhf__rows *e,
                               uint32_t flags, struct rlhf__error *err) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    double *x = calloc((size_t)e->n + e->total + 1, sizeof *x);
    if (!x) return RLHF__NOMEM(err, "out of memory for the spread of %u rows", e->n);
    rlhf__buf_printf(&line, "{\"phase\": %lld", (long long)phase);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        put_part(&parts[i], e, flags, x, &line);
    rlhf__buf_puts(&line, "}\n");
    const rlhf_status st = rlhf__jsonl_append(&s->file, &line, err);
    rlhf__buf_finish(&line);
    free(x);
    return st;
}
