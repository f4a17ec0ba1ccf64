// jinja_tree.c: see jinja_tree.h.
#include "chat/jinja_tree.h"

#include <stdlib.h>

void rlhf__jinja_finish(struct rlhf__jinja *j) {
    for (size_t i = 0; i < j->n; i++)
        json_decref(j->node[i].value);
    free(j->node);
    *j = (struct rlhf__jinja){0};
}
