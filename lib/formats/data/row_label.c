// row_label.c: see row_label.h.
#include "data/row_label.h"

#include "base/json.h"

#include <string.h>

static rlhf_status read_name(const struct rlhf__dataset_opts *o, const char *name, const char *s,
                             int32_t *out, struct rlhf__error *err) {
    for (int32_t i = 0; o->labels && i < o->n_labels; i++)
        if (!strcmp(o->labels[i], s)) {
            *out = i;
            return RLHF_OK;
        }
    if (!o->labels && o->setting && strcmp(o->setting, "data.path") == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "field '%s' is '%.60s', expected an integer; labels that are words are "
                          "named in their order, as in --set score.labels=NEGATIVE,POSITIVE",
                          name, s);
    return rlhf__fail(err, RLHF_E_INVALID, "field '%s' is '%.60s', %s%.60s%s", name, s,
                      o->labels ? "which is no label of the model (the first is '" : "",
                      o->labels && o->n_labels ? o->labels[0] : "expected an integer",
                      o->labels ? "')" : "");
}

rlhf_status rlhf__row_label_read(const struct rlhf__dataset_opts *opts, const char *name,
                                 const json_t *v, int32_t *out, struct rlhf__error *err) {
    if (json_is_string(v)) return read_name(opts, name, json_string_value(v), out, err);
    if (!json_is_integer(v))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "field '%s' is %s, expected an integer or a label's name", name,
                          rlhf__json_kind(v));
    json_int_t i = json_integer_value(v), limit = opts->n_labels > 0 ? opts->n_labels : 1 << 16;
    if (i < 0 || i >= limit)
        return rlhf__fail(err, RLHF_E_INVALID, "field '%s' is %lld; allowed: 0 to %lld", name,
                          (long long)i, (long long)limit - 1);
    *out = (int32_t)i;
    return RLHF_OK;
}
