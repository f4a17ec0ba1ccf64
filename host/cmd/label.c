// label.c: `rlhf-host label`: let a classifier label the {"text"} rows of a file, e.g. to train on
// texts nobody has labelled. Writes {"text", "label", "p"} rows, p being the label's probability.
#include "cmd/commands.h"

#include "cmd/print.h"
#include "cmd/workplace.h"
#include "data/dataset.h"
#include "data/line_writer.h"
#include "learn/evaluate.h"
#include "model/classifier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_ROWS 256

struct options {
    const char *model, *data, *out;
    int64_t limit, skip, max_mib;
    double min_p;
    int32_t force, reserved;
    struct rlhf__workplace_flags at;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--model", model, "DIR", "classifier; the default one when not given"),
    RLHF__FLAG_S(O, "--data", data, "FILE", "rows with text: .jsonl, .jsonl.gz or .txt"),
    RLHF__FLAG_S(O, "--out", out, "FILE", "where the labelled rows go: .jsonl or .jsonl.gz"),
    RLHF__FLAG_F(O, "--min-p", min_p, "P", 0, 1, "leave out rows the model is less sure of [0]"),
    RLHF__FLAG_I(O, "--limit", limit, "N", 0, (int64_t)1 << 40, "use N rows; 0: all [0]"),
    RLHF__FLAG_I(O, "--skip", skip, "N", 0, (int64_t)1 << 40, "leave out the first N rows [0]"),
    RLHF__FLAG_I(O, "--max-mib", max_mib, "N", 1, 1 << 20,
                 "MiB of memory that the rows may take [1024]"),
    RLHF__FLAG_SW(O, "--force", force, "replace FILE when it exists"),
    RLHF__WORKPLACE_FLAGS(O),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

static rlhf_status label_rows(const struct rlhf__workplace *w, const struct options *o,
                              struct rlhf__classifier *c, const struct rlhf__dataset *ds,
                              struct rlhf__line_writer *out, int64_t *kept,
                              struct rlhf__error *err) {
    int32_t width = rlhf__classifier_labels(c)->n;
    int64_t rows = rlhf__dataset_rows(ds);
    float *logits = calloc((size_t)CHUNK_ROWS * (size_t)width, sizeof *logits);
    rlhf_status st = RLHF_OK;
    if (!logits) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory labelling");
    for (int64_t at = 0; st == RLHF_OK && at < rows; at += CHUNK_ROWS) {
        rlhf_str text[CHUNK_ROWS];
        rlhf__progress_step(w->progress, "labelling", at, rows);
        uint32_t n = (uint32_t)(rows - at < CHUNK_ROWS ? rows - at : CHUNK_ROWS);
        if (*w->env->cancelled) st = rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
        for (uint32_t i = 0; i < n; i++)
            text[i] = rlhf__dataset_row(ds, at + i).text[RLHF__FIELD_TEXT];
        if (st == RLHF_OK) st = rlhf__classifier_logits(c, n, text, logits, err);
        for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
            const struct rlhf__peak peak = rlhf__peak_of(logits + (size_t)i * (size_t)width, width);
            const double p = 1 / peak.sum;
            if (p < o->min_p) continue;
            st = rlhf__line_writer_put_new(out,
                                           json_pack("{s:s%, s:i, s:f}", "text", text[i].ptr,
                                                     (size_t)text[i].len, "label", (int)peak.at,
                                                     "p", p),
                                           err);
            ++*kept;
        }
    }
    free(logits);
    return st;
}

static rlhf_status say_done(const struct options *o, const struct rlhf__dataset *ds, int64_t kept,
                            struct rlhf__error *err) {
    const int64_t rows = rlhf__dataset_rows(ds);
    printf("%lld of %lld row%s labelled: %s\n", (long long)kept, (long long)rows,
           rows == 1 ? "" : "s", o->out);
    return rlhf__print_flush(err);
}

static rlhf_status label(struct rlhf__workplace *w, const struct options *o,
                         struct rlhf__error *err) {
    struct rlhf__classifier *c = NULL;
    struct rlhf__dataset *ds = NULL;
    struct rlhf__line_writer *out = NULL;
    struct rlhf__loading loading = rlhf__workplace_loading(w, o->max_mib);
    struct rlhf__dataset_opts d = {.paths = &o->data,
                                   .n_paths = 1,
                                   .setting = "--data",
                                   .need = RLHF__FIELD_BIT(RLHF__FIELD_TEXT),
                                   .skip = o->skip,
                                   .limit = o->limit,
                                   .loading = &loading};
    char room[RLHF__PATH_CAP];
    int64_t kept = 0;
    rlhf_status st = rlhf__dataset_open(&d, &ds, err);
    if (st == RLHF_OK) st = rlhf__workplace_start(w, 1, err);
    if (st == RLHF_OK) {
        const char *dir = rlhf__workplace_dir(w, o->model, "classifier", room);
        st = rlhf__classifier_open(&w->session.models, dir, &w->adapter, &c, err);
        st = rlhf__workplace_opened(o->model, st, err);
    }
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
    struct rlhf__workplace w = {0};
    rlhf_status st = rlhf__workplace_init(&w, env, &o->at, RLHF__PROGRESS_AUTO, err);
    if (st == RLHF_OK) st = label(&w, o, err);
    rlhf__workplace_finish(&w);
    return st;
}

int rlhf__cmd_label(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct options o = {.at = RLHF__WORKPLACE_DEFAULTS};
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
