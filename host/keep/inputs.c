// inputs.c: see inputs.h.
#include "keep/inputs.h"

#include "base/file.h"
#include "base/json.h"
#include "weights/file_sum.h"

#include <string.h>

static rlhf_status append(json_t *list, const char *setting, const char *path,
                          struct rlhf__file_sum *s, struct rlhf__error *err) {
    char hex[65], real[RLHF__PATH_CAP];
    rlhf__sha256_hex(&s->hash, hex);
    if (rlhf__path_real(path, real)) path = real;
    json_t *entry = json_pack("{s:s, s:s, s:I, s:s}", "setting", setting, "path", path, "bytes",
                              (json_int_t)s->bytes, "sha256", hex);
    if (json_array_append_new(list, entry) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the list of inputs");
}

rlhf_status rlhf__inputs_add_file(json_t *list, const char *setting, const char *path,
                                  struct rlhf__error *err) {
    struct rlhf__file_sum s;
    int found = 0;
    RLHF_TRY(rlhf__sum_file(path, &s, &found, err));
    return found ? append(list, setting, path, &s, err) : RLHF_OK;
}

rlhf_status rlhf__inputs_add_model(json_t *list, const char *setting, const char *dir, int weights,
                                   struct rlhf__error *err) {
    struct rlhf__file_sum s;
    RLHF_TRY(rlhf__sum_model(dir, 1, weights, &s, err));
    return append(list, setting, dir, &s, err);
}

static int is_rows(const char *setting) {
    return strcmp(setting, "data.path") == 0 || strcmp(setting, "data.eval_path") == 0 ||
           strcmp(setting, "prompts.path") == 0;
}

// Find the counterpart of input i of `now` in `before`.
static const json_t *counterpart(const json_t *now, size_t i, const json_t *before) {
    const char *setting = rlhf__json_text_in(json_array_get(now, i), "setting");
    size_t place = 0, k;
    const json_t *was;
    for (size_t j = 0; j < i; j++)
        place += strcmp(rlhf__json_text_in(json_array_get(now, j), "setting"), setting) == 0;
    json_array_foreach(before, k,
                       was) if (strcmp(rlhf__json_text_in(was, "setting"), setting) == 0 &&
                                place-- == 0) return was;
    return NULL;
}

void rlhf__inputs_compare(const json_t *before, const json_t *now, struct rlhf__buf *out) {
    size_t i, start = out->len;
    const json_t *is;
    json_array_foreach(now, i, is) {
        const json_t *was = counterpart(now, i, before);
        json_int_t a = json_integer_value(json_object_get(was, "bytes"));
        json_int_t b = json_integer_value(json_object_get(is, "bytes"));
        const char *old = rlhf__json_text_in(was, "sha256"),
                   *new = rlhf__json_text_in(is, "sha256");
        if (was && a == b && strcmp(old, new) == 0) continue;
        rlhf__buf_printf(out, "%s%s %s (", out->len > start ? ", " : "",
                         rlhf__json_text_in(is, "setting"), rlhf__json_text_in(is, "path"));
        if (!was)
            rlhf__buf_puts(out, is_rows(rlhf__json_text_in(is, "setting"))
                                    ? "it was read as a pipe"
                                    : "manifest.json does not list it");
        else if (a != b)
            rlhf__buf_printf(out, "bytes %lld is now %lld", (long long)a, (long long)b);
        else
            rlhf__buf_printf(out, "sha256 %.12s is now %.12s", old, new);
        rlhf__buf_putc(out, ')');
    }
}

void rlhf__inputs_outside(const json_t *now, const char *run, struct rlhf__buf *out) {
    const size_t n = strlen(run), start = out->len;
    size_t i;
    const json_t *e;
    json_array_foreach(now, i, e) {
        const char *path = rlhf__json_text_in(e, "path");
        if (strncmp(path, run, n) == 0 && path[n] == '/') continue;
        rlhf__buf_printf(out, "%s%s %s", out->len > start ? ", " : "",
                         rlhf__json_text_in(e, "setting"), path);
    }
}
