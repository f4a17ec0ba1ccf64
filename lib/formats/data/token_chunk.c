// token_chunk.c: see token_chunk.h.
#include "data/token_chunk.h"

#include "data/completion.h"
#include "tokenizer/conversation.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROWS = 128 };

static rlhf_status no_memory(struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the tokens of the dataset");
}

static rlhf_status add_row(struct rlhf__token_chunk *c, int64_t source, int32_t len,
                           struct rlhf__error *err) {
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : FIRST_ROWS;
        int32_t *lens = realloc(c->len, cap * sizeof *lens);
        if (lens) c->len = lens;
        int64_t *sources = realloc(c->source, cap * sizeof *sources);
        if (sources) c->source = sources;
        if (!lens || !sources) return no_memory(err);
        c->cap = cap;
    }
    c->len[c->n] = len;
    c->source[c->n++] = source;
    return RLHF_OK;
}

// Append all ids of one dataset row to `ids`: bos, text and eos, cut to the usable length.
static rlhf_status encode_row(const struct rlhf__token_cut *how, rlhf_str text,
                              struct rlhf__ids *ids, int *cut, struct rlhf__error *err) {
    const struct rlhf__token_opts *o = how->opts;
    size_t max = (size_t)o->max_len, before = ids->n;
    *cut = 0;
    if (o->long_rows == RLHF__LONG_SPLIT)
        return rlhf__tokenizer_encode(how->tok, text, o->encode_flags, 0, ids, err);
    // Encode one token more than fits, to find out whether the row must be cut. The text of a cut
    // row does not end at the cut, so the row does not get the eos of RLHF__ENCODE_EOS. Exception:
    // with WordPiece, the cut row still ends with [SEP].
    RLHF_TRY(rlhf__tokenizer_encode(how->tok, text, o->encode_flags & ~(uint32_t)RLHF__ENCODE_EOS,
                                    max + 1, ids, err));
    if (o->encode_flags & RLHF__ENCODE_EOS)
        RLHF_TRY(rlhf__ids_push(ids, rlhf__tokenizer_info(how->tok)->eos, err));
    *cut = ids->n - before > max;
    if (!*cut) return RLHF_OK;
    ids->n = before;
    uint32_t flags =
        how->template ? o->encode_flags : o->encode_flags & ~(uint32_t)RLHF__ENCODE_EOS;
    return rlhf__tokenizer_encode(how->tok, text, flags, max, ids, err);
}

// Append the ids of a conversation. If marks are requested, set RLHF__TOKEN_SAYS in the assistant's
// ids.
static rlhf_status encode_messages(const struct rlhf__token_cut *how,
                                   const struct rlhf__data_row *row, struct rlhf__ids *ids,
                                   int *cut, struct rlhf__error *err) {
    struct rlhf__messages m = {0};
    struct rlhf__buf says = RLHF__BUF_INIT;
    json_t *held = NULL;
    const int marked = how->opts->says == RLHF__SAYS_ASSISTANT;
    size_t before = ids->n, max = (size_t)how->opts->max_len;
    rlhf_status st = rlhf__data_row_messages(row, &held, &m, err);
    if (st == RLHF_OK && row->asked > 0)
        st = rlhf__token_completion_chat(how->tok, &m, (size_t)row->asked, ids, err);
    else if (st == RLHF_OK)
        st = rlhf__conversation_encode(how->tok, &m, 0, ids, marked ? &says : NULL, err);
    for (size_t i = 0; st == RLHF_OK && i < says.len; i++)
        if (says.data[i]) ids->data[before + i] |= RLHF__TOKEN_SAYS;
    *cut = how->opts->long_rows != RLHF__LONG_SPLIT && ids->n - before > max;
    if (*cut) ids->n = before + max;
    rlhf__messages_finish(&m);
    rlhf__buf_finish(&says);
    json_decref(held);
    return st;
}

// 1 if any token after the first has the mark RLHF__TOKEN_SAYS, or if marks are not requested.
static int has_says(const struct rlhf__token_cut *how, const int32_t *ids, size_t n) {
    int found = !how->opts->says;
    for (size_t i = 1; i < n && !found; i++)
        found = (ids[i] & RLHF__TOKEN_SAYS) != 0;
    return found;
}

