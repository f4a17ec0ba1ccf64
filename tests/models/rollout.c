// tests/models/rollout.c: see rollout.h.
#include "rollout.h"

#include <string.h>

static int32_t draw(rlhf_rng *g, int32_t n) { return (int32_t)rlhf_rng_below(g, (uint64_t)n); }

void rollout_init(struct rollout *r, int32_t vocab, int32_t max_prompt, int32_t max_new) {
    rlhf_rng g = {3, rlhf_rng_stream("prompts"), 0};
    memset(r, 0, sizeof *r);
    for (int32_t i = 0; i < ROLL_ROWS; i++) {
        r->prompt_len[i] = 1 + draw(&g, max_prompt);
        r->len[i] = r->prompt_len[i] + 1 + draw(&g, max_new);
        for (int32_t t = 0; t < r->prompt_len[i]; t++)
            r->ids[i][t] = draw(&g, vocab);
    }
}

// A row in flight. `row` is -1 if the slot is free. `fed` is the number of tokens that the model
// has processed. `have` is the number of tokens that are known.
struct flight {
    int32_t row, fed, have;
};

// Takes the tokens of a slot for the next step. Every third prompt is divided into two pieces.
static int32_t piece(const struct rollout *r, const struct flight *f) {
    const int32_t all = f->have - f->fed;
    return f->fed == 0 && f->row % 3 == 0 && r->prompt_len[f->row] > 1 ? all / 2 : all;
}

struct step {
    rlhf_gen_step s;
    int32_t slot[ROLL_ROWS], start[ROLL_ROWS], offset[ROLL_ROWS + 1], next[ROLL_ROWS];
    int32_t ids[ROLL_ROWS * ROLL_LEN];
    uint64_t counter[ROLL_ROWS];
    float logp[ROLL_ROWS];
    uint32_t support[ROLL_ROWS * ROLL_WORDS];
};

static void pack(struct step *k, const struct rollout *r, const struct flight *f,
                 uint32_t n_slots) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_slots; i++) {
        if (f[i].row < 0) continue;
        const int32_t count = piece(r, &f[i]);
        k->slot[n] = (int32_t)i;
        k->start[n] = f[i].fed;
        memcpy(k->ids + k->offset[n], &r->ids[f[i].row][f[i].fed], (uint64_t)count * 4);
        k->counter[n] = (uint64_t)f[i].row * ROLL_LEN + (uint64_t)f[i].have;
        k->offset[n + 1] = k->offset[n] + count;
        n++;
    }
    k->s.n = n;
}

static void unpack(const struct step *k, struct rollout *r, struct flight *f, uint32_t words) {
    for (uint32_t i = 0; i < k->s.n; i++) {
        struct flight *x = &f[k->slot[i]];
        x->fed += k->offset[i + 1] - k->offset[i];
        if (x->fed < x->have) continue; // first piece of a prompt: ignore the sample
        r->ids[x->row][x->have] = k->next[i];
        r->logp[x->row][x->have] = k->logp[i];
        memcpy(r->support[x->row][x->have], k->support + i * words, words * 4);
        if (++x->have == r->len[x->row]) x->row = -1;
    }
}

void rollout_run(struct rollout *r, struct model *m, uint32_t n_slots, uint64_t order,
                 const rlhf_dist *dist, const rlhf_dist *logp_dist, int32_t keep) {
    struct flight f[ROLL_ROWS];
    int32_t waiting[ROLL_ROWS], n_waiting = ROLL_ROWS;
    rlhf_rng g = {order, rlhf_rng_stream("order"), 0};
    rlhf_gen *session = NULL;
    struct step *k = test_calloc(1, sizeof *k);
    for (int32_t i = 0; i < ROLL_ROWS; i++)
        waiting[i] = i;
    for (uint32_t i = 0; i < n_slots; i++)
        f[i].row = -1;
    must(m,
         m->ops->gen_open(m->self, n_slots,
                          ROLL_LEN < m->info.n_ctx ? ROLL_LEN : (uint32_t)m->info.n_ctx, &session));
    for (;;) {
        for (uint32_t i = 0; i < n_slots && n_waiting; i++) {
            if (f[i].row >= 0) continue;
            const int32_t pick = draw(&g, n_waiting);
            f[i].row = waiting[pick];
            f[i].fed = 0;
            f[i].have = r->prompt_len[f[i].row];
            waiting[pick] = waiting[--n_waiting];
        }
        memset(k, 0, sizeof *k);
        pack(k, r, f, n_slots);
        if (!k->s.n) break;
        const rlhf_gen_step s = {sizeof s,   k->s.n,
                                 k->slot,    k->start,
                                 k->ids,     k->offset,
                                 dist,       logp_dist,
                                 11,         rlhf_rng_stream("rollout"),
                                 k->counter, k->next,
                                 k->logp,    NULL,
                                 NULL,       keep ? k->support : NULL};
        must(m, m->ops->gen_step(m->self, session, &s));
        unpack(k, r, f, rlhf_support_words(m->info.n_vocab));
    }
    m->ops->gen_close(m->self, session);
    test_free(k);
}

struct rollout_batch rollout_batch(const struct rollout *r, uint32_t first, uint32_t n,
                                   int32_t vocab) {
    struct rollout_batch b = {{0}, NULL, NULL, NULL, NULL, NULL};
    const uint64_t words = rlhf_support_words(vocab);
    uint32_t *to = b.support = test_malloc((uint64_t)n * ROLL_LEN * words * sizeof *to);
    b.ids = test_malloc((uint64_t)n * ROLL_LEN * sizeof *b.ids);
    b.logp = test_malloc((uint64_t)n * ROLL_LEN * sizeof *b.logp);
    b.offset = test_calloc(n + 1, sizeof *b.offset);
    b.prompt_len = test_calloc(n, sizeof *b.prompt_len);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = first + i;
        memcpy(b.ids + b.offset[i], r->ids[row], (uint64_t)r->len[row] * 4);
        memcpy(b.logp + b.offset[i], r->logp[row], (uint64_t)r->len[row] * 4);
        b.offset[i + 1] = b.offset[i] + r->len[row];
        b.prompt_len[i] = r->prompt_len[row];
        for (int32_t t = r->prompt_len[row]; t < r->len[row]; t++, to += words)
            memcpy(to, r->support[row][t], words * sizeof *to);
    }
    b.b.size = sizeof b.b;
    b.b.n = n;
    b.b.total = (uint32_t)b.offset[n];
    b.b.ids = b.ids;
    b.b.offset = b.offset;
    b.b.prompt_len = b.prompt_len;
    return b;
}

void rollout_batch_free(struct rollout_batch *b) {
    test_free(b->ids);
    test_free(b->logp);
    test_free(b->support);
    test_free(b->offset);
    test_free(b->prompt_len);
}
