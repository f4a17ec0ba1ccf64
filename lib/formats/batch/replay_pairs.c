// replay_pairs.c: see replay_pairs.h.
#include "batch/replay_pairs.h"

#include "base/file.h"
#include "base/hash.h"

#include <rlhf/rng.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROUND ((double)INT32_MAX)

void rlhf__replay_finish(struct rlhf__replay *r) {
    rlhf__ids_finish(&r->ids);
    free(r->pair);
    memset(r, 0, sizeof *r);
}

static rlhf_status reserve(struct rlhf__replay *r, struct rlhf__error *err) {
    if (r->n < r->cap) return RLHF_OK;
    size_t cap = r->cap ? 2 * r->cap : 64;
    struct rlhf__replay_pair *p = realloc(r->pair, cap * sizeof *p);
    if (!p) return RLHF__NOMEM(err, "out of memory for %zu pairs", cap);
    r->pair = p;
    r->cap = cap;
    return RLHF_OK;
}

static void put(struct rlhf__ids *ids, const int32_t *from, int32_t n) {
    if (!from || n <= 0) return;
    memcpy(ids->data + ids->n, from, (size_t)n * sizeof *from);
    ids->n += (size_t)n;
}

rlhf_status rlhf__replay_add(struct rlhf__replay *r, const int32_t *prompt, int32_t n_prompt,
                             const int32_t *chosen, int32_t n_chosen, const int32_t *rejected,
                             int32_t n_rejected, struct rlhf__error *err) {
    if (n_prompt < 1 || n_chosen < 1 || n_rejected < 1)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "a pair of %d prompt, %d chosen and %d rejected tokens; each needs one",
                          n_prompt, n_chosen, n_rejected);
    RLHF_TRY(reserve(r, err));
    RLHF_TRY(
        rlhf__ids_reserve(&r->ids, (size_t)n_prompt + (size_t)n_chosen + (size_t)n_rejected, err));
    r->pair[r->n++] = (struct rlhf__replay_pair){r->ids.n, n_prompt, n_chosen, n_rejected};
    put(&r->ids, prompt, n_prompt);
    put(&r->ids, chosen, n_chosen);
    put(&r->ids, rejected, n_rejected);
    return RLHF_OK;
}

void rlhf__replay_retire(struct rlhf__replay *r, size_t keep) {
    r->rounds++;
    if (keep > 0 && r->n > keep) {
        size_t drop = r->n - keep, from = r->pair[drop].at;
        memmove(r->pair, r->pair + drop, keep * sizeof *r->pair);
        memmove(r->ids.data, r->ids.data + from, (r->ids.n - from) * sizeof *r->ids.data);
        r->ids.n -= from;
        r->n = keep;
        for (size_t i = 0; i < keep; i++)
            r->pair[i].at -= from;
    }
    r->n_history = r->n;
}

rlhf_status rlhf__replay_copy(struct rlhf__replay *dst, const struct rlhf__replay *src,
                              struct rlhf__error *err) {
    rlhf__replay_finish(dst);
    dst->pair = calloc(src->n + 1, sizeof *dst->pair);
    rlhf_status st = rlhf__ids_reserve(&dst->ids, src->ids.n, err);
    if (!dst->pair || st != RLHF_OK) {
        rlhf__replay_finish(dst);
        return RLHF__NOMEM(err, "out of memory for %zu pairs", src->n);
    }
    if (src->n) memcpy(dst->pair, src->pair, src->n * sizeof *dst->pair);
    if (src->ids.n) memcpy(dst->ids.data, src->ids.data, src->ids.n * sizeof *dst->ids.data);
    dst->ids.n = src->ids.n;
    dst->n = src->n;
    dst->cap = src->n + 1;
    dst->n_history = src->n_history;
    dst->rounds = src->rounds;
    return RLHF_OK;
}

// ---- the order of a round ----

// Shuffle the fresh pairs (Fisher-Yates). Each (round, epoch) has a separate block of counters.
static void shuffle_fresh(const struct rlhf__replay *r, uint64_t seed, int32_t epoch,
                          uint32_t *out) {
    rlhf_rng rng = {seed, rlhf_rng_stream("replay:order"),
                    (r->rounds * 65536 + (uint64_t)epoch) << 32};
    size_t n = r->n - r->n_history;
    for (size_t i = 0; i < n; i++)
        out[i] = (uint32_t)(r->n_history + i);
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)rlhf_rng_below(&rng, i);
        uint32_t keep = out[i - 1];
        out[i - 1] = out[j];
        out[j] = keep;
    }
}

// Returns 1 if the pair at index k of a round comes from history. Of the first n pairs, floor(n *
// share) do.
static int is_history(double share, uint32_t k) {
    return floor(((double)k + 1) * share) > floor((double)k * share);
}

