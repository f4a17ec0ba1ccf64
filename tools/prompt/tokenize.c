// tokenize.c: `rlhf-host tokenize`: prints the token ids of texts, and the text of each token. With
// --ids, prints the text of given token ids instead. Opens only a model's tokenizer.
#include "prompt/prompt.h"

#include "base/json.h"
#include "base/printable.h"
#include "cmd/command_setup.h"
#include "cmd/commands.h"
#include "cmd/program.h"
#include "data/dataset.h"
#include "prompt/generate_prompts.h"
#include "prompt/token_table.h"
#include "prompt/typed_tokenizer.h"
#include "text/unicode.h"
#include "tokenizer/conversation.h"
#include "tokenizer/pieces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    const char *model, *data;
    struct rlhf__chat_choice chat;
    int64_t max_mib;
    int32_t ids, bos, special, json;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--model", model, "DIR",
                 "model directory, GGUF file or run; the default policy when not given"),
    RLHF__FLAG_S(O, "--data", data, "FILE",
                 "texts: .jsonl, .jsonl.gz or .txt (a line each); -: standard input, JSON rows or "
                 "lines, which is also read when it is piped and no text is given"),
    RLHF__FLAG_SW(O, "--ids", ids, "the other direction: TEXT or a line is token ids"),
    RLHF__FLAG_SW(O, "--bos", bos, "put the BOS token in front of a text"),
    RLHF__FLAG_SW(O, "--special", special,
                  "take the names of special tokens, such as <|endoftext|>, in a text for these "
                  "tokens"),
    RLHF__CHAT_FLAGS(O),
    RLHF__FLAG_I(O, "--max-mib", max_mib, "N", 1, 1 << 20,
                 "MiB of memory that the rows may take [1024]"),
    RLHF__FLAG_SW(O, "--json", json, "one JSON object a line: text, ids, pieces"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

// The tokens of one text.
struct shown {
    struct rlhf__ids ids;
    struct rlhf__buf text; // the text of all tokens
    size_t *end;           // [ids.n] where the text of each token ends
    size_t cap;
    uint64_t printed; // texts so far
};

static void shown_finish(struct shown *s) {
    rlhf__ids_finish(&s->ids);
    rlhf__buf_finish(&s->text);
    free(s->end);
}

// ---- output ----

static void put_json(const struct shown *s, rlhf_str text, struct rlhf__buf *out) {
    rlhf__buf_puts(out, "{\"text\": ");
    rlhf__json_write_string(out, text.ptr, (size_t)text.len);
    rlhf__buf_puts(out, ", \"ids\": [");
    for (size_t i = 0; i < s->ids.n; i++)
        rlhf__buf_printf(out, "%s%d", i ? ", " : "", s->ids.data[i]);
    rlhf__buf_puts(out, "], \"pieces\": [");
    for (size_t i = 0, from = 0; i < s->ids.n; from = s->end[i++]) {
        if (i) rlhf__buf_puts(out, ", ");
        rlhf__json_write_string(out, rlhf__buf_text(&s->text) + from, s->end[i] - from);
    }
    rlhf__buf_puts(out, "]}\n");
}

static void put_table(const struct shown *s, struct rlhf__buf *out) {
    if (s->printed) rlhf__buf_puts(out, "\n");
    for (size_t i = 0, from = 0; i < s->ids.n; from = s->end[i++]) {
        rlhf__buf_printf(out, "%8d  ", s->ids.data[i]);
        rlhf__put_piece(out, (rlhf_str){rlhf__buf_text(&s->text) + from, s->end[i] - from});
        rlhf__buf_puts(out, "\n");
    }
    rlhf__buf_printf(out, "%zu token%s, %zu byte%s\n", s->ids.n, s->ids.n == 1 ? "" : "s",
                     s->text.len, s->text.len == 1 ? "" : "s");
}

static void put_text(rlhf_str text, struct rlhf__buf *out) {
    if (isatty(STDOUT_FILENO))
        rlhf__put_printable(out, text.ptr, (size_t)text.len, "\n\t");
    else
        rlhf__buf_put(out, text.ptr, (size_t)text.len);
    rlhf__buf_putc(out, '\n');
}

// Print the ids in *s and their text in the form that the options select. `text` is the text from
// which the ids were made; if text.ptr is NULL, decodes the ids.
static rlhf_status print(const struct options *o, const struct rlhf__tokenizer *tok,
                         struct shown *s, rlhf_str text, struct rlhf__error *err) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    if (s->ids.n > s->cap) {
        size_t *end = realloc(s->end, s->ids.n * sizeof *end);
        if (!end) return RLHF__NOMEM(err, "out of memory for %zu tokens", s->ids.n);
        s->end = end;
        s->cap = s->ids.n;
    }
    rlhf__buf_clear(&s->text);
    RLHF_TRY(rlhf__pieces(tok, s->ids.data, s->ids.n, &s->text, s->end, err));
    // Unlike the pieces, a whole text lacks the space that some tokenizers add at its start.
    size_t len = 0;
    char *whole = text.ptr ? NULL : rlhf__tokenizer_text(tok, s->ids.data, s->ids.n, 0, &len);
    if (!text.ptr && !whole) return RLHF__NOMEM(err, "out of memory for a text");
    if (whole) text = (rlhf_str){whole, len};
    if (o->json)
        put_json(s, text, &out);
    else if (o->ids)
        put_text(text, &out);
    else
        put_table(s, &out);
    s->printed++;
    free(whole);
    rlhf_status st = rlhf__buf_ok(&out, err);
    if (st == RLHF_OK) fwrite(rlhf__buf_text(&out), 1, out.len, stdout);
    rlhf__buf_finish(&out);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

// ---- texts to ids ----

static rlhf_status print_text(const struct options *o, const struct rlhf__tokenizer *tok,
                              rlhf_str text, struct shown *s, struct rlhf__error *err) {
    const uint32_t how = (o->bos ? RLHF__ENCODE_BOS : 0) | (o->special ? RLHF__ENCODE_SPECIAL : 0);
    s->ids.n = 0;
    RLHF_TRY(rlhf__tokenizer_encode(tok, text, how, 0, &s->ids, err));
    return print(o, tok, s, text, err);
}

static rlhf_status print_chat(const struct options *o, const struct rlhf__tokenizer *tok,
                              const struct rlhf__data_row *row, struct shown *s,
                              struct rlhf__error *err) {
    struct rlhf__messages m = {0};
    json_t *held = NULL;
    s->ids.n = 0;
    rlhf_status st = rlhf__data_row_messages(row, &held, &m, err);
    const int asks = m.n > 0 && m.item[m.n - 1].role != RLHF__ROLE_ASSISTANT &&
                     m.item[m.n - 1].role != RLHF__ROLE_SYSTEM;
    if (st == RLHF_OK) st = rlhf__conversation_encode(tok, &m, asks, &s->ids, NULL, err);
    rlhf__messages_finish(&m);
    json_decref(held);
    return st == RLHF_OK ? print(o, tok, s, (rlhf_str){NULL, 0}, err) : st;
}

// ---- ids to texts ----

// Append the ids of a text such as "464 2646", "464,2646" or "[464, 2646]".
static rlhf_status read_ids(const struct rlhf__tokenizer *tok, rlhf_str text, struct rlhf__ids *out,
                            struct rlhf__error *err) {
    const int32_t n_vocab = rlhf__tokenizer_info(tok)->n_vocab;
    for (size_t at = 0; at < text.len;) {
        char word[64];
        size_t n = 0;
        int64_t id;
        while (at < text.len && strchr(" ,[]\t\r\n", text.ptr[at]))
            at++;
        while (at + n < text.len && !strchr(" ,[]\t\r\n", text.ptr[at + n]))
            n++;
        if (n == 0) break;
        snprintf(word, sizeof word, "%.*s", n < 40 ? (int)n : 40, text.ptr + at);
        if (n >= 40 || !rlhf__typed_integer(word, &id) || id < 0 || id >= n_vocab) {
            char seen[200];
            return rlhf__fail(err, RLHF_E_INVALID,
                              "--ids: a token id is an integer from 0 to %d, found \"%s\"",
                              n_vocab - 1, rlhf__printable(word, seen, sizeof seen));
        }
        RLHF_TRY(rlhf__ids_push(out, (int32_t)id, err));
        at += n;
    }
    return RLHF_OK;
}

// Read a row for --ids: a line of ids, or an object with the list "ids" in the form that --json
// prints.
static rlhf_status read_row(const struct rlhf__tokenizer *tok, const struct rlhf__data_row *row,
                            struct rlhf__ids *out, struct rlhf__error *err) {
    if (!row->meta.ptr) return read_ids(tok, row->text[RLHF__FIELD_TEXT], out, err);
    json_t *v = rlhf__json_decode(row->meta.ptr, (size_t)row->meta.len, JSON_ALLOW_NUL, NULL);
    const json_t *list = json_object_get(v, "ids");
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf_status st = RLHF_OK;
    if (!json_is_array(list))
        st = rlhf__fail(err, RLHF_E_INVALID, "--ids: the row has no list \"ids\"");
    if (st == RLHF_OK) rlhf__json_write(&text, list, 0);
    if (st == RLHF_OK) st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK) st = read_ids(tok, (rlhf_str){rlhf__buf_text(&text), text.len}, out, err);
    rlhf__buf_finish(&text);
    json_decref(v);
    return st;
}

