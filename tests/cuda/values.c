// values.c: compares a backend's bf16 GEMMs, LM head and attention with sums in double precision.
// Also checks that a row has the same bits alone and in a batch, and the same bits in decoding and
// in training.
//
//   cuda_values KERNELS.so
//
// Unlike the kernel suite, it needs no other backend, and its arithmetic is independent of the
// reference backend's. It takes seconds on a card, and minutes on the PTX executor. The exit status
// is 1 if a line ends with WRONG.
#include <rlhf/test.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test {
    struct rlhf_test_backend backend;
    rlhf_compute *c; // function table of the backend
    uint64_t seed;
    int wrong;
    rlhf_dev held[64]; // device memory, released together
    int n_held;
};

static void check(struct test *t, rlhf_status st, const char *what) {
    if (st >= 0) return;
    printf("%s: status %d, %s\n", what, st, t->backend.said);
    exit(1);
}
#define OK(t, op, ...) check(t, (t)->c->op((t)->c->ctx, __VA_ARGS__), #op)

static void *memory(size_t n, size_t size) {
    void *p = calloc(n ? n : 1, size);
    if (!p) {
        printf("out of memory\n");
        exit(1);
    }
    return p;
}

// ---- numbers ----

static float random_number(struct test *t) { // approximately normal
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
        sum += (float)(t->seed >> 40) / 16777216.0f - 0.5f;
    }
    return sum * 1.7f;
}

