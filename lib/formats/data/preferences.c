// preferences.c: see preferences.h. Rows are read one at a time. Their tokens are kept in one pool,
// in the order of the rows: each row's prompt, followed by its responses.
#include "data/preferences.h"

#include "base/file.h"
#include "data/lines.h"
#include "data/preference_texts.h"
#include "tokenizer/conversation.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct item {
    size_t ids, len; // where the row begins in the pools of ids and of response lengths
    int64_t row;
    int32_t n_prompt, n, best;
    float margin;
};

struct rlhf__preferences {
    struct rlhf__ids ids, len; // len: the lengths of all responses of all rows
    struct item *item;         // [n]
    size_t n, cap;
    int64_t truncated, dropped, chats, too_long;
    int32_t margins; // 1 = some row has a margin
};

// The state of a reading loop.
struct reader {
    const struct rlhf__preference_opts *opts;
    const struct rlhf__tokenizer *tok;
    struct rlhf__preferences *set;
    const char *path;
    int64_t line, seen;                // line in the file; rows seen in all files
    struct rlhf__ids prompt, ids, len; // of the current row
    struct rlhf__error *err;
};

static rlhf_status no_memory(struct rlhf__error *err) {
    return RLHF__NOMEM(err, "out of memory for the preference rows");
}

// Fails with "FILE:LINE: sentence". This is a macro, so that the compiler checks the format and
// static analyzers recognize a failure.
#define BAD(r, fmt, ...)                                                                           \
    (rlhf__fail((r)->err, RLHF_E_INVALID, "%s:%lld: " fmt, (r)->path, (long long)(r)->line,        \
                __VA_ARGS__),                                                                      \
     RLHF_E_INVALID)

// ---- tokens ----

static rlhf_status encode(struct reader *r, const json_t *text, uint32_t flags, const char *what,
                          struct rlhf__ids *out) {
    rlhf_str s = {json_string_value(text), json_string_length(text)};
    size_t before = out->n;
    RLHF_TRY(rlhf__tokenizer_encode(r->tok, s, flags, 0, out, r->err));
    if (out->n - before > INT32_MAX || out->n > INT32_MAX)
        return BAD(r, "%s has more than %d tokens", what, INT32_MAX);
    if (out->n == before) return BAD(r, "%s has no tokens", what);
    return RLHF_OK;
}

// The maximum number of tokens of a response, even if its prompt is short.
static int32_t response_room(const struct rlhf__preference_opts *o) {
    int32_t room = o->max_tokens - 1 - (o->prepend_bos ? 1 : 0);
    return o->max_response > 0 && o->max_response < room ? o->max_response : room;
}

// Cuts r->ids, r->len and r->prompt as the options require. A prompt of messages is not cut; the
// caller has already checked that it leaves room for a response.
static rlhf_status fit(struct reader *r, int is_chat) {
    const struct rlhf__preference_opts *o = r->opts;
    int refuse = o->long_rows == RLHF__PREFERENCE_REFUSE, cut = 0;
    int32_t room = refuse ? o->max_tokens : response_room(o), longest = 0;
    size_t from = 0, to = 0;
    if (refuse && o->max_response > 0 && o->max_response < room) room = o->max_response;
    if (!refuse && is_chat && o->max_tokens - (int32_t)r->prompt.n < room)
        room = o->max_tokens - (int32_t)r->prompt.n;
    for (size_t i = 0; i < r->len.n; i++) {
        int32_t len = r->len.data[i], kept = len < room ? len : room;
        if (kept < len && refuse)
            return BAD(r, "response %zu has %d tokens; allowed: %d", i, len, room);
        memmove(r->ids.data + to, r->ids.data + from, (size_t)kept * sizeof *r->ids.data);
        cut |= kept < len;
        from += (size_t)len;
        to += (size_t)kept;
        r->len.data[i] = kept;
        if (kept > longest) longest = kept;
    }
    r->ids.n = to;
    size_t space = (size_t)(o->max_tokens - longest), bos = o->prepend_bos ? 1 : 0;
    if (r->prompt.n > space && refuse)
        return BAD(r, "prompt and response have %zu tokens; allowed: %d",
                   r->prompt.n + (size_t)longest, o->max_tokens);
    if (r->prompt.n > space) {
        memmove(r->prompt.data + bos, r->prompt.data + r->prompt.n - (space - bos),
                (space - bos) * sizeof *r->prompt.data);
        r->prompt.n = space;
        cut = 1;
    }
    r->set->truncated += cut;
    return RLHF_OK;
}

