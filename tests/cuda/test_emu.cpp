// test_emu.cpp: tests of the emulation: the values of every operation, and injected faults. Each
// fault must end the kernel, in a child process, with the right message.
#include "machine/ptx.h"

#include <sys/wait.h>
#include <unistd.h>
extern "C" {
#include "support/check.h"
}

namespace {

// Returns device memory that is initialized with numbers, or reads the results back.
template <class T> T *device(const T *from, size_t n) {
    void *p = NULL;
    assert_int_equal(cudaMalloc(&p, n * sizeof(T)), cudaSuccess);
    if (from)
        assert_int_equal(cudaMemcpyAsync(p, from, n * sizeof(T), cudaMemcpyHostToDevice, NULL),
                         cudaSuccess);
    return (T *)p;
}
template <class T> void host(T *to, const T *from, size_t n) {
    assert_int_equal(cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToHost, NULL),
                     cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(NULL), cudaSuccess);
}

// ---- values ----

__global__ void warp_words(unsigned *out) {
    const unsigned lane = threadIdx.x % 32, all = ~0u;
    unsigned *o = out + threadIdx.x * 16;
    o[0] = __shfl_sync(all, lane, 3);
    o[1] = __shfl_xor_sync(all, lane, 5);
    o[2] = __shfl_down_sync(all, lane, 4, 8);
    o[3] = __shfl_up_sync(all, lane, 1);
    o[4] = __ballot_sync(all, lane % 3 == 0);
    o[5] = (unsigned)__any_sync(all, lane == 7) + 2u * (unsigned)__all_sync(all, lane < 31);
    o[6] = __reduce_add_sync(all, lane);
    o[7] = (unsigned)__reduce_min_sync(all, -(int)lane) + __reduce_max_sync(all, lane);
    o[8] = __reduce_or_sync(all, 1u << lane);
    o[9] = __match_any_sync(all, lane / 16);
    o[10] = (unsigned)(__popc(0xf0u) + __ffs(8) + __clz(1) + __clzll(1) + __popcll(~0ull));
    o[11] = __brev(1u) + __umulhi(1u << 31, 6u);
    o[12] = __shfl_xor_sync(all, lane, 1, 8);
}

void warp_values(void **) {
    unsigned *d = device<unsigned>(NULL, 64 * 16), h[64 * 16];
    assert_int_equal(LAUNCH(warp_words, dim3(1), dim3(64), 0, NULL, d), cudaSuccess);
    host(h, d, 64 * 16);
    for (unsigned t = 0; t < 64; t++) {
        const unsigned l = t % 32, *o = h + t * 16;
        const unsigned want[13] = {3,
                                   l ^ 5,
                                   l % 8 + 4 < 8 ? l + 4 : l,
                                   l ? l - 1 : 0,
                                   0x49249249u,
                                   1,
                                   31 * 16,
                                   0,
                                   ~0u,
                                   l < 16 ? 0xffffu : 0xffff0000u,
                                   4 + 4 + 31 + 63 + 64,
                                   (1u << 31) + 3,
                                   l ^ 1};
        for (unsigned i = 0; i < 13; i++)
            if (o[i] != want[i]) fail_msg("thread %u, value %u: %u, not %u", t, i, o[i], want[i]);
    }
}

__global__ void count(int *i, unsigned *u, unsigned long long *l, long long *s) {
    const int t = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    atomicAdd(i, -1);
    atomicMax(u, (unsigned)t);
    atomicAdd(l, 1ull << 32);
    atomicMin(s, -((long long)t << 33));
    atomicOr(u + 1, 1u << t % 32);
    atomicCAS(u + 2, 0u, (unsigned)t + 1);
    atomicExch(u + 3, 9u);
}

void atomics(void **) {
    int i = 0, *di = device(&i, 1);
    unsigned u[4] = {0, 0, 0, 0}, *du = device(u, 4);
    unsigned long long l = 0, *dl = device(&l, 1);
    long long s = 0, *ds = device(&s, 1);
    assert_int_equal(LAUNCH(count, dim3(3), dim3(96), 0, NULL, di, du, dl, ds), cudaSuccess);
    host(&i, di, 1);
    host(u, du, 4);
    host(&l, dl, 1);
    host(&s, ds, 1);
    assert_int_equal(i, -288);
    assert_int_equal(u[0], 287);
    assert_int_equal(u[1], ~0u);
    assert_true(u[2] >= 1 && u[2] <= 288);
    assert_int_equal(u[3], 9);
    assert_true(l == 288ull << 32 && s == -(287ll << 33));
}

