// next_token.c: see next_token.h.
#include "inspect/next_token.h"

#include <math.h>
#include <rlhf/exact.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 }; // tokens whose logits are in memory at a time

static double mean(const float *logit, const int32_t *id, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)logit[id[i]];
    return sum / n;
}

static double log_sum(const float *logit, size_t n) {
    double most = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        if ((double)logit[i] > most) most = (double)logit[i];
    for (size_t i = 0; i < n; i++)
        sum += rlhf_exp((double)logit[i] - most);
    return most + rlhf_log(sum);
}

// Insert a token into the list of the n tokens with the largest `move`. The list has the largest
// move first; tokens with equal moves are in the order of their ids.
static void place(struct rlhf__moved_token *list, double *key, uint32_t n, uint32_t *held,
                  struct rlhf__moved_token one, double move) {
    if (*held == n && !(move > key[n - 1])) return;
    uint32_t at = *held < n ? (*held)++ : n - 1;
    for (; at > 0 && move > key[at - 1]; at--) {
        key[at] = key[at - 1];
        list[at] = list[at - 1];
    }
    key[at] = move;
    list[at] = one;
}

static void compare(struct rlhf__next_tokens *out, size_t t, const float *base, const float *tuned,
                    size_t vocabulary) {
    const double z[2] = {log_sum(base, vocabulary), log_sum(tuned, vocabulary)};
    double up[RLHF__MOVED], down[RLHF__MOVED], kl = 0;
    uint32_t n_up = 0, n_down = 0;
    struct rlhf__moved_token *list = out->moved + t * 2 * out->n_moved;
    for (uint32_t i = 0; i < 2 * out->n_moved; i++)
        list[i].id = -1; // no token
    for (size_t i = 0; i < vocabulary; i++) {
        const double lq = (double)base[i] - z[0], lp = (double)tuned[i] - z[1];
        const double q = rlhf_exp(lq), p = rlhf_exp(lp);
        const struct rlhf__moved_token one = {(int32_t)i, q, p};
        if (p > 0) kl += p * (lp - lq);
        if (p > q) place(list, up, out->n_moved, &n_up, one, p - q);
        if (q > p) place(list + out->n_moved, down, out->n_moved, &n_down, one, q - p);
    }
    out->kl[t] = kl;
}

static void cap_all(float *logit, size_t n, double cap) {
    for (size_t i = 0; cap > 0 && i < n; i++)
        logit[i] = (float)rlhf__capped((double)logit[i], cap);
}

static rlhf_status make_room(struct rlhf__next_tokens *out, uint32_t n, int32_t vocabulary,
                             struct rlhf__error *err) {
    out->n = n;
    out->n_moved = vocabulary < RLHF__MOVED ? (uint32_t)vocabulary : RLHF__MOVED;
    out->kl = calloc(n, sizeof *out->kl);
    out->difference[0] = calloc(n, sizeof **out->difference);
    out->difference[1] = calloc(n, sizeof **out->difference);
    out->moved = calloc((size_t)n * 2 * out->n_moved, sizeof *out->moved);
    if (!out->kl || !out->difference[0] || !out->difference[1] || !out->moved)
        return RLHF__NOMEM(err, "out of memory for the next tokens");
    return RLHF_OK;
}

rlhf_status rlhf__next_tokens_take(struct rlhf__next_tokens *out,
                                   const struct rlhf__reading *const r[2],
                                   const struct rlhf__sides *s, struct rlhf__error *err) {
    const size_t vocabulary = (size_t)r[0]->tap.info.n_vocab;
    RLHF_TRY(make_room(out, r[0]->n, r[0]->tap.info.n_vocab, err));
    float *logits = malloc(2 * BLOCK * vocabulary * sizeof *logits);
    if (!logits) return RLHF__NOMEM(err, "out of memory for logits");
    rlhf_status st = RLHF_OK;
    for (uint32_t from = 0; st == RLHF_OK && from < out->n; from += BLOCK) {
        const uint32_t n = out->n - from < BLOCK ? out->n - from : BLOCK;
        for (uint32_t k = 0; st == RLHF_OK && k < 2; k++)
            st = rlhf__tap_logits(&r[k]->tap, from, n, logits + k * BLOCK * vocabulary, err);
        for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
            float *base = logits + i * vocabulary, *tuned = base + BLOCK * vocabulary;
            out->difference[0][from + i] =
                mean(base, s->good, s->n_good) - mean(base, s->bad, s->n_bad);
            out->difference[1][from + i] =
                mean(tuned, s->good, s->n_good) - mean(tuned, s->bad, s->n_bad);
            cap_all(base, vocabulary, r[0]->tap.info.logit_softcap);
            cap_all(tuned, vocabulary, r[1]->tap.info.logit_softcap);
            compare(out, from + i, base, tuned, vocabulary);
        }
    }
    free(logits);
    return st;
}

void rlhf__next_tokens_finish(struct rlhf__next_tokens *out) {
    free(out->kl);
    free(out->difference[0]);
    free(out->difference[1]);
    free(out->moved);
    memset(out, 0, sizeof *out);
}
