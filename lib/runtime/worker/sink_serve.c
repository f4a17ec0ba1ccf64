// sink_serve.c: see sink_serve.h. sink_calls.c writes what this file reads.
#include "worker/sink_serve.h"

#include "plugin/growth.h"

#include <stdlib.h>
#include <string.h>

// What a call was given, which is freed after it.
struct given {
    const struct rlhf__plugin *plugin;
    struct rlhf__wire *in;
    void **all; // [n]
    size_t n, cap;
    int32_t no_memory;
};

// Returns zeroed memory for n items. If memory runs out, returns NULL and sets g->no_memory.
static void *room(struct given *g, size_t n, size_t size) {
    if (g->n == g->cap) {
        const size_t cap = g->cap ? 2 * g->cap : 64;
        void **all = realloc(g->all, cap * sizeof *all);
        if (!all) {
            g->no_memory = 1;
            return NULL;
        }
        g->all = all;
        g->cap = cap;
    }
    void *p = calloc(n + 1, size);
    if (!p) g->no_memory = 1;
    if (p) g->all[g->n++] = p;
    return p;
}

static void given_finish(struct given *g) {
    for (size_t i = 0; i < g->n; i++)
        free(g->all[i]);
    free(g->all);
}

// ---- reading ----

static const char *get_text(struct given *g) {
    const rlhf_str s = rlhf__wire_get_text(g->in);
    char *text = room(g, (size_t)s.len, 1);
    if (text && s.len) memcpy(text, s.ptr, (size_t)s.len);
    return text;
}

static const char *get_maybe(struct given *g) {
    const uint32_t given = rlhf__wire_get_u32(g->in);
    const char *text = get_text(g);
    return given ? text : NULL;
}

static const char *const *get_texts(struct given *g, uint32_t n) {
    const char **list = g->in->bad ? NULL : room(g, n, sizeof *list);
    for (uint32_t i = 0; list && i < n && !g->no_memory; i++)
        list[i] = get_text(g);
    return list;
}

// Read an array of items of `size` bytes, and set *n to their number.
static const void *get_items(struct given *g, size_t size, uint32_t *n) {
    size_t count = 0;
    const void *from = rlhf__wire_get_items(g->in, size, &count);
    void *items = room(g, count, size);
    *n = (uint32_t)count;
    if (items && count) memcpy(items, from, count * size);
    return items;
}

static void get_run(struct given *g, rlhf_sink_run *r) {
    r->resumed = rlhf__wire_get_u32(g->in);
    r->phases_done = (int64_t)rlhf__wire_get_u64(g->in);
    r->phases = (int64_t)rlhf__wire_get_u64(g->in);
    r->dir = get_text(g);
    r->own_dir = get_text(g);
    r->name = get_text(g);
    r->config = get_text(g);
}

static const rlhf_spread *get_spread(struct given *g) {
    uint32_t n;
    rlhf_spread *s = room(g, 1, sizeof *s);
    if (!s) return NULL;
    s->name = get_text(g);
    s->numbers = (int64_t)rlhf__wire_get_u64(g->in);
    s->mean = rlhf__wire_get_f64(g->in);
    s->value = get_items(g, sizeof *s->value, &s->n);
    if (rlhf__wire_get_u32(g->in)) s->count = get_items(g, sizeof *s->count, &n);
    return s;
}

static void get_samples(struct given *g, rlhf_sink_phase *p) {
    uint32_t n;
    p->score = get_items(g, sizeof *p->score, &p->n_samples);
    p->ref_logp = get_items(g, sizeof *p->ref_logp, &n);
    p->held_out = get_items(g, 1, &n);
    rlhf_str *prompt = room(g, p->n_samples, sizeof *prompt);
    rlhf_str *response = room(g, p->n_samples, sizeof *response);
    for (uint32_t i = 0; prompt && response && i < p->n_samples; i++) {
        prompt[i] = rlhf__wire_get_text(g->in);
        response[i] = rlhf__wire_get_text(g->in);
    }
    p->prompt = prompt;
    p->response = response;
}

