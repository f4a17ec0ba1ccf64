// kinds.c: see kinds.h.
#include "data/kinds.h"

#include <string.h>
#include <strings.h>

static const struct kind {
    const char *end, *name, *instead;
} kinds[] = {
#define PANDAS(read)                                                                               \
    "in Python, pandas." read ".to_json(\"rows.jsonl\", orient=\"records\", lines=True)"
    {".csv", "a CSV", PANDAS("read_csv(\"FILE\")") " writes that"},
    {".tsv", "a TSV", PANDAS("read_csv(\"FILE\", sep=\"\\t\")") " writes that"},
    {".parquet", "a Parquet", PANDAS("read_parquet(\"FILE\")") " writes that"},
    {".feather", "a Feather", PANDAS("read_feather(\"FILE\")") " writes that"},
    {".arrow", "an Arrow",
     "in Python, datasets.Dataset.from_file(\"FILE\").to_json(\"rows.jsonl\") "
     "writes that"},
    {".xlsx", "an Excel", PANDAS("read_excel(\"FILE\")") " writes that"},
    {".pkl", "a pickle", PANDAS("read_pickle(\"FILE\")") " writes that"},
    {".zst", "a Zstandard", "unpack it, gzip is the only compression"},
    {".xz", "an xz", "unpack it, gzip is the only compression"},
    {".bz2", "a bzip2", "unpack it, gzip is the only compression"},
    {".zip", "a zip", "unpack it, gzip is the only compression"},
    {".tar", "a tar", "unpack it"},
    {".safetensors", "a safetensors", "it holds weights, not rows"},
};

// Bytes of path without a ".gz".
static size_t plain_length(const char *path) {
    size_t n = strlen(path);
    return n > 3 && !strcasecmp(path + n - 3, ".gz") ? n - 3 : n;
}

static int ends_with(const char *path, size_t n, const char *end) {
    size_t k = strlen(end);
    return n > k && !strncasecmp(path + n - k, end, k);
}

rlhf_status rlhf__data_kind_check(const char *path, struct rlhf__error *err) {
    size_t n = plain_length(path);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ends_with(path, n, kinds[i].end))
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "%s: %s file is not read; rows are JSON Lines (.jsonl, .jsonl.gz) or "
                              "lines of text (.txt, .txt.gz): %s",
                              path, kinds[i].name, kinds[i].instead);
    return RLHF_OK;
}

rlhf_status rlhf__data_begin_check(const char *path, int first, struct rlhf__error *err) {
    if (first != '[' || !ends_with(path, plain_length(path), ".json")) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s:1: a JSON list, expected JSON Lines, one object a line: jq -c .[] FILE "
                      "writes that",
                      path);
}

int rlhf__data_is_text(const char *path) { return ends_with(path, plain_length(path), ".txt"); }
