// label.c: `rlhf-host label`: lets a classifier label the {"text"} or {"messages"} rows of a file,
// e.g. to train on unlabeled texts. Each row is written with two more members: "label", and "p",
// the label's probability.
#include "cmd/commands.h"

#include "base/json.h"
#include "cmd/command_setup.h"
#include "cmd/program.h"
#include "data/dataset.h"
#include "data/lines.h"
#include "learn/evaluate.h"
#include "model/classifier.h"
#include "tokenizer/conversation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_ROWS 256

struct options {
    const char *model, *data, *out;
    struct rlhf__chat_choice chat;
    int64_t limit, skip, max_mib;
    double min_p;
    int32_t force;
    struct rlhf__command_setup_flags at;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--model", model, "DIR", "classifier; the default one when not given"),
    RLHF__FLAG_S(O, "--data", data, "FILE",
                 "rows with text or messages: .jsonl, .jsonl.gz or .txt"),
    RLHF__FLAG_S(O, "--out", out, "FILE", "where the labeled rows go: .jsonl or .jsonl.gz"),
    RLHF__FLAG_F(O, "--min-p", min_p, "P", 0, 1, "leave out rows the model is less sure of [0]"),
    RLHF__FLAG_I(O, "--limit", limit, "N", 0, (int64_t)1 << 40, "use N rows; 0: all [0]"),
    RLHF__FLAG_I(O, "--skip", skip, "N", 0, (int64_t)1 << 40, "leave out the first N rows [0]"),
    RLHF__CHAT_FLAGS(O),
    RLHF__FLAG_I(O, "--max-mib", max_mib, "N", 1, 1 << 20,
                 "MiB of memory that the rows may take [1024]"),
    RLHF__FLAG_SW(O, "--force", force, "replace FILE when it exists"),
    RLHF__COMMAND_SETUP_FLAGS(O),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

// Texts of rows that are labeled together.
struct chunk {
    rlhf_str text[CHUNK_ROWS];
    uint8_t rendered[CHUNK_ROWS]; // 1: a rendered conversation, at offset `from` of `chats`
    size_t from[CHUNK_ROWS];
    struct rlhf__buf chats;
};

static rlhf_status render(const struct rlhf__model *m, const struct rlhf__data_row *row,
                          struct chunk *c, uint32_t i, struct rlhf__error *err) {
    struct rlhf__messages list = {0};
    json_t *held = NULL;
    c->from[i] = c->chats.len;
    rlhf_status st = rlhf__data_row_messages(row, &held, &list, err);
    if (st == RLHF_OK)
        st = rlhf__chat_render(rlhf__tokenizer_chat(m->tok), &list, 0, &c->chats, err);
    c->text[i].len = c->chats.len - c->from[i];
    rlhf__messages_finish(&list);
    json_decref(held);
    return st;
}

static rlhf_status read_chunk(const struct rlhf__model *m, const struct rlhf__dataset *ds,
                              int64_t at, uint32_t n, struct chunk *c, struct rlhf__error *err) {
    char where[512];
    rlhf__buf_clear(&c->chats);
    for (uint32_t i = 0; i < n; i++) {
        const struct rlhf__data_row row = rlhf__dataset_row(ds, at + i);
        c->rendered[i] = row.messages.ptr != NULL;
        c->text[i] = row.text[RLHF__FIELD_TEXT];
        if (!c->rendered[i] || render(m, &row, c, i, err) == RLHF_OK) continue;
        rlhf__dataset_where(ds, at + i, where, sizeof where);
        return rlhf__error_context(err, "%s", where);
    }
    for (uint32_t i = 0; i < n; i++)
        if (c->rendered[i]) c->text[i].ptr = rlhf__buf_text(&c->chats) + c->from[i];
    return RLHF_OK;
}

static json_t *labeled(const struct rlhf__data_row *row, int32_t label, double p) {
    const rlhf_str text = row->text[RLHF__FIELD_TEXT], list = row->messages;
    if (!list.ptr)
        return json_pack("{s:s%, s:i, s:f}", "text", text.ptr, (size_t)text.len, "label",
                         (int)label, "p", p);
    json_t *messages = rlhf__json_decode_digits(list.ptr, (size_t)list.len, JSON_ALLOW_NUL, NULL);
    return json_pack("{s:o, s:i, s:f}", "messages", messages, "label", (int)label, "p", p);
}

static rlhf_status label_rows(const struct rlhf__command_setup *w, const struct options *o,
                              struct rlhf__classifier *c, const struct rlhf__dataset *ds,
                              struct rlhf__line_writer *out, int64_t *kept,
                              struct rlhf__error *err) {
    const int32_t width = rlhf__classifier_labels(c)->n;
    int64_t rows = rlhf__dataset_rows(ds);
    float *logits = calloc((size_t)CHUNK_ROWS * (size_t)width, sizeof *logits);
    struct chunk *k = calloc(1, sizeof *k);
    rlhf_status st = logits && k ? RLHF_OK : RLHF__NOMEM(err, "out of memory labelling");
    for (int64_t at = 0; st == RLHF_OK && at < rows; at += CHUNK_ROWS) {
        rlhf__progress_step(w->progress, "labelling", at, rows);
        uint32_t n = (uint32_t)(rows - at < CHUNK_ROWS ? rows - at : CHUNK_ROWS);
        if (*w->env->cancelled) st = rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
        if (st == RLHF_OK) st = read_chunk(rlhf__classifier_model(c), ds, at, n, k, err);
        if (st == RLHF_OK) st = rlhf__classifier_logits(c, n, k->text, k->rendered, logits, err);
        for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
            const struct rlhf__peak peak = rlhf__peak_of(logits + (size_t)i * (size_t)width, width);
            const double p = 1 / peak.sum;
            if (p < o->min_p) continue;
            const struct rlhf__data_row row = rlhf__dataset_row(ds, at + i);
            st = rlhf__line_writer_put_new(out, labeled(&row, peak.at, p), err);
            ++*kept;
        }
    }
    if (k) rlhf__buf_finish(&k->chats);
    free(k);
    free(logits);
    return st;
}

