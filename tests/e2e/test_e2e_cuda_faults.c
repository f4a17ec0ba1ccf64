// test_e2e_cuda_faults.c: a GPU that fails before or during a run, or whose memory is full. The
// program prints one sentence and exits with status 1 without hanging. A run that is resumed from
// the last checkpoint has the same bytes as an undisturbed run.
#include "cuda.h"

#include <stdio.h>
#include <string.h>

#define SFT                                                                                        \
    "--algo sft.so --data growing.jsonl --policy model --set policy.init=random --phases 6 "       \
    "--set batch.size=1 --set data.shuffle=false --set checkpoint.every=2 --set "                  \
    "checkpoint.keep=0 --set "                                                                     \
    "log.tensorboard=false --set log.progress=off --set compute.backend=cuda --set "               \
    "compute.dtype=f32 --threads 1 "
#define ECC    214
#define LAUNCH 719
#define MEMORY 2

static int install(void **state) {
    if (e2e_setup(state)) return 1;
    struct e2e *t = *state;
    char rows[4096] = "", text[128] = "";
    e2e_cuda_install(t);
    for (int i = 0; i < 6; i++) { // 8 to 48 tokens: buffers grow with every phase
        strcat(text, " a a a a");
        snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "{\"text\": \"%s\"}\n", text);
    }
    e2e_write(t, "growing.jsonl", rows);
    int status = e2e_shell(t, CUDA_HOST " " SFT "--out whole");
    if (status) fail_msg("exit status %d:\n%s", status, t->out);
    return 0;
}

// Two calls of this run fail. One failed allocation would not be enough, because it is retried once
// the device has caught up.
static int broken_run(struct e2e *t, const char *call, int code, long n) {
    return e2e_shell(t, "rm -rf a; RLHF_FAKE_CUDA=fail=%s:%d@%ldx2 " CUDA_HOST " " SFT "--out a",
                     call, code, n);
}

// In every case the program prints one message, and this message ends the output.
static void one_sentence(const struct e2e *t, int status) {
    if (status != 1 && status != 2) fail_msg("status %d:\n%s", status, t->out);
    const char *first = strstr(t->out, "rlhf-host: error: ");
    if (!first || strstr(first + 1, "rlhf-host: error: ")) fail_msg("not one:\n%s", t->out);
}

// Repeats the run, with a later call failing each time, until a run prints `so_far`.
static void fails_after(struct e2e *t, const char *call, int code, const char *so_far) {
    for (long n = 16; n < 1000000; n += 1 + n / 8) {
        const int status = broken_run(t, call, code, n);
        if (status == 0) break;
        one_sentence(t, status);
        if (strstr(t->out, so_far)) return;
    }
    fail_msg("%s never failed after \"%s\" is true", call, so_far);
}

static void goes_on(struct e2e *t) {
    int status = e2e_shell(t, CUDA_HOST " --resume a");
    if (status) fail_msg("exit status %d:\n%s", status, t->out);
    e2e_same_tree(t, "whole/checkpoints/000006", "a/checkpoints/000006");
}

static void a_lost_device_ends_the_run(void **state) {
    struct e2e *t = *state;
    fails_after(t, "any", ECC, "2 phases are kept; go on: rlhf-host --resume a");
    e2e_says(t, "(CUDA error 214)");
    goes_on(t);
}

static void a_launch_that_fails_ends_the_run(void **state) {
    struct e2e *t = *state;
    fails_after(t, "launch", LAUNCH, "4 phases are kept; go on: rlhf-host --resume a");
    e2e_says(t, "(CUDA error 719)");
    goes_on(t);
}

// The card is full, but still works. So all finished phases are saved, even those after which no
// checkpoint was due.
static void a_full_card_loses_nothing(void **state) {
    struct e2e *t = *state;
    fails_after(t, "cudaMallocAsync", MEMORY, "3 phases are kept; go on: rlhf-host --resume a");
    e2e_says(t, "out of device memory: ");
    e2e_says(t, "; less is taken with a lower batch.microbatch_tokens (now ");
    goes_on(t);
}

// A failure of any call, even of the first, gives one sentence, without a crash or a hang.
static void a_failure_anywhere_is_a_sentence(void **state) {
    struct e2e *t = *state;
    for (long n = 1; n < 400; n += 1 + n / 3) {
        const int status = broken_run(t, "any", ECC, n);
        if (status != 0) one_sentence(t, status);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lost_device_ends_the_run, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_launch_that_fails_ends_the_run, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_full_card_loses_nothing, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_failure_anywhere_is_a_sentence, install, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_cuda_faults", tests, NULL, NULL);
}