// ---- the input ----

static rlhf_status print_row(const struct options *o, const struct rlhf__tokenizer *tok,
                             const struct rlhf__data_row *row, struct shown *s,
                             struct rlhf__error *err) {
    rlhf_str text = row->text[RLHF__FIELD_PROMPT];
    if (!text.ptr) text = row->text[RLHF__FIELD_TEXT];
    if (o->ids) {
        s->ids.n = 0;
        RLHF_TRY(read_row(tok, row, &s->ids, err));
        return print(o, tok, s, (rlhf_str){NULL, 0}, err);
    }
    if (row->messages.ptr) return print_chat(o, tok, row, s, err);
    if (text.ptr) return print_text(o, tok, text, s, err);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the row has none of the fields 'text', 'prompt' and 'messages'");
}

static rlhf_status print_rows(const struct rlhf__env *env, const struct options *o,
                              const struct rlhf__tokenizer *tok, struct shown *s,
                              struct rlhf__error *err) {
    const char *file = o->data ? o->data : "-";
    const struct rlhf__loading loading = {
        .max_mib = o->max_mib, .setting = "--max-mib", .cancelled = env->cancelled};
    const struct rlhf__dataset_opts d = {.paths = &file,
                                         .n_paths = 1,
                                         .setting = "--data",
                                         .want = RLHF__FIELD_BIT(RLHF__FIELD_TEXT) |
                                                 RLHF__FIELD_BIT(RLHF__FIELD_PROMPT) |
                                                 RLHF__FIELD_BIT(RLHF__FIELD_MESSAGES),
                                         .keep_meta = o->ids,
                                         .standard_input = 1,
                                         .loading = &loading};
    struct rlhf__dataset *rows = NULL;
    RLHF_TRY(rlhf__dataset_open(&d, &rows, err));
    rlhf_status st = rlhf__command_setup_template_used("tokenize", &o->chat,
                                                       o->ids ? 0 : rlhf__dataset_chats(rows), err);
    for (int64_t i = 0; st == RLHF_OK && i < rlhf__dataset_rows(rows); i++) {
        const struct rlhf__data_row row = rlhf__dataset_row(rows, i);
        char where[512];
        if (*env->cancelled) st = rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
        if (st == RLHF_OK) st = print_row(o, tok, &row, s, err);
        if (st != RLHF_E_INVALID) continue;
        rlhf__dataset_where(rows, i, where, sizeof where);
        st = rlhf__error_context(err, "%s", where);
    }
    rlhf__dataset_close(rows);
    return st;
}

