// fuzz_tokenizer_file.c: a tokenizer.json of any bytes. If the file is accepted, the tokenizer
// encodes a text.
//
// The first line of the input is the file, the rest is the text. To keep inputs small, a file with
// the member "bytes" gets the tokens of all 256 bytes that its vocabulary lacks, and its member
// "config" is written as tokenizer_config.json.
#include "fuzz.h"

#include "base/file.h"
#include "base/json.h"
#include "text/bpe.h"
#include "text/unicode.h"
#include "tokenizer/tokenizer.h"

#include <string.h>
#include <unistd.h>

static char folder[64];

static void leave(void) {
    char path[128];
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void write_file(const char *name, const void *bytes, size_t n) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    if (!bytes) return;
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

static void write_json(const char *name, const json_t *v) {
    char *text = v ? json_dumps(v, 0) : NULL;
    write_file(name, text, text ? strlen(text) : 0);
    free(text);
}

static void add_bytes(json_t *vocab) {
    uint16_t chars[256];
    json_int_t next = 0;
    const char *token;
    json_t *id;
    json_object_foreach(vocab, token,
                        id) if (json_integer_value(id) >= next && json_integer_value(id) < 4096)
        next = json_integer_value(id) + 1;
    rlhf__bpe_byte_chars(chars);
    for (int b = 0; b < 256; b++) {
        char c[5] = {0};
        rlhf__utf8_put(chars[b], c);
        if (!json_object_get(vocab, c)) json_object_set_new(vocab, c, json_integer(next++));
    }
}

static void write_files(const char *s, size_t n) {
    json_t *file = rlhf__json_decode(s, n, 0, NULL);
    write_file("tokenizer_config.json", NULL, 0);
    if (!json_is_object(file)) {
        write_file("tokenizer.json", s, n);
    } else {
        if (json_object_get(file, "bytes"))
            add_bytes(json_object_get(json_object_get(file, "model"), "vocab"));
        write_json("tokenizer_config.json", json_object_get(file, "config"));
        write_json("tokenizer.json", file);
    }
    json_decref(file);
}

// Returns 0 if PCRE2 gave up on the pattern that the file itself defines.
static int encode(const struct rlhf__tokenizer *tok, rlhf_str text, uint32_t flags, size_t max,
                  struct rlhf__ids *ids) {
    struct rlhf__error err = {0};
    ids->n = 0;
    rlhf_status st = rlhf__tokenizer_encode(tok, text, flags, max, ids, &err);
    if (st == RLHF_E_INTERNAL && strstr(err.text, "PCRE2")) return 0;
    FUZZ_CHECK(st == RLHF_OK);
    for (size_t i = 0; i < ids->n; i++)
        FUZZ_CHECK(ids->data[i] >= 0 && ids->data[i] < rlhf__tokenizer_info(tok)->n_vocab);
    return 1;
}

// The bytes of a list of ids are the bytes of each id, one after the other. Their text is UTF-8.
static void check_text(const struct rlhf__tokenizer *tok, const struct rlhf__ids *ids) {
    for (uint32_t skip = 0; skip < 2; skip++) {
        size_t len = 0, sum = 0;
        char *text = rlhf__tokenizer_text(tok, ids->data, ids->n, skip, &len);
        FUZZ_CHECK(text && rlhf__utf8_valid(text, len) == len && !text[len]);
        free(text);
        for (size_t i = 0; i < ids->n; i++)
            sum += rlhf__tokenizer_decode(tok, ids->data + i, 1, skip, NULL, 0);
        FUZZ_CHECK(sum == rlhf__tokenizer_decode(tok, ids->data, ids->n, skip, NULL, 0));
    }
}

static void check_tokenizer(const struct rlhf__tokenizer *tok, rlhf_str text) {
    struct rlhf__ids all = {0}, some = {0};
    for (uint32_t special = 0; special < 2; special++) {
        uint32_t flags = special ? RLHF__ENCODE_SPECIAL : 0;
        if (!encode(tok, text, flags, 0, &all)) break;
        check_text(tok, &all);
        size_t max = all.n / 2 + 1;
        if (!encode(tok, text, flags, max, &some)) break;
        FUZZ_CHECK(some.n == (all.n < max ? all.n : max));
        FUZZ_CHECK(!some.n || !memcmp(some.data, all.data, some.n * sizeof *some.data));
        if (!encode(tok, text, flags | RLHF__ENCODE_TEMPLATE, 0, &some)) break;
        FUZZ_CHECK(some.n >= all.n);
    }
    rlhf__ids_finish(&all);
    rlhf__ids_finish(&some);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (!*folder) {
        snprintf(folder, sizeof folder, "%s/rlhf-fuzz-XXXXXX",
                 rlhf__is_dir("/dev/shm") ? "/dev/shm" : "/tmp");
        FUZZ_CHECK(mkdtemp(folder));
        atexit(leave);
    }
    const char *s = (const char *)data, *eol = n ? memchr(s, '\n', n) : NULL;
    size_t head = eol ? (size_t)(eol - s) : n;
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    write_files(s, head);
    if (rlhf__tokenizer_open(folder, &tok, &err) == RLHF_OK) {
        size_t from = head + (head < n);
        check_tokenizer(tok, (rlhf_str){s + from, n - from});
    } else {
        FUZZ_CHECK(!tok && err.text[0] && err.code < 0 && !strchr(err.text, '\n'));
    }
    rlhf__tokenizer_close(tok);
    return 0;
}
