// response_rules.c: see response_rules.h.
#include "sample/response_rules.h"

#include "base/log.h"
#include "base/printable.h"

#include <stdlib.h>
#include <string.h>

struct rlhf__response_rules {
    const struct rlhf__tokenizer *tok;
    const struct rlhf__response_config *response;
    json_t *stop;          // array of texts and token ids
    size_t longest;        // bytes of the longest text, 0 = only ids
    int32_t period;        // id that counts as a period, -1 = any token that contains a period
    struct rlhf__buf tail; // scratch
};

// Replace a stop text that is a special token by the token's id, because decoded texts omit special
// tokens.
static void special_to_id(struct rlhf__response_rules *r, size_t i) {
    const json_t *v = json_array_get(r->stop, i);
    const rlhf_str text = {json_string_value(v), json_string_length(v)};
    const int32_t id = text.len ? rlhf__tokenizer_find(r->tok, text) : -1;
    if (id >= 0 && rlhf__tokenizer_is_special(r->tok, id))
        json_array_set_new(r->stop, i, json_integer(id));
}

static rlhf_status check_stop(struct rlhf__response_rules *r, struct rlhf__error *err) {
    int32_t n_vocab = rlhf__tokenizer_info(r->tok)->n_vocab;
    for (size_t i = 0; i < json_array_size(r->stop); i++) {
        special_to_id(r, i);
        const json_t *v = json_array_get(r->stop, i);
        if (json_is_integer(v) && json_integer_value(v) >= n_vocab)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "sampling.stop: the policy has no token %lld; its tokens are 0 to %d",
                              (long long)json_integer_value(v), n_vocab - 1);
        if (json_string_length(v) > r->longest) r->longest = json_string_length(v);
    }
    return RLHF_OK;
}

static rlhf_status find_period(struct rlhf__response_rules *r, struct rlhf__error *err) {
    rlhf_str text = {r->response->period_token, strlen(r->response->period_token)};
    r->period = -1;
    if (!text.len) return RLHF_OK;
    struct rlhf__ids ids = {0};
    rlhf_status st = rlhf__tokenizer_encode(r->tok, text, 0, 0, &ids, err);
    if (st == RLHF_OK && ids.n == 1) r->period = ids.data[0];
    if (st == RLHF_OK && ids.n != 1)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "response.period_token: \"%s\" is %zu tokens of the policy; it must be one",
                        text.ptr, ids.n);
    rlhf__ids_finish(&ids);
    return st;
}

rlhf_status rlhf__response_rules_open(const struct rlhf__sampling_config *sampling,
                                      const struct rlhf__response_config *response,
                                      const struct rlhf__tokenizer *tok,
                                      struct rlhf__response_rules **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__response_rules *r = calloc(1, sizeof *r);
    if (!r) return RLHF__NOMEM(err, "out of memory for the response rules");
    r->tok = tok;
    r->response = response;
    r->stop = json_loads(sampling->stop, 0, NULL);
    rlhf_status st = RLHF_OK;
    if (!r->stop) st = RLHF__NOMEM(err, "out of memory for sampling.stop");
    if (st == RLHF_OK) st = check_stop(r, err);
    if (st == RLHF_OK) st = find_period(r, err);
    if (st == RLHF_OK)
        *out = r;
    else
        rlhf__response_rules_close(r);
    return st;
}

void rlhf__response_rules_close(struct rlhf__response_rules *r) {
    if (!r) return;
    json_decref(r->stop);
    rlhf__buf_finish(&r->tail);
    free(r);
}

const struct rlhf__tokenizer *rlhf__response_rules_tok(const struct rlhf__response_rules *r) {
    return r->tok;
}

// ---- stop texts and ids ----

// Returns the offset in bytes[0..n) of the first `text` that begins at or after `from`, or n if
// none exists.
static size_t find(const char *bytes, size_t n, size_t from, const json_t *text) {
    size_t len = json_string_length(text);
    for (size_t at = from; at + len <= n; at++)
        if (memcmp(bytes + at, json_string_value(text), len) == 0) return at;
    return n;
}

// Decode the end of a response into r->tail. The end consists of the last token and, before it, as
// many tokens as are needed for `longest` - 1 bytes (all earlier tokens if they have fewer bytes).
// *fresh receives the number of bytes of the last token.
static rlhf_status decode_tail(struct rlhf__response_rules *r, const int32_t *ids, int32_t n,
                               size_t *fresh, struct rlhf__error *err) {
    int32_t from = n - 1;
    *fresh = rlhf__tokenizer_decode(r->tok, ids + from, 1, RLHF__DECODE_SKIP_SPECIAL, NULL, 0);
    size_t bytes = *fresh;
    rlhf__buf_clear(&r->tail);
    if (!bytes) return RLHF_OK;
    while (from > 0 && bytes < *fresh + r->longest - 1) {
        from--;
        bytes += rlhf__tokenizer_decode(r->tok, ids + from, 1, RLHF__DECODE_SKIP_SPECIAL, NULL, 0);
    }
    char *room = rlhf__buf_grow(&r->tail, bytes);
    if (!room) return rlhf__buf_ok(&r->tail, err);
    rlhf__tokenizer_decode(r->tok, ids + from, (size_t)(n - from), RLHF__DECODE_SKIP_SPECIAL, room,
                           bytes);
    return RLHF_OK;
}

