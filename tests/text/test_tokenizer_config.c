// test_tokenizer_config.c: tokenizer_config.json together with tokenizer.json: contradictions,
// default special tokens by class, and tokenizers without a bos token.
#include "support/scratch.h"

#include "base/json.h"
#include "chat/chat.h"
#include "tokenizer/tokenizer.h"

// A tokenizer.json of 256 bytes, <s> 256, </s> 257 and <|endoftext|> 258, with these members.
static void write_file(struct scratch *s, const char *members) {
    char *line = NULL;
    size_t cap = 0;
    FILE *in = fopen("data/added.jsonl", "r");
    assert_non_null(in);
    assert_true(getline(&line, &cap, in) > 0);
    fclose(in);
    json_t *set = json_loads(line, 0, NULL), *file = json_object_get(set, "file");
    json_t *more = json_loads(members, 0, NULL), *added = json_array();
    static const char *const texts[] = {"<s>", "</s>", "<|endoftext|>"};
    assert_non_null(more);
    for (int i = 0; i < 3; i++)
        json_array_append_new(added, json_pack("{s:i, s:s, s:b, s:b}", "id", 256 + i, "content",
                                               texts[i], "special", 1, "normalized", 0));
    json_object_set_new(file, "added_tokens", added);
    json_object_update(file, more);
    char *text = json_dumps(file, 0);
    scratch_text(s, "tokenizer.json", text);
    free(text);
    free(line);
    json_decref(more);
    json_decref(set);
}

#define BYTES(space)                                                                               \
    "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":" space                       \
    ",\"trim_offsets\":true,\"use_regex\":true}}"
#define META(scheme)                                                                               \
    "{\"decoder\":null,\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\","           \
    "\"prepend_scheme\":\"" scheme "\",\"split\":false}}"
#define BOS                                                                                        \
    "{\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},"         \
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\","              \
    "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{\"<s>\":"    \
    "{\"id\":\"<s>\",\"ids\":[256],\"tokens\":[\"<s>\"]}}}]}}"
#define TOKEN(id, text)                                                                            \
    "{\"id\":" id ",\"content\":\"" text "\",\"special\":true,\"normalized\":false}"
#define LLAMA(more) "{\"tokenizer_class\":\"LlamaTokenizerFast\"" more "}"

static void contradictions(void **state) {
    struct scratch *s = *state;
    static const struct {
        const char *file, *config, *part; // part NULL: the two files agree
    } cases[] = {
        {BYTES("false"), "{\"add_prefix_space\":true}", "add_prefix_space = true, but the parts"},
        {BYTES("false"), "{\"add_prefix_space\":false}", NULL},
        {BYTES("false"), "{\"add_prefix_space\":null}", NULL},
        {BYTES("true"), "{\"add_prefix_space\":false}", "add_prefix_space = false, but the parts"},
        {BYTES("true"), "{\"add_prefix_space\":true}", NULL},
        {META("never"), "{\"add_prefix_space\":true}", "add_prefix_space = true"},
        {META("first"), "{\"add_prefix_space\":false}", "add_prefix_space = false"},
        {META("first"), LLAMA(",\"legacy\":true"),
         "legacy = true, but the pre_tokenizer Metaspace of tokenizer.json has prepend_scheme "
         "first"},
        {META("first"), LLAMA(",\"legacy\":false"), NULL},
        {META("always"), LLAMA(",\"legacy\":false"), "legacy = false, but the pre_tokenizer"},
        {META("always"), LLAMA(",\"legacy\":true"), NULL},
        {META("first"), "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"legacy\":true}", NULL},
        {BOS, LLAMA(",\"add_bos_token\":false"), "add_bos_token = false, but the post_processor"},
        {BOS, LLAMA(",\"add_bos_token\":true,\"add_eos_token\":false"), NULL},
        {BOS, LLAMA(",\"add_eos_token\":true"), "add_eos_token = true, but the post_processor"},
        {"{}", LLAMA(",\"add_bos_token\":true"), "add_bos_token = true, but the post_processor"},
        {"{}", "{\"tokenizer_class\":\"GPT2Tokenizer\",\"add_bos_token\":true}", NULL},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__tokenizer *tok = NULL;
        struct rlhf__error err = {0};
        write_file(s, cases[i].file);
        scratch_text(s, "tokenizer_config.json", cases[i].config);
        rlhf_status st = rlhf__tokenizer_open(s->dir, &tok, &err);
        if (cases[i].part)
            check_error(st, RLHF_E_INVALID, &err, cases[i].part);
        else
            check_ok(st, &err);
        rlhf__tokenizer_close(tok);
    }
}

static void expect_roles(struct scratch *s, const char *config, int32_t bos, int32_t eos) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    scratch_text(s, "tokenizer_config.json", config);
    check_ok(rlhf__tokenizer_open(s->dir, &tok, &err), &err);
    assert_int_equal(rlhf__tokenizer_info(tok)->bos, bos);
    assert_int_equal(rlhf__tokenizer_info(tok)->eos, eos);
    rlhf__tokenizer_close(tok);
}

