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

// Take ownership of `block`, which is from malloc. If memory runs out, free it and return NULL.
static void *own(struct rlhf__strings *s, void *block) {
    if (block && s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 16;
        char **item = realloc(s->item, cap * sizeof *item);
        if (!item) {
            free(block);
            return NULL;
        }
        s->item = item;
        s->cap = cap;
    }
    if (block) s->item[s->n++] = block;
    return block;
}

const char *rlhf__strings_add(struct rlhf__strings *s, const char *text) {
    return text ? own(s, strdup(text)) : NULL;
}

void *rlhf__strings_room(struct rlhf__strings *s, size_t n) { return own(s, calloc(n, 1)); }

const char *const *rlhf__strings_add_list(struct rlhf__strings *s, const json_t *list) {
    const size_t n = json_array_size(list);
    const char **copy = own(s, calloc(n + 1, sizeof *copy));
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = rlhf__strings_add(s, json_string_value(json_array_get(list, i)));
        if (!copy[i]) return NULL;
    }
    return copy;
}
