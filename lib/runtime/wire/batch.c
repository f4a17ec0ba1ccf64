// batch.c: see batch.h.
#include "wire/batch.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 65536, ALIGN = 16 }; // PAGE: a multiple of all page sizes in use

static uint64_t rounded(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

void rlhf__out_places(uint32_t n, uint64_t total, int has_token, struct rlhf__out_places *out) {
    const uint64_t bytes[RLHF__OUTS] = {n * sizeof(float), has_token ? total * sizeof(float) : 0, n,
                                        n};
    uint64_t at = PAGE;
    for (int i = 0; i < RLHF__OUTS; i++) {
        out->block[i] = at;
        at += rounded(bytes[i], PAGE);
        out->bytes[i] = bytes[i];
        out->at[i] = at - bytes[i];
    }
    out->block[RLHF__OUTS] = at;
}

// ---- writing ----

// Returns the size of an optional array: `bytes`, or 0 if the array is not given.
static uint64_t if_given(const void *array, uint64_t bytes) { return array ? bytes : 0; }

// Compute where each array of rows [from, to) is in the input.
static void place(const rlhf_reward_in *in, uint32_t from, uint32_t to,
                  struct rlhf__batch_head *h) {
    const uint64_t n = to - from, total = (uint64_t)(in->offset[to] - in->offset[from]);
    uint64_t at = rounded(sizeof *h, ALIGN);
    const struct {
        uint64_t *place, bytes;
    } all[] = {{&h->prompt, n * sizeof(struct rlhf__batch_text)},
               {&h->response, n * sizeof(struct rlhf__batch_text)},
               {&h->meta, n * sizeof(struct rlhf__batch_text)},
               {&h->ids, total * sizeof(int32_t)},
               {&h->offset, (n + 1) * sizeof(int32_t)},
               {&h->prompt_len, n * sizeof(int32_t)},
               {&h->finished, n},
               {&h->group, n * sizeof(int32_t)},
               {&h->source, n * sizeof(int64_t)},
               {&h->logp_sampled, if_given(in->logp_sampled, total * sizeof(float))},
               {&h->logp_ref, if_given(in->logp_ref, total * sizeof(float))},
               {&h->turn, if_given(in->turn, total * sizeof(int32_t))},
               {&h->messages, if_given(in->messages, n * sizeof(struct rlhf__batch_text))},
               {&h->end, if_given(in->end, n)}};
    *h = (struct rlhf__batch_head){.n = (uint32_t)n, .phase = in->phase};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i].place = at;
        at += rounded(all[i].bytes, ALIGN);
    }
    if (!in->logp_sampled) h->logp_sampled = 0;
    if (!in->logp_ref) h->logp_ref = 0;
    if (!in->turn) h->turn = 0;
    if (!in->messages) h->messages = 0;
    if (!in->end) h->end = 0;
    h->bytes = at; // where the texts begin
}

// Returns 1 if rows i and i - 1 share a text in memory. The rows of a group share the prompt and
// the data row, so most repeated texts are found.
static int is_before(const rlhf_str *list, uint32_t i, uint32_t from) {
    return i > from && list[i].ptr == list[i - 1].ptr && list[i].len == list[i - 1].len;
}

uint64_t rlhf__batch_bytes(const rlhf_reward_in *in, uint32_t from, uint32_t to) {
    struct rlhf__batch_head h;
    place(in, from, to, &h);
    const rlhf_str *const list[] = {in->prompt, in->response, in->meta, in->messages};
    for (size_t k = 0; k < 4; k++)
        for (uint32_t i = from; list[k] && i < to; i++)
            if (!is_before(list[k], i, from)) h.bytes += list[k][i].len;
    return h.bytes;
}

static void put_texts(const rlhf_str *list, uint32_t from, uint32_t to, char *base, uint64_t table,
                      uint64_t *end) {
    struct rlhf__batch_text *t = (struct rlhf__batch_text *)(void *)(base + table);
    for (uint32_t i = from; i < to; i++, t++) {
        if (is_before(list, i, from)) {
            *t = t[-1];
            continue;
        }
        *t = (struct rlhf__batch_text){*end, list[i].len};
        if (list[i].len) memcpy(base + *end, list[i].ptr, (size_t)list[i].len);
        *end += list[i].len;
    }
}

// Write the index of each row's prompt, or -1 for all rows if the indices are not known.
static void put_sources(const rlhf_reward_in *in, uint32_t from, uint32_t n, int64_t *to) {
    for (uint32_t i = 0; i < n; i++)
        to[i] = in->source ? in->source[from + i] : -1;
}