rlhf_status rlhf__response_stops(struct rlhf__response_rules *r, const int32_t *ids, int32_t n,
                                 int *stops, struct rlhf__error *err) {
    size_t fresh = 0;
    *stops = 0;
    if (r->longest) RLHF_TRY(decode_tail(r, ids, n, &fresh, err));
    size_t len = r->tail.len;
    for (size_t i = 0; !*stops && i < json_array_size(r->stop); i++) {
        const json_t *v = json_array_get(r->stop, i);
        if (json_is_integer(v)) {
            *stops = json_integer_value(v) == ids[n - 1];
            continue;
        }
        // If the last token completes a stop text of L bytes, the text begins at most L - 1 bytes
        // before that token. The search begins there.
        size_t back = fresh + json_string_length(v) - 1;
        *stops = fresh > 0 && find(r->tail.data, len, len > back ? len - back : 0, v) < len;
    }
    return RLHF_OK;
}

size_t rlhf__response_text_end(const struct rlhf__response_rules *r, const char *text, size_t n) {
    size_t end = n;
    for (size_t i = 0; i < json_array_size(r->stop); i++) {
        const json_t *v = json_array_get(r->stop, i);
        if (!json_is_string(v)) continue;
        size_t at = find(text, n, 0, v);
        if (at < end) end = at;
    }
    return end;
}

// ---- the period rule ----

static int is_period(const struct rlhf__response_rules *r, int32_t id) {
    if (r->period >= 0) return id == r->period;
    char bytes[256];
    size_t n =
        rlhf__tokenizer_decode(r->tok, &id, 1, RLHF__DECODE_SKIP_SPECIAL, bytes, sizeof bytes);
    return memchr(bytes, '.', n < sizeof bytes ? n : sizeof bytes) != NULL;
}

int32_t rlhf__response_period(const struct rlhf__response_rules *r, const int32_t *ids, int32_t n) {
    int64_t from = r->response->period_min > 1 ? r->response->period_min : 1;
    for (int64_t k = from; k <= n && k <= r->response->period_max; k++)
        if (is_period(r, ids[k - 1])) return (int32_t)k;
    return -1;
}

// ---- end tokens ----

int rlhf__response_stops_at_eos(const struct rlhf__sampling_config *s,
                                const struct rlhf__model *m) {
    return s->stop_at_eos == RLHF__STOP_AUTO ? !m->ends.goes_on
                                             : s->stop_at_eos == RLHF__STOP_ALWAYS;
}

// Write the texts of the model's first few end tokens.
static void put_ends(const struct rlhf__model *m, struct rlhf__buf *out) {
    enum { SHOWN = 4 };
    for (int32_t i = 0; i < m->ends.n && i < SHOWN; i++) {
        char *text = rlhf__tokenizer_text(m->tok, &m->ends.id[i], 1, 0, NULL);
        rlhf__buf_puts(out, i ? ", " : "");
        rlhf__put_printable(out, text ? text : "", text ? strlen(text) : 0, "");
        free(text);
    }
    if (m->ends.n > SHOWN) rlhf__buf_printf(out, " and %d more", (int)m->ends.n - SHOWN);
}

void rlhf__response_say_ends(const struct rlhf__sampling_config *s, const struct rlhf__model *m,
                             struct rlhf__log *log) {
    const int listed = strcmp(s->stop, "[]") != 0,
              ends = rlhf__response_stops_at_eos(s, m) && m->ends.n > 0;
    struct rlhf__buf by = RLHF__BUF_INIT;
    if (ends) put_ends(m, &by);
    if (listed) rlhf__buf_printf(&by, "%sat sampling.stop %s", ends ? " and " : "", s->stop);
    const char *why = s->stop_at_eos == RLHF__STOP_NEVER ? "sampling.stop_at_eos=false"
                      : m->ends.n == 0                   ? "the model names no end token"
                                       : "config.json of the policy has " RLHF__STOP_AT_EOS_KEY
                                         "=false; sampling.stop_at_eos=true stops at end tokens";
    if (ends)
        rlhf__logf(log, RLHF_LOG_INFO, "responses: at most %lld tokens, end at %s",
                   (long long)s->max_new_tokens, rlhf__buf_text(&by));
    else if (listed)
        rlhf__logf(log, RLHF_LOG_INFO, "responses: at most %lld tokens, end %s only (%s)",
                   (long long)s->max_new_tokens, rlhf__buf_text(&by), why);
    else
        rlhf__logf(log, RLHF_LOG_INFO, "responses: %lld tokens each, and do not end early (%s)",
                   (long long)s->max_new_tokens, why);
    rlhf__buf_finish(&by);
}
