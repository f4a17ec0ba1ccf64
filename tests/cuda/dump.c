// dump.c: runs every row kernel and optimizer of a backend on fixed inputs and prints, for each
// output, a line with the CRC of its bytes:
//
//     dump KERNELS.so [DIRECTORY]
//
// If DIRECTORY is given, the program also writes the bytes, one file per output.
//
// These kernels consist of operations that round the same way everywhere, so every GPU must print
// the lines of the emulation (dump.txt). Each op runs twice: with aligned arrays, and with arrays
// that start one element later. If the two runs give different bytes, the program reports this and
// ends with exit status 1.
#include <rlhf/test.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 32, OUTPUTS = 8 };

struct shape {
    uint32_t rows;
    int32_t d, dtype, kind;
};

struct run {
    struct rlhf_test_backend backend;
    rlhf_compute *c; // its table
    const char *dir;
    char label[80];
    uint64_t shift; // offset of floating-point arrays, in elements
    rlhf_dev dev[BUFFERS];
    uint32_t n_dev, n_out;
    uint32_t crc[OUTPUTS]; // CRCs of the aligned run
    int differs;
};

static void must(struct run *r, rlhf_status st, const char *what) {
    if (st >= 0) return;
    fprintf(stderr, "dump: %s: %s: %s\n", r->label, what, r->backend.said);
    exit(1);
}
#define MUST(r, call) must((r), (call), #call)

static void *host(uint64_t bytes) {
    void *p = calloc(1, bytes ? bytes : 1);
    if (p) return p;
    fprintf(stderr, "dump: out of memory\n");
    exit(1);
}

// ---- inputs: computed without rounding, so the same on every machine ----

// Number i of an array, in (-4, 4): the sum of two uniform 12-bit numbers.
static float number(uint64_t tag, uint64_t i) {
    uint64_t z = i * 0x9e3779b97f4a7c15u + tag * 0xd1342543de82ef95u + 0x632be59bd9b4e019u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((float)(z >> 52) + (float)(z >> 40 & 0xfff) - 4095.0f) / 1024.0f;
}

static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static rlhf_dev buffer(struct run *r, uint64_t bytes) {
    rlhf_dev p = NULL;
    if (r->n_dev == BUFFERS) abort();
    MUST(r, r->c->alloc(r->c->ctx, bytes, &p));
    return r->dev[r->n_dev++] = p;
}

// Copies n numbers of x to the device as dtype. They start `shift` elements into their buffer.
static rlhf_dev floats_from(struct run *r, const float *x, uint64_t n, int32_t dtype) {
    const uint64_t size = rlhf_dtype_size(dtype);
    rlhf_dev p = rlhf_dev_at(buffer(r, (n + r->shift) * size), r->shift * size);
    uint16_t *half = host(n * sizeof *half);
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t u = bits_of(x[i]);
        half[i] = (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
    }
    if (n)
        MUST(r, r->c->upload(r->c->ctx, p, dtype == RLHF_F32 ? (const void *)x : half, n * size));
    free(half);
    return p;
}

static rlhf_dev floats(struct run *r, uint64_t tag, uint64_t n, int32_t dtype) {
    float *x = host(n * sizeof *x);
    for (uint64_t i = 0; i < n; i++)
        x[i] = number(tag, i);
    rlhf_dev p = floats_from(r, x, n, dtype);
    free(x);
    return p;
}

static rlhf_dev ints(struct run *r, const int32_t *x, uint64_t n) {
    rlhf_dev p = buffer(r, n * sizeof *x);
    MUST(r, r->c->upload(r->c->ctx, p, x, n * sizeof *x));
    return p;
}

// ---- outputs ----

static uint32_t crc32_of(const unsigned char *p, uint64_t n) {
    uint32_t c = ~0u;
    for (uint64_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0u);
    }
    return ~c;
}

static void save(const struct run *r, const char *name, const void *p, uint64_t n) {
    char path[4096];
    const int len = snprintf(path, sizeof path, "%s/%s %s.bin", r->dir, r->label, name);
    if (len < 0 || (size_t)len >= sizeof path) exit(1);
    for (char *s = path + strlen(r->dir); *s; s++)
        if (*s == ' ') *s = '_';
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p, 1, n, f) != n || fclose(f)) {
        fprintf(stderr, "dump: cannot write %s\n", path);
        exit(1);
    }
}

