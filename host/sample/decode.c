// decode.c: see decode.h.
#include "sample/decode.h"

#include <stdlib.h>
#include <string.h>

// The sequence that a slot decodes.
struct row {
    int64_t sequence; // -1 = free
    int32_t prefix;   // index of the shared prompt; -1 = the prompt is in the row's own cache
    int32_t own;      // prompt tokens in the row's own cache
};

// A KV cache that sequences [first, end) share. It holds their prompt without its last token.
struct prefix {
    uint32_t first, end;
    uint32_t users; // running rows that use it
    uint32_t used;  // 0 = free
};

// The state of decoding, with the rows of one step: row r of a step is in slot[r]; if silent[r], it
// only fills a shared prompt.
struct decoder {
    const struct rlhf__gen_request *q;
    struct rlhf__gen_result *out;
    uint32_t waiting;      // next sequence to start
    struct row *row;       // [slots]
    struct prefix *shared; // [prefix_slots]; in the cache they come after the slots
    int32_t *slot, *start, *offset, *next, *ids, *prefix;
    uint8_t *silent;
    uint64_t *counter;
    float *logp;
    uint32_t *support; // [rows, words], NULL: not stored
    size_t words;
    uint32_t rows;
    size_t ids_cap;
    int64_t made; // tokens sampled; a finished sequence counts as max_new
};

void rlhf__gen_result_finish(struct rlhf__gen_result *r) {
    free(r->ids);
    free(r->logp);
    free(r->len);
    free(r->stopped);
    free(r->support);
    memset(r, 0, sizeof *r);
}

// The OS allocates a page of the supports when it is first written, so short responses use few
// pages.
static rlhf_status result_init(struct rlhf__gen_result *r, uint32_t n, int32_t max_new,
                               size_t words, struct rlhf__error *err) {
    size_t cells = (size_t)n * (size_t)max_new;
    memset(r, 0, sizeof *r);
    r->stride = max_new;
    r->ids = calloc(cells ? cells : 1, sizeof *r->ids);
    r->logp = calloc(cells ? cells : 1, sizeof *r->logp);
    r->len = calloc(n ? n : 1, sizeof *r->len);
    r->stopped = calloc(n ? n : 1, 1);
    if (words) r->support = calloc(cells ? cells : 1, words * sizeof *r->support);
    if (r->ids && r->logp && r->len && r->stopped && (r->support || !words)) return RLHF_OK;
    rlhf__gen_result_finish(r);
    return RLHF__NOMEM(err, "out of memory for %u responses of %d tokens", n, max_new);
}

uint32_t rlhf__prefix_slots(const struct rlhf__model *m, uint32_t slots, uint32_t group) {
    if (group < 2 || !(m->info.caps & RLHF_CAP_PREFIX)) return 0;
    return (slots + group - 1) / group + 1;
}

static void decoder_finish(struct decoder *d) {
    free(d->row);
    free(d->shared);
    free(d->slot);
    free(d->start);
    free(d->offset);
    free(d->next);
    free(d->ids);
    free(d->prefix);
    free(d->silent);
    free(d->counter);
    free(d->logp);
    free(d->support);
}

// Allocate for the largest step: a prefill of the longest prompt in every slot and every shared
// cache.
static rlhf_status decoder_init(struct decoder *d, const struct rlhf__gen_request *q, size_t words,
                                struct rlhf__gen_result *out, struct rlhf__error *err) {
    memset(d, 0, sizeof *d);
    d->q = q;
    d->out = out;
    d->words = words;
    size_t slots = q->slots, rows = slots + q->prefix_slots, longest = 1;
    for (uint32_t i = 0; i < q->n; i++)
        if ((size_t)q->prompt_len[i] > longest) longest = (size_t)q->prompt_len[i];
    d->ids_cap = rows * longest;
    d->row = calloc(slots, sizeof *d->row);
    d->shared = calloc(q->prefix_slots ? q->prefix_slots : 1, sizeof *d->shared);
    d->slot = calloc(rows, sizeof *d->slot);
    d->start = calloc(rows, sizeof *d->start);
    d->offset = calloc(rows + 1, sizeof *d->offset);
    d->next = calloc(rows, sizeof *d->next);
    d->ids = calloc(d->ids_cap, sizeof *d->ids);
    d->prefix = calloc(rows, sizeof *d->prefix);
    d->silent = calloc(rows, sizeof *d->silent);
    d->counter = calloc(rows, sizeof *d->counter);
    d->logp = calloc(rows, sizeof *d->logp);
    if (d->words) d->support = calloc(rows, d->words * sizeof *d->support);
    if (!d->row || !d->shared || !d->slot || !d->start || !d->offset || !d->next || !d->ids ||
        !d->prefix || !d->silent || !d->counter || !d->logp || (d->words && !d->support))
        return RLHF__NOMEM(err, "out of memory for %zu slots", slots);
    for (size_t s = 0; s < slots; s++)
        d->row[s].sequence = -1;
    return RLHF_OK;
}