static uint16_t narrow(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static float widen(uint16_t h) {
    const uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

// n random numbers, each exactly a bf16.
static float *numbers(struct test *t, size_t n, float scale) {
    float *v = memory(n, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = widen(narrow(random_number(t) * scale));
    return v;
}

// ---- device memory ----

static rlhf_dev room(struct test *t, size_t bytes) {
    rlhf_dev p = NULL;
    OK(t, alloc, bytes, &p);
    t->held[t->n_held++] = p;
    return p;
}

static rlhf_dev send(struct test *t, const void *v, size_t bytes) {
    rlhf_dev p = room(t, bytes);
    OK(t, upload, p, v, bytes);
    return p;
}

static rlhf_dev send_bf16(struct test *t, const float *v, size_t n) {
    uint16_t *h = memory(n, sizeof *h);
    for (size_t i = 0; i < n; i++)
        h[i] = narrow(v[i]);
    rlhf_dev p = send(t, h, n * sizeof *h);
    free(h);
    return p;
}

static float *fetch(struct test *t, rlhf_dev p, size_t n, int32_t dtype) {
    float *v = memory(n, sizeof *v);
    uint16_t *h = memory(n, sizeof *h);
    OK(t, download, dtype == RLHF_BF16 ? (void *)h : v, p, n * rlhf_dtype_size(dtype));
    for (size_t i = 0; dtype == RLHF_BF16 && i < n; i++)
        v[i] = widen(h[i]);
    free(h);
    return v;
}

static void release_all(struct test *t) {
    while (t->n_held)
        t->c->release(t->c->ctx, t->held[--t->n_held]);
}

// ---- comparisons ----

// Compares `got` with `want`. Differences are measured in units of the root mean square of `want`.
// The largest difference may be at most `allowed`, and the root mean square of all differences at
// most `allowed` / 8. In the largest difference of a bf16 result, the part that rounding explains
// does not count.
static void compare(struct test *t, const char *what, const float *got, const double *want,
                    size_t n, int32_t dtype, double allowed) {
    double worst = 0, errors = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        const double spare = dtype == RLHF_BF16 ? fabs(want[i]) / 256 : 0;
        const double d = fabs((double)got[i] - want[i]), e = fmax(0, d - spare);
        if (!(e <= worst)) worst = e; // a NaN is kept
        errors += d * d;
        squares += want[i] * want[i];
    }
    worst /= sqrt(squares / (double)n) + 1e-30;
    const double mean = sqrt(errors / (squares + 1e-30));
    const int right = worst <= allowed && mean <= allowed / 8;
    printf("%-58s %.2e of %.0e, mean %.2e%s\n", what, worst, allowed, mean, right ? "" : "  WRONG");
    t->wrong += !right;
}

static void differ(struct test *t, const char *what, int n, int of) {
    printf("%-58s %d of %d differ%s\n", what, n, of, n ? "  WRONG" : "");
    t->wrong += n != 0;
}

// ---- GEMMs ----

enum { ROWS = 201, IN = 328, OUT = 200 };

// out[r, c] = sum over d of x[r, d] y[c, d]. Each operand has its own line stride.
static double *sums(const float *x, size_t x_line, size_t x_step, const float *y, size_t y_line,
                    size_t y_step, size_t rows, size_t cols, size_t depth) {
    double *out = memory(rows * cols, sizeof *out);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            for (size_t d = 0; d < depth; d++)
                out[r * cols + c] +=
                    (double)x[r * x_line + d * x_step] * y[c * y_line + d * y_step];
    return out;
}

// Computes rows of the GEMM in smaller batches, and counts the rows whose bits differ from `whole`.
static int rows_that_differ(struct test *t, rlhf_dev out, rlhf_dev x, const rlhf_weight *w,
                            rlhf_dev bias, const float *whole) {
    static const uint32_t counts[] = {1, 2, 17, 64, 130};
    int n = 0;
    for (int i = 0; i < 10; i++) {
        const uint32_t rows = counts[i / 2];
        const size_t from = i % 2 ? 70 : 0;
        OK(t, linear, out, RLHF_F32, 0, rlhf_dev_at(x, from * IN * 2), w, bias, rows);
        float *some = fetch(t, out, (size_t)rows * OUT, RLHF_F32);
        n += memcmp(some, whole + from * OUT, (size_t)rows * OUT * sizeof *some) != 0;
        free(some);
    }
    return n;
}

static void forward(struct test *t, const rlhf_weight *w, const float *x, const float *weight) {
    float *bias = numbers(t, OUT, 1.0f);
    double *want = sums(x, IN, 1, weight, 1, OUT, ROWS, OUT, IN);
    rlhf_dev dx = send_bf16(t, x, ROWS * IN), db = send(t, bias, OUT * sizeof *bias);
    rlhf_dev out = room(t, ROWS * OUT * sizeof(float));
    for (size_t i = 0; i < ROWS * OUT; i++)
        want[i] += bias[i % OUT];
    OK(t, linear, out, RLHF_F32, 0, dx, w, db, ROWS);
    float *y = fetch(t, out, ROWS * OUT, RLHF_F32);
    compare(t, "linear with bias, 201 x 328 x 200, f32 result", y, want, ROWS * OUT, RLHF_F32,
            1e-5);
    differ(t, "  rows in company of 1 to 130 others", rows_that_differ(t, out, dx, w, db, y), 10);
    free(y);
    OK(t, linear, out, RLHF_BF16, 0, dx, w, db, ROWS);
    y = fetch(t, out, ROWS * OUT, RLHF_BF16);
    compare(t, "  bf16 result", y, want, ROWS * OUT, RLHF_BF16, 2e-2);
    free(y);
    free(want);
    free(bias);
}

static void backward(struct test *t, const rlhf_weight *w, const float *x, const float *weight) {
    float *dy = numbers(t, ROWS * OUT, 1.0f);
    rlhf_dev d_x = send_bf16(t, x, ROWS * IN), d_dy = send_bf16(t, dy, ROWS * OUT);
    rlhf_dev dx = room(t, ROWS * IN * sizeof(float)), dw = room(t, IN * OUT * sizeof(float));
    rlhf_dev db = room(t, OUT * sizeof(float));
    OK(t, linear_dx, dx, RLHF_F32, 0, d_dy, w, ROWS);
    OK(t, linear_dw, dw, db, d_x, d_dy, w, ROWS);
    float *got[3] = {fetch(t, dx, ROWS * IN, RLHF_F32), fetch(t, dw, IN * OUT, RLHF_F32),
                     fetch(t, db, OUT, RLHF_F32)};
    const float one = 1;
    double *want[3] = {sums(dy, OUT, 1, weight, OUT, 1, ROWS, IN, OUT),
                       sums(x, 1, IN, dy, 1, OUT, IN, OUT, ROWS),
                       sums(&one, 0, 0, dy, 1, OUT, 1, OUT, ROWS)};
    compare(t, "linear_dx", got[0], want[0], ROWS * IN, RLHF_F32, 1e-5);
    compare(t, "linear_dw", got[1], want[1], IN * OUT, RLHF_F32, 1e-5);
    compare(t, "  bias", got[2], want[2], OUT, RLHF_F32, 1e-5);
    for (int i = 0; i < 3; i++) {
        free(got[i]);
        free(want[i]);
    }
    free(dy);
}

static void products(struct test *t) {
    rlhf_weight *w;
    float *x = numbers(t, ROWS * IN, 1.0f), *weight = numbers(t, IN * OUT, 0.1f);
    OK(t, weight_create, IN, OUT, RLHF_BF16, RLHF_WEIGHT_BACKWARD, &w);
    OK(t, weight_pack, w, send(t, weight, IN * OUT * sizeof *weight));
    forward(t, w, x, weight);
    backward(t, w, x, weight);
    t->c->weight_destroy(t->c->ctx, w);
    release_all(t);
    free(x);
    free(weight);
}

// ---- the LM head ----

enum { TOKENS = 37, WIDTH = 96, VOCAB = 1000 };

struct drawn {
    int32_t id[TOKENS];
    float logp[TOKENS];
};

// `n` rows starting at `first`, sampled together.
static void draw(struct test *t, const rlhf_dist *dist, rlhf_dev hidden, const rlhf_weight *w,
                 uint32_t first, uint32_t n, struct drawn *to) {
    uint64_t counter[TOKENS];
    for (uint32_t i = 0; i < n; i++)
        counter[i] = first + i;
    rlhf_lm_sample s = {.size = sizeof s, .rows = n, .d = WIDTH, .vocab = VOCAB};
    s.dtype = RLHF_BF16;
    s.dist = s.logp_dist = dist;
    s.hidden = rlhf_dev_at(hidden, first * WIDTH * 2);
    s.weight = w;
    s.seed = 1;
    s.stream = 2;
    s.host_counter = counter;
    s.host_id = to->id + first;
    s.host_logp = to->logp + first;
    OK(t, lm_sample, &s);
}

struct head_want {
    double logp[TOKENS], entropy[TOKENS], d_hidden[TOKENS * WIDTH], d_weight[WIDTH * VOCAB];
};

static void head_expect(struct head_want *w, const float *hidden, const float *weight,
                        const int32_t *id, const float *d_logp) {
    double *z = sums(hidden, WIDTH, 1, weight, 1, VOCAB, TOKENS, VOCAB, WIDTH);
    for (size_t r = 0; r < TOKENS; r++) {
        double top = -1e300, sum = 0;
        for (size_t v = 0; v < VOCAB; v++)
            top = fmax(top, z[r * VOCAB + v]);
        for (size_t v = 0; v < VOCAB; v++)
            sum += exp(z[r * VOCAB + v] - top);
        const double lse = top + log(sum);
        w->logp[r] = z[r * VOCAB + (size_t)id[r]] - lse;
        for (size_t v = 0; v < VOCAB; v++) {
            const double l = z[r * VOCAB + v] - lse, p = exp(l);
            const double dz = d_logp[r] * ((v == (size_t)id[r]) - p);
            w->entropy[r] -= p * l;
            for (size_t k = 0; k < WIDTH; k++) {
                w->d_hidden[r * WIDTH + k] += dz * weight[k * VOCAB + v];
                w->d_weight[k * VOCAB + v] += dz * hidden[r * WIDTH + k];
            }
        }
    }
    free(z);
}

static void head_compare(struct test *t, rlhf_lm_head *h, const struct head_want *w,
                         const struct drawn *drawn) {
    OK(t, lm_head, h);
    OK(t, lm_head_bwd, h);
    float *logp = fetch(t, h->logp, TOKENS, RLHF_F32);
    float *entropy = fetch(t, h->entropy, TOKENS, RLHF_F32);
    float *dh = fetch(t, h->d_hidden, TOKENS * WIDTH, RLHF_BF16);
    float *dw = fetch(t, h->d_weight, WIDTH * VOCAB, RLHF_F32);
    int n = 0;
    for (int i = 0; i < TOKENS; i++)
        n += memcmp(&logp[i], &drawn->logp[i], sizeof *logp) != 0;
    differ(t, "log-probabilities of lm_sample and lm_head", n, TOKENS);
    compare(t, "  log-probability", logp, w->logp, TOKENS, RLHF_F32, 1e-5);
    compare(t, "  entropy", entropy, w->entropy, TOKENS, RLHF_F32, 1e-5);
    compare(t, "  d_hidden", dh, w->d_hidden, TOKENS * WIDTH, RLHF_BF16, 0.1);
    compare(t, "  d_weight", dw, w->d_weight, WIDTH * VOCAB, RLHF_F32, 0.1);
    free(logp);
    free(entropy);
    free(dh);
    free(dw);
}

static void head(struct test *t) {
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    rlhf_weight *w;
    struct drawn together = {{0}, {0}}, alone = {{0}, {0}};
    struct head_want *want = memory(1, sizeof *want);
    float *hidden = numbers(t, TOKENS * WIDTH, 0.5f), *weight = numbers(t, WIDTH * VOCAB, 0.2f);
    float *d_logp = numbers(t, TOKENS, 1.0f);
    OK(t, weight_create, WIDTH, VOCAB, RLHF_BF16, RLHF_WEIGHT_BACKWARD, &w);
    OK(t, weight_pack, w, send(t, weight, WIDTH * VOCAB * sizeof *weight));
    rlhf_lm_head h = {.size = sizeof h, .rows = TOKENS, .d = WIDTH, .vocab = VOCAB};
    h.dtype = RLHF_BF16;
    h.dist = &whole;
    h.weight = w;
    h.hidden = send_bf16(t, hidden, TOKENS * WIDTH);
    draw(t, &whole, h.hidden, w, 0, TOKENS, &together);
    for (uint32_t i = 0; i < TOKENS; i++)
        draw(t, &whole, h.hidden, w, i, 1, &alone);
    h.target = send(t, together.id, sizeof together.id);
    h.logp = room(t, TOKENS * sizeof(float));
    h.entropy = room(t, TOKENS * sizeof(float));
    h.d_logp = send(t, d_logp, TOKENS * sizeof *d_logp);
    h.d_hidden = room(t, TOKENS * WIDTH * 2);
    h.d_weight = room(t, WIDTH * VOCAB * sizeof(float));
    head_expect(want, hidden, weight, together.id, d_logp);
    head_compare(t, &h, want, &together);
    int n = 0;
    for (int i = 0; i < TOKENS; i++)
        n += together.id[i] != alone.id[i] ||
             memcmp(&together.logp[i], &alone.logp[i], sizeof(float)) != 0;
    differ(t, "  each row sampled alone", n, TOKENS);
    t->c->weight_destroy(t->c->ctx, w);
    release_all(t);
    free(hidden);
    free(weight);
    free(d_logp);
    free(want);
}

// ---- attention ----

enum { SEQUENCES = 4, LONGEST = 600 };
static const int32_t lengths[SEQUENCES] = {70, 1, 133, LONGEST};

struct attention {
    size_t heads, kv, width, total; // width: of a head
    int causal;
    int32_t offset[SEQUENCES + 1];
    float *q, *k, *v, *dout;
    double *out, *lse, *dq, *dk, *dv; // expected values
};

// One token's query head: its output, its lse and its contribution to the gradients.
static void query_expect(struct attention *a, size_t seq, size_t i, size_t head, double *p) {
    const size_t n = a->causal ? i + 1 : (size_t)lengths[seq], hd = a->width;
    const size_t t = (size_t)a->offset[seq] + i, group = a->heads / a->kv;
    const double scale = 1 / sqrt((double)hd);
    const size_t at = (t * a->heads + head) * hd;
    double top = -1e300, sum = 0, delta = 0;
    for (size_t j = 0; j < n; j++) {
        const float *k = a->k + (((size_t)a->offset[seq] + j) * a->kv + head / group) * hd;
        p[j] = 0;
        for (size_t d = 0; d < hd; d++)
            p[j] += (double)a->q[at + d] * k[d] * scale;
        top = fmax(top, p[j]);
    }
    for (size_t j = 0; j < n; j++)
        sum += exp(p[j] - top);
    a->lse[t * a->heads + head] = top + log(sum);
    for (size_t j = 0; j < n; j++) {
        const float *v = a->v + (((size_t)a->offset[seq] + j) * a->kv + head / group) * hd;
        p[j] = exp(p[j] - top) / sum;
        for (size_t d = 0; d < hd; d++)
            a->out[at + d] += p[j] * v[d];
    }
    for (size_t d = 0; d < hd; d++)
        delta += a->out[at + d] * a->dout[at + d];
    for (size_t j = 0; j < n; j++) {
        const size_t key = (((size_t)a->offset[seq] + j) * a->kv + head / group) * hd;
        double dp = 0;
        for (size_t d = 0; d < hd; d++)
            dp += (double)a->dout[at + d] * a->v[key + d];
        const double ds = p[j] * (dp - delta) * scale;
        for (size_t d = 0; d < hd; d++) {
            a->dq[at + d] += ds * a->k[key + d];
            a->dk[key + d] += ds * a->q[at + d];
            a->dv[key + d] += p[j] * a->dout[at + d];
        }
    }
}

static void attention_open(struct test *t, struct attention *a) {
    for (int i = 0; i < SEQUENCES; i++)
        a->offset[i + 1] = a->offset[i] + lengths[i];
    a->total = (size_t)a->offset[SEQUENCES];
    const size_t n = a->total * a->heads * a->width, kn = a->total * a->kv * a->width;
    float **in[] = {&a->q, &a->dout, &a->k, &a->v};
    double **out[] = {&a->out, &a->dq, &a->dk, &a->dv};
    for (int i = 0; i < 4; i++) {
        *in[i] = numbers(t, i < 2 ? n : kn, 1.0f);
        *out[i] = memory(i < 2 ? n : kn, sizeof **out[i]);
    }
    a->lse = memory(a->total * a->heads, sizeof *a->lse);
    double *p = memory(LONGEST, sizeof *p);
    for (size_t seq = 0; seq < SEQUENCES; seq++)
        for (size_t i = 0; i < (size_t)lengths[seq]; i++)
            for (size_t head = 0; head < a->heads; head++)
                query_expect(a, seq, i, head, p);
    free(p);
}

static void attention_close(struct attention *a) {
    void *all[] = {a->q, a->k, a->v, a->dout, a->out, a->lse, a->dq, a->dk, a->dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

struct device_side {
    rlhf_attn geometry;
    rlhf_ragged rows;
    rlhf_dev q, k, v, dout, out, lse, dq, dk, dv;
};

static struct device_side on_device(struct test *t, const struct attention *a) {
    const size_t n = a->total * a->heads * a->width, kn = a->total * a->kv * a->width;
    const int32_t zero[SEQUENCES] = {0};
    struct device_side s = {.geometry = {.size = sizeof s.geometry, .dtype = RLHF_BF16}};
    s.geometry.heads = (int32_t)a->heads;
    s.geometry.kv_heads = (int32_t)a->kv;
    s.geometry.head_dim = (int32_t)a->width;
    s.geometry.causal = a->causal;
    s.geometry.q_stride = s.geometry.out_stride = (int64_t)(a->heads * a->width);
    s.geometry.kv_stride = (int64_t)(a->kv * a->width);
    s.geometry.scale = 1 / sqrt((double)a->width);
    s.rows = (rlhf_ragged){.size = sizeof s.rows, .n = SEQUENCES, .total = (uint32_t)a->total};
    s.rows.max_q = s.rows.max_k = LONGEST;
    s.rows.offset = send(t, a->offset, sizeof a->offset);
    s.rows.start = send(t, zero, sizeof zero);
    s.rows.kv_base = send(t, a->offset, sizeof zero);
    s.q = send_bf16(t, a->q, n);
    s.dout = send_bf16(t, a->dout, n);
    s.k = send_bf16(t, a->k, kn);
    s.v = send_bf16(t, a->v, kn);
    s.out = room(t, n * 2);
    s.dq = room(t, n * 2);
    s.dk = room(t, kn * 2);
    s.dv = room(t, kn * 2);
    s.lse = room(t, a->total * a->heads * sizeof(float));
    return s;
}

// Recomputes only the last query of each sequence over the existing keys, as decoding does.
static int decoded_differ(struct test *t, const struct attention *a, const struct device_side *s,
                          const float *trained) {
    const size_t line = a->heads * a->width;
    int n = 0;
    for (int i = 0; i < SEQUENCES; i++) {
        const int32_t offset[2] = {0, 1}, start = lengths[i] - 1, base = a->offset[i];
        const size_t token = (size_t)a->offset[i + 1] - 1;
        rlhf_ragged one = s->rows;
        one.n = one.total = one.max_q = 1;
        one.max_k = (uint32_t)lengths[i];
        one.offset = send(t, offset, sizeof offset);
        one.start = send(t, &start, sizeof start);
        one.kv_base = send(t, &base, sizeof base);
        OK(t, attention, &s->geometry, &one, s->out, NULL, rlhf_dev_at(s->q, token * line * 2),
           s->k, s->v);
        float *alone = fetch(t, s->out, line, RLHF_BF16);
        n += memcmp(alone, trained + token * line, line * sizeof *alone) != 0;
        free(alone);
    }
    return n;
}

static void attend(struct test *t, size_t heads, size_t kv, size_t width, int causal) {
    struct attention a = {.heads = heads, .kv = kv, .width = width, .causal = causal};
    attention_open(t, &a);
    struct device_side s = on_device(t, &a);
    const size_t n = a.total * heads * width, kn = a.total * kv * width;
    OK(t, attention, &s.geometry, &s.rows, s.out, s.lse, s.q, s.k, s.v);
    OK(t, attention_bwd, &s.geometry, &s.rows, s.dq, s.dk, s.dv, s.dout, s.out, s.lse, s.q, s.k,
       s.v);
    char name[80];
    snprintf(name, sizeof name, "attention, %zu heads (%zu of keys) of %zu, %s", heads, kv, width,
             causal ? "causal" : "all keys");
    const struct {
        const char *what;
        rlhf_dev got;
        const double *want;
        size_t n;
        int32_t dtype;
        double allowed;
    } all[] = {{name, s.out, a.out, n, RLHF_BF16, 0.05},
               {"  log of the sum", s.lse, a.lse, a.total * heads, RLHF_F32, 1e-4},
               {"  dq", s.dq, a.dq, n, RLHF_BF16, 0.1},
               {"  dk", s.dk, a.dk, kn, RLHF_BF16, 0.1},
               {"  dv", s.dv, a.dv, kn, RLHF_BF16, 0.1}};
    float *trained = fetch(t, s.out, n, RLHF_BF16);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        float *got = fetch(t, all[i].got, all[i].n, all[i].dtype);
        compare(t, all[i].what, got, all[i].want, all[i].n, all[i].dtype, all[i].allowed);
        free(got);
    }
    if (causal)
        differ(t, "  last query of each sequence decoded alone", decoded_differ(t, &a, &s, trained),
               SEQUENCES);
    free(trained);
    release_all(t);
    attention_close(&a);
}

int main(int argc, char **argv) {
    struct test t = {.seed = 12345};
    const rlhf_kernels_open options = {.size = sizeof options, .threads = 1};
    if (argc != 2) {
        fprintf(stderr, "usage: cuda_values KERNELS.so\n");
        return 2;
    }
    const rlhf_plugin *k = rlhf_test_backend_load(argv[1]);
    if (!k) return 1;
    if (rlhf_test_backend_open(&t.backend, k, &options) < 0) {
        printf("%s\n", t.backend.said);
        return 1;
    }
    t.c = t.backend.c;
    printf("%s\n", t.c->detail);
    products(&t);
    head(&t);
    attend(&t, 2, 2, 64, 1);
    attend(&t, 4, 2, 128, 1);
    attend(&t, 2, 1, 80, 0);
    attend(&t, 4, 1, 256, 1);
    attend(&t, 2, 1, 200, 0);
    printf("%d wrong\n", t.wrong);
    rlhf_test_backend_close(&t.backend);
    return t.wrong != 0;
}