// The bos and eos of byte-level files, by tokenizer_class and model_type. The bos token is that of
// AutoTokenizer in transformers 5.23.
static void roles_by_class(void **state) {
    struct scratch *s = *state;
    write_file(s, BYTES("false"));
    expect_roles(s, "{}", -1, 258);
    expect_roles(s, "{\"tokenizer_class\":\"PreTrainedTokenizerFast\"}", -1, 258);
    expect_roles(s, "{\"tokenizer_class\":\"TokenizersBackend\"}", -1, 258);
    expect_roles(s, "{\"tokenizer_class\":\"TokenizersBackend\",\"bos_token\":\"<s>\"}", 256, 258);
    expect_roles(s, "{\"tokenizer_class\":\"GPT2Tokenizer\"}", 258, 258);
    expect_roles(s, "{\"tokenizer_class\":\"CodeGenTokenizerFast\"}", 258, 258);
    expect_roles(s, "{\"tokenizer_class\":\"LlamaTokenizer\"}", -1, 257);
    expect_roles(s, "{\"tokenizer_class\":\"LlamaTokenizer\",\"bos_token\":\"<s>\"}", 256, 257);
    expect_roles(s, "{\"tokenizer_class\":\"Qwen2TokenizerFast\"}", -1, 258);
    expect_roles(s, "{\"tokenizer_class\":\"Qwen3_5Tokenizer\"}", -1, 258);
    scratch_text(s, "config.json", "{\"bos_token_id\": 257, \"eos_token_id\": 256}");
    expect_roles(s, "{\"tokenizer_class\":\"Qwen2Tokenizer\",\"eos_token\":\"</s>\"}", -1, 257);
    expect_roles(s, "{\"tokenizer_class\":\"Qwen2Tokenizer\",\"bos_token\":\"<s>\"}", 256, 256);
    expect_roles(s, "{\"bos_token\":null}", -1, 256);
    expect_roles(s, "{}", -1, 256); // bos_token_id is the model's, not the tokenizer's
    write_file(s, META("first"));   // SentencePiece has a separate class
    expect_roles(s, "{\"tokenizer_class\":\"LlamaTokenizer\"}", 256, 256);
    expect_roles(s, "{\"tokenizer_class\":\"LlamaTokenizer\",\"bos_token\":null}", -1, 256);
    expect_roles(s, "{\"tokenizer_class\":\"PreTrainedTokenizerFast\"}", -1, 256);
    scratch_text(s, "config.json", "{}");
    write_file(s, "{\"added_tokens\":[" TOKEN("256", "<eos>") "," TOKEN("257", "<bos>") "," TOKEN(
                      "258", "<pad>") "],\"decoder\":null,\"normalizer\":{\"type\":\"Replace\","
                                      "\"pattern\":{\"String\":\" \"},\"content\":\"_\"},"
                                      "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":"
                                      "{\"String\":\" \"},\"behavior\":"
                                      "\"MergedWithPrevious\",\"invert\":false}}");
    expect_roles(s, "{\"tokenizer_class\":\"GemmaTokenizer\"}", 257, 256);
    expect_roles(s, "{\"tokenizer_class\":\"GemmaTokenizerFast\",\"bos_token\":null}", -1, 256);
    expect_roles(s, "{\"tokenizer_class\":\"GemmaTokenizer\",\"eos_token\":\"<pad>\"}", 257, 258);
}

static void roles_by_model(void **state) {
    static const struct {
        const char *type, *config;
        int32_t bos;
    } cases[] = {
        {"gpt2", "{}", 258},
        {"gpt2", "{\"tokenizer_class\":\"TokenizersBackend\"}", -1},
        {"gpt2", "{\"tokenizer_class\":\"PreTrainedTokenizerFast\"}", -1},
        {"llama", "{}", -1},
        {"llama", "{\"tokenizer_class\":\"GPT2Tokenizer\"}", 258},
        {"mistral", "{\"tokenizer_class\":\"GPT2Tokenizer\"}", -1},
        {"mistral", "{\"tokenizer_class\":\"LlamaTokenizerFast\"}", -1},
        {"qwen2", "{\"tokenizer_class\":\"GPT2Tokenizer\"}", -1},
        {"qwen3", "{\"tokenizer_class\":\"GPT2Tokenizer\"}", 258},
        {"qwen3", "{\"tokenizer_class\":\"TokenizersBackend\"}", -1},
        {"qwen3", "{}", -1},
    };
    struct scratch *s = *state;
    write_file(s, BYTES("false"));
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        char model[64];
        snprintf(model, sizeof model, "{\"model_type\":\"%s\",\"bos_token_id\":257}",
                 cases[i].type);
        scratch_text(s, "config.json", model);
        expect_roles(s, cases[i].config, cases[i].bos, 258 - !!strstr(cases[i].config, "Llama"));
    }
}

