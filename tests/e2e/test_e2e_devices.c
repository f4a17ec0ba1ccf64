// test_e2e_devices.c: how the program detects the machine's devices: rlhf-host devices,
// compute.backend=auto and compute.gpu. If something that a GPU needs is missing, the program
// prints one sentence.
#include "cuda.h"

#include <stdio.h>
#include <string.h>

#define SFT                                                                                        \
    "--algo sft.so --data texts.jsonl --policy model --set policy.init=random "                    \
    "--set batch.size=2 --set run.phases=1 --set log.tensorboard=false --threads 1 "

static int install(void **state) {
    if (e2e_setup(state)) return 1;
    e2e_cuda_install(*state);
    return 0;
}

static void lacks(const struct e2e *t, const char *text) {
    if (strstr(t->out, text)) fail_msg("\"%s\" is in:\n%s", text, t->out);
}

static json_t *list(struct e2e *t, const char *env) {
    assert_int_equal(e2e_shell(t, "%s " CUDA_HOST " devices --json", env), 0);
    json_t *rows = json_loads(t->out, 0, NULL);
    if (!json_is_array(rows)) fail_msg("no JSON list: %s", t->out);
    return rows;
}

static const char *text(const json_t *rows, size_t i, const char *key) {
    const char *s = json_string_value(json_object_get(json_array_get(rows, i), key));
    return s ? s : "";
}

static void every_card_is_listed(void **state) {
    struct e2e *t = *state;
    json_t *rows = list(t, "RLHF_FAKE_CUDA=devices=2,memory=2G");
    assert_int_equal(json_array_size(rows), 4);
    static const char *const backends[] = {"cpu", "reference", "cuda", "cuda"};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(text(rows, i, "backend"), backends[i]);
        assert_string_equal(text(rows, i, "missing"), "");
        assert_true(json_integer_value(json_object_get(json_array_get(rows, i), "memory")) > 0);
    }
    const json_t *second = json_array_get(rows, 3);
    assert_int_equal(json_integer_value(json_object_get(second, "gpu")), 1);
    assert_int_equal(json_integer_value(json_object_get(second, "memory_free")),
                     (json_int_t)2 << 30);
    assert_string_equal(text(rows, 3, "name"), "Emulated GPU");
    assert_string_equal(text(rows, 3, "compute_capability"), "9.0");
    json_decref(rows);
    assert_int_equal(e2e_shell(t, "RLHF_FAKE_CUDA=devices=2 " CUDA_HOST " devices"), 0);
    e2e_says(t, "cuda 1     Emulated GPU, 8.0 of 8.0 GiB free, compute capability 9.0, driver");
    assert_int_equal(e2e_shell(t, CUDA_HOST " devices --backend nothing"), 0);
    e2e_says(t, "not usable: no compute backend 'nothing'");
}

// `env` simulates the faults of the machine. `tells` is set if a user of such a machine sees the
// message.
static const struct {
    const char *env, *sentence;
    int tells;
} lacking[] = {
    {"RLHF_FAKE_CUDA=driver=0", "there is no NVIDIA driver (libcuda.so.1 cannot be loaded)", 0},
    {"RLHF_FAKE_CUDA=driver=11040",
     "CUDA 11.4), older than the CUDA 13.0 that this backend was built with", 1},
    {"RLHF_FAKE_CUDA=devices=0", "the NVIDIA driver sees no card", 1},
    {"RLHF_FAKE_CUDA=sm=75", "compute capability 7.5; 8.0 and newer are supported", 1},
};

static void what_is_missing_is_one_sentence(void **state) {
    struct e2e *t = *state;
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++) {
        char sentence[128];
        snprintf(sentence, sizeof sentence, "%s", lacking[i].sentence);
        // A machine with an NVIDIA driver prints its version before the bracket.
        char *from = strstr(sentence, "), older") ? strstr(sentence, ", older") : sentence;
        json_t *rows = list(t, lacking[i].env);
        assert_int_equal(json_array_size(rows), 3);
        if (!strstr(text(rows, 2, "missing"), from))
            fail_msg("%s: %s", lacking[i].env, text(rows, 2, "missing"));
        json_decref(rows);
        // If the user named a backend that cannot be used, the program ends. If the backend was
        // chosen automatically, the program uses the CPU instead.
        assert_int_equal(e2e_shell(t, "%s " CUDA_HOST " " SFT "--set compute.backend=cuda --out a",
                                   lacking[i].env),
                         2);
        e2e_says(t, from);
        assert_false(e2e_exists(t, "a"));
        assert_int_equal(e2e_shell(t, "%s " CUDA_HOST " " SFT "--out b%zu", lacking[i].env, i), 0);
        e2e_says(t, "compute: cpu, ");
        if (lacking[i].tells) e2e_says(t, from);
        assert_int_equal(e2e_shell(t, "%s " CUDA_HOST " " SFT "--set log.level=debug --out c%zu",
                                   lacking[i].env, i),
                         0);
        e2e_says(t, from);
        assert_int_equal(e2e_shell(t, "grep -q '\"backend\": \"cpu\"' b%zu/config.json", i), 0);
    }
}

