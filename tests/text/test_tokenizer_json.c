// test_tokenizer_json.c: tokenizer.json alone and together with the older files. Checks which file
// takes precedence, parts that are refused, tokens around a text, and added tokens.
#include "support/scratch.h"

#include "base/json.h"
#include "text/bpe.h"
#include "text/unicode.h"
#include "tokenizer/tokenizer.h"

// The 256 bytes, "ab" 256 and <|endoftext|> 257, as the inside of {}.
static void put_vocab(struct rlhf__buf *text) {
    uint16_t chars[256];
    rlhf__bpe_byte_chars(chars);
    for (int b = 0; b < 256; b++) {
        char c[4];
        rlhf__json_write_string(text, c, rlhf__utf8_put(chars[b], c));
        rlhf__buf_printf(text, ":%d,", b);
    }
    rlhf__buf_puts(text, "\"ab\":256,\"<|endoftext|>\":257");
}

// Writes a tokenizer.json with `members` next to the model, and with `in_model` inside the model.
static void write_file(struct scratch *s, const char *members, const char *in_model) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text,
                     "{%s%s\"model\":{\"type\":\"BPE\",%s%s\"merges\":[[\"a\",\"b\"]],"
                     "\"vocab\":{",
                     members, *members ? "," : "", in_model, *in_model ? "," : "");
    put_vocab(&text);
    rlhf__buf_puts(&text, "}}}");
    scratch_bytes(s, "tokenizer.json", text.data, text.len);
    rlhf__buf_finish(&text);
}

static void write_old(struct scratch *s, const char *merges) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_puts(&text, "{");
    put_vocab(&text);
    rlhf__buf_puts(&text, "}");
    scratch_bytes(s, "vocab.json", text.data, text.len);
    rlhf__buf_finish(&text);
    scratch_text(s, "merges.txt", merges);
}

#define BYTES "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}"
#define OTHER                                                                                      \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Other\","             \
    "\"individual_digits\":true},{\"type\":\"ByteLevel\",\"add_prefix_space\":false}]}"

static void expect_error(struct scratch *s, rlhf_status code, const char *part) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    check_error(rlhf__tokenizer_open(s->dir, &tok, &err), code, &err, part);
    assert_null(tok);
}

static void expect_ids(struct scratch *s, const char *text, uint32_t flags, size_t n,
                       const int32_t *want) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    struct rlhf__ids ids = {0};
    check_ok(rlhf__tokenizer_open(s->dir, &tok, &err), &err);
    check_ok(rlhf__tokenizer_encode(tok, (rlhf_str){text, strlen(text)}, flags, 0, &ids, &err),
             &err);
    if (ids.n != n) fail_msg("\"%s\": %zu ids, expected %zu", text, ids.n, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(ids.data[i], want[i]);
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
}

#define IDS(...)                                                                                   \
    (sizeof(int32_t[]){__VA_ARGS__} / sizeof(int32_t)), (const int32_t[]) { __VA_ARGS__ }

// Even with vocab.json and merges.txt, a pipeline other than GPT-2's is not treated as GPT-2's.
static void the_pipeline_counts_beside_older_files(void **state) {
    struct scratch *s = *state;
    write_old(s, "a b\n");
    expect_ids(s, "ab", 0, IDS(256));
    write_file(s, OTHER, "");
    expect_error(s, RLHF_E_UNSUPPORTED,
                 "tokenizer.json: the pre_tokenizer 'Other' is not supported");
    write_file(s, BYTES, "");
    expect_ids(s, "ab", 0, IDS(256));
}

