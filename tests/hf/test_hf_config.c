// test_hf_config.c: fields of config.json and generation_config.json that concern every model:
// fields that are refused because of their value, and the tokens that end a text.
#include "kit.h"

#include "base/json.h"

// Asserts that opening the variant fails as bad input, with a message that contains `part`.
static void refused(const struct hf *f, const char *name, const char *patch, int32_t n_labels,
                    const char *part) {
    struct rlhf__error err = {0};
    struct rlhf__model *m = NULL;
    struct rlhf__model_spec spec = {
        .dir = hf_variant(f, name, patch), .role = "policy", .n_labels = n_labels};
    rlhf_status st = rlhf__model_open(&f->session.models, &spec, &m, &err);
    if (rlhf__exit_status(st) != 2) fail_msg("%s: status %d %s", patch, st, err.text);
    if (!strstr(err.text, part))
        fail_msg("%s: \"%s\" (expected \"%s\" in it)", patch, err.text, part);
    assert_null(m);
}

static void fields_of_every_model(void **state) {
    static const struct {
        const char *patch, *part;
    } cases[] = {
        {"{\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4}}",
         "config.json: quantization_config: quantized weights (gptq) are not read; take the model "
         "in float32, float16 or bfloat16"},
        {"{\"quantization_config\": {\"load_in_4bit\": true}}", "(bitsandbytes, 4 bit) are not"},
        {"{\"quantization_config\": {}}", "quantized weights (by no method that it names)"},
        {"{\"dtype\": \"float8_e4m3fn\"}",
         "dtype is 'float8_e4m3fn'; allowed: float32, float16, bfloat16"},
        {"{\"dtype\": 16}", "dtype is an integer; allowed: float32"},
        {"{\"dtype\": null, \"torch_dtype\": \"int8\"}", "torch_dtype is 'int8'; allowed"},
        {"{\"dtype\": \"float32\", \"torch_dtype\": \"float16\"}",
         "dtype is 'float32' but torch_dtype 'float16'; one thing has two names"},
        {"{\"architectures\": [\"GPT2ForTokenClassification\"]}",
         "architectures: a GPT2ForTokenClassification is not used here; what is ends in "
         "ForCausalLM, LMHeadModel or ForSequenceClassification"},
        {"{\"architectures\": [\"GPT2DoubleHeadsModel\"]}", "a GPT2DoubleHeadsModel is not used"},
        {"{\"architectures\": [\"LlamaForQuestionAnswering\"]}", "a LlamaForQuestionAnswering is"},
        {"{\"architectures\": \"GPT2LMHeadModel\"}",
         "architectures is a string, expected a list of names"},
        {"{\"architectures\": [1]}", "architectures holds an integer, expected names"},
        {"{\"is_encoder_decoder\": true}", "is_encoder_decoder true is not implemented"},
        {"{\"pruned_heads\": {\"0\": [1]}}", "pruned_heads is not implemented; it must be empty"},
        {"{\"model_type\": \"nameless\"}",
         "config.json: model_type 'nameless' is not supported; supported: "},
        {"{\"model_type\": \"nameless\", \"auto_map\": {\"AutoModel\": \"m.M\"}}",
         "model_type 'nameless' is not supported, and its own code (auto_map) is never run; "
         "supported: "},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++)
        refused(*state, "gpt2", cases[i].patch, 0, cases[i].part);
}