// C[16, 8] = A[16, 16] B[16, 8] with fragments from ldmatrix. A and B are row-major; B needs the
// transposed load.
__global__ void matrices(float *c, const uint16_t *a, const uint16_t *b, int wide) {
    SHARED(uint16_t[16 * 16], as);
    SHARED(uint16_t[16 * 8], bs);
    const unsigned lane = threadIdx.x;
    rlhf__cp_async16(as + lane * 8, a + lane * 8);
    if (lane < 16) rlhf__cp_async16(bs + lane * 8, b + lane * 8);
    rlhf__cp_async_commit();
    rlhf__cp_async_wait<0>();
    __syncthreads();
    unsigned fa[4], fb[4];
    rlhf__ldmatrix_x4(fa, as + (lane % 16) * 16 + lane / 16 * 8);
    if (wide)
        rlhf__ldmatrix_x4_trans(fb, bs + lane % 16 * 8);
    else
        rlhf__ldmatrix_x2_trans(fb, bs + lane % 16 * 8);
    float d[4] = {0, 0, 0, 0};
    rlhf__mma_bf16(d, fa, fb);
    for (unsigned i = 0; i < 4; i++)
        c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}

void matrix_products(void **) {
    uint16_t a[256], b[128];
    float c[128];
    for (int i = 0; i < 256; i++)
        a[i] = rlhf__to_bf16((float)(i * 7 % 13 - 6));
    for (int i = 0; i < 128; i++)
        b[i] = rlhf__to_bf16((float)(i * 5 % 11 - 5));
    uint16_t *da = device(a, 256), *db = device(b, 128);
    float *dc = device<float>(NULL, 128);
    for (int wide = 0; wide < 2; wide++) {
        assert_int_equal(LAUNCH(matrices, dim3(1), dim3(32), 0, NULL, dc, da, db, wide),
                         cudaSuccess);
        host(c, dc, 128);
        for (int i = 0; i < 16; i++)
            for (int j = 0; j < 8; j++) {
                float sum = 0;
                for (int k = 0; k < 16; k++)
                    sum += rlhf__from_bf16(a[i * 16 + k]) * rlhf__from_bf16(b[k * 8 + j]);
                assert_true(sum == c[i * 8 + j]);
            }
    }
}

// Checks copies that fill only a part of their width. The copies are in separate groups, and each
// group is waited for separately.
__global__ void copies_in_turn(unsigned *out, const unsigned *in) {
    SHARED(unsigned[64], s);
    const unsigned t = threadIdx.x;
    if (t == 0) {
        rlhf__cp_async16(s, in, 8);
        rlhf__cp_async_commit();
        rlhf__cp_async4(s + 4, in + 5);
        rlhf__cp_async_commit();
        rlhf__cp_async_wait<1>();
        out[0] = s[0] + s[1] + s[2] + s[3];
        rlhf__cp_async_wait<0>();
        out[1] = s[4];
        rlhf__cp_async4(s + 5, in, 0);
        rlhf__cp_async_commit();
        rlhf__cp_async_wait<0>();
        out[2] = s[5];
    }
}

void asynchronous_copies(void **) {
    const unsigned in[8] = {3, 4, 100, 100, 100, 6, 7, 8};
    unsigned *di = device(in, 8), *dout = device<unsigned>(NULL, 3), out[3];
    for (emu::seed = 0; emu::seed < 4; emu::seed++) {
        assert_int_equal(LAUNCH(copies_in_turn, dim3(1), dim3(32), 0, NULL, dout, di), cudaSuccess);
        host(out, dout, 3);
        assert_int_equal(out[0], 7);
        assert_int_equal(out[1], 6);
        assert_int_equal(out[2], 0);
    }
    emu::seed = 0;
}

// Every block runs once with any seed, in different orders.
__global__ void order(unsigned *turn, unsigned *next) {
    if (threadIdx.x == 0) turn[blockIdx.x + gridDim.x * blockIdx.y] = atomicAdd(next, 1u);
}

void seeds_change_the_order(void **) {
    unsigned first[12] = {0}, orders = 0;
    for (emu::seed = 0; emu::seed < 5; emu::seed++) {
        unsigned zero = 0, *next = device(&zero, 1), *d = device<unsigned>(NULL, 12), h[12];
        assert_int_equal(LAUNCH(order, dim3(4, 3), dim3(32), 0, NULL, d, next), cudaSuccess);
        host(h, d, 12);
        unsigned seen = 0;
        for (unsigned i = 0; i < 12; i++)
            seen |= 1u << h[i];
        assert_int_equal(seen, 0xfff);
        orders += memcmp(first, h, sizeof h) != 0;
        memcpy(first, h, sizeof h);
    }
    emu::seed = 0;
    assert_true(orders >= 3);
}

