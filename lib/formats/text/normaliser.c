// normaliser.c: see normaliser.h. The list of steps: reading it and running it.
#include "text/normaliser_impl.h"

#include "base/json.h"
#include "text/tokenizer_part.h"

#include <stdlib.h>

static rlhf_status add_step(struct rlhf__normaliser *list, const json_t *part,
                            struct rlhf__error *err) {
    if (list->n == RLHF__NORMAL_STEPS_MAX)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "the normalizer has more than %d steps",
                          RLHF__NORMAL_STEPS_MAX);
    return rlhf__normal_step_read(part, &list->step[list->n++], err);
}

static rlhf_status add_all(struct rlhf__normaliser *list, const json_t *part, int depth,
                           struct rlhf__error *err) {
    if (!part || json_is_null(part)) return RLHF_OK;
    if (!rlhf__part_is(part, "Sequence")) return add_step(list, part, err);
    const json_t *inner = json_object_get(part, "normalizers"), *item;
    if (depth == RLHF__PART_DEPTH_MAX)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "the normalizer has sequences inside sequences");
    if (!json_is_array(inner))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the normalizer Sequence: normalizers: expected an array, found %s",
                          rlhf__json_kind(inner));
    size_t i;
    json_array_foreach(inner, i, item) RLHF_TRY(add_all(list, item, depth + 1, err));
    return RLHF_OK;
}

rlhf_status rlhf__normaliser_create(const json_t *part, struct rlhf__normaliser **out,
                                    struct rlhf__error *err) {
    struct rlhf__normaliser *list = calloc(1, sizeof *list);
    *out = NULL;
    if (!list) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a tokenizer");
    rlhf_status st = add_all(list, part, 0, err);
    if (st < 0 || !list->n)
        rlhf__normaliser_destroy(list);
    else
        *out = list;
    return st;
}

void rlhf__normaliser_destroy(struct rlhf__normaliser *normaliser) {
    if (!normaliser) return;
    for (size_t i = 0; i < normaliser->n; i++)
        rlhf__normal_step_finish(&normaliser->step[i]);
    free(normaliser);
}

rlhf_status rlhf__normaliser_apply(const struct rlhf__normaliser *normaliser, const char *s,
                                   size_t n, struct rlhf__buf *out, struct rlhf__buf *spare,
                                   struct rlhf__error *err) {
    for (size_t i = 0; i < normaliser->n; i++) {
        struct rlhf__buf last = *out; // what the step before made
        *out = *spare;
        *spare = last;
        if (i) {
            s = rlhf__buf_text(spare);
            n = spare->len;
        }
        rlhf__buf_clear(out);
        RLHF_TRY(normaliser->step[i].apply(&normaliser->step[i], s, n, out, err));
        RLHF_TRY(rlhf__buf_ok(out, err));
        RLHF_TRY(rlhf__normal_room(out, 0, err));
    }
    return RLHF_OK;
}

struct rlhf__bert_opts *rlhf__normaliser_bert(struct rlhf__normaliser *normaliser) {
    for (size_t i = 0; normaliser && i < normaliser->n; i++)
        if (normaliser->step[i].is_bert) return &normaliser->step[i].bert;
    return NULL;
}
