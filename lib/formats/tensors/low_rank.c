// low_rank.c: see low_rank.h.
#include "tensors/low_rank.h"

#include <stdlib.h>

static int fits(const struct rlhf__tensor *w, const struct rlhf__tensor *a,
                const struct rlhf__tensor *b, int in_out) {
    return w->ndim == 2 && a->ndim == 2 && b->ndim == 2 && a->shape[0] == b->shape[1] &&
           a->shape[1] == w->shape[in_out ? 0 : 1] && b->shape[0] == w->shape[in_out ? 1 : 0];
}

static rlhf_status check(const struct rlhf__tensor *w, const struct rlhf__tensor *a,
                         const struct rlhf__tensor *b, int in_out, struct rlhf__error *err) {
    char of_w[128], of_a[128], of_b[128];
    if (fits(w, a, b, in_out)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the adapter is of another base: %s of %s has shape %s, its A %s and B %s in "
                      "%s do not fit",
                      w->name, w->file,
                      rlhf__tensor_shape_text(w->shape, w->ndim, of_w, sizeof of_w),
                      rlhf__tensor_shape_text(a->shape, a->ndim, of_a, sizeof of_a),
                      rlhf__tensor_shape_text(b->shape, b->ndim, of_b, sizeof of_b), a->file);
}

// to[cols, rows] = from[rows, cols].
static void transpose(float *to, const float *from, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            to[c * rows + r] = from[r * cols + c];
}

// Reads a matrix [rows, cols], as stored or transposed. The caller frees it.
static rlhf_status matrix(const struct rlhf__tensor *t, int transposed, float **out,
                          struct rlhf__error *err) {
    const size_t bytes = (size_t)t->count * sizeof **out;
    float *x = calloc(1, bytes + 1), *y = transposed ? calloc(1, bytes + 1) : NULL;
    rlhf_status st = x && (y || !transposed) ? rlhf__tensor_read_f32(t, 0, t->count, x, err)
                                             : RLHF__NOMEM(err, "out of memory for %s", t->name);
    if (st == RLHF_OK && transposed) transpose(y, x, t->shape[0], t->shape[1]);
    *out = transposed ? y : x;
    if (transposed) free(x);
    return st;
}

rlhf_status rlhf__low_rank_open(const struct rlhf__tensor *w, const struct rlhf__tensor *a,
                                const struct rlhf__tensor *b, double scale, int in_out,
                                struct rlhf__low_rank **out, struct rlhf__error *err) {
    *out = NULL;
    RLHF_TRY(check(w, a, b, in_out, err));
    struct rlhf__low_rank *l = calloc(1, sizeof *l);
    if (!l) return RLHF__NOMEM(err, "out of memory for %s", w->name);
    l->rows = w->shape[0];
    l->cols = w->shape[1];
    l->rank = a->shape[0];
    // If `w` is stored as [inputs, outputs], the product is A' [inputs, rank] B' [rank, outputs].
    rlhf_status st = matrix(in_out ? a : b, in_out, &l->left, err);
    if (st == RLHF_OK) st = matrix(in_out ? b : a, in_out, &l->right, err);
    for (int64_t i = 0; st == RLHF_OK && i < l->rows * l->rank; i++)
        l->left[i] = (float)(scale * (double)l->left[i]);
    if (st != RLHF_OK) {
        rlhf__low_rank_close(l);
        return st;
    }
    *out = l;
    return RLHF_OK;
}

void rlhf__low_rank_close(struct rlhf__low_rank *l) {
    if (!l) return;
    free(l->left);
    free(l->right);
    free(l);
}