// Returns the number of pairs in a round. `fresh` is the number of fresh pairs in it.
static uint32_t round_length(double share, uint32_t fresh) {
    if (share >= 1) return fresh;
    uint32_t n = 0;
    for (uint32_t used = 0; used < fresh; n++)
        used += !is_history(share, n);
    return n;
}

static rlhf_status check_round(const struct rlhf__replay *r, int32_t epochs, double share,
                               struct rlhf__error *err) {
    if (!(share >= 0 && share <= 1))
        return rlhf__fail(err, RLHF_E_INVALID, "the replay share is %g; it must be from 0 to 1",
                          share);
    double fresh = (double)(r->n - r->n_history) * (double)epochs;
    double all = r->n_history > 0 && share < 1 ? fresh / (1 - share) : fresh;
    if (epochs >= 1 && epochs < 65536 && all < MAX_ROUND) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%d epochs over %zu fresh pairs with a replay share of %g are not a possible "
                      "round: 1 to 65535 epochs, and fewer than 2^31 pairs in all",
                      epochs, r->n - r->n_history, share);
}

rlhf_status rlhf__replay_round(const struct rlhf__replay *r, uint64_t seed, int32_t epochs,
                               double share, uint32_t **out, uint32_t *n, struct rlhf__error *err) {
    *out = NULL;
    *n = 0;
    RLHF_TRY(check_round(r, epochs, share, err));
    if (r->n_history == 0) share = 0;
    uint32_t own = (uint32_t)(r->n - r->n_history), fresh = own * (uint32_t)epochs;
    uint32_t *pick = calloc((size_t)round_length(share, fresh) + 1, sizeof *pick);
    uint32_t *order = calloc((size_t)fresh + 1, sizeof *order);
    if (!pick || !order) {
        free(pick);
        free(order);
        return RLHF__NOMEM(err, "out of memory for a round of %u pairs", fresh);
    }
    for (int32_t e = 0; e < epochs; e++)
        shuffle_fresh(r, seed, e, order + (size_t)e * own);
    rlhf_rng rng = {seed, rlhf_rng_stream("replay:history"), r->rounds << 32};
    *n = round_length(share, fresh);
    for (uint32_t k = 0, used = 0; k < *n; k++)
        pick[k] =
            is_history(share, k) ? (uint32_t)rlhf_rng_below(&rng, r->n_history) : order[used++];
    free(order);
    *out = pick;
    return RLHF_OK;
}

// ---- rows ----

static void fill_row(const struct rlhf__replay *r, struct rlhf__rows *e, uint32_t row,
                     const struct rlhf__replay_pair *p, int chosen) {
    int32_t n = chosen ? p->chosen : p->rejected;
    const int32_t *prompt = r->ids.data + p->at;
    int32_t *to = e->ids + e->offset[row];
    memcpy(to, prompt, (size_t)p->prompt * sizeof *to);
    memcpy(to + p->prompt, prompt + p->prompt + (chosen ? 0 : p->chosen), (size_t)n * sizeof *to);
    e->offset[row + 1] = e->offset[row] + p->prompt + n;
    e->prompt_len[row] = p->prompt;
    e->group[row] = (int32_t)(row / 2);
    e->label[row] = chosen;
}

rlhf_status rlhf__replay_rows(const struct rlhf__replay *r, const uint32_t *pick, uint32_t n,
                              struct rlhf__rows *e, struct rlhf__error *err) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct rlhf__replay_pair *p = &r->pair[pick[i]];
        total += 2 * (uint64_t)p->prompt + (uint64_t)p->chosen + (uint64_t)p->rejected;
    }
    if (total > INT32_MAX || n > INT32_MAX / 2)
        return rlhf__fail(err, RLHF_E_INVALID, "%u pairs of %llu tokens are too many for one step",
                          n, (unsigned long long)total);
    RLHF_TRY(rlhf__rows_init(e, 2 * n, (uint32_t)total, err));
    e->flags = RLHF__SHARE_PROMPTS | RLHF__WHOLE_GROUPS;
    for (uint32_t i = 0; i < n; i++) {
        fill_row(r, e, 2 * i, &r->pair[pick[i]], 1);
        fill_row(r, e, 2 * i + 1, &r->pair[pick[i]], 0);
    }
    return RLHF_OK;
}

// ---- the file of a checkpoint ----

#define MAX_BYTES ((uint64_t)1 << 36)
#define HEAD      40 // bytes: magic and four u64
#define PAIR      12
#define TAIL      4

static const char magic[8] = {'R', 'L', 'H', 'F', 'P', 'A', 'I', 'R'};

