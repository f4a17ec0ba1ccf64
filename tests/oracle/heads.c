// heads.c: `heads DIR DTYPE ROWS OUT [TEACHER DIVERGENCE BETA]` writes log-probs and gradients of a
// model directory, for families.py and jsd.py. The compute backend is cpu, or RLHF_BACKEND.
//
// ROWS is {"rows": [[id, ...], ...], "weight": [one number per token]}. OUT is a list of records:
// name length u32, name, count u32, count f32. The records are:
//
// logp       the log-prob of every token given the tokens before it in its row (0 for the first)
// kl         with a TEACHER, another model directory: the divergence (a number of enum
//            rlhf_divergence) of every token's distribution from the teacher's
// grad:NAME  for every trained parameter, the gradient of the sum of weight * logp; with a TEACHER,
//            of weight * kl. Only if a weight is not 0.
#include "base/json.h"
#include "model/parameters.h"
#include "model/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rows {
    uint32_t n, total;
    int32_t *ids, *offset, *prompt_len;
    float *weight, *logp, *kl, *hidden; // hidden: hidden states of the teacher
};

struct teacher {
    struct rlhf__model *model; // NULL: without a model
    int32_t divergence;
    double beta;
};

static void *need(size_t n, size_t size) {
    void *p = calloc(n ? n : 1, size);
    if (!p) exit(3);
    return p;
}

static void rows_read(const char *path, struct rows *r) {
    struct rlhf__error err = {0};
    json_t *from = NULL;
    if (rlhf__json_load(path, &from, &err) != RLHF_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    const json_t *rows = json_object_get(from, "rows"), *weight = json_object_get(from, "weight");
    r->n = (uint32_t)json_array_size(rows);
    r->total = (uint32_t)json_array_size(weight);
    r->ids = need(r->total, sizeof *r->ids);
    r->offset = need(r->n + 1, sizeof *r->offset);
    r->prompt_len = need(r->n, sizeof *r->prompt_len);
    r->weight = need(r->total, sizeof *r->weight);
    r->logp = need(r->total, sizeof *r->logp);
    uint32_t at = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const json_t *row = json_array_get(rows, i);
        for (size_t j = 0; j < json_array_size(row) && at < r->total; j++, at++) {
            r->ids[at] = (int32_t)json_integer_value(json_array_get(row, j));
            r->weight[at] = (float)json_number_value(json_array_get(weight, at));
        }
        r->offset[i + 1] = (int32_t)at;
        r->prompt_len[i] = 1;
    }
    json_decref(from);
}

static void put(FILE *f, const char *prefix, const char *name, const float *x, uint64_t n) {
    const uint32_t len = (uint32_t)(strlen(prefix) + strlen(name)), count = (uint32_t)n;
    fwrite(&len, sizeof len, 1, f);
    fprintf(f, "%s%s", prefix, name);
    fwrite(&count, sizeof count, 1, f);
    fwrite(x, sizeof *x, n, f);
}

static rlhf_status ask_teacher(const struct rlhf__model *t, const rlhf_batch *b, struct rows *r,
                               struct rlhf__error *err) {
    static const rlhf_dist dist = RLHF_DIST_WHOLE;
    const rlhf_forward how = {
        .size = sizeof how, .heads = RLHF_HEAD_LOGP | RLHF_HEAD_HIDDEN, .dist = &dist};
    r->kl = need(r->total, sizeof *r->kl);
    r->hidden = need((size_t)r->total * (size_t)t->info.d_model, sizeof *r->hidden);
    const rlhf_heads heads = {.size = sizeof heads, .logp = r->logp, .hidden = r->hidden};
    return rlhf__model_forward(t, b, &how, &heads, err);
}

static int has_weights(const struct rows *r) {
    for (uint32_t i = 0; i < r->total; i++)
        if (r->weight[i] < 0 || r->weight[i] > 0) return 1;
    return 0;
}

