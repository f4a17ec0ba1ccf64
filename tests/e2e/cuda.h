// cuda.h: installs the program with the emulated CUDA backend as its kernels_cuda.so.
#ifndef E2E_CUDA_H
#define E2E_CUDA_H

#include "e2e.h"

#include <stdlib.h>

// Paths below t->dir after e2e_cuda_install: the program, and the file of the backend.
#define CUDA_HOST "gpu/bin/rlhf-host"
#define CUDA_SO   "gpu/lib/rlhf/1/kernels/kernels_cuda.so"

// Creates gpu/ in t->dir, with the program, links to the files that it opens, and the emulated
// backend as kernels_cuda.so. RLHF_FAKE_CUDA describes the fake machine
// (tests/cuda/fake_runtime.h). CUDA_VISIBLE_DEVICES names a card; without it the program would not
// look for one.
static inline void e2e_cuda_install(struct e2e *t) {
    const int status = e2e_shell(
        t,
        "b=$(dirname \"$(dirname \"$HOST\")\") && l=gpu/lib/rlhf/1 && "
        "mkdir -p gpu/bin $l/kernels && cp \"$HOST\" gpu/bin/ && "
        "ln -s \"$b\"/share gpu/share && ln -s \"$b\"/lib/rlhf/1/kernels/*.so "
        "$l/kernels/ && for k in algos models rewards sinks; do ln -s "
        "\"$b\"/lib/rlhf/1/$k $l/; done && ln -sf \"$b\"/tests/cuda/kernels_cuda_emu.so " CUDA_SO);
    if (status) fail_msg("no installation: %s", t->out);
    setenv("RLHF_TEST_CARDS", "0", 1);
}

#endif
