// fuzz_preferences.c: a file of preference rows of any bytes. The first byte chooses the limits.
// Accepted rows keep to the limits, their best response differs from the others, and they do not
// change if the context grows. If the rows are refused, one message names the file.
#include "fuzz.h"

#include "data/preferences.h"

#include <string.h>
#include <unistd.h>

static struct rlhf__tokenizer *tokenizer(void) {
    static struct rlhf__tokenizer *tok; // opened once, because a target runs millions of inputs
    struct rlhf__error err = {0};
    if (!tok)
        FUZZ_CHECK(rlhf__tokenizer_open(FUZZ_SOURCE_DIR "/tests/text/data/bpe", &tok, &err) ==
                   RLHF_OK);
    return tok;
}

static void write_file(const char *path, const uint8_t *data, size_t n) {
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static void check_ids(const int32_t *ids, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        FUZZ_CHECK(ids[i] >= 0 && ids[i] < rlhf__tokenizer_info(tokenizer())->n_vocab);
}

// Returns the tokens of all responses.
static int64_t check_row(const struct rlhf__preference *p, const struct rlhf__preference_opts *o) {
    int64_t sum = 0, at = 0, best = 0;
    FUZZ_CHECK(o->completions ? p->n == 1 && p->best >= -1 : p->n >= 2 && p->best >= 0);
    FUZZ_CHECK(p->best < p->n && p->n_prompt >= 1 && p->row >= 0);
    for (int32_t i = 0; i < p->n; i++) {
        FUZZ_CHECK(p->len[i] >= 1 && p->n_prompt + p->len[i] <= o->max_tokens);
        FUZZ_CHECK(!o->max_response || p->len[i] <= o->max_response);
        if (i < p->best) best += p->len[i];
        sum += p->len[i];
    }
    check_ids(p->prompt, p->n_prompt);
    check_ids(p->ids, sum);
    for (int32_t i = 0; i < p->n && p->best >= 0; at += p->len[i++]) {
        if (i == p->best || p->len[i] != p->len[p->best]) continue;
        FUZZ_CHECK(memcmp(p->ids + at, p->ids + best, (size_t)p->len[i] * sizeof *p->ids) != 0);
    }
    return sum;
}

static void check_set(const struct rlhf__preferences *set, const struct rlhf__preference_opts *o) {
    int64_t n = rlhf__preferences_count(set), responses = 0;
    FUZZ_CHECK(n >= 1);
    for (int64_t i = 0; i < n; i++) {
        struct rlhf__preference p = rlhf__preferences_get(set, i);
        int64_t sum = check_row(&p, o);
        FUZZ_CHECK(rlhf__preference_tokens(&p) == sum + (int64_t)p.n * p.n_prompt);
        responses += p.n;
    }
    FUZZ_CHECK(responses == rlhf__preferences_responses(set));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (!n) return 0;
    char path[128];
    const char *paths[] = {path};
    const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/rlhf-fuzz-%ld.jsonl", tmp, (long)getpid());
    write_file(path, data + 1, n - 1);
    struct rlhf__preference_opts o = {.paths = paths,
                                      .n_paths = 1,
                                      .max_tokens = 4 + (data[0] & 15),
                                      .max_response = data[0] & 16 ? 3 : 0,
                                      .completions = data[0] >> 7,
                                      .long_rows = data[0] & 32 ? RLHF__PREFERENCE_REFUSE
                                                                : RLHF__PREFERENCE_CUT};
    struct rlhf__preferences *set = NULL;
    struct rlhf__error err = {0};
    if (rlhf__preferences_open(&o, tokenizer(), &set, &err) == RLHF_OK) {
        check_set(set, &o);
        rlhf__preferences_close(set);
        set = NULL;
        // Rows that fit a context fit a larger one.
        o.max_tokens += 64;
        FUZZ_CHECK(rlhf__preferences_open(&o, tokenizer(), &set, &err) == RLHF_OK);
        check_set(set, &o);
        rlhf__preferences_close(set);
    } else {
        FUZZ_CHECK(!set && err.code < 0 && strstr(err.text, path));
    }
    unlink(path);
    return 0;
}
