// canary.cu: proves that a library GEMM is row-exact on this card: each row of random data has the
// same bits alone and together with any other rows. Also measures the time of algorithms on the
// same data.
#include "product/canary.h"
#include "product/lt_plan.h"

enum {
    THREADS = RLHF__CANARY_THREADS,
    ROWS = 513,  // rows of the full matrix
    WAVES = 3,   // the tall product has more tiles than the card runs in this many waves
    TILE = 128,  // if a tile has this size
    STRIDE = 211 // coprime with ROWS
};

// A selection of rows. Its row i is row (first + i * step) % ROWS of the full matrix.
struct canary_pick {
    unsigned n, first, step;
};

// A number in (-1, 1) with 24 random bits. It depends only on the index and the tag.
static __device__ __forceinline__ float noise(uint64_t i, unsigned tag) {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull + tag * 0xd1b54a32d192ed03ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return (float)(int)(z >> 40) * 0x1p-23f - 1.0f;
}

template <class T>
static __global__ void __launch_bounds__(THREADS) canary_fill(T *to, rlhf__canary_lines m) {
    const uint64_t half = m.depth / 2;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < m.n;
         i += (uint64_t)gridDim.x * THREADS) {
        const uint64_t line = m.across ? i % m.ld : i / m.ld, l = m.across ? i / m.ld : i % m.ld;
        const int again = l >= half && l < 2 * half && (m.cancel > 0 || (m.cancel && line % 2));
        const float v = noise((line << 32) + (again ? l - half : l), m.tag);
        rlhf__put(to, i, again && m.cancel < 0 ? -v : v);
    }
}

// Copies the selected rows, which have `words` 4-byte words.
static __global__ void __launch_bounds__(THREADS)
    canary_gather(unsigned *to, const unsigned *from, uint64_t words, canary_pick p) {
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < p.n * words;
         i += (uint64_t)gridDim.x * THREADS)
        to[i] = from[(p.first + i / words * p.step) % ROWS * words + i % words];
}

// Set *differ if a selected row has other bits than in the full matrix. Only the first `width`
// words of a row are compared.
static __global__ void __launch_bounds__(THREADS)
    canary_compare(int *differ, const unsigned short *some, const unsigned short *whole,
                   uint64_t ld, uint64_t width, canary_pick p) {
    int found = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < p.n * width;
         i += (uint64_t)gridDim.x * THREADS) {
        const uint64_t r = i / width, c = i % width;
        found |= some[r * ld + c] != whole[(p.first + r * p.step) % ROWS * ld + c];
    }
    if (found) atomicCAS(differ, 0, 1);
}

struct buffers {
    void *w, *x, *c, *out;          // the full matrix
    void *x_some, *c_some, *o_some; // a selection of its rows
    void *bias;
    int *differ;
    uint64_t x_words, out_words; // per row
    uint64_t some;               // rows of the largest selection
};

static uint64_t words_of(int64_t ld, int32_t dtype) {
    return (uint64_t)ld * rlhf_dtype_size(dtype) / 4;
}

rlhf_status rlhf__canary_fill(struct rlhf__cuda *cu, void *to, int32_t dtype,
                              rlhf__canary_lines m) {
    const dim3 blocks = rlhf__canary_blocks(m.n);
    if (dtype == RLHF_BF16)
        RUN(cu, (canary_fill<rlhf__bf16>), blocks, dim3(THREADS), 0, (rlhf__bf16 *)to, m);
    else
        RUN(cu, (canary_fill<float>), blocks, dim3(THREADS), 0, (float *)to, m);
    return RLHF_OK;
}

