// replay.c: runs a fuzz target over the inputs of its corpus (corpus.py). Each input is also tried
// truncated, and with single bytes changed. So the normal suite repeats old findings without a
// fuzzer.
#include "fuzz.h"

#include <jansson.h>
#include <string.h>

enum { CHANGES = 40 };

// Passes the input in a block of exactly its size, so that a sanitizer sees reads past its end.
static void run(const uint8_t *data, size_t n) {
    uint8_t *copy = malloc(n ? n : 1);
    FUZZ_CHECK(copy);
    memcpy(copy, data, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static void replay(uint8_t *data, size_t n) {
    run(data, n);
    for (size_t i = 0; i < CHANGES; i++) {
        size_t at = n * i / CHANGES;
        if (at >= n) break;
        run(data, at);
        uint8_t old = data[at];
        data[at] = (uint8_t)(old ^ (1u << (i % 8)));
        run(data, n);
        data[at] = old;
    }
}

// Replaces characters U+0000 to U+00FF by bytes. Returns the number of bytes.
static size_t to_bytes(uint8_t *text, size_t n) {
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = text[i];
        if (c >= 0x80) c = (uint8_t)(c << 6 | (text[++i] & 0x3f));
        text[out++] = c;
    }
    return out;
}

static void replay_row(const json_t *row) {
    const json_t *text = json_object_get(row, "text"), *bytes = json_object_get(row, "bytes");
    const json_t *from = text ? text : bytes;
    FUZZ_CHECK(json_is_string(from));
    size_t n = json_string_length(from);
    uint8_t *data = malloc(n + 1);
    FUZZ_CHECK(data);
    memcpy(data, json_string_value(from), n);
    if (bytes) n = to_bytes(data, n);
    replay(data, n);
    free(data);
}

int main(void) {
    char *line = NULL;
    size_t cap = 0, inputs = 0;
    FILE *in = fopen(FUZZ_CORPUS, "r");
    FUZZ_CHECK(in);
    for (ssize_t n; (n = getline(&line, &cap, in)) > 0; inputs++) {
        json_t *row = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);
        FUZZ_CHECK(row);
        replay_row(row);
        json_decref(row);
    }
    free(line);
    fclose(in);
    printf("%zu inputs of %s\n", inputs, FUZZ_CORPUS);
    FUZZ_CHECK(inputs > 0);
    return 0;
}
