// compute.c: the compute table of rlhf/test.h. Its functions call the reference backend. A test can
// make them fail.
#include <rlhf/reference.h>
#include <rlhf/test.h>

rlhf_compute *rlhf_test_compute(struct rlhf_test_host *t, uint32_t guard) {
    const rlhf_kernels_open options = {.size = (uint32_t)sizeof options, .guard = guard};
    rlhf_compute *c = NULL;
    return rlhf_reference_open(&t->table, &options, &c) < 0 ? NULL : c;
}

void rlhf_test_compute_end(rlhf_compute *c) { rlhf_reference_close(c); }

void rlhf_test_fail_op(rlhf_compute *c, int64_t n, int32_t on) {
    rlhf_reference_fail_at(c->ctx, n, on);
}

int64_t rlhf_test_ops(const rlhf_compute *c) { return rlhf_reference_calls(c->ctx); }
