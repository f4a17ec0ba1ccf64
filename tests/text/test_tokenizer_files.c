// test_tokenizer_files.c: tokenizer folders in their various forms, and broken folders.
#include "support/scratch.h"

#include "base/json.h"
#include "text/bpe.h"
#include "text/unicode.h"
#include "tokenizer/tokenizer.h"

// Writes vocab.json with the members {"<the character that stands for byte b>": b, ...} and the
// members in `more`.
static void write_vocab(struct scratch *s, const char *more) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    uint16_t chars[256];
    rlhf__bpe_byte_chars(chars);
    for (int b = 0; b < 256; b++) {
        char c[4];
        rlhf__buf_putc(&text, b ? ',' : '{');
        rlhf__json_write_string(&text, c, rlhf__utf8_put(chars[b], c));
        rlhf__buf_printf(&text, ":%d", b);
    }
    rlhf__buf_puts(&text, more);
    rlhf__buf_puts(&text, "}");
    scratch_bytes(s, "vocab.json", text.data, text.len);
    rlhf__buf_finish(&text);
}

static void expect_error(struct scratch *s, rlhf_status code, const char *part) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    check_error(rlhf__tokenizer_open(s->dir, &tok, &err), code, &err, part);
    assert_null(tok);
}

static struct rlhf__tokenizer *expect_open(struct scratch *s) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_open(s->dir, &tok, &err), &err);
    return tok;
}

static void missing_files(void **state) {
    struct scratch *s = *state;
    expect_error(s, RLHF_E_INVALID, "holds no tokenizer");
    scratch_text(s, "merges.txt", "");
    expect_error(s, RLHF_E_INVALID, "has merges.txt but no vocab.json");
}

static void broken_vocab_json(void **state) {
    struct scratch *s = *state;
    scratch_text(s, "merges.txt", "#version: 0.2\n");
    scratch_text(s, "vocab.json", "{\"a\": 1,");
    expect_error(s, RLHF_E_INVALID, "vocab.json:1");
    scratch_text(s, "vocab.json", "[1]");
    expect_error(s, RLHF_E_INVALID, "expected an object");
    scratch_text(s, "vocab.json", "{\"a\": \"b\"}");
    expect_error(s, RLHF_E_INVALID, "the id of 'a' is a string");
    scratch_text(s, "vocab.json", "{\"a\": -1}");
    expect_error(s, RLHF_E_INVALID, "token id -1 is outside");
    scratch_text(s, "vocab.json", "{\"a\": 99999999999}");
    expect_error(s, RLHF_E_INVALID, "is outside");
    scratch_text(s, "vocab.json", "{\"a\": 0, \"b\": 0}");
    expect_error(s, RLHF_E_INVALID, "two tokens have the id 0");
    scratch_text(s, "vocab.json", "{}");
    expect_error(s, RLHF_E_INVALID, "vocab.json: the vocabulary has no tokens");
}

// As with GPT2Tokenizer of transformers, bytes without a token are dropped.
static void not_every_byte(void **state) {
    struct scratch *s = *state;
    scratch_text(s, "vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2, \"\u0120\": 3}");
    scratch_text(s, "merges.txt", "a b\n");
    struct rlhf__tokenizer *tok = expect_open(s);
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_encode(tok, (rlhf_str){"a\x04 cacb", 7}, 0, 0, &ids, &err), &err);
    const int32_t want[] = {0, 3, 2};
    assert_int_equal(ids.n, 3);
    assert_memory_equal(ids.data, want, sizeof want);
    char *text = rlhf__tokenizer_text(tok, ids.data, ids.n, 0, NULL);
    assert_string_equal(text, "a ab");
    free(text);
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
}

