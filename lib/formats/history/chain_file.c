// chain_file.c: see chain_file.h.
#include "history/chain_file.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((uint64_t)1 << 30)

void rlhf__chain_file_finish(struct rlhf__chain_file *f) {
    for (size_t i = 0; i < f->n; i++)
        json_decref(f->line[i].value);
    free(f->line);
    rlhf__buf_finish(&f->text);
    *f = (struct rlhf__chain_file){.n = 0};
}

// ---- reading ----

static int kind_of(const json_t *v, enum rlhf__chain_kind *out) {
    const int phase = json_is_integer(json_object_get(v, "phase"));
    const int head = strlen(rlhf__json_text_in(v, "head")) == RLHF__HEX - 1;
    *out = RLHF__CHAIN_PHASE;
    if (json_is_object(json_object_get(v, "checkpoint"))) {
        *out = RLHF__CHAIN_CHECKPOINT;
        return phase && strlen(rlhf__json_text_in(v, "seal")) == RLHF__HEX - 1;
    }
    if (json_is_object(json_object_get(v, "settings"))) {
        *out = RLHF__CHAIN_SETTINGS;
        return phase;
    }
    if (json_is_object(json_object_get(v, "begin"))) *out = RLHF__CHAIN_BEGIN;
    return phase && head;
}

static rlhf_status read_line(struct rlhf__chain_file *f, size_t from, size_t to,
                             struct rlhf__error *err) {
    struct rlhf__chain_line *l = &f->line[f->n];
    json_error_t why;
    *l = (struct rlhf__chain_line){.number = (int32_t)f->n + 1, .from = from, .to = to};
    l->value = rlhf__json_decode(f->text.data + from, to - from, JSON_REJECT_DUPLICATES, &why);
    if (!l->value) return rlhf__json_line_failed(f->path, l->number, &why, err);
    f->n++;
    l->phase = json_integer_value(json_object_get(l->value, "phase"));
    if (kind_of(l->value, &l->kind)) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "%s:%d: the line is not one of a chain: it lacks its phase, head, settings or seal",
        f->path, l->number);
}

rlhf_status rlhf__chain_file_read(const char *dir, struct rlhf__chain_file *f,
                                  struct rlhf__error *err) {
    size_t lines = 0;
    rlhf__path_put(f->path, "%s/" RLHF__CHAIN_FILE, dir);
    if (!rlhf__is_file(f->path)) return RLHF_OK;
    RLHF_TRY(rlhf__file_read(f->path, MAX_BYTES, &f->text, err));
    for (size_t i = 0; i < f->text.len; i++)
        lines += f->text.data[i] == '\n';
    f->line = calloc(lines + 1, sizeof *f->line);
    if (!f->line) return RLHF__NOMEM(err, "out of memory for %s", f->path);
    for (size_t at = 0, to; at < f->text.len; at = to + 1) {
        const char *end = memchr(f->text.data + at, '\n', f->text.len - at);
        if (!end) break; // the program is still writing this line
        to = (size_t)(end - f->text.data);
        RLHF_TRY(read_line(f, at, to, err));
    }
    return RLHF_OK;
}

void rlhf__chain_file_cut(struct rlhf__chain_file *f, size_t n) {
    if (n >= f->n) return;
    f->text.len = f->line[n].from;
    while (f->n > n)
        json_decref(f->line[--f->n].value);
}

// ---- finding ----

const struct rlhf__chain_line *rlhf__chain_file_last(const struct rlhf__chain_file *f,
                                                     enum rlhf__chain_kind kind, int64_t phase) {
    const struct rlhf__chain_line *found = NULL;
    for (size_t i = 0; i < f->n; i++)
        if (f->line[i].kind == kind && f->line[i].phase <= phase) found = &f->line[i];
    return found;
}

const struct rlhf__chain_line *rlhf__chain_file_at(const struct rlhf__chain_file *f,
                                                   enum rlhf__chain_kind kind, int64_t phase) {
    const struct rlhf__chain_line *last = rlhf__chain_file_last(f, kind, phase);
    return last && last->phase == phase ? last : NULL;
}

