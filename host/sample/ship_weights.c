// ship_weights.c: see ship_weights.h.
#include "sample/ship_weights.h"

#include "model/compute.h"
#include "model/parameters.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 4 }; // exchanges under way

// Adjacent elements of one parameter.
struct chunk {
    uint32_t param, n; // n: elements
    int64_t at;        // number of the parameter's elements before these
};

struct rlhf__ship {
    const struct rlhf__split *split;
    struct rlhf__model *model;
    struct chunk *chunk; // [n]
    uint32_t n, learners;
    int32_t acts;
    float *buf[DEPTH];      // one chunk or, on an actor, one chunk of each learner
    uint64_t ticket[DEPTH]; // of each exchange
    rlhf_block *out, *in;   // [ranks]
};

// ---- what is sent ----

static int is_sent(const struct rlhf__model *m, const rlhf_param *p) {
    if (p->group == RLHF_PARAM_VALUE || p->group == RLHF_PARAM_SCORE) return 0;
    return m->peft.rank == 0 || p->group != RLHF_PARAM_TRUNK;
}

static uint32_t count_chunks(const struct rlhf__model *m) {
    int64_t n = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if (is_sent(m, &m->params[i]))
            n += (rlhf__param_count(&m->params[i]) + RLHF__PARAM_CHUNK - 1) / RLHF__PARAM_CHUNK;
    return (uint32_t)n;
}

static void list_chunks(struct rlhf__ship *s) {
    const struct rlhf__model *m = s->model;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const int64_t all = rlhf__param_count(&m->params[i]);
        if (!is_sent(m, &m->params[i])) continue;
        for (int64_t at = 0; at < all; at += RLHF__PARAM_CHUNK) {
            const int64_t left = all - at;
            const uint32_t n = (uint32_t)(left < RLHF__PARAM_CHUNK ? left : RLHF__PARAM_CHUNK);
            s->chunk[s->n++] = (struct chunk){i, n, at};
        }
    }
}

void rlhf__ship_describe(const struct rlhf__ship *s, struct rlhf__buf *out) {
    for (uint32_t i = 0; i < s->n; i++)
        if (s->chunk[i].at == 0)
            rlhf__buf_printf(out, "%s %lld\n", s->model->params[s->chunk[i].param].name,
                             (long long)rlhf__param_count(&s->model->params[s->chunk[i].param]));
}

// ---- life ----

rlhf_status rlhf__ship_open(const struct rlhf__split *split, struct rlhf__model *m,
                            struct rlhf__ship **out, struct rlhf__error *err) {
    const size_t ranks = (size_t)split->all->ranks;
    struct rlhf__ship *s = *out = calloc(1, sizeof *s);
    if (!s) return RLHF__NOMEM(err, "out of memory for sending weights");
    s->split = split;
    s->model = m;
    s->acts = rlhf__split_acts(split);
    s->learners = (uint32_t)rlhf__split_learners(split);
    s->chunk = calloc((size_t)count_chunks(m) + 1, sizeof *s->chunk);
    s->out = calloc(2 * ranks, sizeof *s->out);
    s->in = s->out ? s->out + ranks : NULL;
    int ok = s->chunk && s->out;
    for (int i = 0; i < DEPTH; i++) {
        s->buf[i] = calloc((s->acts ? s->learners : 1) * (size_t)RLHF__PARAM_CHUNK, sizeof(float));
        ok = ok && s->buf[i];
    }
    if (ok) {
        list_chunks(s);
        return RLHF_OK;
    }
    rlhf__ship_close(s);
    *out = NULL;
    return RLHF__NOMEM(err, "out of memory for sending weights");
}

void rlhf__ship_close(struct rlhf__ship *s) {
    if (!s) return;
    for (int i = 0; i < DEPTH; i++)
        free(s->buf[i]);
    free(s->chunk);
    free(s->out);
    free(s);
}

// ---- sending ----

// Move a chunk between its parameter and host memory. *table keeps the first failure of the compute
// table.
static void move(const struct rlhf__ship *s, const struct chunk *c, float *host, rlhf_status *table,
                 struct rlhf__error *err) {
    const struct rlhf__model *m = s->model;
    const rlhf_compute *t = m->compute;
    const rlhf_param *p = &m->params[c->param];
    const rlhf_dev at = rlhf_dev_at(p->value, (uint64_t)c->at * sizeof *host);
    if (*table != RLHF_OK) return;
    const rlhf_status st = s->acts ? t->upload(t->ctx, at, host, c->n * sizeof *host)
                                   : t->download(t->ctx, host, at, c->n * sizeof *host);
    if (st != RLHF_OK) *table = rlhf__compute_fail(rlhf__model_kernels(m), st, p->name, err);
}

// Each exchange moves one chunk of every learner.
static void begin(struct rlhf__ship *s, uint32_t first, uint32_t slot, rlhf_status *table,
                  struct rlhf__error *err) {
    const struct rlhf__team *team = s->split->all;
    const uint32_t own = first + (uint32_t)team->rank;
    memset(s->out, 0, 2 * (size_t)team->ranks * sizeof *s->out);
    for (uint32_t k = 0; s->acts && k < s->learners && first + k < s->n; k++)
        s->in[k] = (rlhf_block){s->buf[slot] + (size_t)k * RLHF__PARAM_CHUNK,
                                s->chunk[first + k].n * sizeof(float)};
    if (s->acts || own >= s->n) return;
    move(s, &s->chunk[own], s->buf[slot], table, err);
    for (int32_t k = (int32_t)s->learners; k < team->ranks; k++)
        s->out[k] = (rlhf_block){s->buf[slot], s->chunk[own].n * sizeof(float)};
}

static void end(struct rlhf__ship *s, uint32_t first, uint32_t slot, rlhf_status *table,
                struct rlhf__error *err) {
    for (uint32_t k = 0; s->acts && k < s->learners && first + k < s->n; k++)
        move(s, &s->chunk[first + k], s->buf[slot] + (size_t)k * RLHF__PARAM_CHUNK, table, err);
}

rlhf_status rlhf__ship_weights(struct rlhf__ship *s, struct rlhf__error *err) {
    const uint32_t step = s->learners;
    struct rlhf__team *team = s->split->all;
    uint64_t begun = 0, ended = 0;
    rlhf_status table = RLHF_OK;
    while (ended * step < s->n) {
        while (begun * step < s->n && begun < ended + DEPTH) {
            const uint32_t slot = (uint32_t)(begun % DEPTH);
            begin(s, (uint32_t)(begun++ * step), slot, &table, err);
            RLHF_TRY(rlhf__team_exchange(team, s->out, s->in, &s->ticket[slot], err));
        }
        const uint32_t slot = (uint32_t)(ended % DEPTH);
        RLHF_TRY(rlhf__team_wait(team, s->ticket[slot], err));
        end(s, (uint32_t)(ended++ * step), slot, &table, err);
    }
    return table == RLHF_OK && s->acts ? rlhf__model_refresh(s->model, err) : table;
}