static rlhf_status say_done(const struct options *o, const struct rlhf__dataset *ds, int64_t kept,
                            struct rlhf__error *err) {
    const int64_t rows = rlhf__dataset_rows(ds);
    printf("%lld of %lld row%s labeled: %s\n", (long long)kept, (long long)rows,
           rows == 1 ? "" : "s", o->out);
    return rlhf__print_flush(err);
}

// A reward model has one output, which is a score.
static rlhf_status check_labels(const struct options *o, const struct rlhf__classifier *c,
                                struct rlhf__error *err) {
    if (rlhf__classifier_labels(c)->n > 1) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "label: '%s' has one label, as reward models have, so every row would get it; "
        "give a classifier, or score rows with it as a reward (bt_rm.so)",
        o->model ? o->model : "the default classifier");
}

static rlhf_status label(struct rlhf__command_setup *w, const struct options *o,
                         struct rlhf__error *err) {
    struct rlhf__classifier *c = NULL;
    struct rlhf__dataset *ds = NULL;
    struct rlhf__line_writer *out = NULL;
    struct rlhf__loading loading = rlhf__command_setup_loading(w, o->max_mib);
    struct rlhf__dataset_opts d = {.paths = &o->data,
                                   .n_paths = 1,
                                   .setting = "--data",
                                   .need = RLHF__FIELD_BIT(RLHF__FIELD_TEXT),
                                   .want = RLHF__FIELD_BIT(RLHF__FIELD_MESSAGES),
                                   .skip = o->skip,
                                   .limit = o->limit,
                                   .loading = &loading};
    char checkpoint[RLHF__PATH_CAP];
    int64_t kept = 0;
    rlhf_status st = rlhf__dataset_open(&d, &ds, err);
    if (st == RLHF_OK)
        st = rlhf__command_setup_template_used("label", &o->chat, rlhf__dataset_chats(ds), err);
    if (st == RLHF_OK) st = rlhf__command_setup_start(w, 1, err);
    if (st == RLHF_OK) {
        const char *dir = NULL;
        st = rlhf__command_setup_dir(w, o->model, "classifier", checkpoint, &dir, err);
        if (st == RLHF_OK) {
            st = rlhf__classifier_open(&w->session.models, dir, &w->adapter, &c, err);
            st = rlhf__command_setup_opened(o->model, st, err);
        }
    }
    if (st == RLHF_OK) st = rlhf__command_setup_template(rlhf__classifier_model(c), &o->chat, err);
    if (st == RLHF_OK) st = check_labels(o, c, err);
    if (st == RLHF_OK) st = rlhf__line_writer_open(o->out, &out, err);
    if (st == RLHF_OK) st = label_rows(w, o, c, ds, out, &kept, err);
    if (st == RLHF_OK) {
        st = rlhf__line_writer_commit(out, err);
        out = NULL;
    }
    rlhf__progress_hide(w->progress);
    if (st == RLHF_OK) st = say_done(o, ds, kept, err);
    if (st == RLHF_E_CANCELLED)
        rlhf__logf(w->env->log, RLHF_LOG_INFO, "stopped; '%s' was not written", o->out);
    rlhf__line_writer_abort(out);
    rlhf__classifier_close(c);
    rlhf__dataset_close(ds);
    return st;
}

static rlhf_status run(const struct rlhf__env *env, const struct options *o,
                       struct rlhf__error *err) {
    struct rlhf__command_setup w = {0};
    RLHF_TRY(rlhf__command_setup_chat_check(&o->chat, err));
    rlhf_status st = rlhf__command_setup_init(&w, env, &o->at, RLHF__PROGRESS_AUTO, err);
    if (st == RLHF_OK) st = label(&w, o, err);
    rlhf__command_setup_finish(&w);
    return st;
}

int rlhf__cmd_label(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct options o = {.at = RLHF__COMMAND_SETUP_DEFAULTS};
    if (rlhf__flags_helped(flags, N_FLAGS,
                           "rlhf-host label --model DIR --data FILE --out FILE [flags]", argc,
                           argv))
        return 0;
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, NULL, &err);
    if (st == RLHF_OK && (!o.data || !o.out))
        st = rlhf__fail(&err, RLHF_E_INVALID,
                        "label: give the rows with --data FILE and the "
                        "result's name with --out FILE");
    if (st == RLHF_OK) st = rlhf__line_writer_free_target("label", o.out, o.force, &err);
    if (st == RLHF_OK) st = run(env, &o, &err);
    return rlhf__cmd_end(env, st, &err);
}