// A special token without a row in the model is left out; a text cannot contain it. Ordinary tokens
// and the end token need a row.
static void tokens_without_a_row(void **state) {
    struct scratch *s = *state;
    write_vocab(s, "");
    scratch_text(s, "merges.txt", "");
    scratch_text(s, "added_tokens.json", "{\"[PAD]\": 256}");
    scratch_text(s, "tokenizer_config.json", "{\"pad_token\": \"[PAD]\"}");
    struct rlhf__tokenizer *tok = expect_open(s);
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    const rlhf_str text = {"a[PAD]b", 7};
    assert_int_equal(rlhf__tokenizer_info(tok)->pad, 256);
    check_error(rlhf__tokenizer_fit(tok, 255, "m", &err), RLHF_E_INVALID, &err,
                "257 tokens but the model has 255");
    check_ok(rlhf__tokenizer_fit(tok, 256, "m", &err), &err);
    assert_int_equal(rlhf__tokenizer_info(tok)->n_vocab, 256);
    assert_int_equal(rlhf__tokenizer_info(tok)->pad, -1);
    assert_int_equal(rlhf__tokenizer_find(tok, (rlhf_str){"[PAD]", 5}), -1);
    check_ok(rlhf__tokenizer_encode(tok, text, RLHF__ENCODE_SPECIAL, 0, &ids, &err), &err);
    assert_int_equal(ids.n, 7);
    for (size_t i = 0; i < ids.n; i++)
        assert_int_equal(ids.data[i], (uint8_t)text.ptr[i]);
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
    scratch_text(s, "tokenizer_config.json", "{\"eos_token\": \"[PAD]\"}");
    tok = expect_open(s);
    check_error(rlhf__tokenizer_fit(tok, 256, "m", &err), RLHF_E_INVALID, &err,
                "call resize_token_embeddings()");
    rlhf__tokenizer_close(tok);
}

static void broken_merges(void **state) {
    struct scratch *s = *state;
    write_vocab(s, ",\"ab\":256");
    scratch_text(s, "merges.txt", "#version: 0.2\na b\nab c\n");
    expect_error(s, RLHF_E_INVALID, "merges.txt:3: 'abc' is not in the vocabulary");
    scratch_text(s, "merges.txt", "a b\nabc\n");
    expect_error(s, RLHF_E_INVALID, "merges.txt:2: expected two tokens");
    scratch_text(s, "merges.txt", "a  b\n");
    expect_error(s, RLHF_E_INVALID, "merges.txt:1");
    scratch_text(s, "merges.txt", "a \xFF\n");
    expect_error(s, RLHF_E_INVALID, "not written in byte characters");
}

static void merges_go_by_rank(void **state) {
    struct scratch *s = *state;
    write_vocab(s, ",\"ab\":256,\"bc\":257,\"abc\":258,\"<|endoftext|>\":259");
    scratch_text(s, "merges.txt", "b c\r\na b\r\na bc\r\n"); // CRLF, no version line
    struct rlhf__tokenizer *tok = expect_open(s);
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_encode(tok, (rlhf_str){"abcabab", 7}, 0, 0, &ids, &err), &err);
    const int32_t want[] = {258, 256, 256};
    assert_int_equal(ids.n, 3);
    assert_memory_equal(ids.data, want, sizeof want);
    assert_int_equal(rlhf__tokenizer_info(tok)->eos, 259); // the usual name
    assert_int_equal(rlhf__tokenizer_info(tok)->n_vocab, 260);
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
}

// If several pairs have the same rank, the leftmost pair is merged first, in both short and long
// words.
static void ties_go_to_the_left(void **state) {
    struct scratch *s = *state;
    write_vocab(s, ",\"aa\":256");
    scratch_text(s, "merges.txt", "a a\n");
    struct rlhf__tokenizer *tok = expect_open(s);
    char text[101];
    memset(text, 'a', sizeof text);
    for (size_t n = 3; n <= sizeof text; n += 2) {
        struct rlhf__ids ids = {0};
        struct rlhf__error err = {0};
        check_ok(rlhf__tokenizer_encode(tok, (rlhf_str){text, n}, 0, 0, &ids, &err), &err);
        assert_int_equal(ids.n, n / 2 + 1);
        assert_int_equal(ids.data[0], 256);
        assert_int_equal(ids.data[ids.n - 1], 'a');
        rlhf__ids_finish(&ids);
    }
    rlhf__tokenizer_close(tok);
}

