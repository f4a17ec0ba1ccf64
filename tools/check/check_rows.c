// check_rows.c: see check_rows.h.
#include "check/check_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t number(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static int put(char **to, uint32_t *n, const char *bytes, size_t len) {
    *to = malloc(len ? len : 1);
    if (!*to) return 0;
    if (len) memcpy(*to, bytes, len);
    *n = (uint32_t)len;
    return 1;
}

// A few words, including those that rewards look for: full stops, numbers, tags, a boxed answer.
static size_t words(char out[512], uint32_t i, int32_t texts, uint32_t *state) {
    static const char *const list[] = {
        "the",      "film",   "was",        "good.", "42",  "not",         "<think>", "a",
        "</think>", "#### 7", "\\boxed{7}", "bad",   "3/4", "caf\xc3\xa9", "\n",      "one. two."};
    const uint32_t n = 1 + number(state) % 24;
    size_t len = 0;
    if (texts == RLHF__ROWS_INVALID) {
        static const char bytes[] = "\xff\xfe\x00 \xc3 \xe2\x82 \xed\xa0\x80 {\"\x00\x7f\xf0\x9f";
        len = 1 + i % (sizeof bytes - 1);
        memcpy(out, bytes, len);
        return len;
    }
    for (uint32_t k = 0; k < n; k++)
        len += (size_t)snprintf(out + len, 512 - len, "%s%s", k ? " " : "",
                                list[number(state) % (sizeof list / sizeof *list)]);
    return len;
}

static int make_text(struct rlhf__check_row *r, uint32_t i, int32_t texts, uint32_t *state) {
    char text[512];
    size_t n = words(text, i, texts, state);
    if (!put(&r->prompt, &r->n_prompt, text, n)) return 0;
    n = texts == RLHF__ROWS_EMPTY ? 0 : words(text, i + 7, texts, state);
    if (!put(&r->response, &r->n_response, text, n)) return 0;
    const int len =
        snprintf(text, sizeof text,
                 "{\"prompt\": \"q\", \"answer\": \"7\", \"solution\": \"\\\\boxed{7}\", "
                 "\"label\": %u, \"text\": \"t\", \"row\": %u}",
                 i % 2, i);
    return put(&r->meta, &r->n_meta, text, texts == RLHF__ROWS_BARE ? 0 : (size_t)len);
}

static int given_text(struct rlhf__check_row *r, const json_t *row) {
    const json_t *prompt = json_object_get(row, "prompt"), *said = json_object_get(row, "response");
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__json_write(&text, row, 0);
    const int made =
        put(&r->prompt, &r->n_prompt, json_string_value(prompt), json_string_length(prompt)) &&
        put(&r->response, &r->n_response, json_string_value(said), json_string_length(said)) &&
        put(&r->meta, &r->n_meta, rlhf__buf_text(&text), text.len) && !text.bad;
    rlhf__buf_finish(&text);
    return made;
}

int rlhf__row_set_make(struct rlhf__row_set *s, uint32_t n, int32_t texts, const json_t *given) {
    uint32_t state = 12345u + n + (uint32_t)texts;
    const size_t n_given = texts == RLHF__ROWS_PLAIN ? json_array_size(given) : 0;
    *s = (struct rlhf__row_set){calloc(n, sizeof *s->row), n, texts};
    for (uint32_t i = 0; s->row && i < n; i++) {
        struct rlhf__check_row *r = &s->row[i];
        if (!(n_given ? given_text(r, json_array_get(given, i % n_given))
                      : make_text(r, i, texts, &state)))
            return 0;
        r->prompt_len = 1 + (int32_t)(number(&state) % 9);
        r->n_ids =
            r->prompt_len + (texts == RLHF__ROWS_EMPTY ? 1 : 1 + (int32_t)(number(&state) % 31));
        r->group = (int32_t)(i / 4);
        r->finished = number(&state) % 2;
        r->ids = malloc((size_t)r->n_ids * sizeof *r->ids);
        if (!r->ids) return 0;
        for (int32_t t = 0; t < r->n_ids; t++)
            r->ids[t] = (int32_t)(number(&state) % 256);
    }
    return s->row != NULL;
}

void rlhf__row_set_finish(struct rlhf__row_set *s) {
    for (uint32_t i = 0; s->row && i < s->n; i++) {
        free(s->row[i].prompt);
        free(s->row[i].response);
        free(s->row[i].meta);
        free(s->row[i].ids);
    }
    free(s->row);
    *s = (struct rlhf__row_set){0};
}

// ---- a call ----

struct maker {
    struct rlhf__row_call *call;
    int32_t side, ok;
};

static void *take(struct maker *m, size_t n, int32_t rule, const char *what) {
    void *at = rlhf__guard_take(m->call->guards, n, m->side, rule, what);
    if (!at) m->ok = 0;
    return at;
}

// Most texts are adjacent. A few get separate pages, so that overruns are detected.
static void lay_text(struct maker *m, rlhf_str *to, char **pool, const char *bytes, uint32_t n,
                     const char *what) {
    char *at = *pool;
    if (at)
        *pool += n;
    else
        at = take(m, n, RLHF__CHECK_TEXT, what);
    if (at && n) memcpy(at, bytes, n);
    *to = (rlhf_str){n ? at : NULL, n};
}

