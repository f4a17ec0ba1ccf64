// strings.c: see strings.h.
#include "option/strings.h"

#include <stdlib.h>
#include <string.h>

void rlhf__strings_finish(struct rlhf__strings *s) {
    for (size_t i = 0; i < s->n; i++)
        free(s->item[i]);
    free(s->item);
    *s = (struct rlhf__strings){0};
}

const char *rlhf__strings_add(struct rlhf__strings *s, const char *text) {
    if (!text) return NULL;
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 16;
        char **item = realloc(s->item, cap * sizeof *item);
        if (!item) return NULL;
        s->item = item;
        s->cap = cap;
    }
    char *copy = strdup(text);
    if (copy) s->item[s->n++] = copy;
    return copy;
}
