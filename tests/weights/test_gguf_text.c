// test_gguf_text.c: tokenizers that were written to GGUF files and are read from them.
#include "gguf_model.h"

#include "gguf/model_text.h"
#include "gguf_write/gguf_writer.h"
#include "tokenizer/tokenizer.h"

#define SP "\xE2\x96\x81"

// ---- the same ids ----

// Text i: characters and pieces in an order that depends on i.
static void make_text(uint32_t i, struct rlhf__buf *out) {
    static const char *const parts[] = {
        "a",    "b",      "ab", " ",  "  ", "   ",    "\n",      "<s>", "<tool>",
        "1",    "12",     "A",  "aa", "'s", "!",      "/",       "é",   "e\u0301",
        "\xFF", "\u2581", "中", "\t", "",   "<0x0A>", "[PAD259]"};
    rlhf__buf_clear(out);
    for (uint32_t n = i % 9; n > 0; n--) {
        i = i * 1664525u + 1013904223u;
        rlhf__buf_puts(out, parts[(i >> 16) % (sizeof parts / sizeof *parts)]);
    }
}

static void check_text(const struct rlhf__tokenizer *a, const struct rlhf__tokenizer *b,
                       rlhf_str text, uint32_t flags) {
    struct rlhf__error err = {0, ""};
    struct rlhf__ids x = {0}, y = {0};
    check_ok(rlhf__tokenizer_encode(a, text, flags, 0, &x, &err), &err);
    check_ok(rlhf__tokenizer_encode(b, text, flags, 0, &y, &err), &err);
    if (x.n != y.n || (x.n > 0 && memcmp(x.data, y.data, x.n * 4) != 0))
        fail_msg("'%.*s', flags %u: %zu ids %d %d .. and %zu ids %d %d ..", (int)text.len, text.ptr,
                 (unsigned)flags, x.n, x.n > 0 ? x.data[0] : -1, x.n > 2 ? x.data[2] : -1, y.n,
                 y.n > 0 ? y.data[0] : -1, y.n > 2 ? y.data[2] : -1);
    char *s = rlhf__tokenizer_text(a, x.data, x.n, 0, NULL);
    char *t = rlhf__tokenizer_text(b, y.data, y.n, 0, NULL);
    assert_string_equal(s, t);
    free(s);
    free(t);
    rlhf__ids_finish(&x);
    rlhf__ids_finish(&y);
}

static void check_tokenizers(const char *dir, const char *file) {
    static const uint32_t flags[] = {0, RLHF__ENCODE_TEMPLATE, RLHF__ENCODE_SPECIAL};
    struct rlhf__error err = {0, ""};
    struct rlhf__tokenizer *a, *b;
    struct rlhf__buf text = RLHF__BUF_INIT;
    check_ok(rlhf__tokenizer_open(dir, &a, &err), &err);
    check_ok(rlhf__tokenizer_open(file, &b, &err), &err);
    const struct rlhf__tokenizer_info *x = rlhf__tokenizer_info(a), *y = rlhf__tokenizer_info(b);
    assert_int_equal(x->eos, y->eos);
    assert_int_equal(rlhf__tokenizer_has_bos(a), rlhf__tokenizer_has_bos(b));
    for (uint32_t i = 0; i < 3000; i++) {
        make_text(i, &text);
        check_text(a, b, (rlhf_str){rlhf__buf_text(&text), text.len}, flags[i % 3]);
    }
    rlhf__buf_finish(&text);
    rlhf__tokenizer_close(a);
    rlhf__tokenizer_close(b);
}

#define SPLIT(regex)                                                                               \
    BPE "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "   \
        "\"pattern\": {\"Regex\": \"" regex "\"}, \"behavior\": \"Isolated\"}, {\"type\": "        \
        "\"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}]}"
#define WORDS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"
#define OTHERS                                                                                     \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define UP    "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define LOW   "[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define FIRST "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"
#define SLASH                                                                                      \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define TAIL "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

