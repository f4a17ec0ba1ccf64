// patching.c: see patching.h.
//
// The stream is the sum of the outputs of all parts. So the patched run can start after the part,
// with the base's stream at this point plus the difference between the part's outputs in the two
// models. Earlier parts do not run again, because their values are the same as in the base.
#include "inspect/patching.h"

#include <stdlib.h>
#include <string.h>

enum { TOKENS = 2048 }; // maximum tokens in a run of the base, over all its rows

struct work {
    struct rlhf__patching *out;
    const struct rlhf__patched_model *base, *tuned;
    const struct rlhf__attribution *a;
    double *was;       // [n] the base's number
    double *g;         // [d] scratch
    float *w[2];       // [heads * width, d] of the base, and of the tuned model
    float *rows, *end; // [most rows, n, d] streams to run from; their ends
    float *raw;        // [n, d] attention's output in the base, before a norm
    uint32_t most;
};

int rlhf__part_is_patched(const struct rlhf__layer_part *p) {
    return p->kind != RLHF__PART_ATTENTION_BIAS && p->kind != RLHF__PART_MLP_BIAS &&
           p->kind != RLHF__PART_CONSTANT;
}

static size_t width_of(const struct work *k) { return (size_t)k->base->reading->tap.info.d_model; }

static size_t stream_of(const struct work *k) { return k->a->n * width_of(k); }

// The place of effects: to[i * row + t * token] is the effect of row i at token t.
struct target {
    double *to;
    size_t row, token;
};

// Run the base from a point onward with each of the n streams in k->rows, and store the effect of
// each stream.
static rlhf_status run_rows(struct work *k, uint32_t n, int32_t point, int32_t layer,
                            struct target where, struct rlhf__error *err) {
    const struct rlhf__reading *r = k->base->reading;
    const size_t d = width_of(k), stream = stream_of(k);
    for (uint32_t from = 0; where.to && from < n; from += k->most) {
        const uint32_t some = n - from < k->most ? n - from : k->most;
        RLHF_TRY(rlhf__tap_run_from(&r->tap, r->ids, r->n, some, point, layer,
                                    k->rows + from * stream, k->end, err));
        for (uint32_t i = 0; i < some; i++)
            for (size_t t = 0; t < r->n; t++)
                where.to[(from + i) * where.row + t * where.token] =
                    rlhf__direction_value_at(k->base->direction, k->end + (i * r->n + t) * d,
                                             k->g) -
                    k->was[t];
    }
    return RLHF_OK;
}

// Set the stream `row` to base + (plus - minus).
static void make_row(float *row, const float *base, const float *plus, const float *minus,
                     size_t n) {
    for (size_t i = 0; i < n; i++)
        row[i] = (float)((double)base[i] + ((double)plus[i] - (double)minus[i]));
}

static double *part_of(const struct work *k, int32_t kind, int32_t layer) {
    for (size_t i = 0; i < k->a->n_parts; i++)
        if (k->a->part[i].kind == kind && k->a->part[i].layer == layer)
            return k->out->part + i * k->a->n;
    return NULL;
}

static rlhf_status patch_embeddings(struct work *k, struct rlhf__error *err) {
    const struct rlhf__reading *b = k->base->reading, *u = k->tuned->reading;
    const size_t stream = stream_of(k);
    double *token = part_of(k, RLHF__PART_TOKEN, -1);
    double *position = part_of(k, RLHF__PART_POSITION, -1);
    make_row(k->rows, rlhf__reading_in(b, 0), u->token, b->token, stream);
    RLHF_TRY(run_rows(k, 1, RLHF_TAP_IN, 0, (struct target){token, 0, 1}, err));
    if (!position) return RLHF_OK;
    make_row(k->rows, rlhf__reading_in(b, 0), u->position, b->position, stream);
    return run_rows(k, 1, RLHF_TAP_IN, 0, (struct target){position, 0, 1}, err);
}

// Set `out` [n, d] to the output of head `h` of layer `l`, multiplied by the matrix `w`.
static void head_output(const struct rlhf__reading *r, int32_t l, size_t h, const float *w,
                        float *out) {
    const size_t d = (size_t)r->tap.info.d_model, width = (size_t)r->tap.info.head_dim;
    const size_t q = (size_t)rlhf__tap_width(&r->tap);
    memset(out, 0, r->n * d * sizeof *out);
    for (size_t t = 0; t < r->n; t++)
        for (size_t c = h * width; c < (h + 1) * width; c++) {
            const float z = rlhf__reading_heads(r, l)[t * q + c], *from = w + c * d;
            float *to = out + t * d;
            for (size_t i = 0; i < d; i++)
                to[i] += z * from[i];
        }
}

// `row` has a head's output in the tuned model and `minus` the one in the base. Sets `row` to the
// base's stream after attention with the one in place of the other. A norm of attention's output is
// computed again.
static void make_head_row(const struct work *k, int32_t l, float *row, const float *minus) {
    const struct rlhf__reading *b = k->base->reading;
    const size_t stream = stream_of(k);
    if (!b->out_norm) {
        make_row(row, rlhf__reading_mid(b, l), row, minus, stream);
        return;
    }
    make_row(row, k->raw, row, minus, stream);
    rlhf__reading_norm(b, l, row);
    for (size_t i = 0; i < stream; i++)
        row[i] += rlhf__reading_in(b, l)[i];
}

