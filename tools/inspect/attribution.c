// attribution.c: see attribution.h.
#include "inspect/attribution.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *rlhf__part_name(const struct rlhf__layer_part *p, char out[40]) {
    static const char *const names[] = {[RLHF__PART_TOKEN] = "token",
                                        [RLHF__PART_POSITION] = "position",
                                        [RLHF__PART_ATTENTION] = "attention",
                                        [RLHF__PART_ATTENTION_BIAS] = "attention bias",
                                        [RLHF__PART_MLP] = "mlp",
                                        [RLHF__PART_MLP_BIAS] = "mlp bias",
                                        [RLHF__PART_CONSTANT] = "final bias"};
    const char *name = names[p->kind];
    if (p->layer < 0)
        snprintf(out, 40, "%s", name);
    else
        snprintf(out, 40, "%d.%s", p->layer, name);
    return out;
}

// ---- the list of parts ----

static void add(struct rlhf__attribution *a, int32_t kind, int32_t layer) {
    if (a->part) a->part[a->n_parts] = (struct rlhf__layer_part){kind, layer};
    a->n_parts++;
}

static void list(struct rlhf__attribution *a, const struct rlhf__reading *r,
                 const struct rlhf__direction *dir) {
    a->n_parts = 0;
    add(a, RLHF__PART_TOKEN, -1);
    if (r->position_there) add(a, RLHF__PART_POSITION, -1);
    for (int32_t l = 0; l < a->layers; l++) {
        add(a, RLHF__PART_ATTENTION, l);
        if (r->out_bias) add(a, RLHF__PART_ATTENTION_BIAS, l);
        add(a, RLHF__PART_MLP, l);
        if (r->mlp_bias) add(a, RLHF__PART_MLP_BIAS, l);
    }
    if (dir->norm == RLHF_TAP_NORM_LAYER || dir->hidden || dir->b != 0)
        add(a, RLHF__PART_CONSTANT, -1);
}

static rlhf_status make_room(struct rlhf__attribution *a, const struct rlhf__reading *r,
                             const struct rlhf__direction *dir, struct rlhf__error *err) {
    const size_t n = r->n, d = (size_t)dir->d, stages = (size_t)r->tap.info.n_layer + 1;
    a->n = r->n;
    a->layers = r->tap.info.n_layer;
    a->heads = r->tap.info.n_head;
    list(a, r, dir);
    a->part = calloc(a->n_parts, sizeof *a->part);
    a->contribution = calloc(a->n_parts * n, sizeof *a->contribution);
    a->head = calloc((size_t)a->layers * n * (size_t)a->heads, sizeof *a->head);
    a->out_bias = calloc((size_t)a->layers * n, sizeof *a->out_bias);
    a->sum = calloc(n, sizeof *a->sum);
    a->accumulated = calloc(stages * n, sizeof *a->accumulated);
    a->lens = calloc(stages * n, sizeof *a->lens);
    a->g = calloc(n * d, sizeof *a->g);
    a->constant = calloc(n, sizeof *a->constant);
    if (!a->part || !a->contribution || !a->head || !a->out_bias || !a->sum || !a->accumulated ||
        !a->lens || !a->g || !a->constant)
        return RLHF__NOMEM(err, "out of memory for the contributions of %u tokens", r->n);
    list(a, r, dir);
    return RLHF_OK;
}

void rlhf__attribution_finish(struct rlhf__attribution *a) {
    free(a->part);
    free(a->contribution);
    free(a->head);
    free(a->out_bias);
    free(a->sum);
    free(a->accumulated);
    free(a->lens);
    free(a->g);
    free(a->constant);
    memset(a, 0, sizeof *a);
}

// ---- contributions ----

// Adds the contributions of each head and of the bias after them, at each token. A head's is the
// dot product of the head's output and the head's part of W g, where W [heads * width, d] is the
// matrix after attention, and g the direction of its result. `scratch` has space for g.
static void add_heads(struct rlhf__attribution *a, const struct rlhf__reading *r, int32_t l,
                      const float *w, double *scratch) {
    const size_t q = (size_t)rlhf__tap_width(&r->tap), d = (size_t)r->tap.info.d_model;
    const size_t width = (size_t)r->tap.info.head_dim, heads = (size_t)a->heads;
    for (size_t t = 0; t < a->n; t++) {
        const float *z = rlhf__reading_heads(r, l) + t * q;
        double *to = a->head + ((size_t)l * a->n + t) * heads;
        rlhf__reading_direction(r, l, (uint32_t)t, a->g + t * d, scratch);
        for (size_t c = 0; c < q; c++)
            to[c / width] += (double)z[c] * rlhf__dot(w + c * d, scratch, d);
        a->out_bias[(size_t)l * a->n + t] = rlhf__dot(r->bias_out + (size_t)l * d, scratch, d);
    }
}

