// label.c: `rlhf-host label`: let a classifier label the {"text"} rows of a file, e.g. to train on
// texts nobody has labelled. Writes {"text", "label", "p"} rows, p being the label's probability.
#include "cmd/commands.h"

#include "cmd/flags.h"
#include "data/dataset.h"
#include "data/line_writer.h"
#include "model/classifier.h"
#include "model/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_ROWS 256

struct options {
    const char *model, *data, *out, *backend, *dtype;
    int64_t limit, skip, threads, max_mib;
    double min_p;
    int32_t force, reserved;
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
    RLHF__FLAG_I(O, "--threads", threads, "N", 0, 1024, "CPU threads; 0: all [0]"),
    RLHF__FLAG_S(O, "--backend", backend, "NAME", "kernels: cpu or reference [cpu]"),
    RLHF__FLAG_S(O, "--dtype", dtype, "T", "auto, f32 or bf16 [auto]"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

// Arg max of one row's logits (lowest label on a tie) and its softmax probability.
static int32_t pick(const float *logits, int32_t n, double *p) {
    int32_t best = 0;
    double sum = 0;
    for (int32_t k = 1; k < n; k++)
        if (logits[k] > logits[best]) best = k;
    for (int32_t k = 0; k < n; k++)
        sum += exp((double)logits[k] - (double)logits[best]);
    *p = 1 / sum;
    return best;
}

static rlhf_status label_rows(const struct rlhf__env *env, const struct options *o,
                              struct rlhf__classifier *c, const struct rlhf__dataset *ds,
                              struct rlhf__line_writer *w, int64_t *kept, struct rlhf__error *err) {
    int32_t width = rlhf__classifier_labels(c)->n;
    int64_t rows = rlhf__dataset_rows(ds);
    float *logits = calloc((size_t)CHUNK_ROWS * (size_t)width, sizeof *logits);
    rlhf_status st = RLHF_OK;
    if (!logits) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory labelling");
    for (int64_t at = 0; st == RLHF_OK && at < rows; at += CHUNK_ROWS) {
        rlhf_str text[CHUNK_ROWS];
        uint32_t n = (uint32_t)(rows - at < CHUNK_ROWS ? rows - at : CHUNK_ROWS);
        if (*env->cancelled) st = rlhf__fail(err, RLHF_E_CANCELLED, "stopped; nothing was written");
        for (uint32_t i = 0; i < n; i++)
            text[i] = rlhf__dataset_row(ds, at + i).text[RLHF__FIELD_TEXT];
        if (st == RLHF_OK) st = rlhf__classifier_logits(c, n, text, logits, err);
        for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
            double p;
            int32_t label = pick(logits + (size_t)i * (size_t)width, width, &p);
            if (p < o->min_p) continue;
            st = rlhf__line_writer_put_new(w,
                                           json_pack("{s:s%, s:i, s:f}", "text", text[i].ptr,
                                                     (size_t)text[i].len, "label", (int)label, "p",
                                                     p),
                                           err);
            ++*kept;
        }
    }
    free(logits);
    return st;
}

static rlhf_status label(const struct rlhf__env *env, const struct options *o,
                         struct rlhf__error *err) {
    struct rlhf__plugins *plugins = NULL;
    struct rlhf__session session = {0};
    struct rlhf__classifier *c = NULL;
    struct rlhf__dataset *ds = NULL;
    struct rlhf__line_writer *w = NULL;
    struct rlhf__compute_config compute = {.backend = o->backend};
    struct rlhf__run_config run = {.seed = 1, .threads = o->threads};
    struct rlhf__loading loading = {
        .max_mib = o->max_mib, .setting = "--max-mib", .cancelled = env->cancelled};
    struct rlhf__dataset_opts d = {.paths = &o->data,
                                   .n_paths = 1,
                                   .setting = "--data",
                                   .need = RLHF__FIELD_BIT(RLHF__FIELD_TEXT),
                                   .skip = o->skip,
                                   .limit = o->limit,
                                   .loading = &loading};
    char built_in[2048];
    int64_t kept = 0;
    rlhf__default_model(env->dirs, "classifier", built_in);
    rlhf_status st = rlhf__dtype_choice(o->dtype, "--dtype", &compute.dtype, err);
    if (st == RLHF_OK) st = rlhf__dataset_open(&d, &ds, err);
    if (st == RLHF_OK) st = rlhf__plugins_create(env->dirs, &plugins, err);
    if (st == RLHF_OK)
        st = rlhf__session_init(&session, env->dirs, env->log, env->cancelled, plugins, &compute,
                                &run, err);
    if (st == RLHF_OK)
        st = rlhf__classifier_open(&session.models, o->model ? o->model : built_in, &c, err);
    if (st == RLHF_OK) st = rlhf__line_writer_open(o->out, &w, err);
    if (st == RLHF_OK) st = label_rows(env, o, c, ds, w, &kept, err);
    if (st == RLHF_OK) {
        st = rlhf__line_writer_commit(w, err);
        w = NULL;
    }
    if (st == RLHF_OK)
        printf("%lld of %lld rows labelled: %s\n", (long long)kept,
               (long long)rlhf__dataset_rows(ds), o->out);
    rlhf__line_writer_abort(w);
    rlhf__classifier_close(c);
    rlhf__session_finish(&session);
    rlhf__plugins_destroy(plugins);
    rlhf__dataset_close(ds);
    return st;
}

int rlhf__cmd_label(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct options o = {.backend = "cpu", .dtype = "auto"};
    if (rlhf__flags_want_help(argc, argv)) {
        puts("usage: rlhf-host label --model DIR --data FILE --out FILE [flags]");
        rlhf__flags_help(stdout, flags, N_FLAGS);
        return 0;
    }
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, NULL, &err);
    if (st == RLHF_OK && (!o.data || !o.out))
        st = rlhf__fail(&err, RLHF_E_INVALID,
                        "label: give the rows with --data FILE and the "
                        "result's name with --out FILE");
    if (st == RLHF_OK) st = rlhf__line_writer_free_target("label", o.out, o.force, &err);
    if (st == RLHF_OK) st = label(env, &o, &err);
    return rlhf__cmd_end(env, st, &err);
}
