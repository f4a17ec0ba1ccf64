// notes.c: see notes.h.
#include "verdict/notes.h"

#include "base/buf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rlhf__notes_finish(struct rlhf__notes *l) {
    while (l->n > 0)
        rlhf__notes_drop(l, l->n - 1);
    free(l->all);
    *l = (struct rlhf__notes){0};
}

static int grow(struct rlhf__notes *l) {
    if (l->n < l->cap) return 1;
    const size_t cap = l->cap ? 2 * l->cap : 8;
    struct rlhf__run_note *all = realloc(l->all, cap * sizeof *all);
    if (!all) return 0;
    l->all = all;
    l->cap = cap;
    return 1;
}

void rlhf__notes_add(struct rlhf__notes *l, const struct rlhf__run_note *form, const char *fmt,
                     ...) {
    char *text = NULL, *change = form->change ? strdup(form->change) : NULL;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0) text = NULL;
    va_end(args);
    if (l->bad || !text || (form->change && !change) || !grow(l)) {
        l->bad = 1;
        free(text);
        free(change);
        return;
    }
    l->all[l->n] = *form;
    l->all[l->n].change = change;
    l->all[l->n++].text = text;
}

void rlhf__notes_silence(struct rlhf__notes *l, size_t i) {
    free((void *)(uintptr_t)l->all[i].change);
    l->all[i].change = NULL;
}

void rlhf__notes_drop(struct rlhf__notes *l, size_t i) {
    rlhf__notes_silence(l, i);
    free(l->all[i].text);
    memmove(l->all + i, l->all + i + 1, (--l->n - i) * sizeof *l->all);
}

void rlhf__notes_sort(struct rlhf__notes *l) {
    for (size_t i = 1; i < l->n; i++) {
        const struct rlhf__run_note one = l->all[i];
        size_t k = i;
        for (; k > 0 && l->all[k - 1].level > one.level; k--)
            l->all[k] = l->all[k - 1];
        l->all[k] = one;
    }
}

rlhf_status rlhf__notes_ok(const struct rlhf__notes *l, struct rlhf__error *err) {
    if (!l->bad) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for the findings about the run");
}

const struct rlhf__run_note *rlhf__notes_find(const struct rlhf__notes *l, const char *id) {
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->all[i].id, id) == 0) return &l->all[i];
    return NULL;
}

const char *rlhf__figure(double v, char out[40]) {
    snprintf(out, 40, fabs(v) >= 999.5 && fabs(v) < 1e15 ? "%.0f" : "%.3g", v);
    return out;
}
