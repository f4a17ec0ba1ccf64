// fake_backend.h: the CUDA backend on the fake runtime, loaded and opened for a test.
#ifndef RLHF_TESTS_CUDA_FAKE_BACKEND_H
#define RLHF_TESTS_CUDA_FAKE_BACKEND_H

#include <rlhf/test.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>
extern "C" {
#include "support/check.h"
}

// Configures the fake runtime that the backend uses. It is a separate copy from the one in this
// executable.
inline bool (*fake)(const char *);
inline uint64_t (*calls)(void), (*in_use)(void), (*pending)(void);
inline const rlhf_plugin *kernels;

struct backend {
    rlhf_test_backend of;
    rlhf_compute *c; // its table
    void *ctx;
};

template <class F> void find(void *so, const char *name, F *f) {
    void *p = dlsym(so, name);
    if (!p) fail_msg("%s", dlerror());
    memcpy(f, &p, sizeof p);
}
inline int load(void **) {
    const std::string path =
        std::string(getenv("RLHF_BUILD_DIR")) + "/tests/cuda/kernels_cuda_emu.so";
    kernels = rlhf_test_backend_load(path.c_str());
    void *so = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!kernels || !so) fail_msg("%s cannot be loaded", path.c_str());
    find(so, "rlhf__fake_cuda", &fake);
    find(so, "rlhf__fake_cuda_calls", &calls);
    find(so, "rlhf__fake_cuda_bytes", &in_use);
    find(so, "rlhf__fake_cuda_pending", &pending);
    return 0;
}

inline rlhf_status open_on(backend *b, uint32_t guard, uint64_t workspace, uint32_t gpu) {
    rlhf_kernels_open o = {};
    o.size = sizeof o;
    o.guard = guard;
    o.gpu = gpu;
    o.workspace_bytes = workspace;
    const rlhf_status st = rlhf_test_backend_open(&b->of, kernels, &o);
    b->c = b->of.c;
    b->ctx = b->c ? b->c->ctx : NULL;
    return st;
}
inline backend *make(uint32_t guard, uint64_t workspace = 0, uint32_t gpu = 0) {
    backend *b = new backend();
    if (open_on(b, guard, workspace, gpu) < 0) fail_msg("open: %s", b->of.said);
    return b;
}
inline void end(backend *b) {
    rlhf_test_backend_close(&b->of);
    delete b;
}
// Returns the answer of describe() for card `gpu`.
inline std::string described(uint32_t gpu) {
    rlhf_test_backend b;
    const char *json = NULL;
    assert_int_equal(rlhf_test_backend_open(&b, kernels, NULL), RLHF_OK);
    assert_int_equal(b.ops->describe(b.self, gpu, &json), RLHF_OK);
    const std::string text = json;
    rlhf_test_backend_close(&b);
    return text;
}
inline int setup(void **state) {
    assert_true(fake(""));
    *state = make(0);
    return 0;
}
inline int teardown(void **state) {
    backend *b = (backend *)*state;
    fake("");
    end(b);
    if (in_use()) fail_msg("%llu bytes of device memory are left", (unsigned long long)in_use());
    return 0;
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        const rlhf_status st_ = (call);                                                            \
        if (st_ != RLHF_OK) fail_msg("%s: %d, %s", #call, st_, b->of.said);                        \
    } while (0)
#define SAYS(text)                                                                                 \
    if (!strstr(b->of.said, (text))) fail_msg("\"%s\" is not in \"%s\"", (text), b->of.said)

inline rlhf_dev take(backend *b, uint64_t bytes) {
    rlhf_dev p = NULL;
    OK(b->c->alloc(b->ctx, bytes, &p));
    return p;
}
inline std::vector<float> numbers(size_t n, float from) {
    std::vector<float> v(n);
    for (size_t i = 0; i < n; i++)
        v[i] = from + (float)(i % 1000);
    return v;
}
inline void same(backend *b, rlhf_dev p, const std::vector<float> &want) {
    std::vector<float> got(want.size());
    OK(b->c->download(b->ctx, got.data(), p, got.size() * 4));
    assert_memory_equal(got.data(), want.data(), got.size() * 4);
}

#endif
