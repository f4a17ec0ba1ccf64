// curve.c: the cost of a token in training, forward and backward, for different numbers of rows,
// tokens per row, layers and widths. The cost of attention per token grows with the row length, so
// attention is measured separately and subtracted. The cost of everything else should not depend on
// the rows, and should be proportional to the number of parameters in the layers.
#include "model.h"

#include <stdio.h>
#include <string.h>

struct point {
    int rows, len, layers, width;
};

// A model that has the shape of a point, and the inputs of the model.
struct sized {
    struct bench b;
    struct model m;
    char set[4][32];
    char *sets[5];
    double attention; // time of attention in a step, in seconds
    double whole;     // shortest time of a forward and a backward pass; 0: none yet
};

static void open_sized(struct sized *s, const struct bench *base, struct point p) {
    const int heads = p.width / 64;
    snprintf(s->set[0], sizeof *s->set, "n_layer=%d", p.layers);
    snprintf(s->set[1], sizeof *s->set, "n_embd=%d", p.width);
    snprintf(s->set[2], sizeof *s->set, "n_head=%d", heads);
    snprintf(s->set[3], sizeof *s->set, "vocab_size=%d", 512); // keeps the head small
    for (int i = 0; i < 4; i++)
        s->sets[i] = s->set[i];
    s->sets[4] = NULL;
    s->b = *base;
    s->b.set = s->sets;
    s->b.rows = p.rows;
    s->b.len = p.len;
    s->m = bench_model_open(&s->b);
    s->attention =
        p.layers * bench_attention_time(&s->b, (uint32_t)p.rows, (uint32_t)p.len, heads, heads);
}

static void step(struct sized *s, int i) {
    const struct train_times t = bench_train_step(&s->b, &s->m, i + 1);
    const double whole = t.forward + t.backward;
    if (i > 1 && (s->whole == 0 || whole < s->whole)) s->whole = whole;
}

// Times of a point, in seconds. `attention` is the time of attention. `rest` is the shortest time
// of a forward and a backward pass without attention. `reference` is the same time for the
// reference point. The point and the reference point are measured alternately, in case the speed of
// the machine changes.
struct cost {
    double rest, attention, reference;
};

static struct cost cost_of(const struct bench *base, struct point p, struct sized *reference) {
    struct sized s = {.whole = 0};
    open_sized(&s, base, p);
    reference->whole = 0;
    for (int i = 0; i < 2 + 2 * base->rounds; i++) {
        step(reference, i);
        step(&s, i);
    }
    bench_model_close(&s.b, &s.m);
    return (struct cost){s.whole - s.attention, s.attention,
                         reference->whole - reference->attention};
}

// Returns how many parameters of the layers GEMMs use.
static double size_of(struct point p) { return 12.0 * p.layers * p.width * p.width; }

static void print_point(struct point p, struct cost c, struct point reference) {
    const double tokens = (double)p.rows * p.len, each = c.rest / tokens;
    const double unit = c.reference / ((double)reference.rows * reference.len) / size_of(reference);
    printf("%4d x %-5d %6d layers of %-5d %9.2f us a token, %7.3f ns for a thousand parameters, "
           "%.2f; attention %.2f us\n",
           p.rows, p.len, p.layers, p.width, each * 1e6, each / size_of(p) * 1e12,
           each / size_of(p) / unit, c.attention / tokens * 1e6);
}

void bench_curve(const struct bench *b) {
    enum { LAYERS = 4, WIDTH = 512 };
    // A run gives the model at most 4,096 tokens at once (batch.microbatch_tokens), so larger
    // batches become several calls. The first point is the reference.
    static const struct point points[] = {
        {16, 64, LAYERS, WIDTH},  {1, 64, LAYERS, WIDTH},   {4, 64, LAYERS, WIDTH},
        {64, 64, LAYERS, WIDTH},  {1, 256, LAYERS, WIDTH},  {4, 256, LAYERS, WIDTH},
        {16, 256, LAYERS, WIDTH}, {1, 1024, LAYERS, WIDTH}, {4, 1024, LAYERS, WIDTH},
        {16, 64, 2, WIDTH},       {16, 64, 8, WIDTH},       {16, 64, LAYERS, 256},
        {16, 64, LAYERS, 1024}};
    static const struct point tiny[] = {{2, 8, 1, 64}, {3, 8, 1, 64}};
    const struct point *p = b->tiny ? tiny : points;
    const size_t n = b->tiny ? sizeof tiny / sizeof *tiny : sizeof points / sizeof *points;
    printf(
        "cost of a token, forward and backward, %s; relative to %d x %d, made in turn with each\n",
        b->dtype == RLHF_BF16 ? "bf16" : "f32", p->rows, p->len);
    struct sized reference = {.whole = 0};
    open_sized(&reference, b, *p);
    for (size_t i = 0; i < n; i++)
        print_point(p[i], cost_of(b, p[i], &reference), *p);
    bench_model_close(&reference.b, &reference.m);
}
