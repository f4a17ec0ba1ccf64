// test_gguf_tokens.c: tokenizers and chat templates in GGUF files, and which of them are refused.
#include "gguf_model.h"

#include "base/folder.h"

#include <sys/stat.h>

#define SP "\xE2\x96\x81"
#define SPM(merges)                                                                                \
    "{\"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"vocab\": {\"<unk>\": 0, "          \
    "\"<0x0A>\": 1, \"" SP "\": 2, \"a\": 3, \"aa\": 4, \"" SP "aa\": 5}, \"merges\": [" merges    \
    "]}, \"added_tokens\": [{\"id\": 0, \"content\": \"<unk>\", \"special\": true}], "             \
    "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", "          \
    "\"prepend\": \"" SP "\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, "         \
    "\"content\": \"" SP "\"}]}, \"pre_tokenizer\": null, \"post_processor\": {\"type\": "         \
    "\"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<unk>\"}}, "               \
    "{\"Sequence\": {\"id\": \"A\"}}], \"special_tokens\": {\"<unk>\": {\"ids\": [0]}}}}"

static void sentence_pieces(void **state) {
    struct model m;
    struct reader r;
    size_t len;
    scratch_text(*state, "tokenizer_config.json",
                 "{\"unk_token\": \"<unk>\", \"bos_token\": {\"content\": \"<unk>\"}, "
                 "\"chat_template\": \"{{ x }}\"}");
    model_begin(&m, *state, "{" LLAMA_OF("6") "}", SPM("\"a a\", \"" SP " aa\""));
    model_add_llama(&m);
    const uint8_t *bytes = model_written(&m, &len);
    const char *got = reader_head(&r, bytes, len);
    assert_non_null(strstr(got, "tokenizer.ggml.model 8 llama\n"
                                "tokenizer.ggml.pre 8 default\n"
                                "tokenizer.ggml.bos_token_id 4 0\n"
                                "tokenizer.ggml.unknown_token_id 4 0\n"
                                "tokenizer.ggml.add_bos_token 7 true\n"
                                "tokenizer.ggml.add_eos_token 7 false\n"
                                "tokenizer.ggml.add_space_prefix 7 true\n"
                                "tokenizer.ggml.tokens 9 <unk>,<0x0A>," SP ",a,aa," SP "aa\n"
                                "tokenizer.ggml.token_type 9 2,6,1,1,1,1\n"
                                "tokenizer.ggml.scores 9 -1000,0,0,0,-0,-1\n"
                                "tokenizer.chat_template 8 {{ x }}\n"));
    rlhf__buf_finish(&r.out);
    model_end(&m);
}

// Gemma: no space before a text, added tokens of spaces, and a second end token, which is named in
// generation_config.json.
static void gemma_tokens(void **state) {
    struct model m;
    struct reader r;
    size_t len;
    scratch_text(*state, "tokenizer_config.json", "{\"eos_token\": \"<eos>\"}");
    scratch_text(*state, "generation_config.json", "{\"eos_token_id\": [0, 6]}");
    model_begin(
        &m, *state, "{" LLAMA_OF("8") "}",
        "{\"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"vocab\": {\"<eos>\": 0, "
        "\"<0x0A>\": 1, \"" SP "\": 2, \"a\": 3, \"" SP SP "\": 4, \"" SP "a\": 5, \"<end>\": "
        "6, \"aa\": 7}, \"merges\": [[\"" SP "\", \"" SP "\"], [\"" SP "\", \"a\"], "
        "[\"a\", \"a\"]]}, \"added_tokens\": [{\"id\": 0, \"content\": \"<eos>\", "
        "\"special\": true}, {\"id\": 4, \"content\": \"" SP SP "\", \"special\": false}, "
        "{\"id\": 6, \"content\": \"<end>\", \"special\": true}], \"normalizer\": {\"type\": "
        "\"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"" SP "\"}, "
        "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \" \"}, "
        "\"behavior\": \"MergedWithPrevious\", \"invert\": false}}");
    model_add_llama(&m);
    const uint8_t *bytes = model_written(&m, &len);
    const char *got = reader_head(&r, bytes, len);
    const char *want = "tokenizer.ggml.bos_token_id 4 1\n"
                       "tokenizer.ggml.eos_token_id 4 0\n"
                       "tokenizer.ggml.eot_token_id 4 6\n"
                       "tokenizer.ggml.add_bos_token 7 false\n"
                       "tokenizer.ggml.add_eos_token 7 false\n"
                       "tokenizer.ggml.add_space_prefix 7 false\n"
                       "tokenizer.ggml.tokens 9 <eos>,<0x0A>," SP ",a,  ," SP "a,<end>,aa\n"
                       "tokenizer.ggml.token_type 9 3,6,1,1,4,1,3,1\n"
                       "tokenizer.ggml.scores 9 -1000,0,0,0,-1000,-0,-1000,-1\n";
    if (!strstr(got, want)) fail_msg("%s", got);
    rlhf__buf_finish(&r.out);
    model_end(&m);
}