// Returns the contribution of a part at token t. Call add_heads() for all layers first.
static double contribution(const struct rlhf__attribution *a, const struct rlhf__reading *r,
                           const struct rlhf__layer_part *p, size_t t) {
    const size_t d = (size_t)r->tap.info.d_model, l = p->layer < 0 ? 0 : (size_t)p->layer;
    const double *g = a->g + t * d;
    const float *bias = r->bias_mlp + l * d;
    const size_t heads = (size_t)a->heads;
    double sum = 0;
    switch (p->kind) {
    case RLHF__PART_TOKEN:
        return rlhf__dot(r->token + t * d, g, d);
    case RLHF__PART_POSITION:
        return rlhf__dot(r->position + t * d, g, d);
    case RLHF__PART_ATTENTION:
        for (size_t h = 0; h < heads; h++)
            sum += a->head[(l * a->n + t) * heads + h];
        return sum;
    case RLHF__PART_ATTENTION_BIAS:
        return a->out_bias[l * a->n + t];
    case RLHF__PART_MLP:
        return rlhf__dot(rlhf__reading_in(r, p->layer + 1) + t * d, g, d) -
               rlhf__dot(rlhf__reading_mid(r, p->layer) + t * d, g, d) - rlhf__dot(bias, g, d);
    case RLHF__PART_MLP_BIAS:
        return rlhf__dot(bias, g, d);
    default:
        return a->constant[t];
    }
}

static void add_parts(struct rlhf__attribution *a, const struct rlhf__reading *r) {
    for (size_t t = 0; t < a->n; t++)
        for (size_t k = 0; k < a->n_parts; k++) {
            const double c = contribution(a, r, &a->part[k], t);
            a->contribution[k * a->n + t] = c;
            a->sum[t] += c;
        }
}

// Compute, for each stage, the sum of the contributions so far, and the number that the model would
// have if it ended there (logit lens).
static void add_stages(struct rlhf__attribution *a, const struct rlhf__reading *r,
                       const struct rlhf__direction *dir, double *scratch) {
    const size_t d = (size_t)dir->d;
    for (int32_t l = 0; l <= a->layers; l++)
        for (size_t t = 0; t < a->n; t++) {
            const float *x = rlhf__reading_in(r, l) + t * d;
            const size_t at = (size_t)l * a->n + t;
            a->accumulated[at] = rlhf__dot(x, a->g + t * d, d) + a->constant[t];
            a->lens[at] = rlhf__direction_value_at(dir, x, scratch);
        }
}

rlhf_status rlhf__attribution_make(struct rlhf__attribution *a, const struct rlhf__reading *r,
                                   const struct rlhf__direction *dir, struct rlhf__error *err) {
    const size_t d = (size_t)dir->d;
    RLHF_TRY(make_room(a, r, dir, err));
    const float *end = rlhf__reading_in(r, a->layers);
    for (size_t t = 0; t < a->n; t++)
        rlhf__direction_at(dir, end + t * d, a->g + t * d, &a->constant[t]);
    float *w = malloc(rlhf__tap_width(&r->tap) * d * sizeof *w);
    double *scratch = malloc(d * sizeof *scratch);
    rlhf_status st = RLHF_OK;
    if (!w || !scratch) st = RLHF__NOMEM(err, "out of memory for a matrix of the model");
    for (int32_t l = 0; st == RLHF_OK && l < a->layers; l++) {
        st = rlhf__tap_matrix(&r->tap, l, w, err);
        if (st == RLHF_OK) add_heads(a, r, l, w, scratch);
    }
    if (st == RLHF_OK) add_parts(a, r);
    if (st == RLHF_OK) add_stages(a, r, dir, scratch);
    free(w);
    free(scratch);
    return st;
}