// 1 if another response has the same tokens as the best response.
static int ambiguous(const struct reader *r, int32_t best) {
    size_t at = 0, best_at = 0;
    if (best < 0) return 0;
    for (int32_t i = 0; i < best; i++)
        best_at += (size_t)r->len.data[i];
    for (size_t i = 0; i < r->len.n; at += (size_t)r->len.data[i++])
        if ((int32_t)i != best && r->len.data[i] == r->len.data[best] &&
            memcmp(r->ids.data + at, r->ids.data + best_at,
                   (size_t)r->len.data[i] * sizeof *r->ids.data) == 0)
            return 1;
    return 0;
}

static rlhf_status append(struct rlhf__ids *to, const struct rlhf__ids *more,
                          struct rlhf__error *err) {
    RLHF_TRY(rlhf__ids_reserve(to, more->n, err));
    if (more->n) memcpy(to->data + to->n, more->data, more->n * sizeof *more->data);
    to->n += more->n;
    return RLHF_OK;
}

static rlhf_status keep(struct reader *r, const struct rlhf__preference_texts *t) {
    struct rlhf__preferences *set = r->set;
    if (set->n == set->cap) {
        size_t cap = set->cap ? set->cap * 2 : 256;
        struct item *grown = realloc(set->item, cap * sizeof *grown);
        if (!grown) return no_memory(r->err);
        set->item = grown;
        set->cap = cap;
    }
    struct item it = {.ids = set->ids.n,
                      .len = set->len.n,
                      .row = r->seen - 1,
                      .n_prompt = (int32_t)r->prompt.n,
                      .n = (int32_t)r->len.n,
                      .best = t->best,
                      .margin = t->margin};
    set->margins |= t->has_margin;
    RLHF_TRY(append(&set->ids, &r->prompt, r->err));
    RLHF_TRY(append(&set->ids, &r->ids, r->err));
    RLHF_TRY(append(&set->len, &r->len, r->err));
    set->item[set->n++] = it;
    return RLHF_OK;
}

static rlhf_status encode_texts(struct reader *r, const struct rlhf__preference_texts *t) {
    uint32_t flags = r->opts->prepend_bos ? RLHF__ENCODE_BOS : 0;
    RLHF_TRY(encode(r, t->prompt, flags, "the prompt", &r->prompt));
    for (int32_t i = 0; i < t->n; i++) {
        size_t before = r->ids.n;
        RLHF_TRY(encode(r, t->response[i], 0, "a response", &r->ids));
        RLHF_TRY(rlhf__ids_push(&r->len, (int32_t)(r->ids.n - before), r->err));
    }
    return RLHF_OK;
}

// Append the messages [from, to) of the list v, which has been checked. If v is a string instead of
// a list, append one message of the assistant with that text.
static rlhf_status take_messages(const json_t *v, size_t from, size_t to, struct rlhf__messages *m,
                                 struct rlhf__error *err) {
    if (json_is_string(v)) {
        rlhf_str says = {json_string_value(v), json_string_length(v)};
        return rlhf__messages_add(m, RLHF__ROLE_ASSISTANT, says, err);
    }
    struct rlhf__messages all = {0};
    rlhf_status st = rlhf__messages_read(&all, v, "messages", err);
    for (size_t i = from; st == RLHF_OK && i < to && i < all.n; i++)
        st = rlhf__messages_put(m, &all.item[i], err);
    rlhf__messages_finish(&all);
    return st;
}

// Remove the token that ends the turn from a response that was cut off. A template that does not
// end turns with a special token adds nothing to remove.
static void leave_open(struct reader *r, size_t before) {
    if (r->ids.n > before + 1 && rlhf__tokenizer_is_special(r->tok, r->ids.data[r->ids.n - 1]))
        r->ids.n--;
}

static rlhf_status encode_answers(struct reader *r, const struct rlhf__preference_texts *t,
                                  const struct rlhf__messages *prompt) {
    rlhf_status st = RLHF_OK;
    for (int32_t i = 0; st == RLHF_OK && i < t->n; i++) {
        struct rlhf__messages answer = {0};
        size_t before = r->ids.n;
        st = take_messages(t->response[i], (size_t)t->shared, SIZE_MAX, &answer, r->err);
        if (st == RLHF_OK)
            st = rlhf__conversation_answer(r->tok, prompt, &answer, r->prompt.data, r->prompt.n,
                                           &r->ids, r->err);
        if (st == RLHF_OK && t->cut[i]) leave_open(r, before);
        if (st == RLHF_OK && r->ids.n > INT32_MAX)
            st =
                rlhf__fail(r->err, RLHF_E_INVALID, "a response has more than %d tokens", INT32_MAX);
        if (st == RLHF_OK && r->ids.n == before)
            st = rlhf__fail(r->err, RLHF_E_INVALID, "a response has no tokens");
        if (st == RLHF_OK) st = rlhf__ids_push(&r->len, (int32_t)(r->ids.n - before), r->err);
        rlhf__messages_finish(&answer);
    }
    return st;
}

