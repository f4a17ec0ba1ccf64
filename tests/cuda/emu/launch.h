// launch.h: runs a grid block by block, in an order that the seed gives. Launches are queued in the
// fake runtime, which runs them when something waits for them.
#ifndef RLHF_TESTS_CUDA_EMU_LAUNCH_H
#define RLHF_TESTS_CUDA_EMU_LAUNCH_H

#include "../fake_runtime.h"
#include "barrier.h"
#include "copy.h"
#include "crash.h"
#include "shared.h"

#include <tuple>
#include <utility>

namespace emu {

EMU_UNSEEN inline void run_block(uint3 b) {
    block_idx = b;
    shared_begin();
    for (unsigned i = 0; i < n_threads; i++) {
        fiber &f = fibers[i];
        if (!f.stack) make_fiber(i);
        f.linear = i;
        f.lane = i % LANES;
        f.phase = 0;
        f.line = 0;
        f.state = RUN;
        f.tid = {i % block_dim.x, i / block_dim.x % block_dim.y, i / (block_dim.x * block_dim.y)};
    }
    for (unsigned i = 0; i < (n_threads + LANES - 1) / LANES; i++)
        warps[i].arrived = 0;
    n_live = n_threads;
    at_block = 0;
    EMU_TSAN(__tsan_release(&start_token));
    go(&fibers[seed ? hash(block_serial) % n_threads : 0]);
    EMU_TSAN(__tsan_acquire(&end_token));
}

inline uint64_t common_divisor(uint64_t a, uint64_t b) { return b ? common_divisor(b, a % b) : a; }

// Runs every block once: in order without a seed, otherwise with a stride coprime to the number of
// blocks.
EMU_UNSEEN inline void run_grid() {
    const uint64_t blocks = (uint64_t)grid_dim.x * grid_dim.y * grid_dim.z;
    uint64_t step = 1, at = 0;
    if (seed) {
        step = seed % blocks | 1;
        while (common_divisor(step, blocks) != 1)
            step += 2;
        at = seed % blocks;
    }
    for (uint64_t k = 0; k < blocks; k++, at = (at + step) % blocks)
        run_block({(unsigned)(at % grid_dim.x), (unsigned)(at / grid_dim.x % grid_dim.y),
                   (unsigned)(at / ((uint64_t)grid_dim.x * grid_dim.y))});
}

EMU_UNSEEN inline void launch(const char *name, void (*fn)(void *), void *arg, dim3 grid,
                              dim3 block, unsigned smem) {
    launcher_note();
    kernel_name = name;
    entry = fn;
    entry_arg = arg;
    grid_dim = grid;
    block_dim = block;
    n_threads = block.x * block.y * block.z;
    dyn_bytes = smem;
    crash_watch();
    run_grid();
    crash_unwatch();
    self = NULL;
}

// Returns the error with which a device refuses such a launch.
inline cudaError_t refusal(const void *kernel, dim3 grid, dim3 block, unsigned smem) {
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (!threads || threads > MAX_THREADS || block.z > 64) return cudaErrorInvalidConfiguration;
    if (!grid.x || !grid.y || !grid.z || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
        return cudaErrorInvalidConfiguration;
    if (smem > emu_allowed_shared(kernel)) return cudaErrorInvalidValue;
    return cudaSuccess;
}

// A queued launch. The arguments are copied when it is queued, after conversion to the types of the
// parameters.
template <class... P> struct queued {
    void (*kernel)(P...);
    std::tuple<P...> args;
    const char *name;
    dim3 grid, block;
    unsigned smem;

    static void call(void *p) {
        auto *q = (queued *)p;
        std::apply(q->kernel, q->args);
    }
    static void run(void *p) {
        auto *q = (queued *)p;
        launch(q->name, call, q, q->grid, q->block, q->smem);
    }
    static void drop(void *p) { delete (queued *)p; }
};

template <class... P, class... A>
inline cudaError_t submit(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                          uint64_t smem, cudaStream_t stream, A &&...args) {
    static_assert(sizeof(std::tuple<P...>) <= 4096, "a kernel's parameters take at most 4 KiB");
    if (smem > SHARED_MAX) return cudaErrorInvalidValue;
    const cudaError_t no = refusal((const void *)kernel, grid, block, (unsigned)smem);
    if (no != cudaSuccess) return no;
    return emu_enqueue(queued<P...>::run,
                       new queued<P...>{kernel, std::tuple<P...>(std::forward<A>(args)...), name,
                                        grid, block, (unsigned)smem},
                       queued<P...>::drop, stream);
}

template <class... P> inline cudaError_t allow_shared(void (*kernel)(P...), uint64_t bytes) {
    return emu_allow_shared((const void *)kernel, bytes);
}

} // namespace emu

#define threadIdx (emu::self->tid)
#define blockIdx  emu::block_idx
#define blockDim  emu::block_dim
#define gridDim   emu::grid_dim

#define ALLOW_SHARED(kernel, bytes) emu::allow_shared(kernel, (bytes))
#define LAUNCH(kernel, grid, block, smem, stream, ...)                                             \
    emu::submit(#kernel, kernel, (grid), (block), (uint64_t)(smem), (stream), __VA_ARGS__)

#endif