static void lay_row(struct maker *m, const struct rlhf__check_row *r, uint32_t i, char **pool) {
    rlhf_reward_in *in = &m->call->in;
    lay_text(m, (rlhf_str *)(uintptr_t)&in->prompt[i], pool, r->prompt, r->n_prompt,
             "the text of in->prompt");
    lay_text(m, (rlhf_str *)(uintptr_t)&in->response[i], pool, r->response, r->n_response,
             "the text of in->response");
    lay_text(m, (rlhf_str *)(uintptr_t)&in->meta[i], pool, r->meta, r->n_meta,
             "the text of in->meta");
    int32_t *ids = (int32_t *)(uintptr_t)in->ids + in->offset[i];
    memcpy(ids, r->ids, (size_t)r->n_ids * sizeof *ids);
    ((int32_t *)(uintptr_t)in->offset)[i + 1] = in->offset[i] + r->n_ids;
    ((int32_t *)(uintptr_t)in->prompt_len)[i] = r->prompt_len;
    ((uint8_t *)(uintptr_t)in->finished)[i] = (uint8_t)r->finished;
    ((int32_t *)(uintptr_t)in->group)[i] = r->group;
    ((int64_t *)(uintptr_t)in->source)[i] = r->group;
    for (int32_t t = 0; t < r->n_ids; t++) {
        const float logp = t < r->prompt_len ? 0 : -0.25f - (float)(r->ids[t] % 16) / 8;
        if (in->logp_sampled) ((float *)(uintptr_t)in->logp_sampled)[in->offset[i] + t] = logp;
        if (in->logp_ref) ((float *)(uintptr_t)in->logp_ref)[in->offset[i] + t] = 1.5f * logp;
    }
}

static void take_in(struct maker *m, uint32_t n, size_t total, uint32_t flags) {
    rlhf_reward_in *in = &m->call->in;
    in->n = n;
    in->prompt = take(m, n * sizeof(rlhf_str), RLHF__CHECK_BORROWED, "in->prompt");
    in->response = take(m, n * sizeof(rlhf_str), RLHF__CHECK_BORROWED, "in->response");
    in->meta = take(m, n * sizeof(rlhf_str), RLHF__CHECK_BORROWED, "in->meta");
    in->ids = take(m, total * sizeof(int32_t), RLHF__CHECK_BORROWED, "in->ids");
    in->offset = take(m, (n + 1) * sizeof(int32_t), RLHF__CHECK_BORROWED, "in->offset");
    in->prompt_len = take(m, n * sizeof(int32_t), RLHF__CHECK_BORROWED, "in->prompt_len");
    in->finished = take(m, n, RLHF__CHECK_BORROWED, "in->finished");
    in->group = take(m, n * sizeof(int32_t), RLHF__CHECK_BORROWED, "in->group");
    in->source = take(m, n * sizeof(int64_t), RLHF__CHECK_BORROWED, "in->source");
    if (flags & RLHF_REWARD_LOGP_SAMPLED)
        in->logp_sampled = take(m, total * sizeof(float), RLHF__CHECK_BORROWED, "in->logp_sampled");
    if (flags & RLHF_REWARD_LOGP_REF)
        in->logp_ref = take(m, total * sizeof(float), RLHF__CHECK_BORROWED, "in->logp_ref");
}

static void take_out(struct maker *m, uint32_t n, size_t total, int32_t per_token,
                     uint32_t unwritten) {
    rlhf_reward_out *out = &m->call->out;
    out->seq = take(m, n * sizeof(float), RLHF__CHECK_OUTSIDE, "out->seq");
    out->verdict = take(m, n, RLHF__CHECK_OUTSIDE, "out->verdict");
    out->failed = take(m, n, RLHF__CHECK_OUTSIDE, "out->failed");
    if (per_token) out->token = take(m, total * sizeof(float), RLHF__CHECK_OUTSIDE, "out->token");
    for (uint32_t i = 0; out->seq && i < n; i++)
        memcpy(&out->seq[i], &unwritten, sizeof unwritten);
}

int rlhf__row_call_make(struct rlhf__row_call *c, struct rlhf__child_log *log,
                        const struct rlhf__row_set *s, const uint32_t *rows, uint32_t n,
                        int32_t side, uint32_t flags, uint32_t unwritten) {
    const int per_token = (flags & RLHF_REWARD_PER_TOKEN) != 0;
    struct maker m = {c, side, 1};
    size_t total = 0, bytes = 0;
    char *pool = NULL;
    *c = (struct rlhf__row_call){.guards = rlhf__guards_open(log)};
    if (!c->guards) return 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct rlhf__check_row *r = &s->row[rows[i]];
        total += (size_t)r->n_ids;
        bytes += r->n_prompt + r->n_response + r->n_meta;
    }
    take_in(&m, n, total, flags);
    if (n > 16) pool = take(&m, bytes, RLHF__CHECK_TEXT, "the texts of the rows");
    for (uint32_t i = 0; m.ok && i < n; i++)
        lay_row(&m, &s->row[rows[i]], i, &pool);
    rlhf__guards_protect(c->guards);
    if (m.ok) take_out(&m, n, total, per_token, unwritten);
    return m.ok;
}

void rlhf__row_call_finish(struct rlhf__row_call *c) {
    rlhf__guards_close(c->guards);
    *c = (struct rlhf__row_call){0};
}
