// preference_texts.c: see preference_texts.h.
#include "data/preference_texts.h"

#include "base/json.h"

struct place {
    const char *path;
    int64_t line;
    struct rlhf__error *err;
};

// "FILE:LINE: sentence". A macro, so that the compiler checks the format and sees a failure.
#define BAD(r, fmt, ...)                                                                           \
    (rlhf__fail((r)->err, RLHF_E_INVALID, "%s:%lld: " fmt, (r)->path, (long long)(r)->line,        \
                __VA_ARGS__),                                                                      \
     RLHF_E_INVALID)

// A string that is not empty, unless it may be.
static rlhf_status check_text(const struct place *r, const json_t *v, const char *what,
                              int may_be_empty) {
    if (!v) return BAD(r, "the row has no field '%s'", what);
    if (!json_is_string(v))
        return BAD(r, "field '%s' is %s, expected a string", what, rlhf__json_kind(v));
    if (json_string_length(v) == 0 && !may_be_empty) return BAD(r, "field '%s' is empty", what);
    return RLHF_OK;
}

static rlhf_status take_pair(const struct place *r, const json_t *row,
                             struct rlhf__preference_texts *t) {
    static const char *const name[] = {"chosen", "rejected"};
    for (t->n = 0; t->n < 2; t->n++) {
        t->response[t->n] = json_object_get(row, name[t->n]);
        RLHF_TRY(check_text(r, t->response[t->n], name[t->n], 0));
    }
    t->best = 0;
    if (json_equal(t->response[0], t->response[1]))
        return BAD(r, "fields '%s' and '%s' are the same text", name[0], name[1]);
    return RLHF_OK;
}

static rlhf_status take_best(const struct place *r, const json_t *row,
                             struct rlhf__preference_texts *t) {
    const json_t *v = json_object_get(row, "best");
    if (!v) return BAD(r, "the row has no field '%s'", "best");
    if (!json_is_integer(v))
        return BAD(r, "field 'best' is %s, expected an integer", rlhf__json_kind(v));
    json_int_t best = json_integer_value(v);
    if (best < 0 || best >= t->n)
        return BAD(r, "field 'best' is %lld; allowed: 0 to %d, as there are %d responses",
                   (long long)best, t->n - 1, t->n);
    t->best = (int32_t)best;
    for (int32_t i = 0; i < t->n; i++)
        if (i != t->best && json_equal(t->response[i], t->response[t->best]))
            return BAD(r, "responses %d and %d are the same text, and one is the best",
                       i < t->best ? i : t->best, i < t->best ? t->best : i);
    return RLHF_OK;
}

static rlhf_status take_responses(const struct place *r, const json_t *row,
                                  struct rlhf__preference_texts *t) {
    const json_t *list = json_object_get(row, "responses");
    if (!json_is_array(list))
        return BAD(r, "field 'responses' is %s, expected a list of strings", rlhf__json_kind(list));
    size_t n = json_array_size(list);
    if (n < 2 || n > RLHF__RESPONSES_MAX)
        return BAD(r, "field 'responses' has %zu entries; allowed: 2 to %d", n,
                   RLHF__RESPONSES_MAX);
    for (t->n = 0; t->n < (int32_t)n; t->n++) {
        char name[40];
        snprintf(name, sizeof name, "responses[%d]", t->n);
        t->response[t->n] = json_array_get(list, (size_t)t->n);
        RLHF_TRY(check_text(r, t->response[t->n], name, 0));
    }
    return take_best(r, row, t);
}

rlhf_status rlhf__preference_texts_read(const json_t *row, int empty_prompt, const char *path,
                                        int64_t line, struct rlhf__preference_texts *t,
                                        struct rlhf__error *err) {
    const struct place at = {path, line, err}, *r = &at;
    t->prompt = json_object_get(row, "prompt");
    RLHF_TRY(check_text(r, t->prompt, "prompt", empty_prompt));
    int pair = json_object_get(row, "chosen") || json_object_get(row, "rejected");
    if (!json_object_get(row, "responses")) return take_pair(r, row, t);
    if (pair)
        return BAD(r, "the row has 'responses' and also '%s'; one form is expected",
                   json_object_get(row, "chosen") ? "chosen" : "rejected");
    return take_responses(r, row, t);
}