const char *rlhf__chain_file_head(const struct rlhf__chain_file *f, size_t n) {
    const char *head = "";
    for (size_t i = 0; i < n && i < f->n; i++)
        if (f->line[i].kind == RLHF__CHAIN_BEGIN || f->line[i].kind == RLHF__CHAIN_PHASE)
            head = rlhf__json_text_in(f->line[i].value, "head");
    return head;
}

// ---- checking ----

void rlhf__chain_seal(struct rlhf__sha256 before, const char *line, size_t n,
                      char seal[RLHF__HEX]) {
    rlhf__sha256_put(&before, line, n);
    rlhf__sha256_hex(&before, seal);
}

static const char *digest(const json_t *v, const char *key) {
    return json_string_value(json_object_get(v, key));
}

static void expected_head(const struct rlhf__chain_file *f, size_t i, char head[RLHF__HEX]) {
    const struct rlhf__chain_line *l = &f->line[i];
    const char *before = rlhf__chain_file_head(f, i);
    if (l->kind == RLHF__CHAIN_PHASE) {
        const struct rlhf__chain_link link = {l->phase, digest(l->value, "rows"),
                                              digest(l->value, "rewards"),
                                              digest(l->value, "metrics")};
        rlhf__chain_head(before, &link, head);
        return;
    }
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__json_write(&text, json_object_get(l->value, "begin"), 0);
    rlhf__chain_begin(before, l->phase, rlhf__buf_text(&text), head);
    rlhf__buf_finish(&text);
}

static int is_sealed(const struct rlhf__chain_file *f, size_t i) {
    static const char end[] = ", \"seal\": \"";
    const struct rlhf__chain_line *l = &f->line[i];
    const size_t n = l->to - l->from, tail = sizeof end - 1 + RLHF__HEX - 1 + 2;
    struct rlhf__sha256 before;
    char seal[RLHF__HEX];
    if (n < tail) return 0;
    const char *from = f->text.data + l->from;
    if (memcmp(from + n - tail, end, sizeof end - 1) != 0) return 0;
    rlhf__sha256_init(&before);
    rlhf__sha256_put(&before, f->text.data, l->from);
    rlhf__chain_seal(before, from, n - tail, seal);
    return strcmp(seal, rlhf__json_text_in(l->value, "seal")) == 0;
}

static int is_canonical(const struct rlhf__chain_file *f, size_t i) {
    const struct rlhf__chain_line *l = &f->line[i];
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__json_write(&text, l->value, 0);
    const int same =
        text.len == l->to - l->from && memcmp(text.data, f->text.data + l->from, text.len) == 0;
    rlhf__buf_finish(&text);
    return same;
}

// Checks the phase number of line i. In a phase line, it must be one higher than in the line
// before. In all other lines, it must be the same as in the line before.
static int follows(const struct rlhf__chain_file *f, size_t i) {
    const struct rlhf__chain_line *l = &f->line[i];
    if (i == 0) return l->kind == RLHF__CHAIN_BEGIN;
    const int64_t before = f->line[i - 1].phase;
    if (l->kind != RLHF__CHAIN_PHASE) return l->phase == before;
    // Exception: if held-out rows are scored before the first phase, there is a line for phase 0.
    const struct rlhf__chain_line *last = rlhf__chain_file_at(f, RLHF__CHAIN_PHASE, 0);
    return l->phase == before + 1 || (l->phase == 0 && before == 0 && last == l);
}

const char *rlhf__chain_file_wrong(const struct rlhf__chain_file *f, size_t i) {
    const struct rlhf__chain_line *l = &f->line[i];
    char head[RLHF__HEX];
    if (!follows(f, i)) return "lines before it are missing";
    if (!is_canonical(f, i)) return "the line was edited";
    if (l->kind == RLHF__CHAIN_CHECKPOINT)
        return is_sealed(f, i) ? NULL
                               : "its seal does not belong to the lines up to it: one was edited";
    if (l->kind == RLHF__CHAIN_SETTINGS) return NULL; // the seal of a checkpoint covers this line
    expected_head(f, i, head);
    if (strcmp(head, rlhf__json_text_in(l->value, "head")) == 0) return NULL;
    return "its head does not follow from the line and the head before it: one was edited";
}
