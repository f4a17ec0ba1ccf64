// sink_calls.c: see sink_calls.h. sink_serve.c reads what this file writes.
#include "worker/sink_calls.h"

#include "worker/worker_instance.h"

#include <stdlib.h>
#include <string.h>

static void put_maybe(struct rlhf__buf *to, const char *text) {
    rlhf__wire_u32(to, text != NULL);
    rlhf__wire_puts(to, text);
}

static void put_texts(struct rlhf__buf *to, uint32_t n, const char *const *text) {
    for (uint32_t i = 0; i < n; i++)
        rlhf__wire_puts(to, text[i]);
}

static void put_run(struct rlhf__buf *to, const rlhf_sink_run *r) {
    rlhf__wire_u32(to, r->resumed);
    rlhf__wire_u64(to, (uint64_t)r->phases_done);
    rlhf__wire_u64(to, (uint64_t)r->phases);
    rlhf__wire_puts(to, r->dir);
    rlhf__wire_puts(to, r->own_dir);
    rlhf__wire_puts(to, r->name);
    rlhf__wire_puts(to, r->config);
}

static void put_spread(struct rlhf__buf *to, const rlhf_spread *s) {
    rlhf__wire_puts(to, s->name);
    rlhf__wire_u64(to, (uint64_t)s->numbers);
    rlhf__wire_f64(to, s->mean);
    rlhf__wire_text(to, s->value, s->n * sizeof *s->value);
    rlhf__wire_u32(to, s->count != NULL);
    if (s->count) rlhf__wire_text(to, s->count, s->n * sizeof *s->count);
}

static void put_phase(struct rlhf__buf *to, const rlhf_sink_phase *p) {
    rlhf__wire_u32(to, p->flags);
    rlhf__wire_u64(to, (uint64_t)p->phases_done);
    rlhf__wire_f64(to, p->elapsed);
    put_maybe(to, p->checkpoint);
    rlhf__wire_text(to, p->value, p->n_metrics * sizeof *p->value);
    put_texts(to, p->n_metrics, p->name);
    rlhf__wire_text(to, p->score, p->n_samples * sizeof *p->score);
    rlhf__wire_text(to, p->ref_logp, p->n_samples * sizeof *p->ref_logp);
    rlhf__wire_text(to, p->held_out, p->n_samples);
    for (uint32_t i = 0; i < p->n_samples; i++) {
        rlhf__wire_text(to, p->prompt[i].ptr, p->prompt[i].len);
        rlhf__wire_text(to, p->response[i].ptr, p->response[i].len);
    }
    rlhf__wire_u32(to, p->n_spreads);
    for (uint32_t i = 0; i < p->n_spreads; i++)
        put_spread(to, p->spread[i]);
    rlhf__wire_u32(to, p->n_warnings);
    put_texts(to, p->n_warnings, p->warning_id);
    put_texts(to, p->n_warnings, p->warning);
}

static void put_end(struct rlhf__buf *to, const rlhf_sink_end *e) {
    rlhf__wire_u32(to, (uint32_t)e->how);
    rlhf__wire_u64(to, (uint64_t)e->phases_done);
    rlhf__wire_puts(to, e->why);
    put_maybe(to, e->last_checkpoint);
    put_maybe(to, e->best_checkpoint);
    rlhf__wire_puts(to, e->verdict);
    rlhf__wire_u32(to, (uint32_t)e->verdict_kind);
    rlhf__wire_u32(to, e->n_findings);
    put_texts(to, e->n_findings, e->finding_id);
    put_texts(to, e->n_findings, e->finding);
}

// ---- calls ----

static void start_frame(struct rlhf__asked *a, uint32_t function) {
    rlhf__wire_begin(&a->frame, RLHF__ASK_SINK);
    rlhf__wire_u32(&a->frame, function);
}

// Only now it is known where the sink may write. The first worker, which may write nowhere, ends.
static rlhf_status begin(void *self, const rlhf_sink_run *run, rlhf_sink_answer *answer) {
    struct rlhf__pool *t = self;
    struct rlhf__asked a = {.done = 0};
    rlhf__pool_stop(t, &t->hand[0]);
    free(t->writes);
    t->writes = strdup(run->own_dir);
    if (!t->writes) return RLHF_E_NOMEM;
    RLHF_TRY(rlhf__pool_ready(t, &t->hand[0]));
    start_frame(&a, RLHF__SUNK_BEGIN);
    put_run(&a.frame, run);
    const rlhf_status st = rlhf__pool_ask(t, &t->hand[0], &a);
    if (st == RLHF_OK) answer->from_phase = (int64_t)rlhf__wire_get_u64(&a.result);
    rlhf__asked_finish(&a);
    return st;
}

static rlhf_status phase(void *self, const rlhf_sink_phase *in) {
    struct rlhf__pool *t = self;
    struct rlhf__asked a = {.done = 0};
    start_frame(&a, RLHF__SUNK_PHASE);
    put_phase(&a.frame, in);
    const rlhf_status st = rlhf__pool_ask(t, &t->hand[0], &a);
    rlhf__asked_finish(&a);
    return st;
}

static rlhf_status end(void *self, const rlhf_sink_end *in) {
    struct rlhf__pool *t = self;
    struct rlhf__asked a = {.done = 0};
    const struct rlhf__worker *w = t->hand[0].worker;
    if (!w || w->failed.code) return RLHF_OK; // its failure is known
    start_frame(&a, RLHF__SUNK_END);
    put_end(&a.frame, in);
    const rlhf_status st = rlhf__pool_ask(t, &t->hand[0], &a);
    rlhf__asked_finish(&a);
    return st;
}

void rlhf__sink_calls_ops(const struct rlhf__description *d, rlhf_sink_ops *out) {
    *out =
        (rlhf_sink_ops){.size = sizeof *out, .flags = d->ops_flags, .begin = begin, .phase = phase};
    if (d->has & RLHF__DESCRIBED_END) out->end = end;
}
