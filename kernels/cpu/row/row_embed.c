// row_embed.c: token embedding, and position embedding if the model has one, forward and backward.
#include "machine/split.h"
#include "machine/table.h"

// Refuses positions without a position table, and a table without positions.
static rlhf_status check_positions(struct rlhf__cpu *cpu, const char *op, rlhf_dev pos,
                                   rlhf_dev table) {
    if (!pos == !table) return RLHF_OK;
    return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                          "%s: positions and their table must both be NULL or none", op);
}

struct embed {
    const struct rlhf__cpu *cpu;
    float *out;              // rows of the tokens
    const int32_t *id, *pos; // pos: or NULL
    float *wte, *wpe;        // the tables, or in backward their gradients
    float scale;
    uint64_t rows, width, piece;
};

static void embed_piece(const void *job, int64_t i) {
    const struct embed *e = job;
    const uint64_t t = (uint64_t)i * e->piece;
    e->cpu->hot.embed(e->out + t * e->width, e->id + t, e->pos ? e->pos + t : NULL, e->wte, e->wpe,
                      e->scale, rlhf__split_len(e->rows, e->piece, (uint64_t)i), e->width);
}

static rlhf_status embed(void *ctx, rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte,
                         rlhf_dev wpe, double scale, uint32_t rows, int32_t d) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_check_d(cpu, "embed", d));
    RLHF_TRY(check_positions(cpu, "embed", pos, wpe));
    const uint64_t width = (uint64_t)d, piece = rlhf__split_rows(width);
    rlhf__split_run(cpu, rlhf__split_threads(cpu, rows * width),
                    (int64_t)rlhf__split_count(rows, piece), embed_piece,
                    &(const struct embed){cpu, rlhf__cpu_f32(out), rlhf__cpu_i32(ids),
                                          rlhf__cpu_i32(pos), rlhf__cpu_f32(wte),
                                          rlhf__cpu_f32(wpe), (float)scale, rows, width, piece});
    return RLHF_OK;
}

static rlhf_status check_ids(struct rlhf__cpu *cpu, const char *what, const int32_t *idx,
                             uint32_t rows, int32_t limit) {
    for (uint32_t t = 0; t < rows; t++)
        if (idx[t] < 0 || idx[t] >= limit)
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                                  "embed_bwd: %s[%u] is %d, allowed are 0 to %d", what, t, idx[t],
                                  limit - 1);
    return RLHF_OK;
}

static void embed_bwd_columns(const void *job, int64_t i) {
    const struct embed *e = job;
    const size_t c0 = (size_t)i * e->piece;
    const size_t c1 = c0 + rlhf__split_len(e->width, e->piece, (uint64_t)i);
    e->cpu->hot.embed_bwd(e->wte, e->out, e->id, e->scale, e->rows, e->width, c0, c1);
    if (e->pos) e->cpu->hot.embed_bwd(e->wpe, e->out, e->pos, 1.0f, e->rows, e->width, c0, c1);
}

// Two tokens may use the same row of the table, so the columns are divided among the threads, and
// not the tokens. Each column adds up its tokens in order.
static rlhf_status embed_bwd(void *ctx, rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout, rlhf_dev ids,
                             rlhf_dev pos, double scale, uint32_t rows, int32_t d, int32_t vocab,
                             int32_t n_pos) {
    struct rlhf__cpu *cpu = ctx;
    const int32_t *id = rlhf__cpu_i32(ids), *po = rlhf__cpu_i32(pos);
    RLHF_TRY(rlhf__cpu_check_d(cpu, "embed_bwd", d));
    RLHF_TRY(check_positions(cpu, "embed_bwd", pos, dwpe));
    if (!pos && n_pos)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "embed_bwd: n_pos is %d, without positions it is 0", n_pos);
    RLHF_TRY(check_ids(cpu, "ids", id, rows, vocab));
    if (pos) RLHF_TRY(check_ids(cpu, "pos", po, rows, n_pos));
    const uint64_t width = (uint64_t)d, piece = 64;
    rlhf__split_run(cpu, rlhf__split_threads(cpu, rows * width),
                    (int64_t)rlhf__split_count(width, piece), embed_bwd_columns,
                    &(const struct embed){cpu, rlhf__cpu_f32(dout), id, po, rlhf__cpu_f32(dwte),
                                          rlhf__cpu_f32(dwpe), (float)scale, rows, width, piece});
    return RLHF_OK;
}

void rlhf__cpu_fill_embed(rlhf_compute *t) {
    t->embed = embed;
    t->embed_bwd = embed_bwd;
}