static rlhf_status print_typed(const struct rlhf__env *env, const struct options *o,
                               const struct rlhf__tokenizer *tok,
                               const struct rlhf__flag_list *typed, struct shown *s,
                               struct rlhf__error *err) {
    RLHF_TRY(rlhf__command_setup_template_used("tokenize", &o->chat, 0, err));
    for (size_t i = 0; i < typed->n; i++) {
        const rlhf_str text = {typed->item[i], strlen(typed->item[i])};
        const size_t good = rlhf__utf8_valid(text.ptr, (size_t)text.len);
        if (*env->cancelled) return rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
        if (good < text.len)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "tokenize: invalid UTF-8 at byte %zu of text %zu", good + 1, i + 1);
        if (o->ids)
            RLHF_TRY(read_ids(tok, text, &s->ids, err));
        else
            RLHF_TRY(print_text(o, tok, text, s, err));
    }
    return o->ids ? print(o, tok, s, (rlhf_str){NULL, 0}, err) : RLHF_OK;
}

static rlhf_status run(const struct rlhf__env *env, const struct options *o,
                       const struct rlhf__flag_list *typed, struct rlhf__error *err) {
    struct rlhf__tokenizer *tok = NULL;
    struct shown s = {.text = RLHF__BUF_INIT};
    const struct rlhf__flag_idle idle[] = {{"--bos", o->bos}, {"--special", o->special}};
    if (typed->n && o->data)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "tokenize: give texts as arguments or by --data, not both");
    if (o->ids) RLHF_TRY(rlhf__flags_idle(idle, 2, "tokenize", "with --ids", err));
    if (!typed->n && !o->data && !rlhf__stdin_is_fed())
        return rlhf__fail(err, RLHF_E_INVALID,
                          "tokenize: give texts as arguments, by --data FILE or by a pipe");
    rlhf_status st = rlhf__typed_tokenizer(env, "--model", o->model, &o->chat, &tok, err);
    if (st == RLHF_OK && typed->n) st = print_typed(env, o, tok, typed, &s, err);
    if (st == RLHF_OK && !typed->n) st = print_rows(env, o, tok, &s, err);
    shown_finish(&s);
    rlhf__tokenizer_close(tok);
    return st;
}

int rlhf__cmd_tokenize(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct options o = {.max_mib = 0};
    struct rlhf__flag_list typed = {0};
    if (rlhf__flags_helped(flags, N_FLAGS, "rlhf-host tokenize [--model DIR] [TEXT ...] [flags]",
                           argc, argv))
        return 0;
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, &typed, &err);
    if (st == RLHF_OK) st = run(env, &o, &typed, &err);
    free(typed.item);
    return rlhf__cmd_end(env, st, &err);
}