// Makes one allocation for all buffers. *base is the address to free.
static rlhf_status buffers_make(struct rlhf__cuda *cu, const struct rlhf__lt_shape *s,
                                struct buffers *b, void **base) {
    const uint64_t w_n = (uint64_t)s->lda * (uint64_t)(s->trans_a ? s->m : s->k);
    const uint64_t x_n = (uint64_t)s->ldb * ROWS, out_n = (uint64_t)s->ldd * ROWS;
    b->x_words = words_of(s->ldb, s->dtype);
    b->out_words = words_of(s->ldd, s->out_dtype);
    const uint64_t add = s->out_dtype == RLHF_F32;
    const uint64_t bytes[9] = {w_n * rlhf_dtype_size(s->dtype),
                               b->x_words * 4 * ROWS,
                               b->out_words * 4 * ROWS * add,
                               b->out_words * 4 * ROWS,
                               b->x_words * 4 * b->some,
                               b->out_words * 4 * b->some * add,
                               b->out_words * 4 * b->some,
                               (uint64_t)s->m * 4,
                               sizeof *b->differ}; // enough for bf16 too, which uses half of it
    void **to[7] = {&b->w, &b->x, &b->c, &b->out, &b->x_some, &b->c_some, &b->o_some};
    uint64_t total = 0;
    for (uint64_t n : bytes)
        total += (n + 255) / 256 * 256;
    RLHF_TRY(rlhf__cuda_mem_alloc(cu, total, base));
    char *at = (char *)*base;
    for (int i = 0; i < 7; at += (bytes[i] + 255) / 256 * 256, i++)
        *to[i] = at;
    b->bias = at;
    b->differ = (int *)(at + (bytes[7] + 255) / 256 * 256);
    const uint64_t lda = (uint64_t)s->lda, ldb = (uint64_t)s->ldb, ldd = (uint64_t)s->ldd,
                   k = (uint64_t)s->k, m = (uint64_t)s->m;
    RLHF_TRY(rlhf__canary_fill(cu, b->w, s->dtype, {w_n, lda, k, !s->trans_a, -1, 1}));
    RLHF_TRY(rlhf__canary_fill(cu, b->x, s->dtype, {x_n, ldb, k, 0, 1, 2}));
    if (add) RLHF_TRY(rlhf__canary_fill(cu, b->c, s->out_dtype, {out_n, ldd, ldd, 0, 0, 3}));
    // If the result is bf16, the bias is 0. Any other bias would hide the rounding errors that
    // cancellation exposes.
    if (add)
        RLHF_TRY(rlhf__canary_fill(cu, b->bias, s->out_dtype, {m, m, m, 0, 0, 4}));
    else
        RLHF_TRY(
            rlhf__cuda_check(cu, "cudaMemset", cudaMemsetAsync(b->bias, 0, m * 4, cu->stream)));
    return rlhf__cuda_check(cu, "cudaMemset",
                            cudaMemsetAsync(b->differ, 0, sizeof *b->differ, cu->stream));
}

// Runs the GEMM. If the library refuses to run an algorithm that it has offered, that counts as a
// difference.
static int product(struct rlhf__cuda *cu, struct rlhf__lt_plan *p, const rlhf__lt_algo *algo,
                   const struct buffers *b, const void *x, const void *c, void *out,
                   unsigned rows) {
    const struct rlhf__lt_operands o = {b->w, x, c, out, b->bias};
    return rlhf__lt_run_as(cu, p, algo, &o, rows) == RLHF__LT_SUCCESS;
}

static rlhf_status gather(struct rlhf__cuda *cu, void *to, const void *from, uint64_t words,
                          canary_pick p) {
    RUN(cu, canary_gather, rlhf__canary_blocks(p.n * words), dim3(THREADS), 0, (unsigned *)to,
        (const unsigned *)from, words, p);
    return RLHF_OK;
}

namespace {
struct proof {
    const rlhf__lt_algo *whole, *some;
    const canary_pick *picks;
    unsigned n;
};
} // namespace

// Compares the selections with the full matrix. If `add` is set, the products have the addend c.
static rlhf_status compare_all(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                               const struct buffers *b, const struct proof *t, int add, int *runs) {
    const struct rlhf__lt_shape *s = &p->shape;
    const uint64_t half = rlhf_dtype_size(s->out_dtype) / 2; // 2-byte words per element
    *runs = product(cu, p, t->whole, b, b->x, add ? b->c : NULL, b->out, ROWS);
    for (unsigned i = 0; i < t->n && *runs; i++) {
        const canary_pick *pick = &t->picks[i];
        RLHF_TRY(gather(cu, b->x_some, b->x, b->x_words, *pick));
        if (add) RLHF_TRY(gather(cu, b->c_some, b->c, b->out_words, *pick));
        *runs = product(cu, p, t->some, b, b->x_some, add ? b->c_some : NULL, b->o_some, pick->n);
        RUN(cu, canary_compare, rlhf__canary_blocks(pick->n * (uint64_t)s->m * half), dim3(THREADS),
            0, b->differ, (const unsigned short *)b->o_some, (const unsigned short *)b->out,
            (uint64_t)s->ldd * half, (uint64_t)s->m * half, *pick);
    }
    return RLHF_OK;
}

// The number of rows whose results fit in `most` bytes.
static uint64_t rows_of(const struct rlhf__lt_shape *s, uint64_t most) {
    return most / (words_of(s->ldd, s->out_dtype) * 4);
}

// Returns the number of rows that gives the GEMM enough tiles for WAVES waves of the card, but at
// most as many rows as fit in 64 MiB. If that is fewer than ROWS, returns ROWS. Never returns more
// than 8192.
unsigned rlhf__lt_canary_tall(const struct rlhf__cuda *cu, const struct rlhf__lt_shape *s) {
    const uint64_t across = ((uint64_t)s->m + TILE - 1) / TILE;
    uint64_t rows = (uint64_t)WAVES * (uint64_t)rlhf__lt_of(cu)->multiprocessors / across * TILE;
    const uint64_t most = rows_of(s, (uint64_t)64 << 20);
    if (rows > most) rows = most;
    if (rows < (uint64_t)ROWS) rows = ROWS;
    return (unsigned)(rows > 8192 ? 8192 : rows);
}

