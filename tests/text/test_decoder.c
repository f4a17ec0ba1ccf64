// test_decoder.c: decoders give the same results as the Python `tokenizers` library for the tokens
// of data/decoders.jsonl (made by make_vectors.py). Also tests the bytes of a token inside a text,
// and refused decoders.
#include "support/scratch.h"

#include "text/decoder.h"

static json_t *parse(const char *text) {
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(v);
    return v;
}

static struct rlhf__decoder *create(const json_t *part, int bytes) {
    struct rlhf__decoder *decoder = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__decoder_open(part, bytes, &decoder, &err), &err);
    return decoder;
}

// Asserts that the tokens of a list have this text.
static void expect_text(const struct rlhf__decoder *decoder, const json_t *tokens, int inside,
                        const char *want, size_t len) {
    struct rlhf__spans list = {0}, spare = {0};
    struct rlhf__error err = {0};
    size_t i;
    const json_t *v;
    json_array_foreach(tokens, i, v) {
        rlhf__spans_put(&list, json_string_value(v), json_string_length(v));
        rlhf__spans_end(&list);
    }
    check_ok(rlhf__decoder_run(decoder, &list, &spare, inside, &err), &err);
    if (list.bytes.len != len || (len && memcmp(list.bytes.data, want, len) != 0))
        fail_msg("got \"%s\", expected \"%s\"", rlhf__buf_text(&list.bytes), want);
    rlhf__spans_finish(&list);
    rlhf__spans_finish(&spare);
}

static void as_the_library(void **state) {
    (void)state;
    char *line = NULL;
    size_t cap = 0, rows = 0;
    FILE *file = fopen("data/decoders.jsonl", "r");
    assert_non_null(file);
    for (; getline(&line, &cap, file) > 0; rows++) {
        json_t *row = parse(line);
        struct rlhf__decoder *decoder = create(json_object_get(row, "decoder"), 0);
        const json_t *text = json_object_get(row, "text");
        expect_text(decoder, json_object_get(row, "tokens"), 0, json_string_value(text),
                    json_string_length(text));
        rlhf__decoder_close(decoder);
        json_decref(row);
    }
    assert_true(rows > 15);
    free(line);
    fclose(file);
}

static void expect(const char *decoder, int bytes, int inside, const char *tokens,
                   const char *want) {
    json_t *part = decoder ? parse(decoder) : NULL, *list = parse(tokens);
    struct rlhf__decoder *d = create(part, bytes);
    expect_text(d, list, inside, want, strlen(want));
    rlhf__decoder_close(d);
    json_decref(part);
    json_decref(list);
}

#define LLAMA                                                                                      \
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"_\"},"   \
    "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\","      \
    "\"content\":\" \",\"start\":1,\"stop\":0}]}"

// Tokens in the middle of a text keep their bytes and their spaces.
static void inside_a_text(void **state) {
    (void)state;
    expect(LLAMA, 0, 0, "[\"_a\",\"<0xE2>\",\"<0x82>\"]", "a\xEF\xBF\xBD\xEF\xBF\xBD");
    expect(LLAMA, 0, 1, "[\"_a\",\"<0xE2>\",\"<0x82>\"]", " a\xE2\x82");
    expect("{\"type\":\"Metaspace\",\"replacement\":\"_\"}", 0, 1, "[\"_a\"]", " a");
    expect("{\"type\":\"Metaspace\",\"replacement\":\"_\"}", 0, 0, "[\"_a\"]", "a");
    expect("{\"type\":\"Strip\",\"content\":\"x\",\"start\":1,\"stop\":0}", 0, 1, "[\"xxa\"]",
           "xa");
    expect("{\"type\":\"WordPiece\"}", 0, 1, "[\"##a\",\"b\"]", "a b");
    expect("{\"type\":\"WordPiece\"}", 0, 0, "[\"##a\",\"b\"]", "##a b");
}

static void without_a_decoder(void **state) {
    (void)state;
    expect(NULL, 0, 0, "[\"a\",\"b\"]", "a b");
    expect("null", 0, 1, "[\"a\"]", " a");
    expect(NULL, 1, 0, "[\"a\",\"b\"]", "ab");
    expect("{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteLevel\"},{\"type\":\"Fuse\"}]}", 1,
           0, "[\"a\",\"b\"]", "ab");
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *decoder;
        int bytes;
        rlhf_status code;
        const char *part;
    } cases[] = {
        {"{\"type\":\"CTC\"}", 0, RLHF_E_UNSUPPORTED,
         "the decoder 'CTC' is not supported; allowed: "
         "ByteLevel, Metaspace, ByteFallback, Fuse"},
        {"{\"type\":\"BPEDecoder\"}", 0, RLHF_E_UNSUPPORTED, "the decoder 'BPEDecoder'"},
        {"{}", 0, RLHF_E_UNSUPPORTED, "the decoder 'none' is not supported"},
        {"{\"type\":\"Metaspace\"}", 1, RLHF_E_UNSUPPORTED,
         "the decoder 'Metaspace' is not supported for tokens of bytes; allowed: ByteLevel"},
        {"{\"type\":\"ByteLevel\"}", 0, RLHF_E_UNSUPPORTED,
         "the decoder 'ByteLevel' is not supported for tokens that are not bytes"},
        {"{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteLevel\"},{\"type\":\"ByteLevel\"}]}",
         1, RLHF_E_UNSUPPORTED, "the decoder 'ByteLevel' is not supported after another one"},
        {"{\"type\":\"Sequence\"}", 0, RLHF_E_INVALID, "the decoder Sequence: decoders is"},
        {"{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a+\"},\"content\":\"\"}", 0,
         RLHF_E_UNSUPPORTED, "the decoder Replace with a pattern Regex"},
        {"{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"}}", 0, RLHF_E_INVALID,
         "content must be a string"},
        {"{\"type\":\"Replace\",\"pattern\":{\"String\":1},\"content\":\"\"}", 0, RLHF_E_INVALID,
         "String is"},
        {"{\"type\":\"Strip\",\"content\":\"ab\",\"start\":1,\"stop\":0}", 0, RLHF_E_INVALID,
         "the decoder Strip: content must be one character"},
        {"{\"type\":\"Strip\",\"content\":\"a\",\"start\":-1,\"stop\":0}", 0, RLHF_E_INVALID,
         "the decoder Strip: start must be a count"},
        {"{\"type\":\"Strip\",\"content\":\"a\",\"start\":1}", 0, RLHF_E_INVALID,
         "the decoder Strip: stop must be a count"},
        {"{\"type\":\"Metaspace\",\"replacement\":\"\"}", 0, RLHF_E_INVALID,
         "replacement must be one character"},
        {"{\"type\":\"WordPiece\",\"prefix\":7}", 0, RLHF_E_INVALID,
         "the decoder WordPiece: prefix is"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__decoder *decoder = NULL;
        struct rlhf__error err = {0};
        json_t *part = parse(cases[i].decoder);
        check_error(rlhf__decoder_open(part, cases[i].bytes, &decoder, &err), cases[i].code, &err,
                    cases[i].part);
        assert_null(decoder);
        json_decref(part);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_library),
        cmocka_unit_test(inside_a_text),
        cmocka_unit_test(without_a_decoder),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("decoders", tests, NULL, NULL);
}