static void roles_come_from_the_first_file_that_names_them(void **state) {
    struct scratch *s = *state;
    write_vocab(s, "");
    scratch_text(s, "merges.txt", "");
    scratch_text(s, "config.json",
                 "{\"bos_token_id\": 1, \"eos_token_id\": [2, 3], \"pad_token_id\": 50256}");
    scratch_text(s, "added_tokens.json", "{\"<user>\": 300}");
    scratch_text(s, "tokenizer_config.json",
                 "{\"bos_token\": \"<s>\", \"unk_token\": null, \"added_tokens_decoder\":"
                 "{\"301\": {\"content\": \"<s>\", \"special\": true}}}");
    // If there is an added_tokens_decoder, special_tokens_map.json is ignored, even if it is
    // invalid.
    scratch_text(s, "special_tokens_map.json", "{\"bos_token\": {\"content\": \"<user>\"}, ");
    struct rlhf__tokenizer *tok = expect_open(s);
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    assert_int_equal(info->bos, 301);
    assert_int_equal(info->eos, 2);
    assert_int_equal(info->pad, -1);
    assert_int_equal(info->n_vocab, 302);
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_encode(tok, (rlhf_str){"x<s><user>", 10}, RLHF__ENCODE_SPECIAL, 0,
                                    &ids, &err),
             &err);
    const int32_t want[] = {'x', 301, 300};
    assert_int_equal(ids.n, 3);
    assert_memory_equal(ids.data, want, sizeof want);
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
}

static void expect_ends(struct scratch *s, int32_t bos, int32_t eos) {
    struct rlhf__tokenizer *tok = expect_open(s);
    assert_int_equal(rlhf__tokenizer_info(tok)->bos, bos);
    assert_int_equal(rlhf__tokenizer_info(tok)->eos, eos);
    rlhf__tokenizer_close(tok);
}

// Both files are interpreted as in transformers 5.23.
static void roles_of_the_map_count_without_an_added_tokens_decoder(void **state) {
    struct scratch *s = *state;
    write_vocab(s, "");
    scratch_text(s, "merges.txt", "");
    scratch_text(s, "config.json", "{\"bos_token_id\": 1, \"eos_token_id\": 2}");
    scratch_text(s, "special_tokens_map.json",
                 "{\"bos_token\": null, \"eos_token\": {\"content\": \"B\"}}");
    scratch_text(s, "tokenizer_config.json", "{\"bos_token\": \"A\", \"eos_token\": \"A\"}");
    expect_ends(s, -1, 'B');
    scratch_text(s, "tokenizer_config.json",
                 "{\"bos_token\": \"A\", \"eos_token\": \"A\", \"added_tokens_decoder\": {}}");
    expect_ends(s, 'A', 'A');
    scratch_text(s, "tokenizer_config.json", "{\"added_tokens_decoder\": {}}");
    expect_ends(s, 1, 2);
    scratch_text(s, "tokenizer_config.json", "{\"eos_token\": \"A\"}");
    scratch_text(s, "special_tokens_map.json", "{\"bos_token\": \"B\"}");
    expect_ends(s, 'B', 'A');
}