// ---- injected faults ----

enum fault {
    HALF_BARRIER,
    TWO_BARRIERS,
    LEAVES,
    DIVERGENT_SHUFFLE,
    OUTSIDE_MASK,
    PAST_THE_END,
    BEFORE_THE_BEGIN,
    NO_MEMORY,
    PAST_SHARED,
    PAST_DYNAMIC,
    NO_WAIT,
    UNALIGNED_COPY,
    UNALIGNED_LOAD,
    COPY_TO_GLOBAL,
    MATRIX_OF_GLOBAL,
    STATIC_SHARED,
    RACE,
    FAULTS
};

__global__ void broken(float *out, int fault) {
    DYN_SHARED(bytes);
    SHARED(float[256], s);
    const unsigned t = threadIdx.x;
    s[t] = (float)t;
    __syncthreads();
    float v = s[t];
    unsigned r[4];
    switch (fault) {
    case HALF_BARRIER:
        if (t < 128) __syncthreads();
        break;
    case TWO_BARRIERS:
        if (t < 128)
            __syncthreads();
        else
            __syncthreads();
        break;
    case LEAVES:
        if (t == 9) return;
        __syncthreads();
        break;
    case DIVERGENT_SHUFFLE:
        if (t % 2) v = __shfl_xor_sync(~0u, v, 1);
        break;
    case OUTSIDE_MASK:
        v = __shfl_sync(~2u | 1u << t % 32, v, 1);
        break;
    case PAST_THE_END:
        out[t + 1] = v;
        break;
    case BEFORE_THE_BEGIN:
        v = out[-1024];
        break;
    case NO_MEMORY:
        v = *(float *)((uintptr_t)(t + 16) * 4);
        break;
    case PAST_SHARED:
        v = s[t + 1];
        break;
    case PAST_DYNAMIC:
        v = (float)bytes[t];
        break;
    case NO_WAIT:
        rlhf__cp_async4(s + t, out + t);
        rlhf__cp_async_commit();
        break;
    case UNALIGNED_COPY:
        rlhf__cp_async16(s + 1, out);
        break;
    case UNALIGNED_LOAD:
        v = ((float4 *)(out + t % 4))->x;
        break;
    case COPY_TO_GLOBAL:
        rlhf__cp_async16(out, out);
        break;
    case MATRIX_OF_GLOBAL:
        rlhf__ldmatrix_x4(r, out);
        v = (float)r[0];
        break;
    case STATIC_SHARED: {
        SHARED(float[48 * 256], large);
        large[t] = v;
        break;
    }
    case RACE: // no barrier between a write and another thread's read
        s[t] = 1.0f;
        v = s[(t + 1) % 256];
        break;
    default:
        break;
    }
    out[t] = v;
}

struct plant {
    enum fault fault;
    const char *sentence;
};
const plant plants[] = {
    {HALF_BARRIER, "a thread leaves while others wait at a barrier"},
    {TWO_BARRIERS, "meets a barrier of another line"},
    {LEAVES, "barrier"},
    {DIVERGENT_SHUFFLE, "not every thread reaches the barrier"},
    {OUTSIDE_MASK, "lanes meet in different warp operations"},
    {PAST_THE_END, "bytes past the end of 1024 bytes of device memory"},
    {BEFORE_THE_BEGIN, "bytes past the end of 1024 bytes of device memory"},
    {NO_MEMORY, "is no memory of the device"},
#if defined(__SANITIZE_ADDRESS__) // its undefined-behavior checker finds this fault first
    {PAST_SHARED, "index 256 out of bounds"},
#else
    {PAST_SHARED, "0 bytes past the end of 1024 bytes of shared memory"},
#endif
    {PAST_DYNAMIC, "bytes past the end of 0 bytes of shared memory"},
    {NO_WAIT, "leaves without waiting for its copies"},
    {UNALIGNED_COPY, "not aligned to its width"},
    {UNALIGNED_LOAD, "aligned"},
    {COPY_TO_GLOBAL, "cp.async to what is not the block's shared memory"},
    {MATRIX_OF_GLOBAL, "ldmatrix of what is not the block's shared memory"},
    {STATIC_SHARED, "more than 48 KiB of static shared memory"},
    {RACE, "data race"},
};
#if defined(__SANITIZE_THREAD__)
const bool finds_races = true;
#else
const bool finds_races = false;
#endif

