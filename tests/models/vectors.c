// tests/models/vectors.c: see vectors.h.
#include "vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int32_t vec_ids[VEC_TOTAL] = {5,  17, 60, 3, 3,  41, 9,  12, 58, 1, 0,  33,
                                    20, 7,  7,  8, 50, 2,  11, 29, 44, 6, 19, 23};
const int32_t vec_offset[VEC_ROWS + 1] = {0, 7, 8, 20, 24};
const int32_t vec_prompt_len[VEC_ROWS] = {2, 1, 5, 1};

float vec_weight(uint64_t i) { return (float)((int)(i * 7 % 11) - 3) / 8; }

struct vectors vectors_open(const char *model) {
    struct vectors v = {.model = model};
    char path[1024];
    const char *dir = getenv("RLHF_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/tests/models/vectors.bin", dir ? dir : "../..");
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s cannot be opened", path);
    fseek(f, 0, SEEK_END);
    v.len = (uint64_t)ftell(f);
    rewind(f);
    v.bytes = malloc(v.len);
    if (!v.bytes || fread(v.bytes, 1, v.len, f) != v.len) fail_msg("%s cannot be read", path);
    fclose(f);
    return v;
}

void vectors_close(struct vectors *v) {
    free(v->bytes);
    v->bytes = NULL;
}

float *vectors_get(const struct vectors *v, const char *name, uint64_t *n) {
    char want[256];
    snprintf(want, sizeof want, "%s/%s", v->model, name);
    for (uint64_t at = 0; at + 8 <= v->len;) {
        uint32_t len, count;
        memcpy(&len, v->bytes + at, 4);
        memcpy(&count, v->bytes + at + 4 + len, 4);
        const char *key = v->bytes + at + 4, *data = key + len + 4;
        if (len == strlen(want) && !memcmp(key, want, len)) {
            float *out = test_malloc((uint64_t)count * sizeof *out + 1);
            memcpy(out, data, (uint64_t)count * sizeof *out);
            *n = count;
            return out;
        }
        at += 8 + len + (uint64_t)count * 4;
    }
    return NULL;
}

float *vectors_need(const struct vectors *v, const char *name, uint64_t n) {
    uint64_t count = 0;
    float *x = vectors_get(v, name, &count);
    if (!x || count != n)
        fail_msg("vector %s: %llu values, expected %llu", name, (unsigned long long)count,
                 (unsigned long long)n);
    return x;
}

// ---- comparing a model with them ----

const rlhf_batch vec_batch = {sizeof(rlhf_batch), VEC_ROWS,       VEC_TOTAL, 0,   vec_ids,
                              vec_offset,         vec_prompt_len, NULL,      NULL};

void vec_lm_step(struct model *m, float sign, float *logp) {
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP, .train = 1};
    float d_logp[VEC_TOTAL];
    rlhf_heads out = {.size = sizeof out, .logp = logp};
    rlhf_heads grad = {.size = sizeof grad, .logp = d_logp};
    for (uint64_t i = 0; i < VEC_TOTAL; i++)
        d_logp[i] = sign * vec_weight(i);
    must(m, m->ops->forward(m->self, &vec_batch, &f, &out));
    must(m, m->ops->backward(m->self, &vec_batch, &f, &grad));
}

// Returns the vectors' gradient of `p`, or NULL.
static float *grad_of(const struct vectors *v, const rlhf_param *p, int32_t partly) {
    char name[256];
    uint64_t n;
    snprintf(name, sizeof name, "grad:%s", p->name);
    return partly ? vectors_get(v, name, &n) : vectors_need(v, name, param_count(p));
}

// Returns the largest gradient of the vectors. Some gradients, such as the gradient of a key bias,
// are exactly zero in theory, so they are compared on this scale.
static double grad_scale(struct model *m, const struct vectors *v, int32_t partly) {
    rlhf_param p = {.size = sizeof p};
    double top = 0;
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        float *g = grad_of(v, &p, partly);
        for (uint64_t j = 0; g && j < param_count(&p); j++)
            if (g[j] > top) top = g[j];
        test_free(g);
    }
    return top;
}

void vec_check_grads(struct model *m, const struct vectors *v, int32_t partly) {
    const double zero = 1e-6 * grad_scale(m, v, partly);
    rlhf_param p = {.size = sizeof p};
    uint32_t checked = 0;
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        const uint64_t n = param_count(&p);
        float *want = grad_of(v, &p, partly);
        if (!want) continue;
        float *got = device_read(m->c, p.grad, n);
        assert_tensor_close(got, want, n, VEC_RTOL, zero, p.name);
        test_free(want);
        test_free(got);
        checked++;
    }
    assert_true(checked > 0);
}

void vec_classifier(const struct backend *b, const char *plugin, const struct setting *settings,
                    const char *vectors) {
    rlhf_model_open o = open_args(b, RLHF_F32, 1);
    float score[VEC_ROWS * VEC_LABELS], d[VEC_ROWS * VEC_LABELS];
    rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_SCORE, .train = 1};
    rlhf_heads out = {.size = sizeof out, .score = score};
    rlhf_heads grad = {.size = sizeof grad, .score = d};
    o.n_labels = VEC_LABELS;
    struct model m = model_open(plugin, settings, &o);
    struct vectors v = vectors_open(vectors);
    float *want = vectors_need(&v, "score", VEC_ROWS * VEC_LABELS);
    model_fill(&m, 0.3);
    for (uint64_t i = 0; i < VEC_ROWS * VEC_LABELS; i++)
        d[i] = vec_weight(i);
    must(&m, m.ops->forward(m.self, &vec_batch, &f, &out));
    must(&m, m.ops->backward(m.self, &vec_batch, &f, &grad));
    assert_tensor_close(score, want, VEC_ROWS * VEC_LABELS, VEC_RTOL, 0, "score");
    vec_check_grads(&m, &v, 0);
    test_free(want);
    vectors_close(&v);
    model_close(&m);
}