static void refused_options(void **state) {
    struct scratch *s = *state;
    write_vocab(s, "");
    scratch_text(s, "merges.txt", "");
    scratch_text(s, "tokenizer_config.json", "{\"add_prefix_space\": true}");
    expect_error(s, RLHF_E_UNSUPPORTED, "add_prefix_space");
    scratch_text(s, "tokenizer_config.json", "{\"tokenizer_class\": \"Qwen2Tokenizer\"}");
    expect_error(s, RLHF_E_UNSUPPORTED, "Qwen2Tokenizer");
    scratch_text(s, "tokenizer_config.json",
                 "{\"added_tokens_decoder\": {\"x\": {\"content\": \"<s>\"}}}");
    expect_error(s, RLHF_E_INVALID, "'x' is not an id");
    scratch_text(s, "tokenizer_config.json",
                 "{\"added_tokens_decoder\": {\"65\": {\"content\": \"<s>\"}}}");
    expect_error(s, RLHF_E_INVALID, "has the id 65 of 'A'");
    scratch_text(s, "tokenizer_config.json", "{\"do_lower_case\": ");
    expect_error(s, RLHF_E_INVALID, "tokenizer_config.json:1");
    scratch_text(s, "tokenizer_config.json", "{\"added_tokens_decoder\": []}");
    expect_error(s, RLHF_E_INVALID,
                 "tokenizer_config.json: added_tokens_decoder: expected an object, found a list");
    scratch_text(s, "tokenizer_config.json",
                 "{\"eos_token\": {\"content\": \"A\", \"lstrip\": 1}}");
    expect_error(s, RLHF_E_INVALID, "tokenizer_config.json: the added token 'A': lstrip is an");
    scratch_text(s, "special_tokens_map.json",
                 "{\"eos_token\": {\"content\": \"A\", \"lstrip\": \"no\"}}");
    expect_error(s, RLHF_E_INVALID, "special_tokens_map.json: the added token 'A': lstrip is a st");
    scratch_text(s, "special_tokens_map.json",
                 "{\"additional_special_tokens\": [{\"content\": \"B\", \"rstrip\": 1}]}");
    scratch_text(s, "tokenizer_config.json", "{\"eos_token\": \"A\"}");
    expect_error(s, RLHF_E_INVALID, "special_tokens_map.json: the added token 'B': rstrip is an");
    scratch_text(s, "special_tokens_map.json", "{}");
    scratch_text(s, "tokenizer_config.json", "{}");
    scratch_text(s, "added_tokens.json", "{\"<s>\": \"x\"}");
    expect_error(s, RLHF_E_INVALID, "added_tokens.json: '<s>': expected an integer id");
}

static void broken_vocab_txt(void **state) {
    struct scratch *s = *state;
    scratch_text(s, "vocab.txt", "");
    expect_error(s, RLHF_E_INVALID, "vocab.txt: the file is empty");
    scratch_text(s, "vocab.txt", "[PAD]\nword\n");
    expect_error(s, RLHF_E_INVALID, "[UNK], [CLS] and [SEP]");
    scratch_text(s, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\ncaf\xC3\n");
    expect_error(s, RLHF_E_INVALID, "line 5 is not valid UTF-8");
    scratch_text(s, "vocab.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nword");
    struct rlhf__tokenizer *tok = expect_open(s);
    assert_int_equal(rlhf__tokenizer_info(tok)->n_vocab, 5);
    assert_int_equal(rlhf__tokenizer_find(tok, (rlhf_str){"word", 4}), 4);
    rlhf__tokenizer_close(tok);
}

static void one_file_wordpiece(void **state) {
    struct scratch *s = *state;
    scratch_text(s, "tokenizer.json",
                 "{\"normalizer\": {\"type\": \"BertNormalizer\", \"lowercase\": true,"
                 " \"strip_accents\": null}, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},"
                 " \"added_tokens\": [{\"id\": 0, \"content\": \"[UNK]\", \"special\": true}],"
                 " \"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[UNK]\": 0, \"[CLS]\": 1,"
                 " \"[SEP]\": 2, \"ab\": 3, \"##c\": 4}}}");
    struct rlhf__tokenizer *tok = expect_open(s);
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_encode(tok, (rlhf_str){"ABC x", 5}, 0, 0, &ids, &err), &err);
    const int32_t want[] = {3, 4, 0};
    assert_int_equal(ids.n, 3);
    assert_memory_equal(ids.data, want, sizeof want);
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
}

// Invalid UTF-8 is dropped, or becomes a separate character. The library accepts only valid UTF-8,
// so there are no results of the library to compare with.
static void bert_drops_ill_formed_bytes(void **state) {
    struct scratch *s = *state;
    for (int clean = 0; clean < 2; clean++) {
        char file[512];
        snprintf(file, sizeof file,
                 "{\"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": %s},"
                 " \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, \"model\":"
                 " {\"type\": \"WordPiece\", \"vocab\": {\"[UNK]\": 0, \"[CLS]\": 1,"
                 " \"[SEP]\": 2, \"ab\": 3, \"a\xEF\xBF\xBD"
                 "b\": 4}}}",
                 clean ? "true" : "false");
        scratch_text(s, "tokenizer.json", file);
        struct rlhf__tokenizer *tok = expect_open(s);
        struct rlhf__ids ids = {0};
        struct rlhf__error err = {0};
        check_ok(rlhf__tokenizer_encode(tok,
                                        (rlhf_str){"a\xFF"
                                                   "b",
                                                   3},
                                        0, 0, &ids, &err),
                 &err);
        assert_int_equal(ids.n, 1);
        assert_int_equal(ids.data[0], clean ? 3 : 4);
        rlhf__ids_finish(&ids);
        rlhf__tokenizer_close(tok);
    }
}

