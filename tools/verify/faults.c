// faults.c: see faults.h.
#include "verify/faults.h"

#include "base/decimal.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rlhf__faults_finish(struct rlhf__faults *f) {
    free(f->item);
    *f = (struct rlhf__faults){0};
}

rlhf_status rlhf__faults_add(struct rlhf__faults *f, const struct rlhf__fault *fault,
                             struct rlhf__error *err) {
    if (f->n == f->cap) {
        const size_t cap = f->cap ? 2 * f->cap : 16;
        struct rlhf__fault *more = realloc(f->item, cap * sizeof *more);
        if (!more) return RLHF__NOMEM(err, "out of memory for the comparison");
        f->item = more;
        f->cap = cap;
    }
    f->item[f->n++] = *fault;
    return RLHF_OK;
}

rlhf_status rlhf__faults_say(struct rlhf__faults *f, int64_t phase, const char *file,
                             const char *where, struct rlhf__error *err) {
    struct rlhf__fault one = {.phase = phase};
    snprintf(one.file, sizeof one.file, "%s", file);
    snprintf(one.where, sizeof one.where, "%s", where);
    return rlhf__faults_add(f, &one, err);
}

size_t rlhf__faults_count(const struct rlhf__faults *f, int64_t from, int64_t to) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->item[i].phase >= from && f->item[i].phase <= to;
    return n;
}

void rlhf__fault_print(const struct rlhf__fault *f) {
    printf("  phase %lld: %s: %s", (long long)f->phase, f->file, f->where);
    if (f->was[0] || f->expected[0])
        printf(": %s, not %s", f->was[0] ? f->was : "missing",
               f->expected[0] ? f->expected : "there");
    printf("\n");
}

// ---- the first difference of two values ----

static void put_value(char *to, size_t cap, const json_t *v) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (v) rlhf__json_write(&text, v, 0);
    snprintf(to, cap, "%s", rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
}

static void put_key(struct rlhf__fault *f, const char *key) {
    const size_t n = strlen(f->where);
    const char *between = n == 0 || f->where[n - 1] == ' ' ? "" : ".";
    snprintf(f->where + n, sizeof f->where - n, "%s%s", between, key);
}

static void put_index(struct rlhf__fault *f, size_t i) {
    const size_t n = strlen(f->where);
    snprintf(f->where + n, sizeof f->where - n, "[%zu]", i);
}

// 0 and -0 are not the same bits.
static int same_leaf(const json_t *a, const json_t *b) {
    char x[40], y[40];
    if (!a || !b || json_typeof(a) != json_typeof(b)) return 0;
    if (!json_is_real(a)) return json_equal(a, b);
    return strcmp(rlhf__format_double(json_real_value(a), 1, x),
                  rlhf__format_double(json_real_value(b), 1, y)) == 0;
}

// Set *f to the first difference of two values and return 1. Returns 0 if the values are equal.
static int differs(struct rlhf__fault *f, const json_t *a, const json_t *b) {
    const size_t n = strlen(f->where);
    const char *key;
    json_t *v;
    if (json_is_object(a) && json_is_object(b)) {
        json_object_foreach((json_t *)(uintptr_t)a, key, v) {
            put_key(f, key);
            if (differs(f, v, json_object_get(b, key))) return 1;
            f->where[n] = 0;
        }
        json_object_foreach((json_t *)(uintptr_t)b, key, v) {
            if (json_object_get(a, key)) continue;
            put_key(f, key);
            return differs(f, NULL, v);
        }
        return 0;
    }
    if (json_is_array(a) && json_is_array(b)) {
        const size_t m = json_array_size(a), k = json_array_size(b);
        for (size_t i = 0; i < m || i < k; i++) {
            put_index(f, i);
            if (differs(f, json_array_get(a, i), json_array_get(b, i))) return 1;
            f->where[n] = 0;
        }
        return 0;
    }
    if (same_leaf(a, b)) return 0;
    put_value(f->was, sizeof f->was, a);
    put_value(f->expected, sizeof f->expected, b);
    return 1;
}

rlhf_status rlhf__faults_compare(struct rlhf__faults *f, const struct rlhf__fault *at,
                                 const json_t *was, const json_t *expected,
                                 struct rlhf__error *err) {
    struct rlhf__fault one = *at;
    return differs(&one, was, expected) ? rlhf__faults_add(f, &one, err) : RLHF_OK;
}