static void output_bytes(struct run *r, const char *name, const void *p, uint64_t n) {
    const uint32_t crc = crc32_of(p, n);
    if (r->n_out == OUTPUTS) abort();
    uint32_t *first = &r->crc[r->n_out++];
    if (r->shift == 0) {
        *first = crc;
        printf("%08x %s %s\n", crc, r->label, name);
        if (r->dir) save(r, name, p, n);
    } else if (*first != crc) {
        printf("DIFFERS %s %s when not aligned\n", r->label, name);
        r->differs = 1;
    }
}

static void output(struct run *r, const char *name, rlhf_dev p, uint64_t n, int32_t dtype) {
    const uint64_t bytes = n * rlhf_dtype_size(dtype);
    void *x = host(bytes);
    MUST(r, r->c->download(r->c->ctx, x, p, bytes));
    output_bytes(r, name, x, bytes);
    free(x);
}

// ---- ops ----

static void convert(struct run *r, const struct shape *s) {
    const uint64_t n = s->rows * (uint64_t)s->d;
    rlhf_dev x = floats(r, 1, n, RLHF_F32), h = floats(r, 2, n, RLHF_BF16);
    rlhf_dev sum = floats(r, 3, n, RLHF_F32), y = floats(r, 4, n, s->dtype);
    MUST(r, r->c->convert(r->c->ctx, h, RLHF_BF16, x, RLHF_F32, n));
    output(r, "bf16", h, n, RLHF_BF16);
    MUST(r, r->c->convert(r->c->ctx, x, RLHF_F32, h, RLHF_BF16, n));
    output(r, "f32", x, n, RLHF_F32);
    MUST(r, r->c->add(r->c->ctx, sum, y, s->dtype, n));
    output(r, "sum", sum, n, RLHF_F32);
}

static void act(struct run *r, const struct shape *s) {
    const uint64_t n = s->rows * (uint64_t)s->d;
    rlhf_dev x = floats(r, 1, n, s->dtype), dy = floats(r, 2, n, s->dtype);
    MUST(r, r->c->act_bwd(r->c->ctx, dy, dy, x, s->kind, s->dtype, n));
    output(r, "dx", dy, n, s->dtype);
    MUST(r, r->c->act(r->c->ctx, x, x, s->kind, s->dtype, n));
    output(r, "out", x, n, s->dtype);
}

// Computes activations of all finite bf16 numbers in f32, to test exp and similar functions over
// their whole range.
static void act_everywhere(struct run *r, const struct shape *s) {
    enum { N = 65536 };
    float *x = host(N * sizeof *x);
    uint64_t n = 0;
    for (uint32_t u = 0; u < N; u++) {
        const uint32_t wide = u << 16;
        if ((u & 0x7f80) == 0x7f80 || (u & 0x7fff) > 0x5e00) continue; // x^3 stays finite
        memcpy(&x[n++], &wide, sizeof wide);
    }
    rlhf_dev dev = floats_from(r, x, n, RLHF_F32), y = floats(r, 2, n, RLHF_F32);
    free(x);
    MUST(r, r->c->act_bwd(r->c->ctx, y, y, dev, s->kind, RLHF_F32, n));
    output(r, "dx", y, n, RLHF_F32);
    MUST(r, r->c->act(r->c->ctx, dev, dev, s->kind, RLHF_F32, n));
    output(r, "out", dev, n, RLHF_F32);
}