// Returns the largest power of two such that a result with that many rows fits in 1 GiB. (With an
// addend c, both together need 2 GiB.) For a vocabulary of 50,304 this is 4096 rows.
unsigned rlhf__lt_canary_most(const struct rlhf__lt_shape *s) {
    const uint64_t rows = rows_of(s, (uint64_t)1 << 30);
    unsigned n = 1;
    while (2 * (uint64_t)n <= rows && n < 1u << 20)
        n *= 2;
    return n;
}

rlhf_status rlhf__lt_canary_rows(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                 const rlhf__lt_algo *whole, const rlhf__lt_algo *some,
                                 unsigned tall, int *same) {
    canary_pick picks[] = {{1, 300, 1},     {2, 0, 1},     {17, 496, 1},
                           {64, 40, 1},     {129, 200, 1}, {256, 257, 1},
                           {96, 7, STRIDE}, {ROWS, 0, 1},  {tall, 0, STRIDE}};
    const struct proof t = {whole, some, picks, (unsigned)(sizeof picks / sizeof *picks)};
    struct buffers b = {};
    void *base = NULL;
    int differ = 0, runs = 1;
    b.some = tall;
    rlhf_status st = buffers_make(cu, &p->shape, &b, &base);
    void *ws = NULL; // allocate here, so that a lack of memory is not taken for a refusal
    if (st == RLHF_OK) st = rlhf__cuda_workspace(cu, RLHF__CUDA_WS_LIBRARY, p->workspace, &ws);
    for (int add = 0; add <= (p->shape.out_dtype == RLHF_F32) && runs && st == RLHF_OK; add++)
        st = compare_all(cu, p, &b, &t, add, &runs);
    if (st == RLHF_OK)
        st = rlhf__cuda_check(
            cu, "reading what the canary found",
            cudaMemcpyAsync(&differ, b.differ, sizeof differ, cudaMemcpyDeviceToHost, cu->stream));
    if (st == RLHF_OK) st = rlhf__cuda_wait(cu);
    rlhf__cuda_mem_free(cu, base);
    *same = runs && !differ;
    return st;
}

// ---- time ----

#ifdef __CUDACC__
enum { REPEATS = 10, UNCOUNTED = 2 };
#else
enum { REPEATS = 1, UNCOUNTED = 0 };
#endif

static rlhf_status time_one(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                            const rlhf__lt_algo *algo, const struct buffers *b, unsigned rows,
                            cudaEvent_t const *at, float *ms) {
    int runs = 1;
    for (int i = -UNCOUNTED; i < REPEATS; i++) {
        if (!i)
            RLHF_TRY(rlhf__cuda_check(cu, "cudaEventRecord", cudaEventRecord(at[0], cu->stream)));
        runs &= product(cu, p, algo, b, b->x_some, NULL, b->o_some, rows);
    }
    RLHF_TRY(rlhf__cuda_check(cu, "cudaEventRecord", cudaEventRecord(at[1], cu->stream)));
    RLHF_TRY(rlhf__cuda_wait(cu));
    RLHF_TRY(rlhf__cuda_check(cu, "cudaEventElapsedTime", cudaEventElapsedTime(ms, at[0], at[1])));
    *ms = runs ? *ms / REPEATS : INFINITY;
    return RLHF_OK;
}

rlhf_status rlhf__lt_canary_time(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                 const rlhf__lt_algo *const *algos, int n, unsigned tall,
                                 float (*ms)[2]) {
    const unsigned rows[2] = {256, tall};
    const canary_pick all = {tall, 0, STRIDE};
    struct buffers b = {};
    void *base = NULL;
    cudaEvent_t at[2] = {NULL, NULL};
    b.some = tall;
    rlhf_status st = buffers_make(cu, &p->shape, &b, &base);
    for (int i = 0; i < 2 && st == RLHF_OK; i++)
        st = rlhf__cuda_check(cu, "cudaEventCreate", cudaEventCreateWithFlags(&at[i], 0));
    if (st == RLHF_OK) st = gather(cu, b.x_some, b.x, b.x_words, all);
    for (int i = 0; i < 2 * n && st == RLHF_OK; i++)
        st = time_one(cu, p, algos[i / 2], &b, rows[i % 2], at, &ms[i / 2][i % 2]);
    for (cudaEvent_t e : at)
        if (e) cudaEventDestroy(e);
    rlhf__cuda_mem_free(cu, base);
    return st;
}