// ---- one step ----

static void add_row(struct decoder *d, uint32_t slot, int32_t start, const int32_t *ids, int32_t n,
                    int32_t prefix) {
    int32_t from = d->offset[d->rows];
    memcpy(d->ids + from, ids, (size_t)n * sizeof *ids);
    d->slot[d->rows] = (int32_t)slot;
    d->start[d->rows] = start;
    d->prefix[d->rows] = prefix < 0 ? -1 : (int32_t)d->q->slots + prefix;
    d->silent[d->rows] = 0;
    d->counter[d->rows] = 0;
    d->offset[++d->rows] = from + n;
}

// Returns the end of the adjacent sequences, from i on, that have the same prompt as i.
static uint32_t same_prompt(const struct rlhf__gen_request *q, uint32_t i) {
    uint32_t end = i + 1;
    while (end < q->n && q->prompt[end] == q->prompt[i] && q->prompt_len[end] == q->prompt_len[i])
        end++;
    return end;
}

// Returns the index of the shared prompt of sequence i, which starts now, or -1 for none. If its
// neighbors already share a prompt, that one is used. Otherwise, if more sequences with this prompt
// follow and a cache is free, a silent row fills the cache in this step.
static int32_t share(struct decoder *d, uint32_t i) {
    const struct rlhf__gen_request *q = d->q;
    int32_t free_one = -1;
    for (uint32_t k = 0; k < q->prefix_slots; k++) {
        const struct prefix *p = &d->shared[k];
        if (p->used && p->first <= i && i < p->end) return (int32_t)k;
        if (!p->used && free_one < 0) free_one = (int32_t)k;
    }
    if (free_one < 0 || q->prompt_len[i] < 2) return -1;
    uint32_t end = same_prompt(q, i);
    if (end - i < 2) return -1;
    d->shared[free_one] = (struct prefix){.first = i, .end = end, .used = 1};
    add_row(d, q->slots + (uint32_t)free_one, 0, q->prompt[i], q->prompt_len[i] - 1, -1);
    d->silent[d->rows - 1] = 1;
    return free_one;
}

static void begin(struct decoder *d, uint32_t s) {
    const struct rlhf__gen_request *q = d->q;
    uint32_t i = d->waiting++;
    int32_t k = share(d, i), cut = k < 0 ? 0 : q->prompt_len[i] - 1;
    if (k >= 0) d->shared[k].users++;
    d->row[s] = (struct row){.sequence = i, .prefix = k, .own = q->prompt_len[i] - cut};
    add_row(d, s, 0, q->prompt[i] + cut, d->row[s].own, k);
}

// The rows that take part in a step: running ones, with one token each, and those that start now.
enum rows { GOING_ON = 1, STARTING = 2 };

// Set up the rows of a step. Every occupied slot has a row; a free slot takes the next waiting
// prompt.
static void lay_out(struct decoder *d, int which) {
    const struct rlhf__gen_request *q = d->q;
    d->rows = 0;
    for (uint32_t s = 0; s < q->slots; s++) {
        struct row *w = &d->row[s];
        if (w->sequence < 0 && d->waiting == q->n) continue;
        if (!(which & (w->sequence < 0 ? STARTING : GOING_ON))) continue;
        if (w->sequence < 0) {
            begin(d, s);
        } else {
            size_t i = (size_t)w->sequence;
            int32_t made = d->out->len[i];
            const int32_t *last = d->out->ids + i * (size_t)q->max_new + (size_t)made - 1;
            add_row(d, s, w->own + made - 1, last, 1, w->prefix);
        }
        size_t i = (size_t)w->sequence;
        d->counter[d->rows - 1] = (q->first + i) * 65536 + (uint64_t)d->out->len[i];
    }
}

// Free the slot of a finished sequence. The last sequence that shares a prompt also frees its
// cache.
static void leave(struct decoder *d, struct row *w) {
    if (w->prefix >= 0) {
        struct prefix *p = &d->shared[w->prefix];
        if (--p->users == 0 && p->end <= d->waiting) p->used = 0;
    }
    w->sequence = -1;
}

