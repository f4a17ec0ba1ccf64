// generate_prompts.c: see generate_prompts.h.
#include "prompt/generate_prompts.h"

#include "base/decimal.h"
#include "base/json.h"
#include "base/printable.h"
#include "text/unicode.h"
#include "tokenizer/conversation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int rlhf__stdin_is_fed(void) {
    struct stat st;
    return fstat(STDIN_FILENO, &st) == 0 &&
           (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode));
}

// Make the text to print for a row of messages. The caller frees *out.
static rlhf_status show_messages(const struct rlhf__data_row *row, char **out, rlhf_str *text,
                                 struct rlhf__error *err) {
    struct rlhf__messages m = {0};
    struct rlhf__buf shown = RLHF__BUF_INIT;
    json_t *held = NULL;
    rlhf_status st = rlhf__data_row_messages(row, &held, &m, err);
    if (st == RLHF_OK) rlhf__messages_text(&m, &shown);
    if (st == RLHF_OK) st = rlhf__buf_ok(&shown, err);
    if (st == RLHF_OK) rlhf__buf_putc(&shown, '\0');
    *out = shown.data;
    *text = (rlhf_str){shown.data, shown.len ? shown.len - 1 : 0};
    rlhf__messages_finish(&m);
    json_decref(held);
    return st;
}

static rlhf_status take_rows(struct rlhf__typed_prompts *p, const char *file,
                             const struct rlhf__loading *loading, struct rlhf__error *err) {
    struct rlhf__dataset_opts o = {.paths = &file,
                                   .n_paths = 1,
                                   .setting = "--prompts",
                                   .want = RLHF__FIELD_BIT(RLHF__FIELD_PROMPT) |
                                           RLHF__FIELD_BIT(RLHF__FIELD_TEXT) |
                                           RLHF__FIELD_BIT(RLHF__FIELD_MESSAGES),
                                   .prompts = 1,
                                   .line_field = RLHF__FIELD_PROMPT,
                                   .standard_input = 1,
                                   .loading = loading};
    RLHF_TRY(rlhf__dataset_open(&o, &p->rows, err));
    int64_t n = rlhf__dataset_rows(p->rows);
    p->text = calloc((size_t)n, sizeof *p->text);
    p->own = calloc((size_t)n, sizeof *p->own);
    if (!p->text || !p->own)
        return RLHF__NOMEM(err, "out of memory for %lld prompts", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        struct rlhf__data_row row = rlhf__dataset_row(p->rows, i);
        rlhf_str text = row.text[RLHF__FIELD_PROMPT];
        if (!text.ptr) text = row.text[RLHF__FIELD_TEXT];
        p->n = (size_t)i + 1;
        if (row.messages.ptr) {
            RLHF_TRY(show_messages(&row, &p->own[i], &text, err));
        } else if (!text.ptr) {
            char where[512];
            rlhf__dataset_where(p->rows, i, where, sizeof where);
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: the row has none of the fields 'prompt', 'messages' and 'text'",
                              where);
        }
        p->text[i] = text;
    }
    p->lines = strcmp(file, "-") == 0 && rlhf__dataset_is_lines(p->rows);
    return RLHF_OK;
}

rlhf_status rlhf__typed_prompts_open(struct rlhf__typed_prompts *p,
                                     const struct rlhf__flag_list *typed, const char *file,
                                     const struct rlhf__loading *loading, struct rlhf__error *err) {
    if (typed->n && file)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "generate: give prompts by --prompt or by --prompts, not by both");
    if (file) return take_rows(p, file, loading, err);
    p->n = typed->n ? typed->n : 1;
    p->lines = 1;
    p->text = calloc(p->n, sizeof *p->text);
    if (!p->text) return RLHF__NOMEM(err, "out of memory for %zu prompts", p->n);
    for (size_t i = 0; i < p->n; i++) {
        const char *text = typed->n ? typed->item[i] : "";
        const size_t len = strlen(text), good = rlhf__utf8_valid(text, len);
        if (good < len)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "--prompt: invalid UTF-8 at byte %zu of prompt %zu", good + 1, i + 1);
        p->text[i] = (rlhf_str){text, len};
    }
    return RLHF_OK;
}