// Without a CUDA backend and a card, the run uses the CPU and prints no message.
static void a_machine_without_a_card_is_not_bothered(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "rm " CUDA_SO " && " CUDA_HOST " " SFT "--out a"), 0);
    e2e_says(t, "compute: cpu, ");
    if (e2e_shell(t, "cat /sys/bus/pci/devices/*/vendor | grep -q 0x10de") != 0) {
        assert_int_equal(e2e_shell(t, CUDA_HOST " " SFT "--out b"), 0);
        lacks(t, "GPU");
    }
    assert_int_equal(e2e_shell(t, CUDA_HOST " " SFT "--set log.level=debug --out c"), 0);
    e2e_says(t, "; no GPU: rlhf-host was built without the CUDA backend");
    assert_int_equal(e2e_shell(t, CUDA_HOST " " SFT "--set compute.backend=cpu --out d"), 0);
    e2e_same_tree(t, "a/checkpoints", "d/checkpoints");
    assert_int_equal(e2e_shell(t, CUDA_HOST " devices"), 0);
    e2e_says(t, "not usable: the CUDA backend was not built");
    assert_int_equal(e2e_shell(t, CUDA_HOST " " SFT "--set compute.backend=cuda --out e"), 2);
    e2e_says(t, "error: the CUDA backend was not built; build rlhf-host where CUDA's nvcc is");
    assert_int_equal(e2e_shell(t, CUDA_HOST " generate --model model --prompt a --backend cuda"),
                     2);
    e2e_says(t, "error: the CUDA backend was not built; build rlhf-host where CUDA's nvcc is");
}

static void a_backend_that_is_not_there_is_refused(void **state) {
    struct e2e *t = *state;
    static const char *const names[] = {"cud", "GPU", "kernels_cpu.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[128];
        assert_int_equal(e2e_run(t, SFT "--set compute.backend=%s --out a", names[i]), 2);
        snprintf(text, sizeof text, "no compute backend '%s'; allowed are auto, cpu, cuda, ",
                 names[i]);
        e2e_says(t, text);
        e2e_says(t, "reference and a path with a '/' (no file '");
        assert_false(e2e_exists(t, "a"));
    }
    assert_int_equal(e2e_run(t, SFT "--set compute.backend=./cpu --out a"), 2);
    e2e_says(t, "no compute backend './cpu': the file './cpu' does not exist");
    // In `run`, this is a setting. Other commands have a flag for it.
    assert_int_equal(e2e_run(t, SFT "--backend cpu --out a"), 2);
    e2e_says(t, "unknown option \"--backend\"; here it is --set compute.backend=");
    assert_int_equal(e2e_run(t, SFT "--gpu 0 --out a"), 2);
    e2e_says(t, "unknown option \"--gpu\"; here it is --set compute.gpu=");
    assert_int_equal(e2e_shell(t, "\"$HOST\" devices --backend auto"), 0); // auto is not a backend
    e2e_says(t, "no compute backend 'auto'; allowed are cpu, cuda, reference and a path");
    assert_int_equal(e2e_run(t, "plugin list --gpu 0"), 2);
    lacks(t, "here it is");
}

