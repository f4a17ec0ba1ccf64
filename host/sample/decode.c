// decode.c: see decode.h.
#include "sample/decode.h"

#include "supervise/tail.h"

#include <stdlib.h>
#include <string.h>

// The sequence that a slot decodes.
struct row {
    int64_t sequence; // -1 = free
    int32_t prefix;   // index of the shared prompt; -1 = the prompt is in the row's own cache
    int32_t own;      // prompt tokens in the row's own cache
    int32_t fed;      // tokens after the prompt that the cache holds; -1 = the prompt is not in it
    int32_t drawn;    // tokens drawn so far, in all turns
    int32_t turn, from; // the current turn, and its first token after the prompt
    int32_t waits;      // 1: takes part in no step until turns->next says what follows
};

// A KV cache that sequences [first, end) share. It holds their prompt without its last token.
struct prefix {
    uint32_t first, end;
    uint32_t users; // running rows that use it
    uint32_t used;  // 0 = free
};

// The state of decoding, with the rows of one step. Row r of a step belongs to slot[r]. If
// silent[r] is set, the row samples nothing and only fills the cache of a shared prompt.
struct decoder {
    const struct rlhf__gen_request *q;
    struct rlhf__gen_result *out;
    uint32_t waiting;      // next sequence to start
    uint32_t running;      // sequences that have a slot
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
    int64_t over; // finished sequences
};

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

// Returns the maximum number of tokens that a row of a step can have.
static size_t longest_row(const struct rlhf__gen_request *q) {
    size_t longest = 1;
    if (q->turns) return (size_t)q->turns->longest;
    for (uint32_t i = 0; i < q->n; i++)
        if ((size_t)q->prompt_len[i] > longest) longest = (size_t)q->prompt_len[i];
    return longest;
}

// Allocate for the largest step: a prefill of the longest prompt in every slot and every shared
// cache.
static rlhf_status decoder_init(struct decoder *d, const struct rlhf__gen_request *q, size_t words,
                                struct rlhf__gen_result *out, struct rlhf__error *err) {
    memset(d, 0, sizeof *d);
    d->q = q;
    d->out = out;
    d->words = words;
    size_t slots = q->slots, rows = slots + q->prefix_slots;
    d->ids_cap = rows * longest_row(q);
    d->row = calloc(slots, sizeof *d->row);
    d->shared = calloc(q->prefix_slots ? q->prefix_slots : 1, sizeof *d->shared);
    d->slot = calloc(rows, sizeof *d->slot);
    d->start = calloc(rows, sizeof *d->start);
    d->offset = calloc(rows + 1, sizeof *d->offset);
    d->next = rlhf__tail_alloc(rows, sizeof *d->next);
    d->ids = calloc(d->ids_cap, sizeof *d->ids);
    d->prefix = calloc(rows, sizeof *d->prefix);
    d->silent = calloc(rows, sizeof *d->silent);
    d->counter = calloc(rows, sizeof *d->counter);
    d->logp = rlhf__tail_alloc(rows, sizeof *d->logp);
    if (d->words) d->support = rlhf__tail_alloc(rows, d->words * sizeof *d->support);
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

// Returns the end of the range of adjacent sequences that starts at i and has the same prompt.
static uint32_t same_prompt(const struct rlhf__gen_request *q, uint32_t i) {
    uint32_t end = i + 1;
    while (end < q->n && q->prompt[end] == q->prompt[i] && q->prompt_len[end] == q->prompt_len[i])
        end++;
    return end;
}

// Called when sequence i starts. Returns the index of the shared cache that sequence i uses, or -1
// if it uses none. If an earlier sequence has a shared cache for the same prompt, sequence i uses
// that cache. Otherwise, if more sequences with this prompt follow and a cache is free, a silent
// row fills that cache in this step.
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
    struct row *w = &d->row[s];
    const uint32_t i = (uint32_t)w->sequence;
    int32_t k = share(d, i), cut = k < 0 ? 0 : q->prompt_len[i] - 1;
    if (k >= 0) d->shared[k].users++;
    w->prefix = k;
    w->own = q->prompt_len[i] - cut;
    w->fed = 0;
    add_row(d, s, 0, q->prompt[i] + cut, w->own, k);
}

// Append to the step the tokens of a sequence that are not in its cache yet: the last token that it
// has drawn, and the tokens that it has read after that one. The prompt is already in the cache.
static void go_on(struct decoder *d, uint32_t s) {
    struct row *w = &d->row[s];
    const size_t i = (size_t)w->sequence;
    const int32_t len = d->out->len[i];
    add_row(d, s, w->own + w->fed, d->out->ids + i * (size_t)d->out->stride + w->fed, len - w->fed,
            w->prefix);
    w->fed = len;
}

