// test_hf_dir.c: config.json, labels and tokenizer files of a model directory.
#include "support/scratch.h"

#include "weights/hf_dir.h"
#include "weights/wrong_dir.h"

#include <sys/stat.h>
#include <unistd.h>

static json_t *parse(const char *text) {
    json_t *v = json_loads(text, 0, NULL);
    assert_non_null(v);
    return v;
}

static void config_round_trip(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    json_t *c = NULL;
    scratch_text(s, "config.json",
                 "{\"model_type\": \"gpt2\", \"z\": 0.1, \"a\": [1, {\"b\": null}]}");
    check_ok(rlhf__hf_config_read(s->dir, &c, &err), &err);
    const char *type = NULL;
    check_ok(rlhf__hf_model_type(c, s->dir, &type, &err), &err);
    assert_string_equal(type, "gpt2");
    json_object_set_new(c, "vocab_size", json_integer(7));
    struct rlhf__folder *dir = scratch_folder(s->dir);
    check_ok(rlhf__hf_config_write(dir, c, &err), &err);
    rlhf__folder_close(dir);
    json_t *back = NULL;
    check_ok(rlhf__hf_config_read(s->dir, &back, &err), &err);
    assert_true(json_equal(c, back));
    json_decref(c);
    json_decref(back);
}

static void config_errors(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    json_t *c = NULL;
    check_error(rlhf__hf_config_read(scratch_path(s, "gone"), &c, &err), RLHF_E_INVALID, &err,
                "does not exist");
    check_error(rlhf__hf_config_read(s->dir, &c, &err), RLHF_E_INVALID, &err, "has no config.json");
    scratch_text(s, "adapter_config.json", "{}");
    check_error(rlhf__hf_config_read(s->dir, &c, &err), RLHF_E_INVALID, &err,
                "holds an adapter (adapter_config.json), not a whole model");
    scratch_text(s, "config.json", "{\n\"a\": }");
    check_error(rlhf__hf_config_read(s->dir, &c, &err), RLHF_E_INVALID, &err, "config.json:2");
    scratch_text(s, "config.json", "[]");
    check_error(rlhf__hf_config_read(s->dir, &c, &err), RLHF_E_INVALID, &err, "expected an object");
    assert_null(c);
    scratch_text(s, "config.json", "{\"run\": {}, \"algo\": {}}");
    check_error(rlhf__hf_config_read(s->dir, &c, &err), RLHF_E_INVALID, &err,
                "is a run directory; give its model, ");
    assert_null(c);
}