// If special_tokens_map.json and tokenizer_config.json differ, the exporter uses the same file as
// the program does when it loads the tokenizer.
static void roles(void **state) {
    static const char *const cases[][2] = {
        {"{\"eos_token\": \"a\"}", "tokenizer.ggml.eos_token_id 4 2\n"},
        {"{\"eos_token\": \"a\", \"added_tokens_decoder\": {}}",
         "tokenizer.ggml.eos_token_id 4 0\n"},
        {"{}", "tokenizer.ggml.eos_token_id 4 2\n"},
    };
    scratch_text(*state, "special_tokens_map.json", "{\"eos_token\": {\"content\": \"b\"}}");
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        struct reader r;
        size_t len;
        scratch_text(*state, "tokenizer_config.json", cases[i][0]);
        model_begin(&m, *state, "{" LLAMA "}", GPT2_FORM);
        model_add_llama(&m);
        const uint8_t *bytes = model_written(&m, &len);
        const char *got = reader_head(&r, bytes, len);
        if (!strstr(got, cases[i][1])) fail_msg("case %zu: no '%s' in %s", i, cases[i][1], got);
        rlhf__buf_finish(&r.out);
        model_end(&m);
    }
}

// ---- refusals ----

static void tokenizers(void **state) {
#define WITH(model, rest) "{\"model\": {\"type\": " model "}, " rest "}"
    static const char *const cases[][2] = {
        {WITH("\"Unigram\"", "\"x\": 0"), "llama.cpp does not support the model Unigram"},
        {WITH("\"WordPiece\"", "\"x\": 0"), "the model WordPiece"},
        {WITH("\"BPE\", \"end_of_word_suffix\": \"</w>\"", "\"x\": 0"), "end_of_word_suffix </w>"},
        {BPE "\"pre_tokenizer\": {\"type\": \"Whitespace\"}}", "the pre_tokenizer {\"type\":"},
        {BPE "\"normalizer\": {\"type\": \"NFKC\"}, \"pre_tokenizer\": " BYTE_LEVEL "}",
         "the normalizer NFKC"},
        {WITH("\"BPE\", \"ignore_merges\": true, \"vocab\": {}, \"merges\": []",
              "\"pre_tokenizer\": " BYTE_LEVEL),
         "with ignore_merges"},
        {SPM("\"a a\""),
         "'" SP "' and 'aa' are pieces and so is their sum, but they are not a merge"},
        {SPM("\"a a\", \"" SP " aa\", \"a a\""), "the merges of 'aa' do not stand together"},
        {SPM("\"aa\", \"" SP " aa\""), "merge 0 is not two tokens"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 260}, \"merges\": []}, "
         "\"pre_tokenizer\": " BYTE_LEVEL "}",
         "the token 'a' has the id 260, and the model has 260 rows"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        model_begin(&m, *state, "{" LLAMA "}", cases[i][0]);
        model_add_llama(&m);
        model_refused(&m, cases[i][1]);
        model_end(&m);
    }
}

