// fuzz_chat_rows.c: a file of rows with messages of any bytes, read as prompts, as texts and as
// preferences. The first byte chooses the template and the limits.
//
// If a file of rows is accepted, its ids are in the vocabulary and the rows keep to the limits. The
// text of a prompt is valid UTF-8. A row that is trained only on the assistant's tokens has such a
// token. If the file is refused, one message names it.
#include "fuzz.h"

#include "data/preferences.h"
#include "data/prompts.h"
#include "data/token_rows.h"
#include "text/unicode.h"

#include <string.h>
#include <unistd.h>

static struct rlhf__tokenizer *tokenizer(int template) {
    static struct rlhf__tokenizer *tok; // opened once, because a target runs millions of inputs
    struct rlhf__error err = {0};
    if (!tok)
        FUZZ_CHECK(rlhf__tokenizer_open(FUZZ_SOURCE_DIR "/tests/text/data/bpe", &tok, &err) ==
                   RLHF_OK);
    FUZZ_CHECK(rlhf__tokenizer_name_chat(tok, rlhf__chat_names()[1 + template], &err) == RLHF_OK);
    return tok;
}

static void write_file(const char *path, const uint8_t *data, size_t n) {
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static void check_ids(const struct rlhf__tokenizer *tok, const int32_t *ids, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        FUZZ_CHECK(ids[i] >= 0 && ids[i] < rlhf__tokenizer_info(tok)->n_vocab);
}

static void check_error(const struct rlhf__error *err, const char *path) {
    FUZZ_CHECK(err->code < 0 && strstr(err->text, path));
}

static void as_prompts(const struct rlhf__tokenizer *tok, const char *path, int32_t most, int how) {
    struct rlhf__prompt_opts o = {
        .paths = &path, .n_paths = 1, .max_tokens = most, .long_rows = how};
    struct rlhf__prompts *set = NULL;
    struct rlhf__error err = {0};
    if (rlhf__prompts_open(&o, tok, &set, &err) != RLHF_OK) {
        FUZZ_CHECK(!set);
        check_error(&err, path);
        return;
    }
    int64_t chats = 0;
    for (int64_t i = 0; i < rlhf__prompts_count(set); i++) {
        struct rlhf__prompt p = rlhf__prompts_get(set, i);
        FUZZ_CHECK(p.n >= 1 && p.n <= most &&
                   rlhf__utf8_valid(p.text.ptr, p.text.len) == p.text.len);
        check_ids(tok, p.ids, p.n);
        chats += p.is_chat;
    }
    FUZZ_CHECK(chats == rlhf__prompts_chats(set));
    rlhf__prompts_close(set);
}

static void as_texts(const struct rlhf__tokenizer *tok, const char *path, int32_t most, int split,
                     int says) {
    struct rlhf__dataset_opts d = {.paths = &path,
                                   .n_paths = 1,
                                   .need = RLHF__FIELD_BIT(RLHF__FIELD_TEXT),
                                   .want = RLHF__FIELD_BIT(RLHF__FIELD_MESSAGES)};
    struct rlhf__token_opts o = {
        .max_len = most, .long_rows = split, .min_len = 2, .threads = 1, .says = says};
    struct rlhf__dataset *ds = NULL;
    struct rlhf__token_rows rows = {0};
    struct rlhf__error err = {0};
    if (rlhf__dataset_open(&d, &ds, &err) != RLHF_OK) {
        check_error(&err, path);
        return;
    }
    if (rlhf__token_rows_init(&rows, ds, tok, &o, &err) == RLHF_OK) {
        for (int64_t i = 0; i < rows.n; i++) {
            int32_t ids[64], len = rlhf__token_rows_len(&rows, i), any = !says;
            FUZZ_CHECK(len >= 2 && len <= most && most <= 64);
            rlhf__token_rows_copy(&rows, i, ids);
            check_ids(tok, ids, len);
            for (int32_t k = 1; says && k < len; k++)
                any |= rows.says[rows.offset[i] + k];
            FUZZ_CHECK(any);
        }
    } else {
        FUZZ_CHECK(err.code < 0 && err.text[0]);
    }
    rlhf__token_rows_finish(&rows);
    rlhf__dataset_close(ds);
}

static void as_preferences(const struct rlhf__tokenizer *tok, const char *path, int32_t most,
                           int refuse) {
    struct rlhf__preference_opts o = {
        .paths = &path, .n_paths = 1, .max_tokens = most, .long_rows = refuse};
    struct rlhf__preferences *set = NULL;
    struct rlhf__error err = {0};
    if (rlhf__preferences_open(&o, tok, &set, &err) != RLHF_OK) {
        FUZZ_CHECK(!set);
        check_error(&err, path);
        return;
    }
    for (int64_t i = 0; i < rlhf__preferences_count(set); i++) {
        struct rlhf__preference p = rlhf__preferences_get(set, i);
        int64_t sum = 0;
        FUZZ_CHECK(p.n >= 2 && p.best >= 0 && p.best < p.n && p.n_prompt >= 1);
        for (int32_t k = 0; k < p.n; sum += p.len[k++])
            FUZZ_CHECK(p.len[k] >= 1 && p.n_prompt + p.len[k] <= most);
        check_ids(tok, p.prompt, p.n_prompt);
        check_ids(tok, p.ids, sum);
    }
    rlhf__preferences_close(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (!n) return 0;
    char path[128];
    const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/rlhf-fuzz-%ld.jsonl", tmp, (long)getpid());
    write_file(path, data + 1, n - 1);
    struct rlhf__tokenizer *tok = tokenizer(data[0] & 7);
    int32_t most = data[0] & 8 ? 24 : 64;
    as_prompts(tok, path, most, data[0] & 16 ? RLHF__PROMPT_REFUSE : RLHF__PROMPT_SKIP);
    as_texts(tok, path, most, (data[0] & 32) != 0, (data[0] & 64) != 0);
    as_preferences(tok, path, most, (data[0] & 16) != 0);
    unlink(path);
    return 0;
}
