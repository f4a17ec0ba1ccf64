// test_gguf_rotary.c: rotary positions in GGUF files. Checks which field of config.json takes
// precedence, and that the frequencies are those of the model.
#include "gguf_model.h"

#include "option/options.h"
#include "transformer/decoder.h"

#include <math.h>

// A config may have old and new fields. The exporter uses the same fields as the program does when
// it loads the model.
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
        rlhf__buf_finish(&r.out);
        rlhf__buf_finish(&config);
        model_end(&m);
    }
}

// Llama 3's bands depend on the original context, original_max_position_embeddings. The field at
// the top level takes precedence over the field in rope_parameters. If the chosen field is missing
// or 0, the model's context is used.
static void llama3_context(void **state) {
    static const struct {
        const char *fields;
        double divisor; // divisor of the second frequency, whose wavelength is 18.85
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
        rlhf__buf_finish(&r.out);
        rlhf__buf_finish(&config);
        model_end(&m);
    }
}

// ---- how the model reads the config ----

static void *host_alloc(const rlhf_host *h, uint64_t n) {
    (void)h;
    return calloc(1, n);
}
static void host_free(const rlhf_host *h, void *p) {
    (void)h;
    free(p);
}

// Computes the frequencies that the model plugins use.
static void of_model(const json_t *config, int32_t dim, struct rlhf_tf_rotary *out) {
    static const rlhf_host host = {.size = sizeof host, .alloc = host_alloc, .free = host_free};
    static const struct rlhf_tf_family family = {0};
    const struct rlhf__origin from = {.source = "config.json", .section = "", .lenient = 1};
    struct rlhf__opt_table t;
    struct rlhf__strings strings = {0};
    struct rlhf__error err = {0, ""};
    void *c = NULL;
    int32_t context;
    check_ok(rlhf__opt_table_init(&t, rlhf_tf_decoder_opts, RLHF_TF_N_DECODER_OPTS,
                                  sizeof(rlhf_opt), &err),
             &err);
    check_ok(rlhf__opts_new(&t, sizeof(struct rlhf_tf_decoder), config, &from, &strings, &c, &err),
             &err);
    assert_int_equal(rlhf_tf_rotary_read(&host, c, &family, dim, out, &context), RLHF_OK);
    free(c);
    rlhf__strings_finish(&strings);
}

static double key(const char *head, const char *name, double absent) {
    const char *at = strstr(head, name);
    return at ? strtod(at + strlen(name), NULL) : absent;
}

static double pair_of(double context, double base, double turns, int32_t dim) {
    return dim * log(context / (turns * 2 * 3.14159265358979323846)) / (2 * log(base));
}

// Interprets the keys as llama.cpp does: ggml_rope_yarn, and rope_freqs as divisors. Sets *scale to
// the scale of the attention.
static void of_keys(const char *head, const float *divisor, int32_t dim, double *out,
                    double *scale) {
    const double base = key(head, "rope.freq_base 6 ", 0),
                 factor = key(head, "scaling.factor 6 ", 1);
    const double context = key(head, "scaling.original_context_length 4 ", 0);
    const double low = floor(pair_of(context, base, key(head, "yarn_beta_fast 6 ", 32), dim));
    const double high = ceil(pair_of(context, base, key(head, "yarn_beta_slow 6 ", 1), dim));
    *scale = 1;
    for (int32_t i = 0; i < dim / 2; i++) {
        const double f = pow(base, -2.0 * i / dim);
        out[i] = strstr(head, "scaling.type 8 linear") ? f / factor
                                                       : f / (divisor ? (double)divisor[i] : 1);
        if (!strstr(head, "scaling.type 8 yarn")) continue;
        const double from = fmax(low, 0), to = fmin(high, dim - 1);
        const double ramp = fmin(fmax((i - from) / fmax(to - from, 0.001), 0), 1);
        out[i] = f / factor * ramp + f * (1 - ramp);
        *scale = factor > 1 ? 0.1 * log(factor) + 1 : 1;
    }
}

// For every form that a file can express, the keys give the model's frequencies.
static void as_the_model(void **state) {
#define BANDS "\"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0"
    static const char *const forms[] = {
        "",
        ", \"rope_theta\": 500000.0",
        ", \"rope_theta\": 1e14",
        ", \"rope_theta\": 500000.0, \"rope_scaling\": null",
        ", \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 7.0}, \"rope_theta\": "
        "9",
        ", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}",
        PARAMETERS ", \"rope_scaling\": {\"rope_theta\": 7}",
        PARAMETERS ", \"rope_scaling\": {\"beta_fast\": 7}",
        PARAMETERS ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 3.0}",
        ", \"rope_theta\": 100.0, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4.0, "
        "\"original_max_position_embeddings\": 8}",
        ", \"rope_theta\": 100.0, \"rope_scaling\": {\"type\": \"yarn\", "
        "\"original_max_position_embeddings\": 4, \"beta_fast\": 2, \"beta_slow\": 0.5}",
        ", \"rope_theta\": 100.0, \"original_max_position_embeddings\": 1000, \"rope_parameters\": "
        "{\"rope_type\": \"yarn\", \"factor\": 2.0, \"original_max_position_embeddings\": 4}",
        ", \"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 100.0, " BANDS
        ", \"original_max_position_embeddings\": 32}",
        ", \"original_max_position_embeddings\": 64, \"rope_scaling\": {\"type\": \"llama3\", "
        "\"rope_theta\": 100.0, " BANDS "}",
        ", \"rope_scaling\": {\"rope_type\": \"llama3\", " BANDS "}",
    };
    for (size_t i = 0; i < CHECK_COUNT(forms); i++) {
        enum { DIM = 4 };
        struct model m;
        struct reader r;
        struct rlhf_tf_rotary want = {0};
        size_t len;
        double got[DIM / 2], scale;
        float divisor[DIM / 2];
        struct rlhf__buf config = RLHF__BUF_INIT;
        rlhf__buf_printf(&config, "{" LLAMA "%s}", forms[i]);
        model_begin(&m, *state, rlhf__buf_text(&config), GPT2_FORM);
        model_add_llama(&m);
        const uint8_t *bytes = model_written(&m, &len);
        const char *head = reader_head(&r, bytes, len);
        const int bands = strstr(head, "rope_freqs.weight") != NULL;
        assert_true(bands == (strstr(forms[i], "llama3") != NULL));
        memcpy(divisor, r.end - 32, sizeof divisor);
        of_keys(head, bands ? divisor : NULL, DIM, got, &scale);
        of_model(m.m.config, DIM, &want);
        for (int k = 0; k < DIM / 2; k++)
            if (!(fabs(got[k] - want.frequency[k]) <= 1e-5 * want.frequency[k]))
                fail_msg("%s: frequency %d is %g in the file and %g in the model", forms[i], k,
                         got[k], want.frequency[k]);
        if (!(fabs(scale - want.scale) < 1e-6))
            fail_msg("%s: the scale is %g in the file and %g in the model", forms[i], scale,
                     want.scale);
        free(want.frequency);
        rlhf__buf_finish(&r.out);
        rlhf__buf_finish(&config);
        model_end(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rotary, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(llama3_context, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(as_the_model, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("gguf_rotary", tests, NULL, NULL);
}
