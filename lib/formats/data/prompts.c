// prompts.c: see prompts.h. The query rules of the 2019 code drop the text up to its first period
// (start_after_period), keep at most `length` tokens, and cut these after their last period
// (end_at_period). Each rule is optional. `long_rows` decides what happens to a prompt that is
// longer than max_tokens. RLHF__PROMPT_CUT_RIGHT cuts it before the search for the last period. The
// other values of `long_rows` apply after the rules.
#include "data/prompts.h"

#include "base/buf.h"
#include "data/dataset.h"
#include "tokenizer/conversation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
    size_t ids, text, n_text; // where the prompt begins in the pools; length of its text
    int32_t n, is_chat;
    int64_t row;
};

struct rlhf__prompts {
    struct rlhf__dataset *ds; // NULL if the prompt is a constant text
    struct rlhf__ids ids;
    struct rlhf__buf text;
    struct item *item; // [n]
    size_t n, cap;
    int64_t chats;
    struct rlhf__prompt_counts count;
    int32_t least, most;     // bounds on the number of tokens of a prompt
    int32_t longest, period; // period: the id of "."
};

static rlhf_status no_memory(struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the prompts");
}

static int has_rules(const struct rlhf__prompt_opts *o) {
    return o->start_after_period || o->end_at_period;
}

// Applies the rules to ids[0 .. *n). Sets *from and *n so that the prompt is ids[*from .. *from +
// *n). Sets *cut to 1 if RLHF__PROMPT_CUT_RIGHT cut the prompt, otherwise to 0. Returns 1, or 0 if
// the text must be skipped because it lacks a period that the rules need.
static int apply_rules(const struct rlhf__prompt_opts *o, int32_t period, const int32_t *ids,
                       size_t *from, size_t *n, int *cut) {
    *from = 0;
    *cut = 0;
    if (o->start_after_period) {
        while (*from < *n && ids[*from] != period)
            ++*from;
        if (*from == *n || ++*from == *n) return 0;
        *n -= *from;
    }
    if (o->length > 0 && *n > (size_t)o->length) *n = (size_t)o->length;
    size_t room = (size_t)(o->max_tokens - (o->prepend_bos ? 1 : 0));
    if (o->long_rows == RLHF__PROMPT_CUT_RIGHT && *n > room) {
        *n = room;
        *cut = 1;
    }
    if (o->end_at_period) {
        while (*n && ids[*from + *n - 1] != period)
            --*n;
        if (!*n) return 0;
    }
    return 1;
}

// If `length` is set, encodes only the beginning of the text. With start_after_period, this is
// usually enough, because most texts have a period early. If the beginning lacks a period, or has
// fewer than `length` tokens after it, encodes the whole text.
static rlhf_status encode(const struct rlhf__prompt_opts *o, const struct rlhf__tokenizer *tok,
                          int32_t period, rlhf_str text, struct rlhf__ids *ids,
                          struct rlhf__error *err) {
    size_t look = o->length > 0 ? (size_t)o->length : 0;
    ids->n = 0;
    if (look && o->start_after_period) look += look + 64;
    RLHF_TRY(rlhf__tokenizer_encode(tok, text, 0, look, ids, err));
    if (!look || !o->start_after_period || ids->n < look) return RLHF_OK;
    size_t first = 0;
    while (first < ids->n && ids->data[first] != period)
        first++;
    if (first + 1 + (size_t)o->length <= ids->n) return RLHF_OK;
    ids->n = 0;
    return rlhf__tokenizer_encode(tok, text, 0, 0, ids, err);
}

static rlhf_status put_text(struct rlhf__prompts *set, struct item *it, size_t from,
                            struct rlhf__error *err) {
    it->text = from;
    it->n_text = set->text.len - from;
    return set->text.bad ? no_memory(err) : RLHF_OK;
}

static rlhf_status add_text(struct rlhf__prompts *set, const struct rlhf__tokenizer *tok,
                            struct item *it, struct rlhf__error *err) {
    size_t len = 0;
    char *text = rlhf__tokenizer_text(tok, set->ids.data + it->ids, (size_t)it->n,
                                      RLHF__DECODE_SKIP_SPECIAL, &len);
    if (!text) return no_memory(err);
    size_t from = set->text.len;
    rlhf__buf_put(&set->text, text, len);
    free(text);
    return put_text(set, it, from, err);
}