static void byte_level(void **state) {
    static const char *const forms[][2] = {
        {GPT2_FORM, "gpt-2"},
        {BPE "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": "
             "\"Digits\", \"individual_digits\": true}, " BYTE_LEVEL "]}}",
         "smollm"},
        {SPLIT(WORDS "\\\\p{N}{1,3}" OTHERS) "}", "dbrx"},
        {SPLIT(WORDS "\\\\p{N}" OTHERS) ", \"normalizer\": {\"type\": \"NFC\"}}", "qwen2"},
        {SPLIT(FIRST UP "*" LOW "+" TAIL "|" FIRST UP "+" LOW "*" TAIL "|\\\\p{N}{1,3}" SLASH) "}",
         "gpt-4o"}};
    for (size_t i = 0; i < CHECK_COUNT(forms); i++) {
        struct scratch *s = *state;
        struct model m;
        struct reader r;
        size_t len;
        char want[64];
        scratch_text(s, "tokenizer_config.json", "{\"eos_token\": \"<tool>\"}");
        model_begin(&m, s, "{" LLAMA "}", forms[i][0]);
        model_add_llama(&m);
        const uint8_t *bytes = model_written(&m, &len);
        snprintf(want, sizeof want, "tokenizer.ggml.pre 8 %s\n", forms[i][1]);
        assert_non_null(strstr(reader_head(&r, bytes, len), want));
        check_tokenizers(s->dir, scratch_path(s, "tiny.gguf"));
        rlhf__buf_finish(&r.out);
        model_end(&m);
    }
}

#define SPM(normal, around)                                                                        \
    "{\"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"fuse_unk\": true, "                \
    "\"unk_token\": \"<unk>\", \"vocab\": {\"<unk>\": 0, \"<0x0A>\": 1, \"" SP                     \
    "\": 2, \"a\": 3, \"aa\": 4, \"" SP "aa\": 5, \"b\": 6, \"ab\": 7, \"<s>\": 8, \"<0xFF>\": 9," \
    " \"<tool>\": 10, \"aaa\": 11}, \"merges\": [[\"a\", \"b\"], [\"a\", \"a\"], [\"aa\", \"a\"]," \
    " [\"a\", \"aa\"], [\"" SP "\", \"aa\"]]}, \"added_tokens\": [{\"id\": 0, \"content\": "       \
    "\"<unk>\", \"special\": true}, {\"id\": 8, \"content\": \"<s>\", \"special\": true}, "        \
    "{\"id\": 10, \"content\": \"<tool>\", \"special\": false, \"normalized\": false}], "          \
    "\"normalizer\": " normal                                                                      \
    ", \"pre_tokenizer\": null, \"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": "  \
    "\"Replace\", \"pattern\": {\"String\": \"" SP "\"}, \"content\": \" \"}, {\"type\": "         \
    "\"ByteFallback\"}, {\"type\": \"Fuse\"}" around "]}"
#define SPACES "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"" SP "\"}"
#define STRIP  ", {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}"
#define PREPEND                                                                                    \
    "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", \"prepend\": \"" SP        \
    "\"}, " SPACES "]}"