int rlhf__typed_prompts_is_chat(const struct rlhf__typed_prompts *p, size_t i) {
    return (p->own && p->own[i]) || (p->turns && p->text[i].len > 0);
}

static rlhf_status encode_chat(const struct rlhf__typed_prompts *p, size_t i,
                               const struct rlhf__tokenizer *tok, struct rlhf__ids *out,
                               struct rlhf__error *err) {
    struct rlhf__messages m = {0};
    json_t *held = NULL;
    rlhf_status st;
    if (p->own && p->own[i]) {
        const struct rlhf__data_row row = rlhf__dataset_row(p->rows, (int64_t)i);
        st = rlhf__data_row_messages(&row, &held, &m, err);
    } else {
        st = rlhf__messages_add(&m, RLHF__ROLE_USER, p->text[i], err);
    }
    if (st == RLHF_OK) st = rlhf__conversation_encode(tok, &m, 1, out, NULL, err);
    rlhf__messages_finish(&m);
    json_decref(held);
    return st;
}

rlhf_status rlhf__typed_prompts_encode(const struct rlhf__typed_prompts *p, size_t i,
                                       const struct rlhf__tokenizer *tok, int bos,
                                       struct rlhf__ids *out, struct rlhf__error *err) {
    const uint32_t how = bos || p->text[i].len == 0 ? RLHF__ENCODE_BOS : 0;
    const int chat = rlhf__typed_prompts_is_chat(p, i);
    char where[512];
    rlhf_status st;
    if (!chat) return rlhf__tokenizer_encode(tok, p->text[i], how, 0, out, err);
    if (bos)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "--bos is for texts, and a chat template says how a prompt begins%s",
                        p->turns ? "; --raw leaves the template out" : "");
    else
        st = encode_chat(p, i, tok, out, err);
    if (st == RLHF_OK) return st;
    rlhf__typed_prompts_where(p, i, where, sizeof where);
    return rlhf__error_context(err, "%s", where);
}

rlhf_status rlhf__texts_alone(const struct rlhf__model *m, int32_t *alone,
                              struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    json_t *state = NULL;
    *alone = 0;
    rlhf__path_put(path, "%s/state/run.json", m->peft.dir ? m->peft.dir : m->dir);
    if (!rlhf__is_file(path)) return RLHF_OK;
    RLHF_TRY(rlhf__json_load(path, &state, err));
    *alone = json_is_true(json_object_get(state, "texts_alone"));
    json_decref(state);
    return RLHF_OK;
}

void rlhf__typed_prompts_finish(struct rlhf__typed_prompts *p) {
    for (size_t i = 0; p->own && i < p->n; i++)
        free(p->own[i]);
    free(p->own);
    rlhf__dataset_close(p->rows);
    free(p->text);
    memset(p, 0, sizeof *p);
}

void rlhf__typed_prompts_where(const struct rlhf__typed_prompts *p, size_t i, char *out,
                               size_t cap) {
    if (p->rows)
        rlhf__dataset_where(p->rows, (int64_t)i, out, cap);
    else
        snprintf(out, cap, "prompt %zu", i + 1);
}

// ---- stop texts and ids ----

static const struct rlhf__response_config no_rule = {.period_token = ""};

static rlhf_status add_text(json_t *list, const char *text, struct rlhf__error *err) {
    if (!*text) return rlhf__fail(err, RLHF_E_INVALID, "--stop must be a text that is not empty");
    json_t *v = json_string(text);
    if (!v) return rlhf__fail(err, RLHF_E_INVALID, "--stop must be UTF-8 text, found other bytes");
    if (json_array_append_new(list, v) == 0) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for --stop");
}

