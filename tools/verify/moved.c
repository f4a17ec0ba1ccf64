// moved.c: see moved.h.
#include "verify/moved.h"

#include "base/file.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

static const char *const keys[][2] = {{"adapter_config.json", "base_model_name_or_path"},
                                      {"state/base.json", "path"}};

static const char *key_of(const char *name) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(name, keys[i][0]) == 0) return keys[i][1];
    return NULL;
}

int rlhf__moved_names(const char *name) { return key_of(name) != NULL; }

// Sets *out to the JSON text of the member, or to nothing if it is not a string.
static void put_member(struct rlhf__buf *out, const struct rlhf__buf *text, const char *key) {
    json_t *v = rlhf__json_decode(rlhf__buf_text(text), text->len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *member = json_object_get(v, key);
    rlhf__buf_clear(out);
    if (json_is_string(member)) rlhf__json_write(out, member, 0);
    json_decref(v);
}

// Replaces the first `from` in *text by `to`.
static void replace(struct rlhf__buf *text, const struct rlhf__buf *from,
                    const struct rlhf__buf *to) {
    struct rlhf__buf whole = RLHF__BUF_INIT;
    const char *begin = rlhf__buf_text(text), *at = strstr(begin, rlhf__buf_text(from));
    if (!at) return;
    rlhf__buf_put(&whole, begin, (size_t)(at - begin));
    rlhf__buf_put(&whole, rlhf__buf_text(to), to->len);
    rlhf__buf_put(&whole, at + from->len, text->len - (size_t)(at - begin) - from->len);
    rlhf__buf_finish(text);
    *text = whole;
}

rlhf_status rlhf__moved_read(const char *run, const char *name, const char *own, const char *path,
                             struct rlhf__buf *out, struct rlhf__error *err) {
    char like[RLHF__PATH_CAP];
    struct rlhf__buf of_run = RLHF__BUF_INIT, from = RLHF__BUF_INIT, to = RLHF__BUF_INIT;
    rlhf_status st = rlhf__file_read(path, (uint64_t)1 << 30, out, err);
    rlhf__path_put(like, "%s", own);
    if (!rlhf__is_file(like)) rlhf__path_put(like, "%s/checkpoints/latest/%s", run, name);
    if (st == RLHF_OK && key_of(name) && rlhf__is_file(like)) {
        st = rlhf__file_read(like, (uint64_t)1 << 30, &of_run, err);
        put_member(&from, out, key_of(name));
        put_member(&to, &of_run, key_of(name));
        if (st == RLHF_OK && from.len && to.len) replace(out, &from, &to);
        if (st == RLHF_OK) st = rlhf__buf_ok(out, err);
    }
    rlhf__buf_finish(&of_run);
    rlhf__buf_finish(&from);
    rlhf__buf_finish(&to);
    return st;
}
