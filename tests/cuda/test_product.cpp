// test_product.cpp: every tile of the backend's own GEMM kernels gives the same, correct bits, for
// operands in all layouts, aligned or not.
#include "product/product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <vector>
extern "C" {
#include "support/check.h"
}

namespace {

struct shape {
    uint32_t rows, cols, depth;
};
#ifdef __SANITIZE_THREAD__ // 50 times slower: a part of a tile, slices of two stages and more
enum { SMALL = 1 };
const shape shapes[] = {{18, 72, 140}};
#else
enum { SMALL = 0 };
// Shapes that end in the middle of tiles and slices, shapes smaller than a tile, and a shape with
// an empty sum.
const shape shapes[] = {{130, 72, 90}, {17, 129, 150}, {1, 5, 64},
                        {3, 1, 7},     {16, 64, 16},   {2, 3, 0}};
#endif

struct rlhf__cuda *context(void) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)calloc(1, sizeof *cu);
    assert_non_null(cu);
    assert_int_equal(cudaStreamCreateWithFlags(&cu->stream, cudaStreamNonBlocking), cudaSuccess);
    return cu;
}

void context_free(struct rlhf__cuda *cu) {
    rlhf__cuda_mem_free_all(cu);
    cudaStreamDestroy(cu->stream);
    free(cu);
}

// Numbers that are exact in bf16 and of many magnitudes, so that the order of a sum affects its
// bits.
float number(unsigned tag, uint64_t i) {
    const uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u * (tag + 1) >> 33;
    const float v = ldexpf((float)(128 + (z & 127)) / 128.0f, -(int)(z >> 7 & 7));
    return z >> 10 & 1 ? v : -v;
}

// Returns numbers [high, wide] in device memory. They start `off` elements into a buffer, and each
// row takes `ld` elements. The gaps between rows are NaN and must not be read.
void *operand(struct rlhf__cuda *cu, unsigned tag, int32_t dtype, uint64_t high, uint64_t wide,
              uint64_t ld, uint64_t off, bool across) {
    const uint64_t size = rlhf_dtype_size(dtype), n = off + (high ? (high - 1) * ld + wide : 0);
    std::vector<unsigned char> h(n * size + 1, 0xff);
    for (uint64_t i = 0; i < high; i++)
        for (uint64_t j = 0; j < wide; j++) {
            const float v = across ? number(tag, j * 1000 + i) : number(tag, i * 1000 + j);
            const rlhf__bf16 b = rlhf__to_bf16(v);
            memcpy(&h[(off + i * ld + j) * size], size == 2 ? (const void *)&b : &v, size);
        }
    void *p = NULL;
    assert_int_equal(rlhf__cuda_mem_alloc(cu, n * size, &p), RLHF_OK);
    if (n)
        assert_int_equal(cudaMemcpyAsync(p, h.data(), n * size, cudaMemcpyHostToDevice, cu->stream),
                         cudaSuccess);
    return (char *)p + off * size;
}

struct variant {
    int32_t in_dtype, out_dtype, left_across, right_across, bias, addend;
    uint64_t off, odd; // elements before the operands, and extra elements per line
    int32_t rows_exact;
};

// Runs the GEMM in parts of `step` of its depth. Each part is added to the previous result.
void run_parts(struct rlhf__cuda *cu, struct rlhf__cuda_product_spec p, int tile, uint32_t step) {
    const uint64_t size = rlhf_dtype_size(p.in_dtype);
    for (uint32_t from = 0, depth = p.depth; from < depth; from += step) {
        p.depth = depth - from < step ? depth - from : step;
        assert_int_equal(rlhf__cuda_product_own(cu, &p, tile), RLHF_OK);
        p.left.ptr = (const char *)p.left.ptr + step * size * (p.left.across ? p.left.ld : 1);
        p.right.ptr = (const char *)p.right.ptr + step * size * (p.right.across ? p.right.ld : 1);
        p.addend = (const float *)p.out;
    }
}