static rlhf_status encode_chat(struct reader *r, const struct rlhf__preference_texts *t) {
    struct rlhf__messages m = {0};
    const json_t *list = t->prompt ? t->prompt : t->response[0];
    size_t to = t->prompt ? SIZE_MAX : (size_t)t->shared;
    json_t *tools = NULL;
    rlhf_status st = take_messages(list, 0, to, &m, r->err);
    if (st == RLHF_OK) st = rlhf__messages_tools(t->row, &tools, r->err);
    m.tools = tools;
    m.vars = rlhf__messages_vars(t->row);
    if (st == RLHF_OK) st = rlhf__messages_check_prompt(&m, "prompt", r->err);
    if (st == RLHF_OK) st = rlhf__conversation_encode(r->tok, &m, 1, &r->prompt, NULL, r->err);
    if (st == RLHF_OK && r->prompt.n > INT32_MAX)
        st = rlhf__fail(r->err, RLHF_E_INVALID, "the prompt has more than %d tokens", INT32_MAX);
    if (st == RLHF_OK) st = encode_answers(r, t, &m);
    rlhf__messages_finish(&m);
    json_decref(tools);
    if (st == RLHF_E_NOMEM || st == RLHF_OK) return st;
    return rlhf__error_context(r->err, "%s:%lld", r->path, (long long)r->line);
}

static rlhf_status add_texts(struct reader *r, const struct rlhf__preference_texts *t) {
    struct rlhf__preferences *set = r->set;
    r->prompt.n = r->ids.n = r->len.n = 0;
    RLHF_TRY(t->is_chat ? encode_chat(r, t) : encode_texts(r, t));
    if (t->is_chat && r->prompt.n >= (size_t)r->opts->max_tokens &&
        r->opts->long_rows == RLHF__PREFERENCE_CUT) {
        set->too_long++;
        return RLHF_OK;
    }
    RLHF_TRY(fit(r, t->is_chat));
    if (ambiguous(r, t->best)) {
        set->dropped++;
        return RLHF_OK;
    }
    set->chats += t->is_chat;
    return keep(r, t);
}

// ---- files ----

static rlhf_status add_line(struct reader *r, rlhf_str line) {
    struct rlhf__preference_texts t = {0};
    json_t *row;
    RLHF_TRY(rlhf__row_line_check(line, r->path, r->line, r->err));
    RLHF_TRY(rlhf__row_line_json(line, r->path, r->line, &row, r->err));
    rlhf_status st = rlhf__preference_texts_read(row, r->opts, r->path, r->line, &t, r->err);
    if (st == RLHF_OK) st = add_texts(r, &t);
    json_decref(row);
    return st;
}

static int full(const struct reader *r) {
    int64_t used = (int64_t)r->set->n + r->set->dropped + r->set->too_long;
    return r->opts->limit > 0 && used >= r->opts->limit;
}

// The number of bytes in memory.
static uint64_t held(const struct rlhf__preferences *set) {
    return (set->ids.n + set->len.n) * sizeof *set->ids.data + set->n * sizeof *set->item;
}

static rlhf_status add_file(struct reader *r) {
    int more = 1;
    int64_t before = r->seen;
    struct rlhf__lines *lines = NULL;
    RLHF_TRY(rlhf__lines_open(r->path, r->opts->setting, &lines, r->err));
    rlhf_status st = RLHF_OK;
    while (st == RLHF_OK && !full(r)) {
        rlhf_str line;
        st = rlhf__lines_next(lines, &line, &r->line, &more, r->err);
        if (st < 0 || !more) break;
        st = rlhf__loading_check(r->opts->loading, held(r->set), r->path, r->line, r->err);
        if (st < 0) break;
        rlhf__loading_seen(r->opts->loading, "reading rows", r->line, 0);
        if (rlhf__row_line_blank(line) || r->seen++ < r->opts->skip) continue;
        int bad;
        st = rlhf__bad_row(r->opts->loading, add_line(r, line), &bad, r->err);
    }
    rlhf__lines_close(lines);
    if (st == RLHF_OK && r->seen == before && !full(r))
        return rlhf__fail(r->err, RLHF_E_INVALID, "%s: the file has no rows", r->path);
    return st;
}

static rlhf_status check_left(const struct reader *r) {
    if (r->set->n) return RLHF_OK;
    rlhf__fail(r->err, RLHF_E_INVALID,
               "%s: no rows are left: the data has %lld, %lld are skipped, in %lld the "
               "better response has the same tokens as another%s",
               r->opts->paths[0], (long long)r->seen, (long long)r->opts->skip,
               (long long)r->set->dropped,
               r->set->too_long ? ", and prompts of messages fill the context" : "");
    return rlhf__bad_rows_context(r->opts->loading, r->err);
}