// Runs f in a child and returns its standard error in text.
template <class F> int child(char *text, size_t cap, F f) {
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    fflush(NULL);
    const pid_t p = fork();
    if (p == 0) {
        dup2(fd[1], 2);
        close(fd[0]);
        f();
        _exit(0);
    }
    close(fd[1]);
    size_t n = 0;
    for (ssize_t k; n + 1 < cap && (k = read(fd[0], text + n, cap - 1 - n)) > 0;)
        n += (size_t)k;
    text[n] = 0;
    close(fd[0]);
    int status;
    assert_int_equal(waitpid(p, &status, 0), p);
    return status;
}

void planted_faults(void **) {
    char text[8192];
    static_assert(sizeof plants / sizeof *plants == FAULTS, "a fault has no sentence");
    for (const plant &p : plants) {
        if (p.fault == RACE && !finds_races) continue;
        float *out = device<float>(NULL, 256);
        const int status = child(text, sizeof text, [&] {
            LAUNCH(broken, dim3(2), dim3(256), 0, NULL, out, (int)p.fault);
            cudaStreamSynchronize(NULL);
        });
        if (!WIFSIGNALED(status) && !WEXITSTATUS(status) && p.fault != RACE)
            fail_msg("fault %d was not found: %s", p.fault, text);
        if (!strstr(text, p.sentence))
            fail_msg("fault %d: \"%s\" is not in \"%s\"", p.fault, p.sentence, text);
        if (!strstr(text, "kernel broken, block (0,0,0), thread") &&
            !strstr(text, "runtime error") && p.fault != RACE)
            fail_msg("fault %d: nothing says where: \"%s\"", p.fault, text);
    }
}

// ---- faults that change the numbers ----

__global__ void unwritten(float *out, const float *in, int kind) {
    SHARED(float[256], s);
    const unsigned t = threadIdx.x;
    if (kind == 0) out[t] = s[t];
    if (kind != 1) return;
    s[t] = 1.0f;
    __syncthreads();
    rlhf__cp_async4(s + t, in + t);
    rlhf__cp_async_commit();
    out[t] = s[t];
    rlhf__cp_async_wait<0>();
}

void what_is_not_there_yet_is_nan(void **) {
    float in[256] = {0}, h[256], *di = device(in, 256), *d = device<float>(NULL, 256);
    for (int kind = 0; kind < 3; kind++) { // shared memory, a pending copy, device memory
        d = device<float>(NULL, 256);
        assert_int_equal(LAUNCH(unwritten, dim3(1), dim3(256), 0, NULL, d, di, kind), cudaSuccess);
        host(h, d, 256);
        for (int i = 0; i < 256; i++)
            assert_true(h[i] != h[i]);
    }
}

// ---- launch limits ----

__global__ void nothing(int) {}

void launch_limits(void **) {
    const cudaError_t shape = cudaErrorInvalidConfiguration, memory = cudaErrorInvalidValue;
    assert_int_equal(LAUNCH(nothing, dim3(1), dim3(1025), 0, NULL, 0), shape);
    assert_int_equal(LAUNCH(nothing, dim3(1), dim3(1, 1, 65), 0, NULL, 0), shape);
    assert_int_equal(LAUNCH(nothing, dim3(0), dim3(32), 0, NULL, 0), shape);
    assert_int_equal(LAUNCH(nothing, dim3(1, 65536), dim3(32), 0, NULL, 0), shape);
    assert_int_equal(LAUNCH(nothing, dim3(2147483648u), dim3(32), 0, NULL, 0), shape);
    assert_int_equal(LAUNCH(nothing, dim3(1), dim3(32), 48 * 1024 + 1, NULL, 0), memory);
    assert_int_equal(ALLOW_SHARED(nothing, 227 * 1024 + 1), memory);
    assert_int_equal(cudaGetLastError(), memory);
    assert_int_equal(ALLOW_SHARED(nothing, 227 * 1024), cudaSuccess);
    assert_int_equal(LAUNCH(nothing, dim3(1), dim3(32), 227 * 1024, NULL, 0), cudaSuccess);
    assert_int_equal(LAUNCH(nothing, dim3(1), dim3(32), 227 * 1024 + 1, NULL, 0), memory);
    assert_int_equal(cudaStreamSynchronize(NULL), cudaSuccess);
}

} // namespace

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warp_values),
        cmocka_unit_test(atomics),
        cmocka_unit_test(matrix_products),
        cmocka_unit_test(asynchronous_copies),
        cmocka_unit_test(seeds_change_the_order),
        cmocka_unit_test(planted_faults),
        cmocka_unit_test(what_is_not_there_yet_is_nan),
        cmocka_unit_test(launch_limits),
    };
    return cmocka_run_group_tests_name("cuda: emulation", tests, NULL, NULL);
}