// The directory of a Gemma 3 that also reads images: its language model. What text_config lacks are
// defaults of transformers, and members beside text_config are the ones that count.
static void config_of_a_language_model_inside(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    json_t *c = NULL;
    scratch_text(s, "config.json",
                 "{\"architectures\": [\"Gemma3ForConditionalGeneration\"], \"model_type\": "
                 "\"gemma3\", \"dtype\": \"bfloat16\", \"eos_token_id\": [1, 106], "
                 "\"tie_word_embeddings\": null, \"image_token_index\": 262144, "
                 "\"text_config\": {\"hidden_size\": 2560, \"num_hidden_layers\": 34, "
                 "\"intermediate_size\": 10240, \"eos_token_id\": 1, \"dtype\": null, "
                 "\"tie_word_embeddings\": true, \"num_attention_heads\": 16}, "
                 "\"vision_config\": {\"hidden_size\": 1152}}");
    check_ok(rlhf__hf_config_read(s->dir, &c, &err), &err);
    json_t *want =
        parse("{\"architectures\": [\"Gemma3ForCausalLM\"], \"model_type\": \"gemma3_text\", "
              "\"dtype\": \"bfloat16\", \"eos_token_id\": [1, 106], \"tie_word_embeddings\": true, "
              "\"hidden_size\": 2560, \"num_hidden_layers\": 34, \"intermediate_size\": 10240, "
              "\"num_attention_heads\": 16, \"num_key_value_heads\": 4, \"head_dim\": 256, "
              "\"vocab_size\": 262208, \"max_position_embeddings\": 131072}");
    assert_true(json_equal(c, want));
    json_decref(want);
    json_decref(c);
    scratch_text(
        s, "config.json",
        "{\"architectures\": [\"Qwen3_5ForConditionalGeneration\"], \"model_type\": "
        "\"qwen3_5\", \"tie_word_embeddings\": true, \"image_token_id\": 5, "
        "\"vision_start_token_id\": 6, \"text_config\": {\"model_type\": \"qwen3_5_text\", "
        "\"hidden_size\": 1024, \"num_hidden_layers\": 24, \"mtp_num_hidden_layers\": 1}, "
        "\"vision_config\": {\"depth\": 12}}");
    check_ok(rlhf__hf_config_read(s->dir, &c, &err), &err);
    want = parse("{\"architectures\": [\"Qwen3_5ForCausalLM\"], \"model_type\": \"qwen3_5_text\", "
                 "\"tie_word_embeddings\": true, \"hidden_size\": 1024, \"num_hidden_layers\": 24, "
                 "\"mtp_num_hidden_layers\": 1, \"intermediate_size\": 12288, "
                 "\"num_attention_heads\": 16, \"num_key_value_heads\": 4, \"head_dim\": 256, "
                 "\"vocab_size\": 248320, \"max_position_embeddings\": 32768}");
    assert_true(json_equal(c, want));
    json_decref(want);
    json_decref(c);
    scratch_text(s, "config.json", "{\"model_type\": \"gemma3\", \"text_config\": null}");
    check_error(rlhf__hf_config_read(s->dir, &c, &err), RLHF_E_INVALID, &err,
                "text_config is null, expected an object");
    assert_null(c);
}

// transformers reads what Python writes; the words in strings stay.
static void numbers_of_python(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    json_t *c = NULL;
    scratch_text(s, "config.json",
                 "{\"a\": NaN, \"b\": [-Infinity, 1, Infinity], \"NaN\": \"\\\"NaN\"}");
    check_ok(rlhf__hf_config_read(s->dir, &c, &err), &err);
    json_t *want = parse("{\"a\": null, \"b\": [null, 1, null], \"NaN\": \"\\\"NaN\"}");
    assert_true(json_equal(c, want));
    json_decref(want);
    json_decref(c);
    scratch_text(s, "config.json", "{\"a\": Nan}");
    check_error(rlhf__hf_config_read(s->dir, &c, &err), RLHF_E_INVALID, &err, "config.json:1");
}

static void unreadable(void **state) {
    struct rlhf__error err = {0};
    json_t *c = NULL;
    const char *path = scratch_text(*state, "model.gguf", "GGUF");
    if (geteuid() == 0) skip(); // root reads every file
    assert_int_equal(chmod(path, 0), 0);
    check_error(rlhf__hf_config_read(path, &c, &err), RLHF_E_INVALID, &err,
                "model.gguf: cannot open: Permission denied");
}