// Set stopped[i] if the token that was just sampled ends sequence i.
static rlhf_status ends(struct decoder *d, size_t i, struct rlhf__error *err) {
    const struct rlhf__gen_request *q = d->q;
    const int32_t *ids = d->out->ids + i * (size_t)q->max_new;
    int32_t n = d->out->len[i];
    int stops = rlhf__ends_has(q->ends, ids[n - 1]);
    if (!stops && q->rules) RLHF_TRY(rlhf__response_stops(q->rules, ids, n, &stops, err));
    d->out->stopped[i] = (uint8_t)stops;
    return RLHF_OK;
}

// Append the tokens that a step has sampled.
static rlhf_status take(struct decoder *d, struct rlhf__error *err) {
    const struct rlhf__gen_request *q = d->q;
    struct rlhf__gen_result *out = d->out;
    out->tokens += d->offset[d->rows];
    for (uint32_t r = 0; r < d->rows; r++) {
        if (d->silent[r]) continue;
        struct row *w = &d->row[d->slot[r]];
        size_t i = (size_t)w->sequence, at = i * (size_t)q->max_new + (size_t)out->len[i];
        out->ids[at] = d->next[r];
        out->logp[at] = d->logp[r];
        if (d->words)
            memcpy(out->support + at * d->words, d->support + r * d->words,
                   d->words * sizeof *d->support);
        out->len[i]++;
        d->made++;
        RLHF_TRY(ends(d, i, err));
        if (!out->stopped[i] && out->len[i] < q->max_new) continue;
        d->made += q->max_new - out->len[i];
        leave(d, w);
        if (q->ended) q->ended(q->ended_ctx, (uint32_t)i);
    }
    if (q->watch) rlhf__watch_seen(q->watch, q->doing, d->made / q->max_new, q->n);
    return RLHF_OK;
}

static rlhf_status step(struct decoder *d, const struct rlhf__model *m, rlhf_gen *cache, int which,
                        struct rlhf__error *err) {
    const struct rlhf__gen_request *q = d->q;
    lay_out(d, which);
    if (d->rows == 0) return RLHF_OK;
    const rlhf_gen_step s = {.size = sizeof s,
                             .n = d->rows,
                             .slot = d->slot,
                             .start = d->start,
                             .ids = d->ids,
                             .offset = d->offset,
                             .dist = q->dist,
                             .logp_dist = q->logp_dist,
                             .seed = q->seed,
                             .stream = q->stream,
                             .counter = d->counter,
                             .next = d->next,
                             .logp = d->logp,
                             .prefix = q->prefix_slots ? d->prefix : NULL,
                             .silent = q->prefix_slots ? d->silent : NULL,
                             .support = d->support};
    const rlhf_status st = rlhf__model_gen_step(m, cache, &s, err);
    return st == RLHF_OK ? take(d, err) : st;
}

// On a device that records calls, the running rows have steps of their own. Those steps are all
// alike, so the device can replay the recorded calls.
static rlhf_status run(struct decoder *d, const struct rlhf__model *m, rlhf_gen *cache,
                       struct rlhf__error *err) {
    const struct rlhf__gen_request *q = d->q;
    const int apart = m->compute && RLHF_COMPUTE_HAS(m->compute, record);
    for (;;) {
        // set by another thread or by a signal handler
        if (q->cancelled && __atomic_load_n(q->cancelled, __ATOMIC_RELAXED))
            return rlhf__fail(err, RLHF_E_CANCELLED, "stopped while generating");
        RLHF_TRY(step(d, m, cache, apart ? GOING_ON : GOING_ON | STARTING, err));
        uint32_t rows = d->rows;
        if (apart) RLHF_TRY(step(d, m, cache, STARTING, err));
        if (rows + (apart ? d->rows : 0) == 0) return RLHF_OK;
    }
}

rlhf_status rlhf__generate(const struct rlhf__model *m, rlhf_gen *cache,
                           const struct rlhf__gen_request *q, struct rlhf__gen_result *out,
                           struct rlhf__error *err) {
    size_t words = q->keep_support ? rlhf_support_words(m->info.n_vocab) : 0;
    rlhf_status st = result_init(out, q->n, q->max_new, words, err);
    if (st != RLHF_OK) return st;
    struct decoder d;
    st = decoder_init(&d, q, words, out, err);
    if (st == RLHF_OK) st = run(&d, m, cache, err);
    decoder_finish(&d);
    if (st != RLHF_OK) rlhf__gen_result_finish(out);
    return st;
}