static rlhf_status add_id(json_t *list, const char *text, int32_t n_vocab,
                          struct rlhf__error *err) {
    int64_t id;
    if (!rlhf__typed_integer(text, &id) || id < 0 || id >= n_vocab)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--stop-id must be a token id, an integer from 0 to %d, found %s",
                          n_vocab - 1, text);
    if (json_array_append_new(list, json_integer(id)) == 0) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for --stop-id");
}

rlhf_status rlhf__typed_stops(const struct rlhf__flag_list *texts,
                              const struct rlhf__flag_list *ids, const struct rlhf__tokenizer *tok,
                              struct rlhf__response_rules **out, struct rlhf__buf *text,
                              struct rlhf__error *err) {
    *out = NULL;
    json_t *list = json_array();
    rlhf_status st = list ? RLHF_OK : RLHF__NOMEM(err, "out of memory for --stop");
    for (size_t i = 0; st == RLHF_OK && i < texts->n; i++)
        st = add_text(list, texts->item[i], err);
    for (size_t i = 0; st == RLHF_OK && i < ids->n; i++)
        st = add_id(list, ids->item[i], rlhf__tokenizer_info(tok)->n_vocab, err);
    if (st == RLHF_OK) rlhf__json_write(text, list, 0);
    json_decref(list);
    if (st == RLHF_OK) st = rlhf__buf_ok(text, err);
    const struct rlhf__sampling_config sampling = {.stop = rlhf__buf_text(text)};
    return st == RLHF_OK ? rlhf__response_rules_open(&sampling, &no_rule, tok, out, err) : st;
}

// ---- printing ----

static void put_ids(struct rlhf__buf *out, const char *before, const int32_t *ids, size_t n) {
    for (size_t k = 0; k < n; k++)
        rlhf__buf_printf(out, "%s%d", k ? ", " : before, ids[k]);
}

void rlhf__generated_json(const struct rlhf__generated *g, struct rlhf__buf *out) {
    char number[40];
    double sum = 0;
    for (size_t k = 0; k < g->n; k++)
        sum += (double)g->logp[k];
    rlhf__buf_puts(out, "{\"prompt\": ");
    rlhf__json_write_string(out, g->prompt.ptr, (size_t)g->prompt.len);
    rlhf__buf_puts(out, ", \"response\": ");
    rlhf__json_write_string(out, g->response.ptr, (size_t)g->response.len);
    rlhf__buf_printf(out, ", \"logp\": %s, \"finished\": %s, \"prompt_length\": %zu, \"ids\": ",
                     rlhf__format_double(sum, 1, number), g->finished ? "true" : "false",
                     g->n_prompt);
    put_ids(out, "[", g->prompt_ids, g->n_prompt);
    put_ids(out, ", ", g->ids, g->n);
    rlhf__buf_puts(out, "], \"logp_sampled\": [");
    for (size_t k = 0; k < g->n; k++)
        rlhf__buf_printf(out, "%s%s", k ? ", " : "", rlhf__format_float(g->logp[k], number));
    rlhf__buf_puts(out, "]}\n");
}

// Print the text unchanged, but escape control characters on a terminal.
void rlhf__generated_text(const struct rlhf__generated *g, int first, struct rlhf__buf *out) {
    const char *between = g->chat ? "\n\n" : "";
    if (!first) rlhf__buf_puts(out, "---\n");
    if (isatty(STDOUT_FILENO)) {
        rlhf__put_printable(out, g->prompt.ptr, (size_t)g->prompt.len, "\n\t");
        rlhf__buf_puts(out, between);
        rlhf__put_printable(out, g->response.ptr, (size_t)g->response.len, "\n\t");
    } else {
        rlhf__buf_put(out, g->prompt.ptr, (size_t)g->prompt.len);
        rlhf__buf_puts(out, between);
        rlhf__buf_put(out, g->response.ptr, (size_t)g->response.len);
    }
    rlhf__buf_putc(out, '\n');
}