// Returns the bytes of one GEMM. If `step` is 0, the GEMM runs in one piece.
std::vector<unsigned char> run(const shape &s, const variant &v, int tile, uint32_t step = 0) {
    struct rlhf__cuda *cu = context();
    struct rlhf__cuda_product_spec p = {};
    p.rows = s.rows, p.cols = s.cols, p.depth = s.depth;
    p.in_dtype = v.in_dtype, p.out_dtype = v.out_dtype;
    const uint64_t left = v.left_across ? s.rows : s.depth,
                   right = v.right_across ? s.cols : s.depth;
    p.left = {NULL, (left + 7) / 8 * 8 + v.odd, v.left_across};
    p.right = {NULL, (right + 7) / 8 * 8 + v.odd, v.right_across};
    p.left.ptr = operand(cu, 1, v.in_dtype, v.left_across ? s.depth : s.rows, left, p.left.ld,
                         v.off, v.left_across);
    p.right.ptr = operand(cu, 2, v.in_dtype, v.right_across ? s.depth : s.cols, right, p.right.ld,
                          v.off, v.right_across);
    if (v.bias) p.bias = (const float *)operand(cu, 3, RLHF_F32, 1, s.cols, s.cols, v.off, false);
    p.out_ld = (s.cols + 7) / 8 * 8 + v.odd;
    p.out = operand(cu, 4, v.out_dtype, s.rows, s.cols, p.out_ld, v.off, false);
    if (v.addend) p.addend = (const float *)p.out;
    p.rows_exact = v.rows_exact;
    if (step)
        run_parts(cu, p, tile, step);
    else
        assert_int_equal(rlhf__cuda_product_own(cu, &p, tile), RLHF_OK);
    const uint64_t size = rlhf_dtype_size(v.out_dtype);
    std::vector<unsigned char> all(((s.rows - 1) * p.out_ld + s.cols) * size), out;
    assert_int_equal(
        cudaMemcpyAsync(all.data(), p.out, all.size(), cudaMemcpyDeviceToHost, cu->stream),
        cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(cu->stream), cudaSuccess);
    for (uint64_t r = 0; r < s.rows; r++)
        out.insert(out.end(), all.begin() + (long)(r * p.out_ld * size),
                   all.begin() + (long)((r * p.out_ld + s.cols) * size));
    context_free(cu);
    return out;
}

void check_right(const shape &s, const variant &v, const std::vector<unsigned char> &out) {
    for (uint32_t r = 0; r < s.rows; r++)
        for (uint32_t c = 0; c < s.cols; c++) {
            double want = v.bias ? (double)number(3, c) : 0.0, size = fabs(want);
            if (v.addend) want += (double)number(4, (uint64_t)r * 1000 + c);
            for (uint32_t d = 0; d < s.depth; d++) {
                const double term = (double)number(1, (uint64_t)r * 1000 + d) *
                                    (double)number(2, (uint64_t)c * 1000 + d);
                want += term;
                size += fabs(term);
            }
            const uint64_t at = (uint64_t)r * s.cols + c;
            float got;
            if (v.out_dtype == RLHF_BF16) {
                rlhf__bf16 b;
                memcpy(&b, &out[at * 2], 2);
                got = rlhf__from_bf16(b);
            } else
                memcpy(&got, &out[at * 4], 4);
            const double step = v.out_dtype == RLHF_BF16 ? 1.0 / 256.0 : 1e-6;
            if (!(fabs((double)got - want) <= step * fabs(want) + 1e-5 * (size + 1.0)))
                fail_msg("%u x %u x %u dtype %d across %d %d: element %u, %u is %.9g, not %.9g",
                         s.rows, s.cols, s.depth, v.in_dtype, v.left_across, v.right_across, r, c,
                         (double)got, want);
        }
}

void check(const shape &s, variant v) {
    const std::vector<unsigned char> first = run(s, v, 0);
    check_right(s, v, first);
    for (int tile = 1; tile < RLHF__CUDA_TILES; tile++)
        if (run(s, v, tile) != first)
            fail_msg("%u x %u x %u dtype %d across %d %d: tile %d has other bits than tile 0",
                     s.rows, s.cols, s.depth, v.in_dtype, v.left_across, v.right_across, tile);
    v.off = 1, v.odd = 1;
    if (run(s, v, 2) != first || run(s, v, -1) != first)
        fail_msg("%u x %u x %u dtype %d across %d %d: operands without alignment give other bits",
                 s.rows, s.cols, s.depth, v.in_dtype, v.left_across, v.right_across);
}

void all_layouts(const variant &base) {
    for (const shape &s : shapes)
        for (int i = 0; i < 4; i++) {
            variant v = base;
            v.left_across = i / 2, v.right_across = i % 2;
            check(s, v);
        }
}