static void norm(struct run *r, const struct shape *s) {
    const uint64_t d = (uint64_t)s->d, n = s->rows * d;
    rlhf_dev x = floats(r, 1, n, RLHF_F32), gamma = floats(r, 2, d, RLHF_F32);
    rlhf_dev beta = floats(r, 3, d, RLHF_F32), y = floats(r, 4, n, s->dtype);
    rlhf_dev stats = floats(r, 5, 2ull * s->rows, RLHF_F32), dx = floats(r, 6, n, RLHF_F32);
    rlhf_dev dgamma = floats(r, 7, d, RLHF_F32), dbeta = floats(r, 8, d, RLHF_F32);
    MUST(r, r->c->norm(r->c->ctx, y, s->dtype, stats, x, gamma, beta, 1e-5, s->rows, s->d));
    output(r, "out", y, n, s->dtype);
    output(r, "stats", stats, 2ull * s->rows, RLHF_F32);
    MUST(r, r->c->norm_bwd(r->c->ctx, dx, s->kind, dgamma, dbeta, y, s->dtype, x, stats, gamma,
                           s->rows, s->d));
    output(r, "dx", dx, n, RLHF_F32);
    output(r, "dgamma", dgamma, d, RLHF_F32);
    output(r, "dbeta", dbeta, d, RLHF_F32);
}

static void rms_norm(struct run *r, const struct shape *s) {
    const uint64_t d = (uint64_t)s->d, n = s->rows * d;
    rlhf_dev x = floats(r, 1, n, RLHF_F32), gamma = floats(r, 2, d, RLHF_F32);
    rlhf_dev y = floats(r, 4, n, s->dtype), stats = floats(r, 5, s->rows, RLHF_F32);
    rlhf_dev dx = floats(r, 6, n, RLHF_F32), dgamma = floats(r, 7, d, RLHF_F32);
    MUST(r, r->c->rms_norm(r->c->ctx, y, s->dtype, stats, x, gamma, 0.0, 1e-6, s->rows, s->d));
    output(r, "out", y, n, s->dtype);
    output(r, "stats", stats, s->rows, RLHF_F32);
    MUST(r, r->c->rms_norm_bwd(r->c->ctx, dx, s->kind, dgamma, y, s->dtype, x, stats, gamma, 0.0,
                               s->rows, s->d));
    output(r, "dx", dx, n, RLHF_F32);
    output(r, "dgamma", dgamma, d, RLHF_F32);
}

static void gate(struct run *r, const struct shape *s) {
    const uint64_t n = s->rows * (uint64_t)s->d;
    rlhf_dev x = floats(r, 1, 2 * n, s->dtype), y = floats(r, 2, n, s->dtype);
    rlhf_dev dy = floats(r, 3, n, s->dtype);
    MUST(r, r->c->gate(r->c->ctx, y, x, s->kind, s->dtype, s->rows, s->d));
    output(r, "out", y, n, s->dtype);
    MUST(r, r->c->gate_bwd(r->c->ctx, x, dy, x, s->kind, s->dtype, s->rows, s->d));
    output(r, "dx", x, 2 * n, s->dtype);
}

// Each row has 3 query heads, then 1 key head, then the values. If `kind` is 1, the heads have
// norms.
static void rope(struct run *r, const struct shape *s) {
    enum { HEADS = 4, PLACES = 30 };
    const int32_t dim = s->d > 256 ? s->d / 12 & ~1 : s->d + s->d % 2;
    const uint64_t w = (uint64_t)dim, stride = (HEADS + 1) * w, n = s->rows * stride;
    int32_t *pos = host(s->rows * sizeof *pos);
    for (uint32_t i = 0; i < s->rows; i++)
        pos[i] = (int32_t)(i * 7 % PLACES);
    rlhf_rope g = {.size = sizeof g, .heads = HEADS - 1, .kv_heads = 1, .head_dim = dim};
    g.dtype = s->dtype;
    g.n_pos = PLACES;
    g.stride = (int64_t)stride;
    g.eps = 1e-6;
    g.pos = ints(r, pos, s->rows);
    g.turn = floats(r, 1, PLACES * w, RLHF_F32);
    free(pos);
    rlhf_dev x = floats(r, 2, n, s->dtype), dgamma_q = NULL, dgamma_k = NULL;
    if (s->kind) {
        g.gamma_q = floats(r, 3, w, RLHF_F32);
        g.gamma_k = floats(r, 4, w, RLHF_F32);
        g.raw = floats(r, 5, s->rows * HEADS * w, s->dtype);
        g.stats = floats(r, 6, s->rows * (uint64_t)HEADS, RLHF_F32);
        dgamma_q = floats(r, 7, w, RLHF_F32);
        dgamma_k = floats(r, 8, w, RLHF_F32);
    }
    MUST(r, r->c->rope(r->c->ctx, &g, x, s->rows));
    output(r, "x", x, n, s->dtype);
    if (s->kind) output(r, "raw", g.raw, s->rows * HEADS * w, s->dtype);
    if (s->kind) output(r, "stats", g.stats, s->rows * (uint64_t)HEADS, RLHF_F32);
    MUST(r, r->c->rope_bwd(r->c->ctx, &g, x, dgamma_q, dgamma_k, s->rows));
    output(r, "dx", x, n, s->dtype);
    if (s->kind) output(r, "dgamma_q", dgamma_q, w, RLHF_F32);
    if (s->kind) output(r, "dgamma_k", dgamma_k, w, RLHF_F32);
}