void rlhf__batch_put(const rlhf_reward_in *in, uint32_t from, uint32_t to, int has_token,
                     void *to_bytes) {
    struct rlhf__batch_head h;
    char *base = to_bytes;
    place(in, from, to, &h);
    h.has_token = has_token != 0;
    const int32_t first = in->offset[from];
    int32_t *offset = (int32_t *)(void *)(base + h.offset);
    const size_t token_bytes = (size_t)(in->offset[to] - first) * sizeof(int32_t);
    memcpy(base + h.ids, in->ids + first, token_bytes);
    for (uint32_t i = from; i <= to; i++)
        offset[i - from] = in->offset[i] - first;
    memcpy(base + h.prompt_len, in->prompt_len + from, h.n * sizeof(int32_t));
    memcpy(base + h.finished, in->finished + from, h.n);
    memcpy(base + h.group, in->group + from, h.n * sizeof(int32_t));
    put_sources(in, from, h.n, (int64_t *)(void *)(base + h.source));
    if (in->logp_sampled) memcpy(base + h.logp_sampled, in->logp_sampled + first, token_bytes);
    if (in->logp_ref) memcpy(base + h.logp_ref, in->logp_ref + first, token_bytes);
    put_texts(in->prompt, from, to, base, h.prompt, &h.bytes);
    put_texts(in->response, from, to, base, h.response, &h.bytes);
    put_texts(in->meta, from, to, base, h.meta, &h.bytes);
    if (in->messages) put_texts(in->messages, from, to, base, h.messages, &h.bytes);
    if (in->turn) memcpy(base + h.turn, in->turn + first, token_bytes);
    if (in->end) memcpy(base + h.end, in->end + from, h.n);
    memcpy(base, &h, sizeof h);
}

// ---- reading ----

static int is_inside(uint64_t at, uint64_t count, uint64_t size, uint64_t bytes) {
    return at % sizeof(int32_t) == 0 && at <= bytes && count <= (bytes - at) / size;
}

// Returns 1 if offset[0..n] ascends from 0 and prompts are not longer than their rows.
static int are_rows(const rlhf_reward_in *in) {
    if (in->offset[0] != 0) return 0;
    for (uint32_t i = 0; i < in->n; i++) {
        const int64_t len = (int64_t)in->offset[i + 1] - in->offset[i];
        if (len < 0 || in->prompt_len[i] < 0 || in->prompt_len[i] > len) return 0;
    }
    return 1;
}

static int get_texts(const char *base, uint64_t bytes, uint64_t table, uint32_t n, rlhf_str *out) {
    const struct rlhf__batch_text *t = (const void *)(base + table);
    for (uint32_t i = 0; i < n; i++) {
        if (t[i].at > bytes || t[i].len > bytes - t[i].at) return 0;
        out[i] = (rlhf_str){base + t[i].at, t[i].len};
    }
    return 1;
}

int rlhf__batch_get(const void *input, uint64_t bytes, rlhf_reward_in *in, int *has_token,
                    rlhf_str **texts) {
    const char *base = input;
    struct rlhf__batch_head h;
    *texts = NULL;
    if (bytes < sizeof h) return -1;
    memcpy(&h, base, sizeof h);
    const uint64_t n = h.n, text = sizeof(struct rlhf__batch_text);
    if (h.bytes > bytes || h.prompt % 8 || h.response % 8 || h.meta % 8 ||
        !is_inside(h.prompt, n, text, bytes) || !is_inside(h.response, n, text, bytes) ||
        !is_inside(h.meta, n, text, bytes) || !is_inside(h.offset, n + 1, 4, bytes) ||
        !is_inside(h.prompt_len, n, 4, bytes) || !is_inside(h.finished, n, 1, bytes) ||
        !is_inside(h.group, n, 4, bytes) || h.messages % 8 ||
        !is_inside(h.messages, h.messages ? n : 0, text, bytes) ||
        !is_inside(h.end, h.end ? n : 0, 1, bytes) || h.source % 8 ||
        !is_inside(h.source, n, 8, bytes))
        return -1;
    rlhf_str *all = calloc(4 * (size_t)n + 1, sizeof *all);
    if (!all) return -1;
    *in = (rlhf_reward_in){.n = h.n,
                           .phase = h.phase,
                           .prompt = all,
                           .response = all + n,
                           .meta = all + 2 * n,
                           .ids = (const void *)(base + h.ids),
                           .offset = (const void *)(base + h.offset),
                           .prompt_len = (const void *)(base + h.prompt_len),
                           .finished = (const void *)(base + h.finished),
                           .group = (const void *)(base + h.group),
                           .source = (const void *)(base + h.source)};
    *has_token = h.has_token != 0;
    *texts = all;
    const uint64_t total = are_rows(in) ? (uint64_t)in->offset[n] : UINT64_MAX;
    if (h.logp_sampled) in->logp_sampled = (const void *)(base + h.logp_sampled);
    if (h.logp_ref) in->logp_ref = (const void *)(base + h.logp_ref);
    if (h.turn) in->turn = (const void *)(base + h.turn);
    if (h.end) in->end = (const void *)(base + h.end);
    if (h.messages) in->messages = all + 3 * n;
    if (is_inside(h.ids, total, 4, bytes) &&
        is_inside(h.logp_sampled, h.logp_sampled ? total : 0, 4, bytes) &&
        is_inside(h.logp_ref, h.logp_ref ? total : 0, 4, bytes) &&
        is_inside(h.turn, h.turn ? total : 0, 4, bytes) &&
        (!h.messages || get_texts(base, bytes, h.messages, h.n, all + 3 * n)) &&
        get_texts(base, bytes, h.prompt, h.n, all) &&
        get_texts(base, bytes, h.response, h.n, all + n) &&
        get_texts(base, bytes, h.meta, h.n, all + 2 * n))
        return 0;
    free(all);
    *texts = NULL;
    return -1;
}
