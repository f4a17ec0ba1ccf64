// curve.c: what a token costs in training, forward and backward, by rows, by tokens a row, by
// layers and by width. Attention, whose cost a token grows with its row, is measured on its own and
// taken off: what is left should be the same for all rows, and in proportion to the parameters of
// the layers.
#include "model.h"
#include "series.h"

#include <stdio.h>
#include <string.h>

struct point {
    int rows, len, layers, width;
};

// Seconds of a forward and a backward less those of attention, and of attention, shortest of some.
struct cost {
    double rest, attention;
};

static struct cost cost_of(const struct bench *base, struct point p) {
    char set[4][32];
    char *sets[] = {set[0], set[1], set[2], set[3], NULL};
    const int heads = p.width / 64;
    snprintf(set[0], sizeof *set, "n_layer=%d", p.layers);
    snprintf(set[1], sizeof *set, "n_embd=%d", p.width);
    snprintf(set[2], sizeof *set, "n_head=%d", heads);
    snprintf(set[3], sizeof *set, "vocab_size=%d", 512); // little of a head
    struct bench b = *base;
    b.set = sets;
    b.rows = p.rows;
    b.len = p.len;
    struct model m = bench_model_open(&b);
    struct series whole = {.n = 0};
    for (int i = 0; i < 2 + 2 * b.rounds; i++) {
        const struct train_times t = bench_train_step(&b, &m, i + 1);
        if (i > 1) series_add(&whole, t.forward + t.backward);
    }
    bench_model_close(&b, &m);
    const double attention =
        p.layers * bench_attention_time(&b, (uint32_t)p.rows, (uint32_t)p.len, heads, heads);
    return (struct cost){series_least(&whole) - attention, attention};
}

// Parameters of the layers, in products.
static double size_of(struct point p) { return 12.0 * p.layers * p.width * p.width; }

static void print_point(struct point p, struct cost c, double unit) {
    const double tokens = (double)p.rows * p.len, each = c.rest / tokens;
    printf("%4d x %-5d %6d layers of %-5d %9.2f us a token, %7.3f ns for a thousand parameters, "
           "%.2f; attention %.2f us\n",
           p.rows, p.len, p.layers, p.width, each * 1e6, each / size_of(p) * 1e12,
           each / size_of(p) / unit, c.attention / tokens * 1e6);
}

void bench_curve(const struct bench *b) {
    enum { LAYERS = 4, WIDTH = 512 };
    // A run gives the model at most 4,096 tokens at once (batch.microbatch_tokens): more are more
    // calls.
    static const struct point points[] = {
        {16, 64, LAYERS, WIDTH},  {1, 64, LAYERS, WIDTH},   {4, 64, LAYERS, WIDTH},
        {64, 64, LAYERS, WIDTH},  {1, 256, LAYERS, WIDTH},  {4, 256, LAYERS, WIDTH},
        {16, 256, LAYERS, WIDTH}, {1, 1024, LAYERS, WIDTH}, {4, 1024, LAYERS, WIDTH},
        {16, 64, 2, WIDTH},       {16, 64, 8, WIDTH},       {16, 64, LAYERS, 256},
        {16, 64, LAYERS, 1024}};
    const struct point tiny = {2, 8, 1, 64};
    printf("cost of a token, forward and backward, %s; relative to the first line\n",
           b->dtype == RLHF_BF16 ? "bf16" : "f32");
    if (b->tiny) {
        print_point(tiny, cost_of(b, tiny), 1);
        return;
    }
    double unit = 0;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        const struct point p = points[i];
        const struct cost c = cost_of(b, p);
        if (i == 0) unit = c.rest / ((double)p.rows * p.len) / size_of(p);
        print_point(p, c, unit);
    }
}
