// spans.c: see spans.h.
#include "text/spans.h"

#include <stdlib.h>

void rlhf__spans_put(struct rlhf__spans *list, const void *bytes, size_t n) {
    rlhf__buf_put(&list->bytes, bytes, n);
}

void rlhf__spans_end(struct rlhf__spans *list) {
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 64;
        size_t *end = realloc(list->end, cap * sizeof *end);
        if (!end) {
            list->bytes.bad = 1;
            return;
        }
        list->end = end;
        list->cap = cap;
    }
    list->end[list->n++] = list->bytes.len;
}

rlhf_str rlhf__spans_get(const struct rlhf__spans *list, size_t i) {
    size_t from = i ? list->end[i - 1] : 0;
    return (rlhf_str){rlhf__buf_text(&list->bytes) + from, list->end[i] - from};
}

void rlhf__spans_clear(struct rlhf__spans *list) {
    rlhf__buf_clear(&list->bytes);
    list->n = 0;
}

void rlhf__spans_finish(struct rlhf__spans *list) {
    rlhf__buf_free(&list->bytes);
    free(list->end);
    *list = (struct rlhf__spans){0};
}