// Selects the rows that take part in a step. GOING_ON: rows that feed the model one token, drawn in
// the last step. STARTING: rows that feed it several tokens, namely their prompt or tokens that
// were not drawn.
enum rows { GOING_ON = 1, STARTING = 2 };

static int kind_of(const struct decoder *d, const struct row *w) {
    return w->fed < 0 || d->out->len[w->sequence] - w->fed > 1 ? STARTING : GOING_ON;
}

// Set up the rows of a step: one for each occupied slot whose sequence does not wait and whose kind
// is in `which` (enum rows).
static void lay_out(struct decoder *d, int which) {
    const struct rlhf__gen_request *q = d->q;
    d->rows = 0;
    for (uint32_t s = 0; s < q->slots; s++) {
        struct row *w = &d->row[s];
        if (w->sequence < 0 || w->waits || !(which & kind_of(d, w))) continue;
        if (w->fed < 0)
            begin(d, s);
        else
            go_on(d, s);
        d->counter[d->rows - 1] = (q->first + (uint64_t)w->sequence) * 65536 + (uint64_t)w->drawn;
    }
}

// Free the slot of a finished sequence. The last sequence that shares a prompt also frees the
// prompt's cache.
static void leave(struct decoder *d, struct row *w) {
    if (w->prefix >= 0) {
        struct prefix *p = &d->shared[w->prefix];
        if (--p->users == 0 && p->end <= d->waiting) p->used = 0;
    }
    w->sequence = -1;
    d->running--;
}

// End the sequence of w.
static void end(struct decoder *d, struct row *w) {
    const struct rlhf__gen_request *q = d->q;
    const uint32_t i = (uint32_t)w->sequence;
    if (!q->turns) d->made += q->max_new - d->out->len[i];
    d->over++;
    leave(d, w);
    if (q->ended) q->ended(q->ended_ctx, i);
}

// Set stopped[i] if the token that was just sampled ends the turn of w.
static rlhf_status ends(struct decoder *d, const struct row *w, struct rlhf__error *err) {
    const struct rlhf__gen_request *q = d->q;
    const size_t i = (size_t)w->sequence;
    const int32_t *ids = d->out->ids + i * (size_t)d->out->stride + w->from;
    int32_t n = d->out->len[i] - w->from;
    int stops = rlhf__ends_has(q->ends, ids[n - 1]);
    if (!stops && q->rules) RLHF_TRY(rlhf__response_stops(q->rules, ids, n, &stops, err));
    d->out->stopped[i] = (uint8_t)stops;
    return RLHF_OK;
}

// Returns 1 if the turn of w has reached its maximum length.
static int is_full(const struct decoder *d, const struct row *w) {
    const struct rlhf__gen_request *q = d->q;
    const int32_t len = d->out->len[w->sequence];
    if (len - w->from == q->max_new) return 1;
    return q->turns && q->prompt_len[w->sequence] + len == q->turns->longest;
}

// End the turn of w. If the request has turns, the sequence then waits until it is known what
// follows.
static rlhf_status end_turn(struct decoder *d, struct row *w, struct rlhf__error *err) {
    const struct rlhf__gen_turns *turns = d->q->turns;
    const size_t i = (size_t)w->sequence;
    if (!turns) {
        end(d, w);
        return RLHF_OK;
    }
    w->waits = 1;
    return turns->ended(turns->ctx, (uint32_t)i, d->out->ids + i * (size_t)d->out->stride + w->from,
                        d->out->len[i] - w->from, d->out->stopped[i], err);
}

// Append the token that row r of a step has sampled.
static rlhf_status take_row(struct decoder *d, uint32_t r, struct rlhf__error *err) {
    struct rlhf__gen_result *out = d->out;
    struct row *w = &d->row[d->slot[r]];
    const size_t i = (size_t)w->sequence, first = i * (size_t)out->stride;
    const size_t at = first + (size_t)out->len[i];
    out->ids[at] = d->next[r];
    out->logp[at] = d->logp[r];
    if (out->turn) out->turn[at] = w->turn;
    if (d->words)
        memcpy(out->support + (first + (size_t)w->drawn) * d->words, d->support + r * d->words,
               d->words * sizeof *d->support);
    out->len[i]++;
    w->drawn++;
    d->made++;
    RLHF_TRY(ends(d, w, err));
    return out->stopped[i] || is_full(d, w) ? end_turn(d, w, err) : RLHF_OK;
}

// Append the tokens that a step has sampled.
static rlhf_status take(struct decoder *d, struct rlhf__error *err) {
    const struct rlhf__gen_request *q = d->q;
    d->out->tokens += d->offset[d->rows];
    for (uint32_t r = 0; r < d->rows; r++)
        if (!d->silent[r]) RLHF_TRY(take_row(d, r, err));
    if (q->watch)
        rlhf__watch_seen(q->watch, q->doing, q->turns ? d->over : d->made / q->max_new, q->n);
    return RLHF_OK;
}

// ---- between steps ----

