// test_e2e_cublaslt.c: runs whose GEMMs use a fake of cuBLASLt. With a correct library, runs are
// exact. If the library's result for a row depends on other rows, the canary detects this. The
// backend then uses its own kernels and logs this, so the run is exact again.
#include "cuda.h"

#include <stdio.h>
#include <string.h>

#define ARGS                                                                                       \
    "--policy model --set policy.init=random --set log.samples_every=0 --set "                     \
    "log.tensorboard=false --set log.progress=off --threads 1 --phases 2 --prompts prompts.txt "   \
    "--set sampling.max_new_tokens=5 --set batch.size=4 --set algo.group_size=2 --set "            \
    "batch.microbatch_tokens=64 --reward period_count.so --algo grpo.so --set "                    \
    "compute.backend=cuda "

static int install(void **state) {
    if (e2e_setup(state)) return 1;
    e2e_cuda_install(*state);
    return 0;
}

#define LIBRARY "RLHF_CUBLASLT=\"$(dirname \"$(dirname \"$HOST\")\")\"/tests/cuda/fake_cublaslt.so "

static void run(struct e2e *t, int seed, const char *mode, const char *dtype, const char *out) {
    const int status = e2e_shell(
        t, "EMU_SEED=%d FAKE_LT=%s " LIBRARY CUDA_HOST " --out %s " ARGS "--set compute.dtype=%s",
        seed, mode, out, dtype);
    if (status) fail_msg("exit status %d:\n%s", status, t->out);
}

// Log-probs of sampling and training agree to the bit, and two runs give the same bytes. The log
// names the library.
static void exact(struct e2e *t, const char *mode, const char *dtype, int taken_over) {
    run(t, 2, mode, dtype, "b");
    run(t, 1, mode, dtype, "a");
    e2e_says(t, "cuBLASLt 13.1.0, products in ");
    if (taken_over) {
        e2e_says(t, "cuBLASLt 13.1.0; own products for shapes, ");
        e2e_says(t, " on which it is not row exact");
    } else if (strstr(t->out, "own products"))
        fail_msg("all are the library's:\n%s", t->out);
    json_t *rows = e2e_metrics(t, "a");
    assert_int_equal(json_array_size(rows), 2);
    assert_true(e2e_metric(rows, 0, "sampling/logp_difference/max") == 0);
    assert_true(e2e_metric(rows, 1, "sampling/logp_difference/max") == 0);
    json_decref(rows);
    e2e_same_tree(t, "a/checkpoints", "b/checkpoints");
}

static void honest(void **state) { exact(*state, "honest", "bf16", 0); }
static void hostile(void **state) { exact(*state, "hostile", "f32", 1); }

static void goes_on(struct e2e *t, const char *mode, int phases) {
    const int status = e2e_shell(
        t, "FAKE_LT=%s " LIBRARY CUDA_HOST " --resume a --set run.phases=%d", mode, phases);
    if (status) fail_msg("exit status %d:\n%s", status, t->out);
}

#define SAID "goes on with GPU 0, "

// If the version of the library has changed, the run reports the new version once and stores it in
// the manifest. New shapes do not count as a change.
static void another_version(void **state) {
    struct e2e *t = *state;
    const int status =
        e2e_shell(t, "FAKE_LT=hostile " LIBRARY CUDA_HOST
                     " --out a --policy model --set policy.init=random --set "
                     "log.samples_every=0 --set log.tensorboard=false --set log.progress=off "
                     "--threads 1 --phases 1 --set optim.schedule_phases=9 --set batch.size=2 "
                     "--algo sft.so --data texts.jsonl --set compute.dtype=f32");
    if (status) fail_msg("exit status %d:\n%s", status, t->out);
    goes_on(t, "honest", 2);
    if (strstr(t->out, SAID)) fail_msg("nothing changed:\n%s", t->out);
    goes_on(t, "newer", 3);
    e2e_says(t, "the run was computed by cuda with GPU 0, ");
    e2e_says(t, "cuBLASLt 13.1.0 and " SAID);
    e2e_says(t, "cuBLASLt 13.2.0: each gives the same bits every time, but perhaps not those of "
                "the other");
    if (e2e_shell(t, "grep -q '\"earlier\"' a/manifest.json")) fail_msg("the manifest forgot");
    goes_on(t, "newer", 4); // the version was stored
    if (strstr(t->out, SAID)) fail_msg("nothing changed:\n%s", t->out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(honest, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(hostile, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(another_version, install, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_cublaslt", tests, NULL, NULL);
}