static void fields_of_labels(void **state) {
    static const struct {
        const char *patch, *part;
    } cases[] = {
        {"{\"problem_type\": \"multi_label_classification\"}",
         "problem_type 'multi_label_classification' with 3 labels is not implemented; of several "
         "labels a text has one (single_label_classification)"},
        {"{\"problem_type\": \"regression\"}", "problem_type 'regression' with 3 labels"},
        {"{\"problem_type\": 3}", "problem_type is an integer, expected a name"},
        {"{\"num_labels\": 2}", "num_labels is 2 but id2label has 3 entries"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++)
        refused(*state, "distilbert", cases[i].patch, -1, cases[i].part);
}

// Fields of config.json that are accepted. Some are written only by old or only by new versions of
// transformers. The others do not change the numbers here.
static void what_may_be_said(void **state) {
    static const char *const lm[] = {
        "{\"dtype\": null}",
        "{\"torch_dtype\": \"float32\"}",
        "{\"dtype\": \"auto\"}",
        "{\"dtype\": \"torch.bfloat16\"}",
        "{\"architectures\": null}",
        "{\"architectures\": []}",
        "{\"architectures\": [\"GPT2Model\"]}",
        "{\"quantization_config\": null, \"pruned_heads\": {}, \"is_encoder_decoder\": false}",
        "{\"auto_map\": {\"AutoModel\": \"m.M\"}}", // a supported model_type does not need such
                                                    // code
    };
    for (size_t i = 0; i < CHECK_COUNT(lm); i++)
        hf_check_lm(*state, hf_variant(*state, "gpt2", lm[i]), "gpt2");
    static const char *const labels[] = {
        "{\"num_labels\": 3, \"problem_type\": \"single_label_classification\"}",
        "{\"num_labels\": null, \"problem_type\": null}",
    };
    for (size_t i = 0; i < CHECK_COUNT(labels); i++)
        hf_check_classifier(*state, hf_variant(*state, "distilbert", labels[i]), "distilbert", 3,
                            "bad");
    hf_check_classifier(*state,
                        hf_variant(*state, "gpt2-reward", "{\"problem_type\": \"regression\"}"),
                        "gpt2-reward", 1, "LABEL_0");
}

// ---- the tokens that end a text ----

static void write_generation(const struct hf *f, const char *text) {
    scratch_text(f->scratch, "dir/generation_config.json", text);
}

// Checks that the variant's end tokens are these ids, in this order. The end token of dirs/gpt2's
// tokenizer is 0.
static void has_ends(const struct hf *f, const char *patch, const char *generation, int32_t n,
                     const int32_t *ids) {
    struct rlhf__error err = {0};
    struct rlhf__model *m = NULL;
    struct rlhf__model_spec spec = {.dir = hf_variant(f, "gpt2", patch), .role = "policy"};
    if (generation) write_generation(f, generation);
    check_ok(rlhf__model_open(&f->session.models, &spec, &m, &err), &err);
    assert_int_equal(m->ends.n, n);
    for (int32_t i = 0; i < n; i++)
        assert_int_equal(m->ends.id[i], ids[i]);
    rlhf__model_close(m);
}

#define IDS(...)                                                                                   \
    (int32_t)(sizeof((int32_t[]){__VA_ARGS__}) / 4), (const int32_t[]) { __VA_ARGS__ }

static void ends(void **state) {
    const struct hf *f = *state;
    has_ends(f, NULL, NULL, IDS(0));
    has_ends(f, "{\"eos_token_id\": null}", "{}", IDS(0));
    has_ends(f, "{\"eos_token_id\": 7}", NULL, IDS(0, 7));
    has_ends(f, "{\"eos_token_id\": [5, 0, 9]}", NULL, IDS(0, 5, 9));
    has_ends(f, NULL, "{\"eos_token_id\": [3, 289]}", IDS(0, 3, 289));
    has_ends(f, "{\"eos_token_id\": 1}", "{\"eos_token_id\": [1, 106]}", IDS(0, 1, 106)); // Gemma 3
    has_ends(f, "{\"eos_token_id\": [3, 4]}", "{\"eos_token_id\": 4, \"temperature\": 0.5}",
             IDS(0, 3, 4));
    has_ends(f, "{\"eos_token_id\": 50256}", "{\"eos_token_id\": [290, -1, 2]}", IDS(0, 2));
    refused(f, "gpt2", "{\"eos_token_id\": \"0\"}", 0,
            "/config.json: eos_token_id is a string, expected an integer or a list of them");
    refused(f, "gpt2", "{\"eos_token_id\": [1, null]}", 0, "eos_token_id holds null, expected");
    static const char *const bad[][2] = {
        {"{\"eos_token_id\": 1.5}", "/generation_config.json: eos_token_id is a number, expected"},
        {"[]", "/generation_config.json: expected an object, found a list"},
        {"{", "generation_config.json:1:"},
    };
    for (size_t i = 0; i < CHECK_COUNT(bad); i++) {
        struct rlhf__error err = {0};
        struct rlhf__model *m = NULL;
        struct rlhf__model_spec spec = {.dir = hf_variant(f, "gpt2", NULL), .role = "policy"};
        write_generation(f, bad[i][0]);
        check_error(rlhf__model_open(&f->session.models, &spec, &m, &err), RLHF_E_INVALID, &err,
                    bad[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fields_of_every_model, hf_setup, hf_teardown),
        cmocka_unit_test_setup_teardown(fields_of_labels, hf_setup, hf_teardown),
        cmocka_unit_test_setup_teardown(what_may_be_said, hf_setup, hf_teardown),
        cmocka_unit_test_setup_teardown(ends, hf_setup, hf_teardown),
    };
    return cmocka_run_group_tests_name("config.json of any model", tests, NULL, NULL);
}
