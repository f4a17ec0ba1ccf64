// ids.c: see ids.h.
#include "text/ids.h"

#include <stdlib.h>

rlhf_status rlhf__ids_reserve(struct rlhf__ids *ids, size_t more, struct rlhf__error *err) {
    if (more <= ids->cap - ids->n) return RLHF_OK;
    size_t cap = ids->cap ? ids->cap : 64, limit = SIZE_MAX / 2 / sizeof *ids->data;
    if (more > limit - ids->n) return rlhf__fail(err, RLHF_E_NOMEM, "too many token ids");
    while (cap - ids->n < more)
        cap *= 2;
    int32_t *data = realloc(ids->data, cap * sizeof *data);
    if (!data) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu token ids", cap);
    ids->data = data;
    ids->cap = cap;
    return RLHF_OK;
}

rlhf_status rlhf__ids_push(struct rlhf__ids *ids, int32_t id, struct rlhf__error *err) {
    if (ids->n == ids->cap) RLHF_TRY(rlhf__ids_reserve(ids, 1, err));
    ids->data[ids->n++] = id;
    return RLHF_OK;
}

void rlhf__ids_finish(struct rlhf__ids *ids) {
    free(ids->data);
    *ids = (struct rlhf__ids){0};
}