// Append the tokens that a sequence reads.
static rlhf_status read_tokens(struct decoder *d, struct row *w, const int32_t *ids, int32_t n,
                               struct rlhf__error *err) {
    struct rlhf__gen_result *out = d->out;
    const size_t i = (size_t)w->sequence, at = i * (size_t)out->stride + (size_t)out->len[i];
    if (n < 1 || d->q->prompt_len[i] + out->len[i] + n >= d->q->turns->longest)
        return rlhf__fail(err, RLHF_E_INTERNAL, "%d tokens do not fit into sequence %zu", n, i);
    memcpy(out->ids + at, ids, (size_t)n * sizeof *ids);
    for (int32_t k = 0; k < n; k++)
        out->turn[at + (size_t)k] = -1;
    out->len[i] += n;
    w->turn++;
    w->from = out->len[i];
    return RLHF_OK;
}

// Continue the sequence of w if it is known what follows its turn.
static rlhf_status follow(struct decoder *d, struct row *w, struct rlhf__error *err) {
    const struct rlhf__gen_turns *turns = d->q->turns;
    const int32_t *ids = NULL;
    int32_t n = 0;
    const int next = turns->next(turns->ctx, (uint32_t)w->sequence, &ids, &n);
    if (next == RLHF__GEN_WAIT) return RLHF_OK;
    w->waits = 0;
    if (next == RLHF__GEN_OVER)
        end(d, w);
    else if (w->fed >= 0)
        return read_tokens(d, w, ids, n, err);
    return RLHF_OK;
}

// Give the free slots to the next sequences.
static rlhf_status fill_slots(struct decoder *d, struct rlhf__error *err) {
    const struct rlhf__gen_request *q = d->q;
    for (uint32_t s = 0; s < q->slots && d->waiting < q->n; s++) {
        if (d->row[s].sequence >= 0) continue;
        const uint32_t i = d->waiting++;
        d->row[s] = (struct row){.sequence = i, .prefix = -1, .fed = -1, .waits = q->turns != NULL};
        d->running++;
        if (q->turns) RLHF_TRY(q->turns->begin(q->turns->ctx, i, err));
    }
    return RLHF_OK;
}

// Prepare the next step: give free slots to new sequences, and continue sequences whose turn has
// ended. If a sequence ends during this call, the next call gives its slot to a new sequence.
static rlhf_status prepare(struct decoder *d, int wait, struct rlhf__error *err) {
    const struct rlhf__gen_request *q = d->q;
    RLHF_TRY(fill_slots(d, err));
    if (!q->turns) return RLHF_OK;
    RLHF_TRY(q->turns->advance(q->turns->ctx, wait, err));
    for (uint32_t s = 0; s < q->slots; s++)
        if (d->row[s].sequence >= 0 && d->row[s].waits) RLHF_TRY(follow(d, &d->row[s], err));
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

// On a device that records calls, rows that feed one token and rows that feed several are in
// separate steps. All steps that feed one token per row make the same calls, so the device can
// replay the recorded ones.
static rlhf_status run(struct decoder *d, const struct rlhf__model *m, rlhf_gen *cache,
                       struct rlhf__error *err) {
    const struct rlhf__gen_request *q = d->q;
    const int apart = m->compute && RLHF_COMPUTE_HAS(m->compute, record);
    for (int wait = 0;;) {
        // set by another thread or by a signal handler
        if (q->cancelled && __atomic_load_n(q->cancelled, __ATOMIC_RELAXED))
            return rlhf__fail(err, RLHF_E_CANCELLED, "stopped while generating");
        RLHF_TRY(prepare(d, wait, err));
        RLHF_TRY(step(d, m, cache, apart ? GOING_ON : GOING_ON | STARTING, err));
        uint32_t rows = d->rows;
        if (apart) RLHF_TRY(prepare(d, 0, err));
        if (apart) RLHF_TRY(step(d, m, cache, STARTING, err));
        wait = rows + (apart ? d->rows : 0) == 0;
        if (wait && d->running == 0 && d->waiting == q->n) return RLHF_OK;
    }
}

rlhf_status rlhf__generate(const struct rlhf__model *m, rlhf_gen *cache,
                           const struct rlhf__gen_request *q, struct rlhf__gen_result *out,
                           struct rlhf__error *err) {
    size_t words = q->keep_support ? rlhf_support_words(m->info.n_vocab) : 0;
    rlhf_status st = rlhf__gen_result_init(out, q->n, q->turns ? q->turns->longest : q->max_new,
                                           q->turns != NULL, words, err);
    if (st != RLHF_OK) return st;
    struct decoder d;
    st = decoder_init(&d, q, words, out, err);
    if (st == RLHF_OK) st = run(&d, m, cache, err);
    decoder_finish(&d);
    if (st != RLHF_OK) rlhf__gen_result_finish(out);
    return st;
}