static rlhf_status check_opts(const struct rlhf__preference_opts *o,
                              const struct rlhf__tokenizer *tok, struct rlhf__error *err) {
    if (!o->n_paths) return rlhf__fail(err, RLHF_E_INVALID, "no data file is given");
    if (o->prepend_bos && rlhf__tokenizer_info(tok)->bos < 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "prompts.prepend_bos: the tokenizer has no BOS token");
    if (response_room(o) < 1)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "rows of %d tokens leave no room for a prompt and a response",
                          o->max_tokens);
    return RLHF_OK;
}

rlhf_status rlhf__preferences_open(const struct rlhf__preference_opts *opts,
                                   const struct rlhf__tokenizer *tok,
                                   struct rlhf__preferences **out, struct rlhf__error *err) {
    RLHF_TRY(check_opts(opts, tok, err));
    struct rlhf__preferences *set = calloc(1, sizeof *set);
    if (!set) return no_memory(err);
    struct reader r = {.opts = opts, .tok = tok, .set = set, .err = err};
    rlhf_status st = RLHF_OK;
    for (size_t i = 0; st == RLHF_OK && i < opts->n_paths && !full(&r); i++) {
        r.path = opts->paths[i];
        st = add_file(&r);
    }
    if (st == RLHF_OK) st = check_left(&r);
    rlhf__ids_finish(&r.prompt);
    rlhf__ids_finish(&r.ids);
    rlhf__ids_finish(&r.len);
    if (st == RLHF_OK)
        *out = set;
    else
        rlhf__preferences_close(set);
    return st;
}

static int has_preferences(const json_t *row) {
    if (json_object_get(row, "text")) return 0;
    return json_object_get(row, "chosen") || json_object_get(row, "rejected") ||
           json_object_get(row, "responses");
}

static int has_label(const json_t *row) {
    return !json_object_get(row, "text") && json_object_get(row, "completion") &&
           json_is_boolean(json_object_get(row, "label"));
}

rlhf_status rlhf__preferences_are(const char *path, const char *setting, int *are,
                                  struct rlhf__error *err) {
    struct rlhf__lines *lines = NULL;
    rlhf_str line = {NULL, 0};
    int64_t number = 0;
    int more = 1;
    json_t *row = NULL;
    *are = 0;
    if (access(path, F_OK) == 0 && !rlhf__is_file(path)) *are = -1;
    if (*are || rlhf__data_is_text(path)) return RLHF_OK;
    RLHF_TRY(rlhf__lines_open(path, setting, &lines, err));
    rlhf_status st = RLHF_OK;
    while (st == RLHF_OK && more && rlhf__row_line_blank(line))
        st = rlhf__lines_next(lines, &line, &number, &more, err);
    if (st == RLHF_OK && more) st = rlhf__row_line_check(line, path, number, err);
    if (st == RLHF_OK && more) st = rlhf__row_line_json(line, path, number, &row, err);
    if (st == RLHF_OK) *are = has_preferences(row) ? 1 : has_label(row) ? 2 : 0;
    json_decref(row);
    rlhf__lines_close(lines);
    return st;
}

void rlhf__preferences_close(struct rlhf__preferences *set) {
    if (!set) return;
    rlhf__ids_finish(&set->ids);
    rlhf__ids_finish(&set->len);
    free(set->item);
    free(set);
}

struct rlhf__preference rlhf__preferences_get(const struct rlhf__preferences *set, int64_t i) {
    const struct item *it = &set->item[i];
    return (struct rlhf__preference){.prompt = set->ids.data + it->ids,
                                     .ids = set->ids.data + it->ids + it->n_prompt,
                                     .len = set->len.data + it->len,
                                     .n_prompt = it->n_prompt,
                                     .n = it->n,
                                     .best = it->best,
                                     .margin = it->margin,
                                     .row = it->row};
}

int64_t rlhf__preferences_count(const struct rlhf__preferences *set) { return (int64_t)set->n; }
int64_t rlhf__preferences_responses(const struct rlhf__preferences *set) {
    return (int64_t)set->len.n;
}
int rlhf__preferences_margins(const struct rlhf__preferences *set) { return set->margins; }
int64_t rlhf__preferences_truncated(const struct rlhf__preferences *set) { return set->truncated; }
int64_t rlhf__preferences_dropped(const struct rlhf__preferences *set) { return set->dropped; }
int64_t rlhf__preferences_chats(const struct rlhf__preferences *set) { return set->chats; }
int64_t rlhf__preferences_too_long(const struct rlhf__preferences *set) { return set->too_long; }