// What is not a model directory is named, with what to give instead.
static void wrong_directories(void **state) {
    struct scratch *s = *state;
    static const struct {
        const char *make, *given, *part; // make: a file in the scratch folder
    } cases[] = {
        {"g/model.gguf", "g",
         "model.gguf is a GGUF file; give the file itself instead of the directory"},
        {"g/model.gguf", "g/model.gguf", "does not begin with \"GGUF\", so it is not a GGUF file"},
        {"m/consolidated.00.pth", "m", "Meta's own form, which is not read; the hub has the model"},
        {"p/pytorch_model.bin", "p", "pytorch_model.bin is a pickle, which is never read"},
        {"h/models--A--B/snapshots/c0ffee/config.json", "h", "/h/models--A--B/snapshots/c0ffee"},
        {"h/models--A--B/snapshots/c0ffee/config.json", "h/models--A--B", "/snapshots/c0ffee"},
        {"t/checkpoint-90/config.json", "t", "give the model in it: "},
        {"t/checkpoint-200/config.json", "t", "/t/checkpoint-200"},
        {"f/model.safetensors", "f/model.safetensors", "is a file; give its directory"},
        {"e/notes.txt", "e", "has no config.json, so it is not a model directory"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__error err = {0};
        json_t *c = NULL;
        char path[512];
        snprintf(path, sizeof path, "%s", scratch_path(s, cases[i].make));
        for (char *at = path + strlen(s->dir) + 1; (at = strchr(at, '/')); *at++ = '/') {
            *at = '\0';
            mkdir(path, 0777);
        }
        scratch_text(s, cases[i].make, "");
        check_error(rlhf__hf_config_read(scratch_path(s, cases[i].given), &c, &err), RLHF_E_INVALID,
                    &err, cases[i].part);
    }
    struct rlhf__error err = {0};
    json_t *c = NULL;
    assert_int_equal(mkfifo(scratch_path(s, "pipe.gguf"), 0666), 0);
    check_error(rlhf__hf_config_read(scratch_path(s, "pipe.gguf"), &c, &err), RLHF_E_INVALID, &err,
                "pipe.gguf is neither a directory nor a regular file; a model is");
    check_error(rlhf__hf_config_read("Owner/Name-1.5B", &c, &err), RLHF_E_INVALID, &err,
                "hf download Owner/Name-1.5B --local-dir DIR");
    check_error(rlhf__hf_config_read("./Owner/Name", &c, &err), RLHF_E_INVALID, &err,
                "nothing is downloaded");
    assert_null(strstr(err.text, "hf download"));
    check_error(rlhf__wrong_weights(scratch_path(s, "t"), &err), RLHF_E_INVALID, &err,
                "checkpoint-200");
    check_error(rlhf__wrong_weights(scratch_path(s, "e"), &err), RLHF_E_INVALID, &err,
                "holds no weights");
}

static void model_types(void **state) {
    (void)state;
    static const struct {
        const char *config, *part;
    } cases[] = {
        {"{}", "model_type is missing"},
        {"{\"model_type\": 3}", "model_type is an integer"},
        {"{\"model_type\": \"../../evil\"}", "is not a valid model_type"},
        {"{\"model_type\": \"\"}", "is not a valid model_type"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__error err = {0};
        const char *type = NULL;
        json_t *c = parse(cases[i].config);
        check_error(rlhf__hf_model_type(c, "DIR", &type, &err), RLHF_E_INVALID, &err,
                    cases[i].part);
        json_decref(c);
    }
}

static void labels(void **state) {
    (void)state;
    struct rlhf__labels l;
    struct rlhf__error err = {0};
    json_t *c = parse("{\"id2label\": {\"1\": \"POSITIVE\", \"0\": \"NEGATIVE\"}}");
    check_ok(rlhf__hf_labels(c, "DIR", &l, &err), &err);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.name[0], "NEGATIVE");
    assert_int_equal(rlhf__labels_find(&l, "POSITIVE"), 1);
    assert_int_equal(rlhf__labels_find(&l, "positive"), 1);
    assert_int_equal(rlhf__labels_find(&l, "neutral"), -1);
    json_t *other = json_object();
    check_ok(rlhf__hf_set_labels(other, &l, &err), &err);
    rlhf__labels_finish(&l);
    check_ok(rlhf__hf_labels(other, "DIR", &l, &err), &err);
    assert_string_equal(l.name[1], "POSITIVE");
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(other, "label2id"), "POSITIVE")), 1);
    rlhf__labels_finish(&l);
    json_decref(c);
    json_decref(other);
    c = parse("{\"num_labels\": 3}");
    check_ok(rlhf__hf_labels(c, "DIR", &l, &err), &err);
    assert_int_equal(l.n, 3);
    assert_string_equal(l.name[2], "LABEL_2");
    rlhf__labels_finish(&l);
    json_decref(c);
    c = parse("{\"num_labels\": 4.0}");
    check_ok(rlhf__hf_labels(c, "DIR", &l, &err), &err);
    assert_int_equal(l.n, 4);
    rlhf__labels_finish(&l);
    json_decref(c);
    c = parse("{\"num_labels\": null}");
    check_ok(rlhf__hf_labels(c, "DIR", &l, &err), &err);
    assert_int_equal(l.n, 2);
    rlhf__labels_finish(&l);
    json_decref(c);
    c = parse("{}");
    check_ok(rlhf__hf_labels(c, "DIR", &l, &err), &err);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.name[1], "LABEL_1");
    rlhf__labels_finish(&l);
    json_decref(c);
}