// A GGUF file can add one BOS before a text and one EOS after it, and no further tokens.
static void frames(void **state) {
#define AROUND(post) BPE "\"pre_tokenizer\": " BYTE_LEVEL ", \"post_processor\": {" post "}}"
#define TEMPLATE(list)                                                                             \
    AROUND("\"type\": \"TemplateProcessing\", \"single\": [" list "], \"special_tokens\": "        \
           "{\"<s>\": {\"ids\": [1]}, \"<tool>\": {\"ids\": [4]}}")
#define TEXT    "{\"Sequence\": {\"id\": \"A\"}}"
#define NAME(s) "{\"SpecialToken\": {\"id\": \"" s "\"}}"
#define PAIR(type, cls, sep)                                                                       \
    AROUND("\"type\": \"" type "\", \"cls\": [\"x\", " cls "], \"sep\": [\"y\", " sep "]")
    static const char *const cases[][3] = {
        {TEMPLATE(TEXT), "bos_token 7 false\n", "eos_token 7 false\n"},
        {TEMPLATE(NAME("<s>") "," TEXT), "bos_token 7 true\n", "eos_token 7 false\n"},
        {TEMPLATE(NAME("<s>") "," TEXT "," NAME("<tool>")), "bos_token 7 true\n",
         "eos_token 7 true\n"},
        {PAIR("RobertaProcessing", "1", "4"), "bos_token 7 true\n", "eos_token 7 true\n"},
        {PAIR("BertProcessing", "1", "4"), "bos_token 7 true\n", "eos_token 7 true\n"},
        {AROUND("\"type\": \"ByteLevel\""), "bos_token 7 false\n", "eos_token 7 false\n"},
        {PAIR("BertProcessing", "4", "1"), NULL,
         "the tokenizer puts '<tool>' before a text; a GGUF file can name only its BOS token"},
        {TEMPLATE(NAME("<s>") "," TEXT "," NAME("<s>")), NULL,
         "the tokenizer puts '<s>' after a text; a GGUF file can name only its EOS token"},
        {TEMPLATE(NAME("<s>") "," NAME("<tool>") "," TEXT), NULL, "puts '<tool>' before a text"},
        {TEMPLATE(NAME("<s>") "," NAME("<s>") "," TEXT), NULL,
         "puts 2 BOS tokens before a text; a GGUF file can name one"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        struct reader r;
        size_t len;
        model_begin(&m, *state, "{" LLAMA ", \"eos_token_id\": 4}", cases[i][0]);
        model_add_llama(&m);
        if (cases[i][1]) {
            const uint8_t *bytes = model_written(&m, &len);
            const char *got = reader_head(&r, bytes, len);
            for (size_t k = 1; k < 3; k++)
                if (!strstr(got, cases[i][k])) fail_msg("%s: %s", cases[i][0], got);
            rlhf__buf_finish(&r.out);
        } else {
            model_refused(&m, cases[i][2]);
        }
        model_end(&m);
    }
}

// If models refuse a tokenizer, the exporter refuses it, too. It does not ignore any file of the
// tokenizer.
#define CLASSIC "{\"a\": 0, \"b\": 2@}"
static void tokenizer_files(void **state) {
    static const struct {
        const char *file[3][2];
        const char *says; // NULL: the file is written
    } cases[] = {
        {{{"vocab.json", CLASSIC}, {"merges.txt", ""}}, NULL},
        {{{"vocab.json", CLASSIC}, {"merges.txt", ""}, {"tokenizer.json", "{\"model\": "}},
         "tokenizer.json:1:"},
        {{{"vocab.json", CLASSIC},
          {"merges.txt", ""},
          {"tokenizer_config.json", "{\"bos_token\": \"a\""}},
         "tokenizer_config.json:1:"},
        {{{"vocab.json", CLASSIC},
          {"merges.txt", ""},
          {"tokenizer_config.json", "{\"tokenizer_class\": \"Qwen2Tokenizer\"}"}},
         "tokenizer_class 'Qwen2Tokenizer' is not supported without a tokenizer.json"},
        {{{"vocab.json", CLASSIC}, {"merges.txt", ""}, {"added_tokens.json", "{"}},
         "added_tokens.json:1:"},
        {{{"vocab.json", CLASSIC}, {"merges.txt", ""}, {"special_tokens_map.json", "{"}},
         "special_tokens_map.json:1:"},
        {{{"vocab.json", CLASSIC}, {"merges.txt", ""}, {"chat_template.json", "{"}},
         "chat_template.json:1:"},
        {{{"vocab.json", "{\"a\": "}, {"merges.txt", ""}}, "vocab.json:1:"},
        {{{"vocab.json", "[1]"}, {"merges.txt", ""}}, "vocab.json: expected an object"},
        {{{"merges.txt", ""}}, "no tokenizer that a GGUF file can hold"},
    };
    static const char *const all[] = {"vocab.json",        "merges.txt",
                                      "tokenizer.json",    "tokenizer_config.json",
                                      "added_tokens.json", "special_tokens_map.json",
                                      "chat_template.json"};
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        size_t len;
        model_begin(&m, *state, "{" LLAMA "}", "");
        for (size_t k = 0; k < CHECK_COUNT(all); k++)
            remove(scratch_path(*state, all[k]));
        for (size_t k = 0; k < 3 && cases[i].file[k][0]; k++)
            tokenizer_text(*state, cases[i].file[k][0], cases[i].file[k][1]);
        model_add_llama(&m);
        if (cases[i].says)
            model_refused_as(
                &m, strstr(cases[i].says, "not supported") ? RLHF_E_UNSUPPORTED : RLHF_E_INVALID,
                cases[i].says);
        else
            model_written(&m, &len);
        model_end(&m);
    }
}

// ---- chat templates ----

#define NAMED                                                                                      \
    "[{\"name\": \"tool use\", \"template\": \"B\"}, {\"name\": \"default\", \"template\": "       \
    "\"A\"}, "                                                                                     \
    "{\"name\": \"rag\", \"template\": \"C\"}]"