// If `kind` is 1, there are no positions.
static void embed(struct run *r, const struct shape *s) {
    enum { IDS = 41, PLACES = 30 };
    const uint64_t d = (uint64_t)s->d, n = s->rows * d;
    int32_t *ids = host(s->rows * sizeof *ids), *pos = host(s->rows * sizeof *pos);
    for (uint32_t i = 0; i < s->rows; i++) {
        ids[i] = (int32_t)((uint64_t)i * i % IDS);
        pos[i] = (int32_t)(i % PLACES);
    }
    rlhf_dev id = ints(r, ids, s->rows), po = ints(r, pos, s->rows);
    rlhf_dev wte = floats(r, 1, IDS * d, RLHF_F32), wpe = floats(r, 2, PLACES * d, RLHF_F32);
    rlhf_dev y = floats(r, 3, n, RLHF_F32);
    free(ids);
    free(pos);
    if (s->kind) {
        MUST(r, r->c->embed(r->c->ctx, y, id, NULL, wte, NULL, 1.0, s->rows, s->d));
        output(r, "out", y, n, RLHF_F32);
        MUST(r, r->c->embed_bwd(r->c->ctx, wte, NULL, y, id, NULL, 1.0, s->rows, s->d, IDS, 0));
        output(r, "dwte", wte, IDS * d, RLHF_F32);
        return;
    }
    MUST(r, r->c->embed(r->c->ctx, y, id, po, wte, wpe, 1.0, s->rows, s->d));
    output(r, "out", y, n, RLHF_F32);
    MUST(r, r->c->embed_bwd(r->c->ctx, wte, wpe, y, id, po, 1.0, s->rows, s->d, IDS, PLACES));
    output(r, "dwte", wte, IDS * d, RLHF_F32);
    output(r, "dwpe", wpe, PLACES * d, RLHF_F32);
}

static void move(struct run *r, const struct shape *s) {
    const uint64_t d = (uint64_t)s->d, n = s->rows * d;
    int32_t *idx = host(s->rows * sizeof *idx);
    for (uint32_t i = 0; i < s->rows; i++)
        idx[i] = (int32_t)(s->rows - 1 - i);
    rlhf_dev at = ints(r, idx, s->rows), x = floats(r, 1, n, s->dtype);
    rlhf_dev y = floats(r, 2, n, s->dtype), sum = floats(r, 3, n, RLHF_F32);
    free(idx);
    MUST(r, r->c->gather(r->c->ctx, y, x, at, s->rows, s->d, s->dtype));
    output(r, "gathered", y, n, s->dtype);
    MUST(r, r->c->scatter_add(r->c->ctx, sum, x, s->dtype, at, s->rows, s->d));
    output(r, "sum", sum, n, RLHF_F32);
}

static void pool(struct run *r, const struct shape *s) {
    const uint64_t d = (uint64_t)s->d;
    int32_t *offset = host((s->rows + 1) * sizeof *offset);
    for (uint32_t i = 0; i < s->rows; i++)
        offset[i + 1] = offset[i] + 1 + (int32_t)(i * 7 % 19);
    const uint64_t total = (uint64_t)offset[s->rows];
    rlhf_dev at = ints(r, offset, s->rows + 1ull), x = floats(r, 1, total * d, RLHF_F32);
    rlhf_dev y = floats(r, 2, s->rows * d, RLHF_F32);
    free(offset);
    MUST(r, r->c->pool(r->c->ctx, y, x, at, s->rows, s->d, s->kind));
    output(r, "out", y, s->rows * d, RLHF_F32);
    MUST(r, r->c->pool_bwd(r->c->ctx, x, y, at, s->rows, s->d, s->kind));
    output(r, "dx", x, total * d, RLHF_F32);
}

