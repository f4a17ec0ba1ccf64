// test_gguf_rotary.c: rotary positions in GGUF files: which field of config.json goes first.
#include "gguf_model.h"

// Old fields and new ones in one config: which goes first is as where the model is loaded.
static void rotary(void **state) {
#define PARAMETERS                                                                                 \
    ", \"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 2.0, "                         \
    "\"rope_theta\": 9.0}"
    static const struct {
        const char *fields, *says;
    } cases[] = {
        {PARAMETERS ", \"rope_theta\": 5.0",
         "freq_base 6 9\nllama.rope.scaling.type 8 linear\nllama.rope.scaling.factor 6 2\n"},
        {PARAMETERS
         ", \"rope_theta\": 5.0, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}",
         "freq_base 6 5\nllama.rope.scaling.type 8 linear\nllama.rope.scaling.factor 6 4\n"},
        {PARAMETERS ", \"rope_scaling\": {\"rope_theta\": 7}", "freq_base 6 7\ntokenizer"},
        {PARAMETERS ", \"rope_scaling\": {\"beta_fast\": 7}",
         "freq_base 6 9\nllama.rope.scaling.type 8 linear\nllama.rope.scaling.factor 6 2\n"},
        {", \"original_max_position_embeddings\": 8, \"rope_scaling\": {\"type\": \"yarn\", "
         "\"original_max_position_embeddings\": 4, \"factor\": 3}",
         "scaling.factor 6 3\nllama.rope.scaling.original_context_length 4 8\n"
         "llama.rope.scaling.yarn_beta_fast 6 32\nllama.rope.scaling.yarn_beta_slow 6 1\n"},
        {", \"rope_scaling\": {\"type\": \"yarn\", \"original_max_position_embeddings\": 4, "
         "\"beta_fast\": 30, \"beta_slow\": 0}",
         "scaling.factor 6 4\nllama.rope.scaling.original_context_length 4 4\n"
         "llama.rope.scaling.yarn_beta_fast 6 30\nllama.rope.scaling.yarn_beta_slow 6 1\n"},
        {", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2.0}",
         "scaling.factor 6 2\nllama.rope.scaling.original_context_length 4 16\n"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        struct reader r;
        size_t len;
        struct rlhf__buf config = RLHF__BUF_INIT;
        rlhf__buf_printf(&config, "{" LLAMA "%s}", cases[i].fields);
        model_begin(&m, *state, rlhf__buf_text(&config), GPT2_FORM);
        model_add_llama(&m);
        const uint8_t *bytes = model_written(&m, &len);
        const char *got = reader_head(&r, bytes, len);
        if (!strstr(got, cases[i].says)) fail_msg("%s: %s", cases[i].fields, got);
        rlhf__buf_free(&r.out);
        rlhf__buf_free(&config);
        model_end(&m);
    }
}

// Llama 3's bands with the context of the top level, which goes first, and of the model, which
// stands in.
static void llama3_context(void **state) {
    static const struct {
        const char *fields;
        double divisor; // of the second frequency: waves of 18.85
    } cases[] = {
        {", \"original_max_position_embeddings\": 32, ", 3.044306},
        {", \"original_max_position_embeddings\": 0, ", 8},
        {", ", 8},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        struct reader r;
        size_t len;
        struct rlhf__buf config = RLHF__BUF_INIT;
        rlhf__buf_printf(&config,
                         "{" LLAMA "%s\"rope_parameters\": {\"rope_type\": \"llama3\", "
                         "\"rope_theta\": 9.0, \"factor\": 8.0, \"low_freq_factor\": 1.0, "
                         "\"high_freq_factor\": 4.0%s}}",
                         cases[i].fields, i ? "" : ", \"original_max_position_embeddings\": 4096");
        model_begin(&m, *state, rlhf__buf_text(&config), GPT2_FORM);
        model_add_llama(&m);
        const uint8_t *bytes = model_written(&m, &len);
        reader_head(&r, bytes, len);
        float divisor[2];
        memcpy(divisor, r.end - 32, sizeof divisor);
        assert_float_equal(divisor[1], cases[i].divisor, 1e-5);
        rlhf__buf_free(&r.out);
        rlhf__buf_free(&config);
        model_end(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rotary, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(llama3_context, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("gguf_rotary", tests, NULL, NULL);
}