#define NAMED_KEYS                                                                                 \
    "tokenizer.chat_template.tool_use 8 B\ntokenizer.chat_template.rag 8 C\n"                      \
    "tokenizer.chat_templates 9 tool_use,rag\ntokenizer.chat_template 8 A\n"

static void chat_templates(void **state) {
    static const struct {
        const char *config, *jinja, *more, *alone; // files; NULL: missing
        const char *keys;                          // NULL: the model is refused
        const char *says;
    } cases[] = {
        {"{}", NULL, NULL, NULL, "", NULL},
        {"{\"chat_template\": null}", NULL, NULL, "{\"chat_template\": \"D\"}",
         "tokenizer.chat_template 8 D\n", NULL},
        {"{\"chat_template\": \"A\"}", NULL, NULL, "{\"chat_template\": \"D\"}",
         "tokenizer.chat_template 8 A\n", NULL},
        {"{\"chat_template\": " NAMED "}", NULL, NULL, NULL, NAMED_KEYS, NULL},
        {"{}", NULL, NULL, "{\"chat_template\": " NAMED "}", NAMED_KEYS, NULL},
        {"{\"chat_template\": [{\"name\": \"x\", \"template\": \"B\"}]}", NULL, NULL, NULL,
         "tokenizer.chat_template.x 8 B\ntokenizer.chat_templates 9 x\n", NULL},
        {"{\"chat_template\": \"A\"}", "J", NULL, NULL, "tokenizer.chat_template 8 J\n", NULL},
        {"{\"chat_template\": \"A\"}", "J", "K", NULL,
         "tokenizer.chat_template.rag 8 K\ntokenizer.chat_templates 9 rag\n"
         "tokenizer.chat_template 8 J\n",
         NULL},
        {"{\"chat_template\": 3}", NULL, NULL, NULL, NULL,
         "tokenizer_config.json: chat_template is an integer, expected a string or a list"},
        {"{\"chat_template\": [{\"template\": \"B\"}]}", NULL, NULL, NULL, NULL,
         "chat_template[0] has no name"},
        {"{\"chat_template\": [{\"name\": \"x\"}]}", NULL, NULL, NULL, NULL,
         "chat_template[0] has no text"},
        {"{\"chat_template\": [\"B\"]}", NULL, NULL, NULL, NULL, "has no name"},
        {"{\"chat_template\": [{\"name\": \"a b\", \"template\": \"\"}, "
         "{\"name\": \"a_b\", \"template\": \"\"}]}",
         NULL, NULL, NULL, NULL, "two chat templates are called a_b in a GGUF file"},
        {"{}", "\xff", NULL, NULL, NULL, "chat_template.jinja: not a text in UTF-8"},
    };
    char more[RLHF__PATH_CAP];
    rlhf__path_put(more, "%s/additional_chat_templates", ((struct scratch *)*state)->dir);
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        struct reader r;
        size_t len;
        scratch_text(*state, "tokenizer_config.json", cases[i].config);
        remove(scratch_path(*state, "chat_template.jinja"));
        remove(scratch_path(*state, "chat_template.json"));
        if (cases[i].jinja) scratch_text(*state, "chat_template.jinja", cases[i].jinja);
        if (cases[i].alone) scratch_text(*state, "chat_template.json", cases[i].alone);
        if (cases[i].more) {
            assert_int_equal(mkdir(more, 0700), 0);
            scratch_text(*state, "additional_chat_templates/rag.jinja", cases[i].more);
            scratch_text(*state, "additional_chat_templates/rag.txt", "no template");
        }
        model_begin(&m, *state, "{" LLAMA "}", GPT2_FORM);
        model_add_llama(&m);
        if (cases[i].keys) {
            const uint8_t *bytes = model_written(&m, &len);
            const char *got = strstr(reader_head(&r, bytes, len), "tokenizer.ggml.merges 9 a b\n");
            assert_non_null(got);
            got += strlen("tokenizer.ggml.merges 9 a b\n");
            const size_t n = strlen(cases[i].keys);
            if (strncmp(got, cases[i].keys, n) != 0 || strncmp(got + n, "token_embd", 10) != 0)
                fail_msg("case %zu: %.300s", i, got);
            rlhf__buf_finish(&r.out);
        } else {
            model_refused(&m, cases[i].says);
        }
        if (cases[i].more)
            check_ok(rlhf__folder_remove(NULL, more, &(struct rlhf__error){0}),
                     &(struct rlhf__error){0});
        model_end(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sentence_pieces, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(gemma_tokens, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(roles, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(tokenizers, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(frames, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(tokenizer_files, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(chat_templates, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("gguf_tokens", tests, NULL, NULL);
}