// Turns the ids from ids->data[at] to the end into one row or, if there are more than max_len ids,
// into several rows (windows). Each window after the first begins with the last token of the window
// before, so this token is stored twice. Drops rows that are shorter than min_len or lack the marks
// that are requested.
static rlhf_status cut_row(const struct rlhf__token_cut *how, struct rlhf__token_chunk *c,
                           int64_t source, struct rlhf__ids *ids, size_t at,
                           struct rlhf__error *err) {
    size_t n = ids->n - at, max = (size_t)how->opts->max_len;
    size_t min = how->opts->min_len > 0 ? (size_t)how->opts->min_len : 1;
    if (n <= max) {
        const int says = n > 0 && has_says(how, ids->data + at, n); // without ids, data is NULL
        if (n >= min && says) return add_row(c, source, (int32_t)n, err);
        ids->n = at;
        c->dropped += n < min;
        c->silent += n >= min;
        return RLHF_OK;
    }
    size_t windows = (n - 2) / (max - 1) + 1; // n > max >= 2: the last has at least 2 tokens
    RLHF_TRY(rlhf__ids_reserve(ids, windows, err));
    int32_t *data = ids->data + at;
    size_t kept = 0, end = n + windows - 1; // start with the last window, which moves furthest
    for (size_t w = windows; w-- > 0;) {
        size_t begin = w * (max - 1), len = n - begin < max ? n - begin : max;
        memmove(data + w * max, data + begin, len * sizeof *data);
    }
    for (size_t w = 0; w < windows; w++) {
        size_t len = w + 1 < windows ? max : end - w * max;
        const int32_t *window = data + w * max;
        if (len < min || !has_says(how, window, len)) { // only the last window can be short
            c->dropped += len < min;
            c->silent += len >= min;
            continue;
        }
        memmove(data + kept, window, len * sizeof *data);
        kept += len;
        RLHF_TRY(add_row(c, source, (int32_t)len, err));
    }
    ids->n = at + kept;
    return RLHF_OK;
}

static rlhf_status encode_text(const struct rlhf__token_cut *how, const struct rlhf__data_row *row,
                               struct rlhf__ids *ids, int *cut, struct rlhf__error *err) {
    rlhf_str text = row->text[how->opts->field];
    if (!text.ptr) return rlhf__fail(err, RLHF_E_INVALID, "the row has no such field");
    if (how->opts->says == RLHF__SAYS_ASSISTANT)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the row is a text, and data.assistant_only is for rows with messages");
    return encode_row(how, text, ids, cut, err);
}

// Encodes a prompt and a completion. As with a text, a row that is cut does not get eos.
static rlhf_status encode_pair(const struct rlhf__token_cut *how, const struct rlhf__data_row *row,
                               struct rlhf__ids *ids, int *cut, struct rlhf__error *err) {
    const size_t before = ids->n, max = (size_t)how->opts->max_len;
    RLHF_TRY(rlhf__token_completion(how->tok, row, how->opts->encode_flags, ids, err));
    *cut = how->opts->long_rows != RLHF__LONG_SPLIT && ids->n - before > max;
    if (*cut) ids->n = before + max;
    return RLHF_OK;
}

rlhf_status rlhf__token_chunk_add(struct rlhf__token_chunk *c, const struct rlhf__token_cut *how,
                                  int64_t source, const struct rlhf__data_row *row,
                                  struct rlhf__ids *ids, struct rlhf__error *err) {
    size_t at = ids->n;
    int cut = 0, chat = row->messages.ptr != NULL;
    if (rlhf__data_row_is_pair(row))
        RLHF_TRY(encode_pair(how, row, ids, &cut, err));
    else
        RLHF_TRY(chat ? encode_messages(how, row, ids, &cut, err)
                      : encode_text(how, row, ids, &cut, err));
    if (how->opts->says == RLHF__SAYS_COMPLETION && !row->asked && !rlhf__data_row_is_pair(row))
        rlhf__token_mark(ids, at);
    c->chats += chat;
    if (cut && !has_says(how, ids->data + at, ids->n - at)) {
        if (c->unreached++ == 0) c->first_unreached = source;
        ids->n = at;
        return RLHF_OK;
    }
    c->truncated += cut;
    return cut_row(how, c, source, ids, at, err);
}

rlhf_status rlhf__token_chunk_store(struct rlhf__token_chunk *c, const struct rlhf__token_cut *how,
                                    struct rlhf__ids *ids, struct rlhf__error *err) {
    size_t width = how->narrow ? sizeof(uint16_t) : sizeof(int32_t);
    c->total = (int64_t)ids->n;
    c->ids = malloc((ids->n ? ids->n : 1) * width);
    if (how->opts->says) c->says = malloc(ids->n ? ids->n : 1);
    if (!c->ids || (how->opts->says && !c->says)) return no_memory(err);
    for (size_t i = 0; c->says && i < ids->n; i++) {
        c->says[i] = (ids->data[i] & RLHF__TOKEN_SAYS) != 0;
        ids->data[i] &= ~RLHF__TOKEN_SAYS;
    }
    if (!how->narrow) {
        if (ids->n) memcpy(c->ids, ids->data, ids->n * width);
        return RLHF_OK;
    }
    uint16_t *out = c->ids;
    for (size_t i = 0; i < ids->n; i++)
        out[i] = (uint16_t)ids->data[i];
    return RLHF_OK;
}

void rlhf__token_chunk_finish(struct rlhf__token_chunk *c) {
    free(c->len);
    free(c->source);
    free(c->ids);
    free(c->says);
    free(c->bad);
    *c = (struct rlhf__token_chunk){0};
}