static void a_card_that_is_not_there_is_refused(void **state) {
    struct e2e *t = *state;
    static const char *const backends[] = {"", "--set compute.backend=cuda ",
                                           "--set compute.backend=" CUDA_SO " "};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(e2e_shell(t,
                                   "RLHF_FAKE_CUDA=devices=2 " CUDA_HOST " " SFT
                                   "--set compute.gpu=7 %s--out a",
                                   backends[i]),
                         2);
        e2e_says(t, "gpu is 7, but there are 2 cards, 0 to 1");
        assert_false(e2e_exists(t, "a"));
    }
    assert_int_equal(e2e_shell(t, CUDA_HOST " " SFT "--set compute.gpu=1 --out a"), 2);
    e2e_says(t, "gpu is 1, but there is one card, 0");
    // compute.gpu has no effect on the CPU, whether the CPU was named or detected.
    assert_int_equal(
        e2e_run(t, SFT "--set compute.backend=cpu --set compute.gpu=1 --set run.dir=a"), 2);
    e2e_says(t, "compute.gpu has no effect here: no GPU is used");
    assert_int_equal(e2e_shell(t, "RLHF_FAKE_CUDA=driver=0 " CUDA_HOST " " SFT
                                  "--set compute.gpu=1 --set run.dir=a"),
                     2);
    e2e_says(t, "compute.gpu has no effect here: no GPU is used");
    e2e_says(t, "; no GPU: there is no NVIDIA driver"); // printed because the user named a card
    assert_int_equal(e2e_shell(t, "RLHF_FAKE_CUDA=driver=0 " CUDA_HOST
                                  " generate --model model --prompt a --gpu 1"),
                     2);
    e2e_says(t, "no GPU is used: there is no NVIDIA driver");
    assert_int_equal(e2e_run(t, "generate --model model --prompt a --backend cpu --gpu 1"), 2);
    e2e_says(t, "--gpu has no effect here: no GPU is used");
}

// An invalid environment variable is refused in every case: with and without a card, named or not.
static void a_variable_of_nonsense_is_refused(void **state) {
    struct e2e *t = *state;
    static const char *const cards[] = {"devices=1", "driver=0"};
    static const char *const backends[] = {"auto", "cuda"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(e2e_shell(t,
                                   "RLHF_FAKE_CUDA=%s RLHF_CUDA_LT=fast " CUDA_HOST " " SFT
                                   "--set compute.backend=%s --out a",
                                   cards[i % 2], backends[i / 2]),
                         2);
        e2e_says(t, "RLHF_CUDA_LT is \"fast\", allowed are off, force, free");
        assert_false(e2e_exists(t, "a"));
    }
}

// A model with 2 blocks of width 32, a vocabulary of 260 tokens and 64 positions has 35,840
// parameters. Each parameter takes 18 or 20 bytes.
static void a_model_that_does_not_fit_is_refused(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "RLHF_FAKE_CUDA=memory=600K " CUDA_HOST " " SFT
                                  "--set compute.backend=cuda --out a"),
                     2);
    e2e_says(t, "of memory are needed on the GPU");
    e2e_says(t, "(weights 140 KiB, packed weights ");
    e2e_says(t, "less is taken with a lower batch.microbatch_tokens (now ");
    assert_false(e2e_exists(t, "a"));
    assert_int_equal(e2e_shell(t, "RLHF_FAKE_CUDA=memory=600K " CUDA_HOST " " SFT "--out a"), 0);
    e2e_says(t, "compute: cpu, ");
    e2e_says(t, "; no GPU: the policy '");
}

// A process that has called CUDA must not fork and use CUDA afterwards. So the program calls CUDA
// only in a child process. The fake runtime can end that process at its first call.
static void forks_come_before_cuda(void **state) {
    struct e2e *t = *state;
#define NONSENSE "RLHF_FAKE_CUDA=nonsense " CUDA_HOST " "
    assert_int_equal(e2e_shell(t, NONSENSE "plugin list"), 0);
    assert_int_equal(e2e_shell(t, NONSENSE "plugin info ppo.so"), 0);
    assert_int_equal(e2e_shell(t, NONSENSE "--algo ppo.so --reward period_count.so "
                                           "--print-config"),
                     0);
    assert_int_equal(e2e_shell(t, NONSENSE "devices"), 0);
    e2e_says(t, "not usable: cuda: crashed while being loaded (signal 6");
    assert_int_equal(e2e_shell(t, NONSENSE SFT "--out a"), 134); // this command calls CUDA
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_card_is_listed, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(what_is_missing_is_one_sentence, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_machine_without_a_card_is_not_bothered, install,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(a_card_that_is_not_there_is_refused, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_backend_that_is_not_there_is_refused, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(forks_come_before_cuda, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_variable_of_nonsense_is_refused, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_model_that_does_not_fit_is_refused, install,
                                        e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_devices", tests, NULL, NULL);
}