static void contradictions(void **state) {
    struct scratch *s = *state;
    write_file(s, BYTES, "");
    write_old(s, "#version: 0.2\n");
    expect_error(s, RLHF_E_INVALID, "merges.txt and tokenizer.json contradict each other");
    write_old(s, "a b\nb a\n");
    expect_error(s, RLHF_E_INVALID, "merges.txt:2: 'ba' is not in the vocabulary");
    write_old(s, "a b\n");
    write_file(s, BYTES ",\"added_tokens\":[{\"id\":258,\"content\":\"<x>\",\"special\":true}]",
               "");
    expect_ids(s, "ab", 0, IDS(256)); // an added token may be missing in vocab.json
    scratch_text(s, "vocab.json", "{\"a\": 1}");
    expect_error(s, RLHF_E_INVALID, "merges.txt:1: 'b' is not in the vocabulary");
    scratch_text(s, "merges.txt", "");
    expect_error(s, RLHF_E_INVALID,
                 "vocab.json and tokenizer.json contradict each other: the id 0 is '' in one");
}

static void wordpiece_contradictions(void **state) {
    struct scratch *s = *state;
    const char *file = "{\"normalizer\": {\"type\": \"BertNormalizer\"%s},"
                       " \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},"
                       " \"model\": {\"type\": \"WordPiece\"%s, \"vocab\": {\"[UNK]\": 0,"
                       " \"[CLS]\": 1, \"[SEP]\": 2, \"ab\": 3}}}";
    static const char *const refused[][3] = {
        {"", ", \"max_input_chars_per_word\": 64", "words of up to 100 characters"},
        {"", ", \"unk_token\": \"<unk>\"", "the token [UNK]"},
    };
    char text[512];
    snprintf(text, sizeof text, file, "", "");
    scratch_text(s, "tokenizer.json", text);
    expect_ids(s, "AB", RLHF__ENCODE_TEMPLATE, IDS(1, 3, 2));
    scratch_text(s, "vocab.txt", "[UNK]\n[CLS]\n[SEP]\nab\n");
    expect_ids(s, "AB", RLHF__ENCODE_TEMPLATE, IDS(1, 3, 2));
    scratch_text(s, "vocab.txt", "[UNK]\n[CLS]\n[SEP]\nabc\n");
    expect_error(s, RLHF_E_INVALID,
                 "vocab.txt and tokenizer.json contradict each other: the id 3 "
                 "is 'abc' in one and 'ab' in the other");
    for (size_t i = 0; i < CHECK_COUNT(refused); i++) {
        snprintf(text, sizeof text, file, refused[i][0], refused[i][1]);
        scratch_text(s, "tokenizer.json", text);
        expect_error(s, RLHF_E_UNSUPPORTED, refused[i][2]);
    }
}

