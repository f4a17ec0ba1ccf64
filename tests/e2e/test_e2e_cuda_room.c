// test_e2e_cuda_room.c: a run that does not fit on the card, on the CUDA backend in its emulation.
#include "cuda.h"

#include <stdio.h>
#include <string.h>

static int install(void **state) {
    if (e2e_setup(state)) return 1;
    e2e_cuda_install(*state);
    return 0;
}

// A model that does not fit on the card is refused before it is loaded, and the message has the
// card's numbers. Setup succeeds for the same model on a card with more memory, and for a smaller
// model on this card.
static void llama_that_does_not_fit(void **state) {
    struct e2e *t = *state;
    static const char *const sizes[][2] = {{"64", "96"}, {"1024", "4096"}};
    for (int big = 0; big < 2; big++) {
        char config[640];
        snprintf(config, sizeof config,
                 "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], "
                 "\"vocab_size\": 260, \"max_position_embeddings\": 64, \"hidden_size\": %s, "
                 "\"intermediate_size\": %s, \"num_hidden_layers\": 8, \"num_attention_heads\": "
                 "8, \"num_key_value_heads\": 2, \"rms_norm_eps\": 1e-05, \"hidden_act\": "
                 "\"silu\", \"initializer_range\": 0.02, \"tie_word_embeddings\": false, "
                 "\"rope_theta\": 10000.0, \"bos_token_id\": 259, \"eos_token_id\": 259}",
                 sizes[big][0], sizes[big][1]);
        assert_int_equal(e2e_shell(t, "cp -r model llama%d", big), 0);
        e2e_write(t, big ? "llama1/config.json" : "llama0/config.json", config);
    }
#define LLAMA                                                                                      \
    CUDA_HOST " --algo grpo.so:group_size=2 --reward period_count.so --prompts prompts.txt --set " \
              "policy.init=random --set sampling.max_new_tokens=5 --set batch.size=4 --threads 1 " \
              "--phases 1 --set compute.dtype=f32 --set compute.backend=cuda "
    assert_int_equal(e2e_shell(t, "RLHF_FAKE_CUDA=memory=1G " LLAMA "--policy llama1 --out x"), 2);
    e2e_says(t, " of memory are needed on the GPU, ");
    e2e_says(t, " of 1.00 GiB are free: policy ");
    e2e_says(t, "(weights 4");
    e2e_says(t, "or compute.backend=cpu");
    assert_null(strstr(t->out, "host ")); // rows and copies are not on the card
    assert_false(e2e_exists(t, "x"));
    assert_int_equal(e2e_shell(t, "RLHF_FAKE_CUDA=memory=64G " LLAMA "--policy llama1 --dry-run"),
                     0);
    assert_int_equal(e2e_shell(t, "RLHF_FAKE_CUDA=memory=1G " LLAMA "--policy llama0 --dry-run"),
                     0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(llama_that_does_not_fit, install, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_cuda_room", tests, NULL, NULL);
}