// Patches the heads of a layer one by one.
static rlhf_status patch_heads(struct work *k, int32_t l, struct rlhf__error *err) {
    const struct rlhf__reading *b = k->base->reading, *u = k->tuned->reading;
    const size_t stream = stream_of(k), heads = (size_t)k->a->heads, n = k->a->n;
    RLHF_TRY(rlhf__tap_matrix(&b->tap, l, k->w[0], err));
    RLHF_TRY(rlhf__tap_matrix(&u->tap, l, k->w[1], err));
    if (b->out_norm) RLHF_TRY(rlhf__reading_raw(b, l, k->raw, err));
    for (size_t from = 0; from < heads; from += k->most) {
        const size_t some = heads - from < k->most ? heads - from : k->most;
        for (size_t i = 0; i < some; i++) {
            float *row = k->rows + i * stream;
            head_output(u, l, from + i, k->w[1], row);
            head_output(b, l, from + i, k->w[0], k->end); // k->end is not in use before the run
            make_head_row(k, l, row, k->end);
        }
        const struct target to = {k->out->head + (size_t)l * n * heads + from, 1, heads};
        RLHF_TRY(run_rows(k, (uint32_t)some, RLHF_TAP_MID, l, to, err));
    }
    return RLHF_OK;
}

static rlhf_status patch_layer(struct work *k, int32_t l, struct rlhf__error *err) {
    const struct rlhf__reading *b = k->base->reading, *u = k->tuned->reading;
    const size_t stream = stream_of(k);
    const int32_t last = l + 1 == k->a->layers;
    const struct target attention = {part_of(k, RLHF__PART_ATTENTION, l), 0, 1};
    const struct target mlp = {part_of(k, RLHF__PART_MLP, l), 0, 1};
    RLHF_TRY(patch_heads(k, l, err));
    // the base's stream before attention, plus the output of the tuned model's attention
    make_row(k->rows, rlhf__reading_in(b, l), rlhf__reading_mid(u, l), rlhf__reading_in(u, l),
             stream);
    RLHF_TRY(run_rows(k, 1, RLHF_TAP_MID, l, attention, err));
    make_row(k->rows, rlhf__reading_mid(b, l), rlhf__reading_in(u, l + 1), rlhf__reading_mid(u, l),
             stream);
    return run_rows(k, 1, last ? RLHF_TAP_END : RLHF_TAP_IN, last ? 0 : l + 1, mlp, err);
}

// The effect of applying the tuned model's final norm and head to the base's last stream.
static void patch_out(struct work *k) {
    const float *end = rlhf__reading_in(k->base->reading, k->a->layers);
    for (size_t t = 0; t < k->a->n; t++)
        k->out->out[t] =
            rlhf__direction_value_at(k->tuned->direction, end + t * width_of(k), k->g) - k->was[t];
}

static rlhf_status make_room(struct work *k, struct rlhf__error *err) {
    const size_t n = k->a->n, d = width_of(k), heads = (size_t)k->a->heads;
    const size_t w = (size_t)rlhf__tap_width(&k->base->reading->tap) * d;
    k->most = n < TOKENS ? (uint32_t)(TOKENS / n) : 1;
    if (k->most > heads) k->most = (uint32_t)heads;
    k->out->part = calloc(k->a->n_parts * n, sizeof(double));
    k->out->head = calloc((size_t)k->a->layers * n * heads, sizeof(double));
    k->out->out = calloc(n, sizeof(double));
    k->was = calloc(n, sizeof *k->was);
    k->g = calloc(d, sizeof *k->g);
    k->w[0] = malloc(2 * w * sizeof(float));
    k->w[1] = k->w[0] ? k->w[0] + w : NULL;
    k->rows = malloc((2 * k->most + 1) * n * d * sizeof(float));
    k->end = k->rows ? k->rows + k->most * n * d : NULL;
    k->raw = k->rows ? k->end + k->most * n * d : NULL;
    if (!k->out->part || !k->out->head || !k->out->out || !k->was || !k->g || !k->w[0] || !k->rows)
        return RLHF__NOMEM(err, "out of memory for patching");
    return RLHF_OK;
}

static rlhf_status patch_all(struct work *k, int (*tick)(void *ctx, int32_t), void *ctx,
                             struct rlhf__error *err) {
    const float *end = rlhf__reading_in(k->base->reading, k->a->layers);
    for (size_t t = 0; t < k->a->n; t++)
        k->was[t] = rlhf__direction_value_at(k->base->direction, end + t * width_of(k), k->g);
    RLHF_TRY(patch_embeddings(k, err));
    for (int32_t l = 0; l < k->a->layers; l++) {
        RLHF_TRY(patch_layer(k, l, err));
        if (tick && tick(ctx, l + 1)) return rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
    }
    patch_out(k);
    return RLHF_OK;
}

rlhf_status rlhf__patching_take(struct rlhf__patching *out, const struct rlhf__patched_model *base,
                                const struct rlhf__patched_model *tuned,
                                const struct rlhf__attribution *a, int (*tick)(void *ctx, int32_t),
                                void *ctx, struct rlhf__error *err) {
    struct work k = {.out = out, .base = base, .tuned = tuned, .a = a};
    rlhf_status st = make_room(&k, err);
    if (st == RLHF_OK) st = patch_all(&k, tick, ctx, err);
    free(k.was);
    free(k.g);
    free(k.w[0]);
    free(k.rows);
    return st;
}

void rlhf__patching_finish(struct rlhf__patching *p) {
    free(p->part);
    free(p->head);
    free(p->out);
    memset(p, 0, sizeof *p);
}
