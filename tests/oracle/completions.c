// completions.c: our reader of rows with one completion, for kto_rows.py. `completions DIR ROWS N`
// reads the rows in order with the tokenizer of DIR, in batches of N, as for an algorithm that
// requests mismatched rows. For each row it writes {"ids", "prompt", "label"}.
#include "batch/preference_source.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 20 }; // tokens of a row: rows are never cut

static void put_row(const struct rlhf__rows *e, uint32_t i) {
    json_t *ids = json_array();
    for (int32_t t = e->offset[i]; t < e->offset[i + 1]; t++)
        json_array_append_new(ids, json_integer(e->ids[t]));
    json_t *row = json_pack("{s:o, s:i, s:i}", "ids", ids, "prompt", (int)e->prompt_len[i], "label",
                            (int)e->label[i]);
    char *text = json_dumps(row, JSON_COMPACT);
    puts(text);
    free(text);
    json_decref(row);
}

static rlhf_status put_batch(const struct rlhf__preferences *set, int64_t from, int64_t to,
                             struct rlhf__error *err) {
    struct rlhf__rows e = {0};
    int64_t pick[64];
    for (int64_t i = from; i < to; i++)
        pick[i - from] = i;
    rlhf_status st = rlhf__mismatched_rows(set, pick, (uint32_t)(to - from), MOST, &e, err);
    for (uint32_t i = 0; st == RLHF_OK && i < e.n; i++)
        put_row(&e, i);
    rlhf__rows_finish(&e);
    return st;
}

int main(int argc, char **argv) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__preferences *set = NULL;
    struct rlhf__error err = {0, ""};
    const char *path = argc == 4 ? argv[2] : NULL;
    const int64_t n = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    const struct rlhf__preference_opts rows = {
        .paths = &path, .n_paths = 1, .max_tokens = MOST, .completions = 1};
    rlhf_status st = n > 0 && n <= 64
                         ? rlhf__tokenizer_open(argv[1], &tok, &err)
                         : rlhf__fail(&err, RLHF_E_INVALID, "usage: completions DIR ROWS N<=64");
    if (st == RLHF_OK) st = rlhf__preferences_open(&rows, tok, &set, &err);
    const int64_t all = st == RLHF_OK ? rlhf__preferences_count(set) : 0;
    for (int64_t i = 0; st == RLHF_OK && i < all; i += n)
        st = put_batch(set, i, i + n < all ? i + n : all, &err);
    if (st != RLHF_OK) fprintf(stderr, "%s\n", err.text);
    rlhf__preferences_close(set);
    rlhf__tokenizer_close(tok);
    return st != RLHF_OK;
}
