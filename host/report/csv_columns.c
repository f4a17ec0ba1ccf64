// csv_columns.c: see csv_columns.h.
#include "report/csv_columns.h"

#include <stdlib.h>
#include <string.h>

static unsigned char clean(char c) {
    return c == ',' || c == '"' || (unsigned char)c < ' ' ? '_' : (unsigned char)c;
}

// Below, equal or above 0 as the column comes before, is or comes after the name.
static int order(const char *column, rlhf_str name) {
    for (uint64_t i = 0; i < name.len; i++)
        if ((unsigned char)column[i] != clean(name.ptr[i]))
            return (unsigned char)column[i] < clean(name.ptr[i]) ? -1 : 1;
    return column[name.len] ? 1 : 0;
}

static size_t place(const struct rlhf__csv_columns *c, rlhf_str name, int *there) {
    size_t lo = 0, hi = c->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (order(c->name[mid], name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *there = lo < c->n && order(c->name[lo], name) == 0;
    return lo;
}

size_t rlhf__csv_columns_find(const struct rlhf__csv_columns *c, rlhf_str name) {
    int there;
    size_t at = place(c, name, &there);
    return there ? at : RLHF__CSV_NONE;
}

rlhf_status rlhf__csv_columns_add(struct rlhf__csv_columns *c, rlhf_str name,
                                  struct rlhf__error *err) {
    int there;
    size_t at = place(c, name, &there);
    if (there) return RLHF_OK;
    char *copy = strndup(name.ptr, (size_t)name.len);
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 64;
        char **all = realloc(c->name, cap * sizeof *all);
        if (all) {
            c->name = all;
            c->cap = cap;
        }
    }
    if (!copy || c->n == c->cap) {
        free(copy);
        return RLHF__NOMEM(err, "out of memory for columns");
    }
    for (char *p = copy; *p; p++)
        *p = (char)clean(*p);
    memmove(c->name + at + 1, c->name + at, (c->n - at) * sizeof *c->name);
    c->name[at] = copy;
    c->n++;
    return RLHF_OK;
}

void rlhf__csv_columns_finish(struct rlhf__csv_columns *c) {
    for (size_t i = 0; i < c->n; i++)
        free(c->name[i]);
    free(c->name);
    *c = (struct rlhf__csv_columns){0};
}