static void label_errors(void **state) {
    (void)state;
    static const struct {
        const char *config, *part;
    } cases[] = {
        {"{\"id2label\": 3}", "id2label is an integer"},
        {"{\"id2label\": {\"0\": \"A\", \"2\": \"B\"}}", "\"1\" is missing"},
        {"{\"id2label\": {\"0\": 1}}", "\"0\" is not a string"},
        {"{\"num_labels\": -1}", "-1 labels"},
        {"{\"num_labels\": 10000000}", "10000000 labels"},
        {"{\"num_labels\": 2.5}", "num_labels is a number, expected an integer"},
        {"{\"num_labels\": \"2\"}", "num_labels is a string, expected an integer"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__error err = {0};
        struct rlhf__labels l;
        json_t *c = parse(cases[i].config);
        check_error(rlhf__hf_labels(c, "DIR", &l, &err), RLHF_E_INVALID, &err, cases[i].part);
        assert_null(l.name);
        json_decref(c);
    }
}

static void tokenizer_files(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__buf got = RLHF__BUF_INIT;
    check_ok(rlhf__make_dirs(scratch_path(s, "from"), &err), &err);
    check_ok(rlhf__make_dirs(scratch_path(s, "to"), &err), &err);
    scratch_text(s, "from/vocab.json", "{}");
    scratch_text(s, "from/merges.txt", "");
    scratch_text(s, "from/chat_template.jinja", "{{ messages }}");
    check_ok(rlhf__make_dirs(scratch_path(s, "from/additional_chat_templates"), &err), &err);
    scratch_text(s, "from/additional_chat_templates/tool_use.jinja", "{{ tools }}");
    scratch_text(s, "from/additional_chat_templates/notes.txt", "stay too");
    scratch_text(s, "from/model.safetensors", "weights stay");
    struct rlhf__folder *from = scratch_folder(scratch_path(s, "from")),
                        *to = scratch_folder(scratch_path(s, "to"));
    check_ok(rlhf__hf_copy_tokenizer(from, to, &err), &err);
    rlhf__folder_close(from);
    rlhf__folder_close(to);
    check_ok(rlhf__file_read(scratch_path(s, "to/vocab.json"), 100, &got, &err), &err);
    assert_string_equal(got.data, "{}");
    assert_true(rlhf__is_file(scratch_path(s, "to/merges.txt")));
    assert_true(rlhf__is_file(scratch_path(s, "to/chat_template.jinja")));
    assert_true(rlhf__is_file(scratch_path(s, "to/additional_chat_templates/tool_use.jinja")));
    assert_false(rlhf__is_file(scratch_path(s, "to/additional_chat_templates/notes.txt")));
    assert_false(rlhf__is_file(scratch_path(s, "to/model.safetensors")));
    assert_false(rlhf__is_file(scratch_path(s, "to/vocab.txt")));
    rlhf__buf_finish(&got);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(config_round_trip), TEST(config_errors),
        TEST(model_types),       TEST(labels),
        TEST(wrong_directories), TEST(unreadable),
        TEST(numbers_of_python), TEST(label_errors),
        TEST(tokenizer_files),   TEST(config_of_a_language_model_inside),
    };
    return cmocka_run_group_tests_name("model directory", tests, NULL, NULL);
}