#define BOS                                                                                        \
    ", \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": "    \
    "{\"id\": \"<s>\"}}, {\"Sequence\": {\"id\": \"A\"}}], \"special_tokens\": {\"<s>\": "         \
    "{\"ids\": [8]}}}"

static void sentence_pieces(void **state) {
    static const char *const forms[] = {SPM(SPACES, "") "}", SPM(SPACES, "") BOS "}",
                                        SPM(PREPEND, STRIP) BOS "}"};
    for (size_t i = 0; i < CHECK_COUNT(forms); i++) {
        struct scratch *s = *state;
        struct model m;
        size_t len;
        scratch_text(s, "tokenizer_config.json",
                     "{\"bos_token\": \"<s>\", \"eos_token\": \"<tool>\", \"unk_token\": "
                     "\"<unk>\"}");
        model_begin(&m, s, "{" LLAMA_OF("14") "}", forms[i]);
        model_add_llama(&m);
        model_written(&m, &len);
        check_tokenizers(s->dir, scratch_path(s, "tiny.gguf"));
        model_end(&m);
    }
}

// ---- the other files ----

static json_t *made(struct scratch *s, const char *name) {
    struct rlhf__error err = {0, ""};
    json_t *v;
    check_ok(rlhf__model_json(scratch_path(s, "tiny.gguf"), name, &v, &err), &err);
    return v;
}

static void is_json(const json_t *v, const char *want) {
    json_t *w = json_loads(want, 0, NULL);
    char *text = json_dumps(v, 0);
    if (!json_equal(v, w)) fail_msg("%s instead of %s", text, want);
    free(text);
    json_decref(w);
}

// Roles, end tokens, and templates with names.
static void settings(void **state) {
    struct scratch *s = *state;
    struct model m;
    size_t len;
    scratch_text(s, "tokenizer_config.json",
                 "{\"bos_token\": \"<s>\", \"eos_token\": \"<tool>\", \"chat_template\": "
                 "[{\"name\": \"default\", \"template\": \"A\"}, {\"name\": \"rag\", \"template\": "
                 "\"B\"}]}");
    scratch_text(s, "generation_config.json", "{\"eos_token_id\": [4, 3]}");
    model_begin(&m, s, "{" LLAMA "}", GPT2_FORM);
    model_add_llama(&m);
    model_written(&m, &len);
    json_t *config = made(s, "tokenizer_config.json"), *ends = made(s, "generation_config.json");
    is_json(config, "{\"tokenizer_class\": \"PreTrainedTokenizerFast\", "
                    "\"clean_up_tokenization_spaces\": false, \"bos_token\": \"<s>\", "
                    "\"eos_token\": \"<tool>\", \"chat_template\": [{\"name\": \"default\", "
                    "\"template\": \"A\"}, {\"name\": \"rag\", \"template\": \"B\"}]}");
    is_json(ends, "{\"bos_token_id\": 1, \"eos_token_id\": [4, 3]}");
    assert_null(made(s, "special_tokens_map.json"));
    assert_true(rlhf__model_has(scratch_path(s, "tiny.gguf"), "tokenizer.json"));
    assert_false(rlhf__model_has(scratch_path(s, "tiny.gguf"), "vocab.json"));
    json_decref(config);
    json_decref(ends);
    model_end(&m);
}

// The files that a checkpoint gets are those of the GGUF file.
static void copies(void **state) {
    struct scratch *s = *state;
    struct model m;
    struct rlhf__error err = {0, ""};
    size_t len;
    scratch_text(s, "tokenizer_config.json", "{\"eos_token\": \"<tool>\"}");
    model_begin(&m, s, "{" LLAMA "}", GPT2_FORM);
    model_add_llama(&m);
    model_written(&m, &len);
    check_ok(rlhf__make_dirs(scratch_path(s, "copy"), &err), &err);
    struct rlhf__folder *to = scratch_folder(scratch_path(s, "copy"));
    check_ok(rlhf__model_copy_text(scratch_path(s, "tiny.gguf"), to, &err), &err);
    rlhf__folder_close(to);
    check_tokenizers(scratch_path(s, "copy"), scratch_path(s, "tiny.gguf"));
    model_end(&m);
}

// ---- bad files ----

struct bad {
    const char *model, *pre; // NULL: no such key
    const char *token[4];
    uint32_t n_tokens, n_types, n_scores; // 0: no such key
    const char *merge, *id_key;
    uint32_t id;
    int adds_eos;
    const char *says;
};

static void put_strings(struct rlhf__gguf *g, const char *key, const char *const *text, size_t n) {
    rlhf__gguf_array(g, key, RLHF__GGUF_STR, n);
    for (size_t i = 0; i < n; i++)
        rlhf__gguf_item_str(g, text[i], strlen(text[i]));
}

static const char *put_bad(struct scratch *s, const struct bad *b) {
    struct rlhf__error err = {0, ""};
    const char *path = scratch_path(s, "bad.gguf");
    struct rlhf__gguf *g = rlhf__gguf_writer_open();
    rlhf__gguf_str(g, "general.architecture", "llama");
    if (b->model) rlhf__gguf_str(g, "tokenizer.ggml.model", b->model);
    if (b->pre) rlhf__gguf_str(g, "tokenizer.ggml.pre", b->pre);
    if (b->n_tokens) put_strings(g, "tokenizer.ggml.tokens", b->token, b->n_tokens);
    if (b->n_types) rlhf__gguf_array(g, "tokenizer.ggml.token_type", RLHF__GGUF_I32, b->n_types);
    for (uint32_t i = 0; i < b->n_types; i++)
        rlhf__gguf_item_i32(g, 1);
    if (b->n_scores) rlhf__gguf_array(g, "tokenizer.ggml.scores", RLHF__GGUF_F32, b->n_scores);
    for (uint32_t i = 0; i < b->n_scores; i++)
        rlhf__gguf_item_f32(g, 0);
    if (b->merge) put_strings(g, "tokenizer.ggml.merges", &b->merge, 1);
    if (b->id_key) rlhf__gguf_u32(g, b->id_key, b->id);
    if (b->adds_eos) rlhf__gguf_bool(g, "tokenizer.ggml.add_eos_token", 1);
    check_ok(rlhf__gguf_begin(g, NULL, path, &err), &err);
    check_ok(rlhf__gguf_commit(g, &err), &err);
    return path;
}

static void refused(void **state) {
    static const struct bad cases[] = {
        {.says = "tokenizer.ggml.model is missing; supported are gpt2"},
        {"bert", .says = "tokenizer.ggml.model is bert; supported are gpt2"},
        {"gpt2", .says = "tokenizer.ggml.pre is missing"},
        {"gpt2", "falcon", .says = "tokenizer.ggml.pre is 'falcon'; it says how texts"},
        {"gpt2", "gpt-2", .says = "the file has no tokens"},
        {"gpt2", "gpt-2", {"a", "\xFF"}, 2, .says = "token 1 of tokenizer.ggml.tokens is not a"},
        {"gpt2",
         "gpt-2",
         {"a", "b", "a"},
         3,
         .says = "the tokens 0 and 2 of tokenizer.ggml.tokens have the same text, \"a\"; each may"},
        {"gpt2", "gpt-2", {"a", "b"}, 2, 3, .says = "tokenizer.ggml.token_type has 3 elements"},
        {"gpt2", "gpt-2", {"a", "b"}, 2, 2, .says = "the file lacks tokenizer.ggml.merges"},
        {"gpt2",
         "gpt-2",
         {"a", "b"},
         2,
         2,
         0,
         "\xFF a",
         .says = "merge 0 of tokenizer.ggml.merges"},
        {"gpt2", "gpt-2", {"a", "b"}, 2, 2, 0, "a b", .says = "'ab' is not in the vocabulary"},
        {"gpt2",
         "gpt-2",
         {"a", "b"},
         2,
         2,
         0,
         "a b",
         "tokenizer.ggml.eos_token_id",
         2,
         .says = "tokenizer.ggml.eos_token_id is 2, and the file has 2 tokens"},
        {"gpt2",
         "gpt-2",
         {"a", "b"},
         2,
         2,
         0,
         "a b",
         NULL,
         0,
         1,
         .says = "eos is put around texts, but the file lacks tokenizer.ggml.eos_token_id"},
        {"llama",
         NULL,
         {"a", "b"},
         2,
         2,
         0,
         NULL,
         "tokenizer.ggml.bos_token_id",
         0,
         .says = "the file lacks tokenizer.ggml.scores"},
        {"llama",
         NULL,
         {"a", "b"},
         2,
         2,
         2,
         .says = "bos is put around texts, but the file lacks tokenizer.ggml.bos_token_id"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__error err = {0, ""};
        struct rlhf__tokenizer *tok;
        const char *path = put_bad(*state, &cases[i]);
        if (rlhf__tokenizer_open(path, &tok, &err) == RLHF_OK) fail_msg("case %zu", i);
        if (!strstr(err.text, cases[i].says) || !strstr(err.text, "bad.gguf"))
            fail_msg("case %zu: %s\nlacks: %s", i, err.text, cases[i].says);
    }
}

// All divisions of a piece are tried, so its length has a limit.
static void long_pieces(void **state) {
    for (size_t n = 1024; n <= 1025; n++) {
        char piece[1026] = "";
        struct rlhf__error err = {0, ""};
        struct rlhf__tokenizer *tok = NULL;
        memset(piece, 'a', n);
        const struct bad b = {"llama", NULL, {"<s>", "a", piece},           3, 3,
                              3,       NULL, "tokenizer.ggml.bos_token_id", 0, 0,
                              NULL};
        const rlhf_status st = rlhf__tokenizer_open(put_bad(*state, &b), &tok, &err);
        if (n == 1024)
            check_ok(st, &err);
        else
            check_error(st, RLHF_E_INVALID, &err,
                        "bad.gguf: token 2 has 1025 bytes; allowed are at most 1024, because");
        rlhf__tokenizer_close(tok);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(byte_level, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(sentence_pieces, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(settings, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(copies, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(refused, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(long_pieces, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("gguf_text", tests, NULL, NULL);
}