// `m` has the messages whose ids are `ids`, or is NULL if the prompt is a text.
static rlhf_status add_item(struct rlhf__prompts *set, const struct rlhf__prompt_opts *o,
                            const struct rlhf__tokenizer *tok, const int32_t *ids, size_t n,
                            const struct rlhf__messages *m, int64_t row, struct rlhf__error *err) {
    if (set->n == set->cap) {
        size_t cap = set->cap ? set->cap * 2 : 64;
        struct item *grown = realloc(set->item, cap * sizeof *grown);
        if (!grown) return no_memory(err);
        set->item = grown;
        set->cap = cap;
    }
    struct item it = {.ids = set->ids.n, .row = row, .is_chat = m != NULL};
    if (o->prepend_bos && !m)
        RLHF_TRY(rlhf__ids_push(&set->ids, rlhf__tokenizer_info(tok)->bos, err));
    for (size_t i = 0; i < n; i++)
        RLHF_TRY(rlhf__ids_push(&set->ids, ids[i], err));
    it.n = (int32_t)(set->ids.n - it.ids);
    if (it.n > set->longest) set->longest = it.n;
    size_t from = set->text.len;
    if (m) rlhf__messages_text(m, &set->text);
    RLHF_TRY(m ? put_text(set, &it, from, err) : add_text(set, tok, &it, err));
    set->chats += m != NULL;
    set->item[set->n++] = it;
    return RLHF_OK;
}

static rlhf_status add_prompt(struct rlhf__prompts *set, const struct rlhf__prompt_opts *o,
                              const struct rlhf__tokenizer *tok, rlhf_str text, int64_t row,
                              struct rlhf__ids *scratch, struct rlhf__error *err) {
    struct rlhf__prompt_counts *count = &set->count;
    count->rows++;
    RLHF_TRY(encode(o, tok, set->period, text, scratch, err));
    size_t from = 0, n = scratch->n, bos = o->prepend_bos ? 1 : 0, most = (size_t)set->most;
    int cut = 0;
    if (!apply_rules(o, set->period, scratch->data, &from, &n, &cut)) {
        count->no_period++;
        return RLHF_OK;
    }
    if (n + bos > most && o->long_rows == RLHF__PROMPT_REFUSE)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "the prompt has %zu tokens, %zu are allowed (prompts.long_rows is refuse)", n + bos,
            most);
    if (n + bos > most && o->long_rows == RLHF__PROMPT_SKIP) {
        count->too_long++;
        return RLHF_OK;
    }
    if (n + bos > most) {
        from += n + bos - most;
        n = most - bos;
        cut = 1;
    }
    if (n + bos < (size_t)set->least) {
        count->too_short++;
        return RLHF_OK;
    }
    count->cut += cut;
    return add_item(set, o, tok, n ? scratch->data + from : NULL, n, NULL, row, err);
}

// ---- messages ----

static rlhf_status check_rules(const struct rlhf__prompt_opts *o, struct rlhf__error *err) {
    const char *rule = o->start_after_period ? "prompts.start_after_period"
                       : o->end_at_period    ? "prompts.end_at_period"
                       : o->length > 0       ? "prompts.length"
                                             : NULL;
    if (!rule) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "the row has messages, and %s is for texts: a chat template says how a prompt "
        "begins and ends",
        rule);
}

// Uses a conversation whole or leaves it out, because a cut conversation makes no sense.
static rlhf_status add_messages(struct rlhf__prompts *set, const struct rlhf__prompt_opts *o,
                                const struct rlhf__tokenizer *tok, const struct rlhf__messages *m,
                                int64_t row, struct rlhf__ids *scratch, struct rlhf__error *err) {
    set->count.rows++;
    scratch->n = 0;
    RLHF_TRY(check_rules(o, err));
    RLHF_TRY(rlhf__conversation_encode(tok, m, 1, scratch, NULL, err));
    size_t n = scratch->n, most = (size_t)set->most;
    if (n > most && o->long_rows == RLHF__PROMPT_REFUSE)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "the prompt has %zu tokens, %zu are allowed (prompts.long_rows is refuse)", n, most);
    set->count.too_long += n > most;
    set->count.too_short += n < (size_t)set->least;
    if (n > most || n < (size_t)set->least) return RLHF_OK;
    return add_item(set, o, tok, scratch->data, n, m, row, err);
}

static rlhf_status open_files(struct rlhf__prompts *set, const struct rlhf__prompt_opts *o,
                              struct rlhf__error *err) {
    struct rlhf__dataset_opts d = {.paths = o->paths,
                                   .n_paths = o->n_paths,
                                   .setting = o->setting,
                                   .want = RLHF__FIELD_BIT(RLHF__FIELD_PROMPT),
                                   .line_field = RLHF__FIELD_PROMPT,
                                   .keep_meta = 1,
                                   .prompts = 1,
                                   .skip = o->skip,
                                   .limit = o->limit,
                                   .loading = o->loading};
    d.name[RLHF__FIELD_PROMPT] = o->field;
    d.want |= RLHF__FIELD_BIT(RLHF__FIELD_MESSAGES);
    if (o->field)
        d.need = RLHF__FIELD_BIT(RLHF__FIELD_PROMPT);
    else
        d.want |= RLHF__FIELD_BIT(RLHF__FIELD_TEXT);
    return rlhf__dataset_open(&d, &set->ds, err);
}