static void get_phase(struct given *g, rlhf_sink_phase *p) {
    p->flags = rlhf__wire_get_u32(g->in);
    p->phases_done = (int64_t)rlhf__wire_get_u64(g->in);
    p->elapsed = rlhf__wire_get_f64(g->in);
    p->checkpoint = get_maybe(g);
    p->value = get_items(g, sizeof *p->value, &p->n_metrics);
    p->name = get_texts(g, p->n_metrics);
    get_samples(g, p);
    p->n_spreads = rlhf__wire_get_u32(g->in);
    const rlhf_spread **spread = g->in->bad ? NULL : room(g, p->n_spreads, sizeof *spread);
    for (uint32_t i = 0; spread && i < p->n_spreads && !g->no_memory; i++)
        spread[i] = get_spread(g);
    p->spread = spread;
    p->n_warnings = rlhf__wire_get_u32(g->in);
    p->warning_id = get_texts(g, p->n_warnings);
    p->warning = get_texts(g, p->n_warnings);
}

static void get_end(struct given *g, rlhf_sink_end *e) {
    e->how = (int32_t)rlhf__wire_get_u32(g->in);
    e->phases_done = (int64_t)rlhf__wire_get_u64(g->in);
    e->why = get_text(g);
    e->last_checkpoint = get_maybe(g);
    e->best_checkpoint = get_maybe(g);
    e->verdict = get_text(g);
    e->verdict_kind = (int32_t)rlhf__wire_get_u32(g->in);
    e->n_findings = rlhf__wire_get_u32(g->in);
    e->finding_id = get_texts(g, e->n_findings);
    e->finding = get_texts(g, e->n_findings);
}

// ---- calls ----

static rlhf_status check(const struct given *g, struct rlhf__error *why) {
    if (g->no_memory) return rlhf__fail(why, RLHF_E_NOMEM, "out of memory");
    if (g->in->bad || g->in->at != g->in->end)
        return rlhf__fail(why, RLHF_E_INTERNAL, "the worker cannot read the call");
    return RLHF_OK;
}

// Check what was lent to the sink in a call that returned `st`.
static rlhf_status kept(struct rlhf__tails *tails, rlhf_status st, struct rlhf__error *why) {
    char text[192];
    const char *fault = rlhf__tails_end(tails, text, sizeof text);
    return fault ? rlhf__fail(why, RLHF_E_INTERNAL, "%s", fault) : st;
}

static rlhf_status begin(void *self, struct given *g, int64_t *from_phase,
                         struct rlhf__error *why) {
    const uint32_t minor = g->plugin->abi_minor;
    rlhf_sink_run run = {0};
    struct rlhf__filled filled;
    rlhf_sink_answer *answer = RLHF__FILLED(rlhf_sink_answer, &filled, minor), known = {0};
    struct rlhf__tails tails = {.n = 0};
    get_run(g, &run);
    RLHF_TRY(check(g, why));
    RLHF__LEND(rlhf_sink_run, &run, minor, &tails);
    const rlhf_status st = kept(&tails, g->plugin->ops.sink.begin(self, &run, answer), why);
    if (st != RLHF_OK) return st; // the host refuses a positive status
    RLHF_TRY(rlhf__filled_end(&filled, &known, why));
    *from_phase = known.from_phase;
    return RLHF_OK;
}

static rlhf_status phase(void *self, struct given *g, struct rlhf__error *why) {
    rlhf_sink_phase p = {0};
    struct rlhf__tails tails = {.n = 0};
    get_phase(g, &p);
    RLHF_TRY(check(g, why));
    RLHF__LEND(rlhf_sink_phase, &p, g->plugin->abi_minor, &tails);
    rlhf__spreads_lend(&p, g->plugin->abi_minor, &tails);
    return kept(&tails, g->plugin->ops.sink.phase(self, &p), why);
}

static rlhf_status end(void *self, struct given *g, struct rlhf__error *why) {
    rlhf_sink_end e = {0};
    struct rlhf__tails tails = {.n = 0};
    get_end(g, &e);
    RLHF_TRY(check(g, why));
    RLHF__LEND(rlhf_sink_end, &e, g->plugin->abi_minor, &tails);
    return g->plugin->ops.sink.end ? kept(&tails, g->plugin->ops.sink.end(self, &e), why) : RLHF_OK;
}

rlhf_status rlhf__sink_serve(const struct rlhf__plugin *plugin, void *self, struct rlhf__wire *in,
                             int64_t *from_phase, struct rlhf__error *why) {
    struct given g = {.plugin = plugin, .in = in};
    const uint32_t function = rlhf__wire_get_u32(in);
    const rlhf_status st = function == RLHF__SUNK_BEGIN   ? begin(self, &g, from_phase, why)
                           : function == RLHF__SUNK_PHASE ? phase(self, &g, why)
                                                          : end(self, &g, why);
    given_finish(&g);
    return st;
}