static void parts_are_refused_by_name(void **state) {
    struct scratch *s = *state;
    static const char *const cases[][3] = {
        {BYTES ",\"normalizer\":{\"type\":\"Nmt\"}", "", "the normalizer 'Nmt' is not supported"},
        {BYTES ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Nmt\"},"
               "{\"type\":\"Lowercase\"}]}",
         "", "the normalizer 'Nmt' is not supported"},
        {"\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\"},"
         "{\"type\":\"ByteLevel\"}]}",
         "", "the pre_tokenizer 'ByteLevel' after ByteLevel is not supported"},
        {BYTES ",\"decoder\":{\"type\":\"Metaspace\"}", "", "the decoder 'Metaspace'"},
        {BYTES ",\"post_processor\":{\"type\":\"Other\"}", "", "the post_processor 'Other'"},
        {BYTES ",\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"Odd\"}]}",
         "", "the post_processor 'Odd'"},
        {BYTES, "\"dropout\":0.1", "dropout"},
        {BYTES, "\"end_of_word_suffix\":\"</w>\"", "end_of_word_suffix"},
        {BYTES, "\"continuing_subword_prefix\":\"@@\"", "continuing_subword_prefix"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        write_file(s, cases[i][0], cases[i][1]);
        expect_error(s, RLHF_E_UNSUPPORTED, cases[i][2]);
    }
    write_file(s,
               "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
               "\"ByteLevel\"}]},\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[]}",
               "\"dropout\":null,\"continuing_subword_prefix\":\"\"");
    expect_ids(s, "ab", 0, IDS(256)); // a sequence of one, or an empty one
}

// Members that the library refuses are not treated as missing.
static void members_of_another_type_are_refused(void **state) {
    struct scratch *s = *state;
    static const char *const cases[][3] = {
        {BYTES ",\"added_tokens\":{\"258\":{\"content\":\"<s>\"}}", "",
         "tokenizer.json: added_tokens: expected an array, found an object"},
        {BYTES ",\"added_tokens\":null", "", "added_tokens: expected an array, found null"},
        {BYTES, "\"ignore_merges\":1", "model.ignore_merges: expected true or false, found an int"},
        {BYTES, "\"byte_fallback\":\"true\"",
         "model.byte_fallback: expected true or false, found a"},
        {BYTES, "\"fuse_unk\":[]", "model.fuse_unk: expected true or false, found a list"},
        {BYTES, "\"unk_token\":0", "model.unk_token: expected a text, found an integer"},
        {BYTES, "\"dropout\":\"0.1\"", "model.dropout: expected a number, found a string"},
        {BYTES, "\"end_of_word_suffix\":[\"</w>\"]", "model.end_of_word_suffix: expected a text"},
        {BYTES, "\"continuing_subword_prefix\":1", "model.continuing_subword_prefix: expected a"},
        {BYTES ",\"post_processor\":{\"type\":\"Sequence\",\"processors\":{}}", "",
         "the post_processor Sequence: processors: expected an array, found an object"},
        {BYTES ",\"post_processor\":{\"type\":\"Sequence\"}", "",
         "the post_processor Sequence: processors: expected an array, found missing"},
        {BYTES ",\"post_processor\":[]", "", "the post_processor: expected an object, found a li"},
        {BYTES ",\"normalizer\":1", "", "the normalizer: expected an object, found an integer"},
        {BYTES ",\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":\"false\"}", "",
         "the normalizer BertNormalizer: lowercase: expected true or false, found a string"},
        {BYTES ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[\"ByteLevel\"]}", "",
         "the decoder: expected an object, found a string"},
        {"\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\","
         "\"individual_digits\":1},{\"type\":\"ByteLevel\"}]}",
         "",
         "the pre_tokenizer Digits: individual_digits: expected true or false, found an integer"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        write_file(s, cases[i][0], cases[i][1]);
        expect_error(s, RLHF_E_INVALID, cases[i][2]);
    }
    write_file(s, BYTES ",\"post_processor\":{\"type\":\"Odd\",\"processors\":[]}", "");
    expect_error(s, RLHF_E_UNSUPPORTED, "the post_processor 'Odd' is not supported");
    // A member that is null counts as missing. A member that the type of its part does not have is
    // ignored.
    write_file(s,
               BYTES ",\"normalizer\":null,\"decoder\":null,\"post_processor\":{\"type\":"
                     "\"ByteLevel\",\"processors\":[{\"type\":\"Odd\"}]}",
               "\"ignore_merges\":null,\"unk_token\":null,\"dropout\":0");
    expect_ids(s, "ab", RLHF__ENCODE_TEMPLATE, IDS(256));
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_puts(&text, "{" BYTES ",\"model\":{\"type\":\"BPE\",\"merges\":{},\"vocab\":{");
    put_vocab(&text);
    rlhf__buf_puts(&text, "}}}");
    scratch_bytes(s, "tokenizer.json", text.data, text.len);
    rlhf__buf_finish(&text);
    expect_error(s, RLHF_E_INVALID, "model.merges: expected an array, found an object");
}

// Generic tokenizer classes rely on tokenizer.json. If the file is missing, they are refused.
static void classes_without_their_file(void **state) {
    struct scratch *s = *state;
    write_old(s, "a b\n");
    scratch_text(s, "tokenizer_config.json", "{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}");
    expect_error(s, RLHF_E_UNSUPPORTED,
                 "'PreTrainedTokenizerFast' is not supported without a tokenizer.json");
    write_file(s, BYTES, "");
    expect_ids(s, "ab", 0, IDS(256));
    scratch_text(s, "tokenizer_config.json", "{\"tokenizer_class\": \"GPT2SomethingElse\"}");
    expect_error(s, RLHF_E_UNSUPPORTED, "'GPT2SomethingElse' is not supported; allowed");
}

#define SPECIAL(text, id) "\"" text "\":{\"id\":\"" text "\",\"ids\":[" #id "],\"tokens\":[]}"
#define TEMPLATE(single)                                                                           \
    BYTES ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[" single               \
          "],\"special_tokens\":{" SPECIAL("<e>", 257) "," SPECIAL("<x>", 120) "}}"
#define TOKEN(text) "{\"SpecialToken\":{\"id\":\"" text "\",\"type_id\":0}}"
#define TEXT        "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"

static void around_a_text(void **state) {
    struct scratch *s = *state;
    uint32_t how = RLHF__ENCODE_TEMPLATE;
    write_file(s, TEMPLATE(TEXT), "");
    expect_ids(s, "ab", how, IDS(256));
    write_file(
        s, TEMPLATE(TOKEN("<e>") "," TOKEN("<x>") "," TEXT "," TOKEN("<x>") "," TOKEN("<e>")), "");
    expect_ids(s, "ab", how, IDS(257, 120, 256, 120, 257));
    expect_ids(s, "ab", 0, IDS(256));
    write_file(s,
               BYTES ",\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"x\",120],"
                     "\"cls\":[\"<e>\",257]}",
               "");
    expect_ids(s, "ab", how, IDS(257, 256, 120));
    write_file(s, BYTES ",\"post_processor\":{\"type\":\"ByteLevel\",\"trim_offsets\":false}", "");
    expect_ids(s, "ab", how, IDS(256));
    // If there is a tokenizer.json, add_bos_token is ignored.
    scratch_text(s, "tokenizer_config.json", "{\"add_bos_token\": true, \"add_eos_token\": true}");
    expect_ids(s, "ab", how, IDS(256));
    write_old(s, "a b\n");
    assert_int_equal(remove(scratch_path(s, "tokenizer.json")), 0);
    expect_ids(s, "ab", how, IDS(257, 256, 257));
    write_file(s, TEMPLATE(TOKEN("<y>") "," TEXT), "");
    expect_error(s, RLHF_E_INVALID, "special_tokens has no ids for '<y>'");
    write_file(s, TEMPLATE(TOKEN("<x>")), "");
    expect_error(s, RLHF_E_UNSUPPORTED, "must name the text once");
}

// Added tokens that are not special are found in every text.
static void added_tokens_are_found_in_texts(void **state) {
    struct scratch *s = *state;
    write_file(s,
               BYTES ",\"added_tokens\":[{\"id\":258,\"content\":\"b c\"},{\"id\":259,"
                     "\"content\":\"b cd\"},{\"id\":260,\"content\":\"<s>\",\"special\":true}]",
               "");
    expect_ids(s, "ab cdb c<s>", 0, IDS('a', 259, 258, '<', 's', '>'));
    expect_ids(s, "b<s>", RLHF__ENCODE_SPECIAL, IDS('b', 260));
    scratch_text(s, "tokenizer_config.json", "{\"additional_special_tokens\": [\"b c\"]}");
    expect_ids(s, "xb c", 0, IDS('x', 'b', 0x20, 'c'));
}

// If several added tokens are wrong, the message names one of them, and nothing more.
static void an_added_token_is_named_alone(void **state) {
    struct scratch *s = *state;
    write_file(s,
               BYTES ",\"added_tokens\":[{\"id\":258,\"content\":\"<s>\"},{\"id\":259,"
                     "\"content\":\"<t>\"}]",
               "");
    scratch_text(s, "tokenizer_config.json",
                 "{\"added_tokens_decoder\": {\"258\": {\"content\": \"<s>\", \"lstrip\": 1}}}");
    expect_error(s, RLHF_E_INVALID,
                 "tokenizer_config.json: the added token '<s>': lstrip is an integer");
}

#define REPEATS "((a|aa)+)+$"

// If backtracking takes too long, PCRE2 gives up. The tokenizers library gives up, too.
static void a_pattern_that_takes_too_long_is_named(void **state) {
    struct scratch *s = *state;
    const char *why =
        "the pattern \"" REPEATS "\" is not supported: PCRE2 gave up on a text: match "
        "limit exceeded";
    static const char hard[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    struct rlhf__ids ids = {0};
    write_file(s,
               "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
               "\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"" REPEATS
               "\"}},{\"type\":\"ByteLevel\"}]}",
               "");
    check_ok(rlhf__tokenizer_open(s->dir, &tok, &err), &err);
    check_error(rlhf__tokenizer_encode(tok, (rlhf_str){hard, strlen(hard)}, 0, 0, &ids, &err),
                RLHF_E_UNSUPPORTED, &err, why);
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
    // The file itself chooses the text of an added token.
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text,
                     BYTES ",\"normalizer\":{\"type\":\"Replace\",\"content\":\"-\",\"pattern\":"
                           "{\"Regex\":\"" REPEATS "\"}},\"added_tokens\":[{\"id\":258,"
                           "\"normalized\":true,\"content\":\"%s\"}]",
                     hard);
    write_file(s, rlhf__buf_text(&text), "");
    rlhf__buf_finish(&text);
    expect_error(s, RLHF_E_UNSUPPORTED, why);
    expect_error(s, RLHF_E_UNSUPPORTED, "tokenizer.json: the pattern");
}

// Files from before 2021 do not name the type of the model. The original files of GPT-2 and
// DistilBERT are such files.
static void models_without_a_type(void **state) {
    struct scratch *s = *state;
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_puts(&text, "{" BYTES ",\"model\":{\"dropout\":null,\"unk_token\":null,\"merges\":"
                          "[\"a b\"],\"vocab\":{");
    put_vocab(&text);
    rlhf__buf_puts(&text, "}}}");
    scratch_bytes(s, "tokenizer.json", text.data, text.len);
    rlhf__buf_finish(&text);
    expect_ids(s, "ab", 0, IDS(256));
    scratch_text(s, "tokenizer.json",
                 "{\"normalizer\": {\"type\": \"BertNormalizer\"}, \"pre_tokenizer\":"
                 " {\"type\": \"BertPreTokenizer\"}, \"model\": {\"unk_token\": \"[UNK]\","
                 " \"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100,"
                 " \"vocab\": {\"[UNK]\": 0, \"[CLS]\": 1, \"[SEP]\": 2, \"ab\": 3}}}");
    expect_ids(s, "AB", RLHF__ENCODE_TEMPLATE, IDS(1, 3, 2));
    scratch_text(s, "tokenizer.json", "{\"model\": {\"vocab\": {}}}");
    expect_error(s, RLHF_E_UNSUPPORTED, "the model 'none' is not supported");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_pipeline_counts_beside_older_files),
        TEST(contradictions),
        TEST(wordpiece_contradictions),
        TEST(parts_are_refused_by_name),
        TEST(classes_without_their_file),
        TEST(around_a_text),
        TEST(added_tokens_are_found_in_texts),
        TEST(models_without_a_type),
        TEST(members_of_another_type_are_refused),
        TEST(an_added_token_is_named_alone),
        TEST(a_pattern_that_takes_too_long_is_named),
    };
    return cmocka_run_group_tests_name("tokenizer.json", tests, NULL, NULL);
}