// Row i has i % 3 new tokens after i % 5 cached ones. Keys and values are parts of a query, key and
// value row of 3 d numbers.
static void kv_store(struct run *r, const struct shape *s) {
    const uint64_t d = (uint64_t)s->d;
    int32_t *offset = host((s->rows + 1) * sizeof *offset);
    int32_t *start = host(s->rows * sizeof *start), *base = host(s->rows * sizeof *base);
    for (uint32_t i = 0; i < s->rows; i++) {
        offset[i + 1] = offset[i] + (int32_t)(i % 3);
        start[i] = (int32_t)(i % 5);
        base[i] = (int32_t)(i * 6);
    }
    rlhf_ragged rows = {.size = sizeof rows, .n = s->rows, .max_q = 2, .max_k = 6};
    rows.total = (uint32_t)offset[s->rows];
    rows.offset = ints(r, offset, s->rows + 1ull);
    rows.start = ints(r, start, s->rows);
    rows.kv_base = ints(r, base, s->rows);
    free(offset);
    free(start);
    free(base);
    const uint64_t cache = 6 * s->rows * d;
    rlhf_dev kv = floats(r, 1, rows.total * 3 * d, s->dtype);
    rlhf_dev k = floats(r, 2, cache, s->dtype), v = floats(r, 3, cache, s->dtype);
    rlhf_dev from_v = rlhf_dev_at(kv, 2 * d * rlhf_dtype_size(s->dtype));
    MUST(r, r->c->kv_store(r->c->ctx, k, v, kv, from_v, 3 * s->d, &rows, s->d, s->dtype));
    output(r, "k", k, cache, s->dtype);
    output(r, "v", v, cache, s->dtype);
}

static rlhf_adamw adam_of(const struct shape *s) {
    return (rlhf_adamw){
        sizeof(rlhf_adamw), s->kind, 0.0009765625, 0.875, 0.9375, 1e-8, 0.125, 0.5, 3};
}

// The second moment v, which is not negative.
static rlhf_dev squares(struct run *r, uint64_t tag, uint64_t n) {
    float *x = host(n * sizeof *x);
    for (uint64_t i = 0; i < n; i++)
        x[i] = number(tag, i) < 0.0f ? -number(tag, i) : number(tag, i);
    rlhf_dev p = floats_from(r, x, n, RLHF_F32);
    free(x);
    return p;
}

static void optimizer(struct run *r, const struct shape *s) {
    const uint64_t n = s->rows * (uint64_t)s->d;
    const rlhf_adamw a = adam_of(s);
    double sum = 0.0;
    rlhf_dev w = floats(r, 1, n, RLHF_F32), g = floats(r, 2, n, RLHF_F32);
    rlhf_dev m = floats(r, 3, n, RLHF_F32), v = squares(r, 4, n);
    MUST(r, r->c->sumsq(r->c->ctx, g, n, &sum));
    output_bytes(r, "sumsq", &sum, sizeof sum);
    MUST(r, r->c->adamw(r->c->ctx, w, g, m, v, n, &a));
    output(r, "w", w, n, RLHF_F32);
    output(r, "m", m, n, RLHF_F32);
    output(r, "v", v, n, RLHF_F32);
}