// The committed vocabulary as a tokenizer.json, with both spellings of merges.
static void one_file_bpe(void **state) {
    struct scratch *s = *state;
    for (int pairs = 0; pairs < 2; pairs++) {
        json_t *vocab = json_load_file("data/bpe/vocab.json", 0, NULL), *merges = json_array();
        char line[256], left[128], right[128];
        FILE *f = fopen("data/bpe/merges.txt", "r");
        assert_non_null(f);
        while (fgets(line, sizeof line, f))
            if (line[0] != '#' && sscanf(line, "%127s %127s", left, right) == 2)
                json_array_append_new(merges, pairs ? json_pack("[ss]", left, right)
                                                    : json_sprintf("%s %s", left, right));
        fclose(f);
        json_t *file =
            json_pack("{s:{s:s,s:o,s:o},s:{s:s},s:n}", "model", "type", "BPE", "vocab", vocab,
                      "merges", merges, "pre_tokenizer", "type", "ByteLevel", "normalizer");
        assert_int_equal(json_dump_file(file, scratch_path(s, "tokenizer.json"), 0), 0);
        json_decref(file);
        struct rlhf__tokenizer *tok = expect_open(s), *want = NULL;
        struct rlhf__error err = {0};
        struct rlhf__ids a = {0}, b = {0};
        check_ok(rlhf__tokenizer_open("data/bpe", &want, &err), &err);
        rlhf_str text = {"The lighthouse keeper, unbelievably slow", 40};
        check_ok(rlhf__tokenizer_encode(tok, text, 0, 0, &a, &err), &err);
        check_ok(rlhf__tokenizer_encode(want, text, 0, 0, &b, &err), &err);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.data, b.data, a.n * sizeof *a.data);
        rlhf__ids_finish(&a);
        rlhf__ids_finish(&b);
        rlhf__tokenizer_close(tok);
        rlhf__tokenizer_close(want);
    }
}

static void one_file_refused(void **state) {
    struct scratch *s = *state;
    scratch_text(s, "tokenizer.json", "{\"model\": {\"type\": \"Unigram\", \"vocab\": {}}}");
    expect_error(s, RLHF_E_UNSUPPORTED, "'Unigram' is not supported");
    scratch_text(s, "tokenizer.json",
                 "{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", -1]]}}");
    expect_error(s, RLHF_E_UNSUPPORTED, "'Unigram' is not supported; allowed: BPE, WordPiece");
    scratch_text(s, "tokenizer.json",
                 "{\"model\": {\"type\": \"BPE\", \"vocab\": {}},"
                 " \"pre_tokenizer\": {\"type\": \"Sequence\"}}");
    expect_error(s, RLHF_E_INVALID,
                 "the pre_tokenizer Sequence: pretokenizers: expected an array, found missing");
    scratch_text(s, "tokenizer.json", "{}");
    expect_error(s, RLHF_E_INVALID, "model.vocab is missing");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(missing_files),
        TEST(broken_vocab_json),
        TEST(not_every_byte),
        TEST(tokens_without_a_row),
        TEST(broken_merges),
        TEST(merges_go_by_rank),
        TEST(ties_go_to_the_left),
        TEST(roles_come_from_the_first_file_that_names_them),
        TEST(refused_options),
        TEST(broken_vocab_txt),
        TEST(one_file_wordpiece),
        TEST(one_file_bpe),
        TEST(one_file_refused),
        TEST(bert_drops_ill_formed_bytes),
        TEST(roles_of_the_map_count_without_an_added_tokens_decoder),
    };
    return cmocka_run_group_tests_name("tokenizer files", tests, NULL, NULL);
}
