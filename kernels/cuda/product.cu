// product.cu: which kernel a product runs on.
#include "product_tile.h"

static const struct {
    unsigned rows, cols;
    float speed; // sums a multiprocessor makes in a given time, roughly
} tiles[RLHF__CUDA_TILES] = {{128, 128, 1.0f}, {64, 64, 0.6f}, {16, 64, 0.3f}};

// The tile with which the busiest multiprocessor is done first. The count of a common large card
// will do for all: the tile does not show in the result.
static int tile_for(unsigned rows, unsigned cols) {
    enum { MULTIPROCESSORS = 132 };
    int best = 0;
    float best_time = 0.0f;
    for (int i = 0; i < RLHF__CUDA_TILES; i++) {
        const uint64_t n = (uint64_t)((rows + tiles[i].rows - 1) / tiles[i].rows) *
                           ((cols + tiles[i].cols - 1) / tiles[i].cols);
        const float turns = (float)((n + MULTIPROCESSORS - 1) / MULTIPROCESSORS);
        const float time = turns * (float)(tiles[i].rows * tiles[i].cols) / tiles[i].speed;
        if (i && time >= best_time) continue;
        best = i;
        best_time = time;
    }
    return best;
}

static int aligned(const void *p, uint64_t line_bytes) {
    return ((uintptr_t)p | line_bytes) % 16 == 0;
}

rlhf_status rlhf__cuda_product_own(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s,
                                   int tile) {
    if (!s->rows || !s->cols) return RLHF_OK;
    const uint64_t in = rlhf_dtype_size(s->in_dtype), out = rlhf_dtype_size(s->out_dtype);
    struct rlhf__tiles p = {s->left.ptr,
                            s->right.ptr,
                            s->bias,
                            s->addend,
                            s->out,
                            s->left.ld,
                            s->right.ld,
                            s->out_ld,
                            s->rows,
                            s->cols,
                            s->depth,
                            0,
                            0,
                            aligned(s->left.ptr, s->left.ld * in),
                            aligned(s->right.ptr, s->right.ld * in),
                            aligned(s->out, s->out_ld * out) &&
                                aligned(s->addend, s->addend ? s->out_ld * 4 : 0),
                            s->out_dtype == RLHF_BF16};
    if (s->rows_exact && s->cols <= RLHF__CUDA_DOT_COLS && !s->left.across && !s->right.across)
        return rlhf__cuda_product_dot(cu, &p, s->in_dtype);
    if (tile < 0) tile = tile_for(s->rows, s->cols);
    p.tile_rows = (s->rows + tiles[tile].rows - 1) / tiles[tile].rows;
    p.tile_cols = (s->cols + tiles[tile].cols - 1) / tiles[tile].cols;
    if ((uint64_t)p.tile_rows * p.tile_cols > 0x7fffffffu)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "a product of %u x %u: more tiles than a launch can have", s->rows,
                               s->cols);
    if (s->in_dtype == RLHF_BF16)
        return rlhf__cuda_product_bf16(cu, &p, s->left.across, s->right.across, tile);
    return rlhf__cuda_product_f32(cu, &p, s->left.across, s->right.across, tile);
}

rlhf_status rlhf__cuda_product(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s) {
    const int dot = s->rows_exact && s->cols <= RLHF__CUDA_DOT_COLS;
    if (cu->library && s->rows && s->cols && !dot) {
        int taken = 0;
        RLHF_TRY(cu->library(cu, s, &taken));
        if (taken) return RLHF_OK;
    }
    return rlhf__cuda_product_own(cu, s, -1);
}