static rlhf_status run(const struct rlhf__model *m, const struct teacher *t, struct rows *r,
                       const char *out, struct rlhf__error *err) {
    const rlhf_batch b = {.size = sizeof b,
                          .n = r->n,
                          .total = r->total,
                          .ids = r->ids,
                          .offset = r->offset,
                          .prompt_len = r->prompt_len};
    const int train = has_weights(r);
    rlhf_forward how = {.size = sizeof how, .heads = RLHF_HEAD_LOGP, .train = train};
    rlhf_heads heads = {.size = sizeof heads, .logp = r->logp},
               grad = {.size = sizeof grad, .logp = r->weight};
    if (t->model) {
        RLHF_TRY(ask_teacher(t->model, &b, r, err));
        how.heads |= RLHF_HEAD_KL;
        how.kl_self = t->model->self;
        how.kl_hidden = r->hidden;
        how.divergence = t->divergence;
        how.divergence_beta = t->beta;
        heads.kl = r->kl;
        grad = (rlhf_heads){.size = sizeof grad, .kl = r->weight};
    }
    RLHF_TRY(rlhf__model_forward(m, &b, &how, &heads, err));
    if (train) RLHF_TRY(rlhf__model_backward(m, &b, &how, &grad, err));
    FILE *f = fopen(out, "wb");
    if (!f) return rlhf__fail(err, RLHF_E_IO, "%s cannot be written", out);
    put(f, "", "logp", r->logp, r->total);
    if (t->model) put(f, "", "kl", r->kl, r->total);
    for (uint32_t i = 0; train && i < m->n_tensors; i++) {
        if (!m->params[i].grad) continue; // not trained
        const uint64_t n = (uint64_t)rlhf__param_count(&m->params[i]);
        float *x = need(n, sizeof *x);
        const rlhf_status st =
            m->compute->download(m->compute->ctx, x, m->params[i].grad, n * sizeof *x);
        if (st != RLHF_OK) return rlhf__fail(err, st, "download failed");
        put(f, "grad:", m->params[i].name, x, n);
        free(x);
    }
    return fclose(f) ? rlhf__fail(err, RLHF_E_IO, "%s cannot be written", out) : RLHF_OK;
}

int main(int argc, char **argv) {
    const char *build = getenv("RLHF_BUILD_DIR"), *backend = getenv("RLHF_BACKEND");
    if ((argc != 5 && argc != 8) || !build) {
        fprintf(stderr, "usage: RLHF_BUILD_DIR=... heads DIR f32|bf16 ROWS OUT "
                        "[TEACHER DIVERGENCE BETA]\n");
        return 2;
    }
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins = NULL;
    struct rlhf__session session = {0};
    struct rlhf__model *m = NULL;
    struct rlhf__error err = {0};
    struct rows r = {0};
    struct rlhf__compute_config compute = {.backend = backend ? backend : "cpu"};
    struct rlhf__run_config run_config = {.seed = 1, .threads = 1};
    struct rlhf__model_spec spec = {.dir = argv[1], .role = "policy"};
    const struct rlhf__model_spec frozen = {.dir = argv[argc - 3], .role = "teacher", .frozen = 1};
    struct teacher t = {.model = NULL};
    if (argc == 8) t.divergence = atoi(argv[6]), t.beta = atof(argv[7]);
    snprintf(dirs.lib, sizeof dirs.lib, "%s/lib/rlhf/1", build);
    snprintf(dirs.share, sizeof dirs.share, "%s/share/rlhf", build);
    rows_read(argv[3], &r);
    spec.trainable = has_weights(&r);
    spec.frozen = !spec.trainable; // the matrices of a GGUF file stay quantised
    rlhf_status st = rlhf__dtype_choice(argv[2], "DTYPE", &compute.dtype, &err);
    if (st == RLHF_OK) st = rlhf__plugins_open(&dirs, &plugins, &err);
    if (st == RLHF_OK)
        st = rlhf__session_init(&session, &dirs, NULL, NULL, plugins, &compute, &run_config, &err);
    if (st == RLHF_OK) st = rlhf__model_open(&session.models, &spec, &m, &err);
    if (st == RLHF_OK && argc == 8) st = rlhf__model_open(&session.models, &frozen, &t.model, &err);
    if (st == RLHF_OK) st = run(m, &t, &r, argv[4], &err);
    if (st != RLHF_OK) fprintf(stderr, "%s\n", err.text);
    rlhf__model_close(t.model);
    rlhf__model_close(m);
    rlhf__session_finish(&session);
    rlhf__plugins_close(plugins);
    free(r.ids);
    free(r.offset);
    free(r.prompt_len);
    free(r.weight);
    free(r.logp);
    free(r.kl);
    free(r.hidden);
    return st != RLHF_OK;
}