static void expect_ids(struct scratch *s, const char *file, int bos) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    write_file(s, file);
    check_ok(rlhf__tokenizer_open(s->dir, &tok, &err), &err);
    assert_int_equal(rlhf__tokenizer_has_bos(tok), bos);
    check_ok(rlhf__tokenizer_encode(tok, (rlhf_str){"a", 1}, RLHF__ENCODE_TEMPLATE, 0, &ids, &err),
             &err);
    assert_int_equal(ids.n, 1 + bos);
    if (bos) assert_int_equal(ids.data[0], 256);
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
}

// Llama 3 adds its bos token by a Sequence of post-processors. Qwen2 does not add tokens.
static void around_a_text(void **state) {
    struct scratch *s = *state;
    scratch_text(s, "tokenizer_config.json",
                 "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"bos_token\":\"<s>\"}");
    expect_ids(s, BOS, 1);
    scratch_text(s, "tokenizer_config.json",
                 "{\"tokenizer_class\":\"Qwen2Tokenizer\",\"bos_token\":null,"
                 "\"add_bos_token\":false}");
    expect_ids(s, "{\"post_processor\":{\"type\":\"ByteLevel\"}}", 0);
    scratch_text(s, "tokenizer_config.json",
                 LLAMA(",\"add_bos_token\":true,\"bos_token\":\"<s>\""));
    expect_ids(s, BOS, 1);
}

// The special tokens that a chat template can write, as with AutoTokenizer of transformers 5.24:
// those that the files name and that the class implies, not those of config.json's ids.
static void template_tokens(void **state) {
    static const char text[] = "{{ bos_token }},{{ eos_token }},{{ unk_token }},{{ pad_token }},"
                               "{{ cls_token }},{{ sep_token }},{{ mask_token }},{{ image_token }},"
                               "{{ more_token }},{{ messages[0].content }}";
#define FAST "{\"tokenizer_class\":\"PreTrainedTokenizerFast\","
    static const struct {
        const char *config, *map, *want;
    } cases[] = {
        {"{\"tokenizer_class\":\"GPT2Tokenizer\"}", "{}",
         "<|endoftext|>,<|endoftext|>,<|endoftext|>,,,,,,,Q"},
        {FAST "\"bos_token\":\"<s>\"}", "{}", "<s>,,,,,,,,,Q"},
        {FAST "\"eos_token\":{\"content\":\"</s>\"},\"cls_token\":\"<c>\",\"sep_token\":\"<p>\","
              "\"mask_token\":\"<m>\"}",
         "{}", ",</s>,,,<c>,<p>,<m>,,,Q"},
        {FAST "\"image_token\":\"<i>\",\"extra_special_tokens\":{\"more_token\":\"<m>\"}}", "{}",
         ",,,,,,,<i>,<m>,Q"},
        {FAST "\"extra_special_tokens\":[\"</s>\"]}", "{}", ",,,,,,,,,Q"},
        {FAST "\"eos_token\":\"</s>\"}", "{\"eos_token\":\"<s>\",\"pad_token\":\"</s>\"}",
         ",<s>,,</s>,,,,,,Q"},
        {"{\"tokenizer_class\":\"Qwen2Tokenizer\",\"eos_token\":\"</s>\",\"unk_token\":null}", "{}",
         ",</s>,,<|endoftext|>,,,,,,Q"},
        {"{\"tokenizer_class\":\"GPT2Tokenizer\",\"bos_token\":null}", "{}",
         ",<|endoftext|>,<|endoftext|>,,,,,,,Q"},
    };
    const struct rlhf__message ask = {.role = RLHF__ROLE_USER, .content = {"Q", 1}};
    const struct rlhf__messages m = {.item = (struct rlhf__message *)(uintptr_t)&ask, .n = 1};
    struct scratch *s = *state;
    write_file(s, BYTES("false"));
    scratch_text(s, "config.json",
                 "{\"bos_token_id\": 257, \"eos_token_id\": 257, \"pad_token_id\": 257}");
    scratch_text(s, "chat_template.jinja", text);
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__tokenizer *tok = NULL;
        struct rlhf__error err = {0, ""};
        struct rlhf__buf out = RLHF__BUF_INIT;
        scratch_text(s, "tokenizer_config.json", cases[i].config);
        scratch_text(s, "special_tokens_map.json", cases[i].map);
        check_ok(rlhf__tokenizer_open(s->dir, &tok, &err), &err);
        check_ok(rlhf__chat_render(rlhf__tokenizer_chat(tok), &m, 0, &out, &err), &err);
        assert_string_equal(rlhf__buf_text(&out), cases[i].want);
        rlhf__buf_finish(&out);
        rlhf__tokenizer_close(tok);
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {TEST(contradictions), TEST(roles_by_class),
                                       TEST(roles_by_model), TEST(around_a_text),
                                       TEST(template_tokens)};
    return cmocka_run_group_tests_name("tokenizer_config.json", tests, NULL, NULL);
}
