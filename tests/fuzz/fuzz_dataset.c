// fuzz_dataset.c: a data file of any bytes, as JSON Lines or as text (the first byte decides),
// plain or gzip. Accepted rows are valid UTF-8, and do not change if other rows are skipped.
#include "fuzz.h"

#include "data/dataset.h"
#include "text/unicode.h"

#include <string.h>
#include <unistd.h>

static void write_file(const char *path, const uint8_t *data, size_t n) {
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static void check_row(const struct rlhf__data_row *row) {
    for (int f = 0; f < RLHF__N_TEXT_FIELDS; f++)
        FUZZ_CHECK(rlhf__utf8_valid(row->text[f].ptr, row->text[f].len) == row->text[f].len);
    FUZZ_CHECK(rlhf__utf8_valid(row->meta.ptr, row->meta.len) == row->meta.len);
    FUZZ_CHECK(row->text[0].ptr && row->label >= -1 && row->label < 3 && row->line >= 1);
}

static int same(rlhf_str a, rlhf_str b) {
    return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

// Skipping the first row of an accepted file does not change the other rows.
static void check_skip(struct rlhf__dataset_opts *o, const struct rlhf__dataset *all) {
    struct rlhf__dataset *rest = NULL;
    struct rlhf__error err = {0};
    o->skip = 1;
    rlhf_status st = rlhf__dataset_open(o, &rest, &err);
    int64_t n = rlhf__dataset_rows(all);
    FUZZ_CHECK((st == RLHF_OK) == (n > 1));
    if (st < 0) return;
    FUZZ_CHECK(rlhf__dataset_rows(rest) == n - 1);
    for (int64_t i = 1; i < n; i++) {
        struct rlhf__data_row a = rlhf__dataset_row(all, i), b = rlhf__dataset_row(rest, i - 1);
        FUZZ_CHECK(same(a.text[0], b.text[0]) && same(a.meta, b.meta) && a.label == b.label);
    }
    rlhf__dataset_close(rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (!n) return 0;
    char path[128];
    const char *paths[] = {path};
    static const char *const labels[] = {"a", "b", "c"};
    const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/rlhf-fuzz-%ld.%s", tmp, (long)getpid(),
             data[0] & 1 ? "txt" : "jsonl");
    write_file(path, data + 1, n - 1);
    struct rlhf__dataset_opts o = {.paths = paths, .n_paths = 1, .need = 1, .want = 31};
    o.keep_meta = 1;
    o.labels = labels;
    o.n_labels = 3;
    struct rlhf__dataset *ds = NULL;
    struct rlhf__error err = {0};
    if (rlhf__dataset_open(&o, &ds, &err) == RLHF_OK) {
        FUZZ_CHECK(rlhf__dataset_rows(ds) >= 1 && rlhf__dataset_labels(ds) <= 3);
        for (int64_t i = 0; i < rlhf__dataset_rows(ds); i++) {
            struct rlhf__data_row row = rlhf__dataset_row(ds, i);
            check_row(&row);
        }
        check_skip(&o, ds);
        rlhf__dataset_close(ds);
    } else {
        FUZZ_CHECK(!ds && err.code < 0 && strstr(err.text, path));
    }
    unlink(path);
    return 0;
}