// The number of bytes in memory.
static uint64_t held(const struct rlhf__prompts *set) {
    return rlhf__dataset_bytes(set->ds) + set->ids.n * sizeof *set->ids.data + set->text.len +
           set->n * sizeof *set->item;
}

static rlhf_status add_row(struct rlhf__prompts *set, const struct rlhf__prompt_opts *o,
                           const struct rlhf__tokenizer *tok, const struct rlhf__data_row *row,
                           int64_t i, struct rlhf__ids *scratch, struct rlhf__error *err) {
    rlhf_str text = row->text[RLHF__FIELD_PROMPT];
    if (!text.ptr) text = row->text[RLHF__FIELD_TEXT];
    if (text.ptr) return add_prompt(set, o, tok, text, i, scratch, err);
    if (!row->messages.ptr)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the row has none of the fields 'prompt', 'messages' and 'text'; "
                          "prompts.field=NAME reads the prompt from another field");
    struct rlhf__messages m = {0};
    json_t *held = NULL;
    rlhf_status st = rlhf__data_row_messages(row, &held, &m, err);
    if (st == RLHF_OK) st = add_messages(set, o, tok, &m, i, scratch, err);
    rlhf__messages_finish(&m);
    json_decref(held);
    return st;
}

static rlhf_status add_rows(struct rlhf__prompts *set, const struct rlhf__prompt_opts *o,
                            const struct rlhf__tokenizer *tok, struct rlhf__ids *scratch,
                            struct rlhf__error *err) {
    int64_t rows = rlhf__dataset_rows(set->ds);
    for (int64_t i = 0; i < rows; i++) {
        struct rlhf__data_row row = rlhf__dataset_row(set->ds, i);
        RLHF_TRY(rlhf__loading_check(o->loading, held(set), rlhf__dataset_path(set->ds, row.file),
                                     row.line, err));
        rlhf__loading_seen(o->loading, "tokenising prompts", i, rows);
        rlhf_status st = add_row(set, o, tok, &row, i, scratch, err);
        if (st < 0) {
            char where[512];
            rlhf__dataset_where(set->ds, i, where, sizeof where);
            rlhf__error_context(err, "%s", where);
            int bad;
            RLHF_TRY(rlhf__bad_row(o->loading, st, &bad, err));
        }
    }
    return RLHF_OK;
}

// Append "; left out: 2 under 3 tokens, 1 over 5 tokens", or nothing.
static void put_left_out(const struct rlhf__prompts *set, struct rlhf__buf *out) {
    const struct rlhf__prompt_counts *c = &set->count;
    const char *before = "; left out: ";
    if (c->no_period) {
        rlhf__buf_printf(out, "%s%lld without a period where the query rules need one", before,
                         (long long)c->no_period);
        before = ", ";
    }
    if (c->too_short) {
        rlhf__buf_printf(out, "%s%lld under %d token%s", before, (long long)c->too_short,
                         (int)set->least, set->least == 1 ? "" : "s");
        before = ", ";
    }
    if (c->too_long)
        rlhf__buf_printf(out, "%s%lld over %d token%s", before, (long long)c->too_long,
                         (int)set->most, set->most == 1 ? "" : "s");
}

void rlhf__prompts_summary(const struct rlhf__prompts *set, struct rlhf__buf *out) {
    const struct rlhf__prompt_counts *c = &set->count;
    if ((int64_t)set->n == c->rows && !c->cut) return;
    rlhf__buf_printf(out, "%zu of %lld row%s %s used", set->n, (long long)c->rows,
                     c->rows == 1 ? "" : "s", set->n == 1 ? "is" : "are");
    if (c->cut)
        rlhf__buf_printf(out, "; %lld of them %s cut to %d tokens", (long long)c->cut,
                         c->cut == 1 ? "is" : "are", (int)set->most);
    put_left_out(set, out);
}

