// recompute_files.c: see recompute_files.h.
#include "verify/recompute_files.h"

#include "base/file.h"
#include "base/json.h"
#include "history/text_lines.h"

#include <stdio.h>
#include <string.h>

// ---- metrics ----

static void take_line(const char *line, size_t n, int64_t phase, json_t **row, int64_t *last) {
    json_t *v = rlhf__json_decode(line, n, 0, NULL);
    const json_t *of = json_object_get(v, "phase");
    if (json_is_integer(of) && json_integer_value(of) > *last) *last = json_integer_value(of);
    if (json_is_integer(of) && json_integer_value(of) == phase && !*row) *row = json_incref(v);
    json_decref(v);
}

rlhf_status rlhf__run_files_metrics(const char *dir, int64_t phase, json_t **row, int64_t *last,
                                    struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    struct rlhf__text_lines l;
    int more = 1;
    *row = NULL;
    *last = 0;
    rlhf__path_put(path, "%s/metrics.jsonl", dir);
    rlhf_status st = rlhf__text_lines_open(path, &l, err);
    while (st == RLHF_OK && (st = rlhf__text_lines_next(&l, &more, err)) == RLHF_OK && more)
        take_line(rlhf__buf_text(&l.line), l.line.len, phase, row, last);
    rlhf__text_lines_close(&l);
    return st;
}

// ---- checkpoints ----

int rlhf__run_files_checkpoint(const char *run, int64_t phase) {
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/checkpoints/%06lld/state/run.json", run, (long long)phase);
    return rlhf__is_file(path);
}

// ---- the arithmetic ----

// Returns 1 if both descriptions are the same, except for the number of threads at their end, which
// does not affect the bits.
static int same_detail(const json_t *a, const json_t *b) {
    const char *x = rlhf__json_text_in(a, "detail"), *y = rlhf__json_text_in(b, "detail");
    const char *end_x = strrchr(x, ','), *end_y = strrchr(y, ',');
    const size_t n = end_x ? (size_t)(end_x - x) : strlen(x);
    return n == (end_y ? (size_t)(end_y - y) : strlen(y)) && memcmp(x, y, n) == 0;
}

static int is_row_exact(const json_t *c) { return json_is_true(json_object_get(c, "row_exact")); }

// Returns 1 if two backends give the same bits. They must be row-exact with the same dtype. If at
// least one of them names its arithmetic, both must name the same one. Otherwise, both must be the
// same file with the same description.
static int same_compute(const json_t *a, const json_t *b) {
    static const char *const keys[] = {"backend", "dtype", "sha256"};
    const char *x = rlhf__json_text_in(a, "arithmetic"), *y = rlhf__json_text_in(b, "arithmetic");
    if (!is_row_exact(a) ||
        strcmp(rlhf__json_text_in(a, "dtype"), rlhf__json_text_in(b, "dtype")) != 0)
        return 0;
    if (*x || *y) return strcmp(x, y) == 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(rlhf__json_text_in(a, keys[i]), rlhf__json_text_in(b, keys[i])) != 0) return 0;
    return same_detail(a, b);
}

// A resumed run may have computed earlier phases in another way.
static int always_same(const json_t *manifest, const json_t *now) {
    const json_t *earlier = json_object_get(manifest, "earlier"), *one;
    size_t i;
    if (!same_compute(json_object_get(manifest, "compute"), now)) return 0;
    json_array_foreach(earlier, i, one) {
        const json_t *then = json_object_get(one, "compute");
        if (then && !same_compute(then, now)) return 0;
    }
    return 1;
}

rlhf_status rlhf__run_files_arithmetic(const char *run, const char *again, int *exact, int *bf16,
                                       struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    json_t *theirs = NULL, *mine = NULL;
    rlhf__path_put(path, "%s/manifest.json", run);
    rlhf_status st = rlhf__json_load(path, &theirs, err);
    rlhf__path_put(path, "%s/manifest.json", again);
    if (st == RLHF_OK) st = rlhf__json_load(path, &mine, err);
    const json_t *now = json_object_get(mine, "compute");
    *exact = st == RLHF_OK && always_same(theirs, now);
    *bf16 = strcmp(rlhf__json_text_in(json_object_get(theirs, "compute"), "dtype"), "bf16") == 0 ||
            strcmp(rlhf__json_text_in(now, "dtype"), "bf16") == 0;
    json_decref(theirs);
    json_decref(mine);
    return st;
}