static void optimizer_many(struct run *r, const struct shape *s) {
    enum { TENSORS = 5 };
    const rlhf_adamw a = adam_of(s);
    const uint64_t most = s->rows * (uint64_t)s->d;
    const uint64_t len[TENSORS] = {most, 1, 0, most / 3, 4097};
    const double lr[TENSORS] = {1, 2, 1, 0.5, 1}, decay[TENSORS] = {1, 0, 1, 0, 0.5};
    rlhf_dev w[TENSORS], g[TENSORS], m[TENSORS], v[TENSORS];
    for (uint32_t i = 0; i < TENSORS; i++) {
        w[i] = floats(r, 10 + i, len[i], RLHF_F32);
        g[i] = floats(r, 20 + i, len[i], RLHF_F32);
        m[i] = floats(r, 30 + i, len[i], RLHF_F32);
        v[i] = squares(r, 40 + i, len[i]);
    }
    rlhf_tensors t = {sizeof t, TENSORS, len, g, w, m, v, lr, decay};
    rlhf_dev clip = buffer(r, sizeof(rlhf_clip));
    MUST(r, r->c->sumsq_many(r->c->ctx, &t, 1.5, 0, clip));
    MUST(r, r->c->adamw_many(r->c->ctx, &t, &a, clip));
    output(r, "clip", clip, sizeof(rlhf_clip) / 4, RLHF_F32);
    output(r, "w 0", w[0], len[0], RLHF_F32);
    output(r, "w 3", w[3], len[3], RLHF_F32);
    output(r, "w 4", w[4], len[4], RLHF_F32);
    output(r, "m 4", m[4], len[4], RLHF_F32);
    output(r, "v 0", v[0], len[0], RLHF_F32);
    output(r, "g 0", g[0], len[0], RLHF_F32);
}

// ---- the list of runs ----

enum { KINDS = 4 };

struct op {
    const char *name;
    void (*run)(struct run *, const struct shape *);
    int32_t kinds[KINDS]; // the kinds to run with; a 0 after the first ends the list
};

static const struct op ops[] = {
    {"convert", convert, {0}},
    {"act", act, {1, 2, 3, 4}},
    {"norm", norm, {0, 1}},
    {"embed", embed, {0, 1}},
    {"move", move, {0}},
    {"pool", pool, {1, 2, 3}},
    {"kv_store", kv_store, {0}},
    {"optimizer", optimizer, {0, 1}},
    {"many", optimizer_many, {0, 1}},
    {"rms_norm", rms_norm, {0, 1}},
    {"gate", gate, {1, 2, 3, 4}},
    {"rope", rope, {0, 1}},
};
static const struct op everywhere = {"act everywhere", act_everywhere, {1, 2, 3, 4}};

static const struct shape shapes[] = {
    {131, 768, RLHF_BF16, 0}, {67, 768, RLHF_F32, 0},  {9, 97, RLHF_BF16, 0},
    {70, 200, RLHF_F32, 0},   {66, 1024, RLHF_F32, 0}, {65, 1, RLHF_BF16, 0},
    {3, 1600, RLHF_BF16, 0},  {5, 2304, RLHF_F32, 0},
};

static void run_one(struct run *r, const struct op *op, struct shape s, int32_t kind) {
    s.kind = kind;
    snprintf(r->label, sizeof r->label, "%s %u x %d %s %d", op->name, s.rows, s.d,
             s.dtype == RLHF_BF16 ? "bf16" : "f32", kind);
    for (r->shift = 0; r->shift < 2; r->shift++) {
        r->n_out = 0;
        op->run(r, &s);
        while (r->n_dev)
            r->c->release(r->c->ctx, r->dev[--r->n_dev]);
    }
}

static void run_op(struct run *r, const struct op *op, const struct shape *s) {
    for (int k = 0; k < KINDS && (k == 0 || op->kinds[k]); k++)
        run_one(r, op, *s, op->kinds[k]);
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: dump KERNELS.so [DIRECTORY]\n");
        return 2;
    }
    const rlhf_plugin *kernels = rlhf_test_backend_load(argv[1]);
    const rlhf_kernels_open options = {.size = sizeof options};
    struct run r = {.dir = argc == 3 ? argv[2] : NULL};
    if (!kernels) return 1;
    if (rlhf_test_backend_open(&r.backend, kernels, &options) < 0) {
        fprintf(stderr, "dump: %s\n", r.backend.said);
        return 1;
    }
    r.c = r.backend.c;
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            run_op(&r, &ops[o], &shapes[i]);
    run_op(&r, &everywhere, &shapes[1]);
    rlhf_test_backend_close(&r.backend);
    return r.differs;
}