static rlhf_status fill(struct rlhf__prompts *set, const struct rlhf__prompt_opts *o,
                        const struct rlhf__tokenizer *tok, struct rlhf__error *err) {
    struct rlhf__ids scratch = {0};
    rlhf_status st;
    if (o->n_paths) {
        st = add_rows(set, o, tok, &scratch, err);
    } else {
        rlhf_str text = {o->text, o->text ? strlen(o->text) : 0};
        st = add_prompt(set, o, tok, text, 0, &scratch, err);
    }
    rlhf__ids_finish(&scratch);
    if (st != RLHF_OK || set->n) return st;
    struct rlhf__buf why = RLHF__BUF_INIT;
    put_left_out(set, &why);
    st = rlhf__fail(err, RLHF_E_INVALID, "%s: no prompt is left of %lld row%s%s",
                    o->n_paths ? o->paths[0] : "prompts.text", (long long)set->count.rows,
                    set->count.rows == 1 ? "" : "s", rlhf__buf_text(&why));
    rlhf__buf_finish(&why);
    return o->n_paths ? rlhf__bad_rows_context(o->loading, err) : st;
}

rlhf_status rlhf__prompts_open(const struct rlhf__prompt_opts *opts,
                               const struct rlhf__tokenizer *tok, struct rlhf__prompts **out,
                               struct rlhf__error *err) {
    if (opts->prepend_bos && rlhf__tokenizer_info(tok)->bos < 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "prompts.prepend_bos: the tokenizer has no BOS token");
    struct rlhf__prompts *set = calloc(1, sizeof *set);
    if (!set) return no_memory(err);
    set->period = rlhf__tokenizer_find(tok, (rlhf_str){".", 1});
    set->most = opts->max_tokens;
    set->least = opts->min_tokens > 1 ? opts->min_tokens : 1;
    int32_t exact = opts->length + (opts->prepend_bos ? 1 : 0);
    if (opts->length > 0 && !opts->end_at_period && exact > set->least) set->least = exact;
    rlhf_status st = RLHF_OK;
    if (has_rules(opts) && set->period < 0)
        st = rlhf__fail(err, RLHF_E_INVALID, "query rules: the vocabulary has no token '.'");
    if (st == RLHF_OK && opts->n_paths) st = open_files(set, opts, err);
    if (st == RLHF_OK) st = fill(set, opts, tok, err);
    if (st < 0) {
        rlhf__prompts_close(set);
        return st;
    }
    *out = set;
    return RLHF_OK;
}

rlhf_status rlhf__prompts_from_ids(const int32_t *const *ids, const int32_t *len, int64_t n,
                                   const struct rlhf__tokenizer *tok, struct rlhf__prompts **out,
                                   struct rlhf__error *err) {
    const struct rlhf__prompt_opts any = {0};
    struct rlhf__prompts *set = calloc(1, sizeof *set);
    if (!set) return no_memory(err);
    rlhf_status st = n > 0 ? RLHF_OK : rlhf__fail(err, RLHF_E_INVALID, "there are no prompts");
    set->count.rows = n;
    for (int64_t i = 0; st == RLHF_OK && i < n; i++)
        st = len[i] > 0 ? add_item(set, &any, tok, ids[i], (size_t)len[i], NULL, i, err)
                        : rlhf__fail(err, RLHF_E_INVALID, "the prompt is empty");
    if (st < 0) {
        rlhf__prompts_close(set);
        return st;
    }
    *out = set;
    return RLHF_OK;
}

void rlhf__prompts_close(struct rlhf__prompts *set) {
    if (!set) return;
    rlhf__dataset_close(set->ds);
    rlhf__ids_finish(&set->ids);
    rlhf__buf_finish(&set->text);
    free(set->item);
    free(set);
}

int64_t rlhf__prompts_chats(const struct rlhf__prompts *set) { return set->chats; }
int rlhf__prompts_are_lines(const struct rlhf__prompts *set) {
    return set->ds && rlhf__dataset_is_lines(set->ds);
}
int64_t rlhf__prompts_count(const struct rlhf__prompts *set) { return (int64_t)set->n; }
struct rlhf__prompt_counts rlhf__prompts_counts(const struct rlhf__prompts *set) {
    return set->count;
}
int32_t rlhf__prompts_longest(const struct rlhf__prompts *set) { return set->longest; }

struct rlhf__prompt rlhf__prompts_get(const struct rlhf__prompts *set, int64_t i) {
    const struct item *it = &set->item[i];
    struct rlhf__prompt out = {
        .ids = set->ids.data + it->ids, .n = it->n, .is_chat = it->is_chat, .row = it->row};
    out.text = (rlhf_str){set->text.data + it->text, it->n_text};
    if (set->ds) out.meta = rlhf__dataset_row(set->ds, it->row).meta;
    return out;
}

void rlhf__prompts_where(const struct rlhf__prompts *set, int64_t i, char *out, size_t cap) {
    *out = '\0';
    if (set->ds) rlhf__dataset_where(set->ds, set->item[i].row, out, cap);
}