rlhf_status rlhf__replay_write(const struct rlhf__replay *r, const struct rlhf__folder *in,
                               const char *name, struct rlhf__error *err) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    rlhf__buf_put(&b, magic, sizeof magic);
    rlhf__buf_u64le(&b, r->rounds);
    rlhf__buf_u64le(&b, r->n_history);
    rlhf__buf_u64le(&b, r->n);
    rlhf__buf_u64le(&b, r->ids.n);
    for (size_t i = 0; i < r->n; i++) {
        rlhf__buf_u32le(&b, (uint32_t)r->pair[i].prompt);
        rlhf__buf_u32le(&b, (uint32_t)r->pair[i].chosen);
        rlhf__buf_u32le(&b, (uint32_t)r->pair[i].rejected);
    }
    for (size_t i = 0; i < r->ids.n; i++)
        rlhf__buf_u32le(&b, (uint32_t)r->ids.data[i]);
    if (!b.bad) rlhf__buf_u32le(&b, rlhf__crc32c(0, b.data, b.len));
    rlhf_status st = rlhf__buf_ok(&b, err);
    if (st == RLHF_OK) st = rlhf__file_write(in, name, b.data, b.len, err);
    rlhf__buf_finish(&b);
    return st;
}

static uint64_t get_le(const char *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)(uint8_t)p[i] << (8 * i);
    return v;
}

// Read the header, and check that it fits the file's length. Returns what is wrong, or NULL.
static const char *check_head(const char *p, size_t len, uint64_t head[4]) {
    if (len < HEAD + TAIL || memcmp(p, magic, sizeof magic) != 0)
        return "it is not a replay buffer";
    for (int i = 0; i < 4; i++)
        head[i] = get_le(p + 8 + 8 * i, 8);
    uint64_t room = len - HEAD - TAIL;
    if (head[2] > room / PAIR || head[3] > room / 4 || PAIR * head[2] + 4 * head[3] != room ||
        head[1] > head[2])
        return "its head does not fit its length";
    if (get_le(p + len - TAIL, TAIL) != rlhf__crc32c(0, p, len - TAIL)) return "its checksum";
    return NULL;
}

// Check the pairs and the ids. Returns the error, or NULL.
static const char *check_body(const char *p, const uint64_t head[4], int32_t n_vocab) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < head[2]; i++) {
        uint64_t pair = 0;
        for (uint64_t k = 0; k < 3; k++) {
            uint64_t n = get_le(p + HEAD + PAIR * i + 4 * k, 4);
            if (n < 1) return "a length is out of range";
            pair += n;
        }
        if (pair > INT32_MAX) return "a length is out of range";
        sum += pair;
    }
    if (sum != head[3]) return "its lengths do not add up";
    const char *ids = p + HEAD + PAIR * head[2];
    for (uint64_t i = 0; i < head[3]; i++)
        if (get_le(ids + 4 * i, 4) >= (uint64_t)n_vocab) return "a token is not of the vocabulary";
    return NULL;
}

static rlhf_status take(struct rlhf__replay *r, const char *p, const uint64_t head[4],
                        struct rlhf__error *err) {
    const char *id = p + HEAD + PAIR * head[2];
    struct rlhf__ids row = {0};
    rlhf_status st = RLHF_OK;
    for (uint64_t i = 0; st == RLHF_OK && i < head[2]; i++) {
        int32_t n[3] = {0}, sum = 0;
        for (int k = 0; k < 3; k++)
            sum += n[k] = (int32_t)get_le(p + HEAD + PAIR * i + 4 * (uint64_t)k, 4);
        row.n = 0;
        for (int32_t k = 0; st == RLHF_OK && k < sum; k++, id += 4)
            st = rlhf__ids_push(&row, (int32_t)get_le(id, 4), err);
        if (st == RLHF_OK)
            st = rlhf__replay_add(r, row.data, n[0], row.data + n[0], n[1], row.data + n[0] + n[1],
                                  n[2], err);
    }
    rlhf__ids_finish(&row);
    r->rounds = head[0];
    r->n_history = (size_t)head[1];
    return st;
}

rlhf_status rlhf__replay_read(struct rlhf__replay *r, const char *path, int32_t n_vocab,
                              struct rlhf__error *err) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    uint64_t head[4] = {0};
    memset(r, 0, sizeof *r);
    rlhf_status st = rlhf__file_read(path, MAX_BYTES, &b, err);
    const char *wrong = NULL;
    if (st == RLHF_OK) wrong = check_head(rlhf__buf_text(&b), b.len, head);
    if (st == RLHF_OK && !wrong) wrong = check_body(b.data, head, n_vocab);
    if (wrong) st = rlhf__fail(err, RLHF_E_INVALID, "%s is damaged: %s", path, wrong);
    if (st == RLHF_OK) st = take(r, b.data, head, err);
    rlhf__buf_finish(&b);
    if (st != RLHF_OK) rlhf__replay_finish(r);
    return st;
}