void bf16_to_bf16(void **) { all_layouts({RLHF_BF16, RLHF_BF16, 0, 0, 1, 0, 0, 0, 0}); }
void bf16_to_f32(void **) { all_layouts({RLHF_BF16, RLHF_F32, 0, 0, 1, 1, 0, 0, 0}); }
void f32_to_f32(void **) { all_layouts({RLHF_F32, RLHF_F32, 0, 0, 0, 1, 0, 0, 0}); }
void f32_to_bf16(void **) { all_layouts({RLHF_F32, RLHF_BF16, 0, 0, 1, 0, 0, 0, 0}); }

// With few columns, GEMMs are dot products, with and without alignment.
void few_columns(void **) {
    const shape few[] = {{9, 1, 300}, {5, 3, 7}, {6, 16, 258}, {2, 2, 0}};
    for (const shape &s : few)
        for (int32_t dtype : {RLHF_F32, RLHF_BF16}) {
            variant v = {dtype, RLHF_F32, 0, 0, 1, 1, 0, 0, 1};
            const std::vector<unsigned char> first = run(s, v, -1);
            check_right(s, v, first);
            v.off = 1, v.odd = 1;
            if (run(s, v, -1) != first)
                fail_msg("%u x %u x %u dtype %d: operands without alignment give other bits",
                         s.rows, s.cols, s.depth, dtype);
        }
}

// A sum over many rows has the same bits as the sum, in order, of its chunks of 4096 rows. The
// chunks may run in parallel or, if the result has many tiles, one after another.
void long_sums(void **) {
    const struct {
        shape s;
        int32_t dtype;
        int tile;
    } sums[] = {{{20, 9, 8192 + 40}, RLHF_F32, 0},
                {{20, 9, 8192 + 40}, RLHF_BF16, 1},
                {{20, 9, 8192 + 40}, RLHF_BF16, 2},
                {{528, 512, 4097}, RLHF_F32, 2}};
    for (const auto &a : sums) {
        if (SMALL && (a.tile != 2 || a.s.rows > 100)) continue;
        const variant v = {a.dtype, RLHF_F32, 1, 1, 0, 1, 0, 0, 0};
        const std::vector<unsigned char> out = run(a.s, v, a.tile);
        if (run(a.s, v, 2, 4096) != out)
            fail_msg("%u x %u x %u dtype %d tile %d: not the sum of its chunks", a.s.rows, a.s.cols,
                     a.s.depth, a.dtype, a.tile);
        if (a.s.rows < 100) check_right(a.s, v, out);
    }
}

// The library is asked first. If it declines, the backend's own kernels run.
int asked, takes;
rlhf_status library(struct rlhf__cuda *, const struct rlhf__cuda_product_spec *, int *taken) {
    asked++;
    *taken = takes;
    return RLHF_OK;
}

void library_first(void **) {
    struct rlhf__cuda *cu = context();
    struct rlhf__cuda_product_spec p = {};
    p.rows = 2, p.cols = 24, p.depth = 8, p.in_dtype = RLHF_F32, p.out_dtype = RLHF_F32;
    p.left = {operand(cu, 1, RLHF_F32, 2, 8, 8, 0, false), 8, 0};
    p.right = {operand(cu, 2, RLHF_F32, 24, 8, 8, 0, false), 8, 0};
    p.out = operand(cu, 3, RLHF_F32, 2, 24, 24, 0, false);
    p.out_ld = 24, p.rows_exact = 1;
    cu->library = library;
    const auto first = [&] {
        float v = 0.0f;
        assert_int_equal(cudaMemcpyAsync(&v, p.out, sizeof v, cudaMemcpyDeviceToHost, cu->stream),
                         cudaSuccess);
        assert_int_equal(cudaStreamSynchronize(cu->stream), cudaSuccess);
        return v;
    };
    const float before = first();
    takes = 1;
    assert_int_equal(rlhf__cuda_product(cu, &p), RLHF_OK);
    assert_int_equal(asked, 1);
    assert_true(first() == before);
    takes = 0;
    assert_int_equal(rlhf__cuda_product(cu, &p), RLHF_OK);
    assert_int_equal(asked, 2);
    assert_true(first() != before);
    p.cols = 3; // few exact columns are always dot products
    assert_int_equal(rlhf__cuda_product(cu, &p), RLHF_OK);
    assert_int_equal(asked, 2);
    context_free(cu);
}

} // namespace

int main() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_to_bf16), cmocka_unit_test(bf16_to_f32), cmocka_unit_test(f32_to_f32),
        cmocka_unit_test(f32_to_bf16),  cmocka_unit_test(few_columns), cmocka_unit_test(long_sums),
        cmocka_unit_test(library_first)};
    return cmocka_run_group_tests_name("cuda: products", tests, NULL, NULL);
}
