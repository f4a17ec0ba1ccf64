// preference_texts.c: see preference_texts.h.
#include "data/preference_texts.h"

#include "base/json.h"
#include "values/message.h"

#include <math.h>
#include <string.h>

enum { MARGIN_MAX = 1000 };

struct place {
    const char *path;
    int64_t line;
    struct rlhf__error *err;
};

// Fails with "FILE:LINE: sentence". This is a macro, so that the compiler checks the format string,
// and static analyzers know that the result is never RLHF_OK.
#define BAD(r, fmt, ...)                                                                           \
    (rlhf__fail((r)->err, RLHF_E_INVALID, "%s:%lld: " fmt, (r)->path, (long long)(r)->line,        \
                __VA_ARGS__),                                                                      \
     RLHF_E_INVALID)

// Refuses v unless it is a list of messages that ends with an assistant's turn. If `whole` is 0,
// the list must also begin with one.
static rlhf_status check_answer(const struct place *r, const json_t *v, const char *what,
                                int whole) {
    struct rlhf__messages m = {0};
    struct rlhf__error err = {0, ""};
    rlhf_status st = rlhf__messages_read(&m, v, what, &err);
    size_t n = m.n;
    int begins = n && (whole || m.item[0].role == RLHF__ROLE_ASSISTANT);
    int ends = n && m.item[n - 1].role == RLHF__ROLE_ASSISTANT;
    rlhf__messages_finish(&m);
    if (st == RLHF_E_NOMEM) return RLHF__NOMEM(r->err, "out of memory for messages");
    if (st != RLHF_OK) return BAD(r, "%s", err.text);
    if (!begins || !ends)
        return BAD(r, "field '%s' %s with another's turn than the assistant's", what,
                   ends ? "begins" : "ends");
    return RLHF_OK;
}

// Refuse v unless it is a string. If may_be_empty is 0, also refuse the empty string.
static rlhf_status check_text(const struct place *r, const json_t *v, const char *what,
                              int may_be_empty) {
    if (!v) return BAD(r, "the row has no field '%s'", what);
    if (!json_is_string(v))
        return BAD(r, "field '%s' is %s, expected a string", what, rlhf__json_kind(v));
    if (json_string_length(v) == 0 && !may_be_empty) return BAD(r, "field '%s' is empty", what);
    return RLHF_OK;
}

// Check response t->n of the row, and count it.
static rlhf_status check_response(const struct place *r, const struct rlhf__preference_texts *t,
                                  const char *what) {
    const json_t *v = t->response[t->n];
    if (t->is_chat && json_is_array(v)) return check_answer(r, v, what, !t->prompt);
    if (!t->is_chat && json_is_array(v))
        return BAD(r, "field '%s' is a list of messages, and the prompt is a text", what);
    return check_text(r, v, what, 0);
}

// Finds the prompt of a row that lacks the field "prompt". As in TRL, it consists of the messages
// with which both responses begin.
static rlhf_status take_shared(const struct place *r, struct rlhf__preference_texts *t) {
    const json_t *a = t->response[0], *b = t->response[1];
    size_t n = 0;
    while (n < json_array_size(a) && json_equal(json_array_get(a, n), json_array_get(b, n)))
        n++;
    if (n == json_array_size(a) || n == json_array_size(b))
        return BAD(r, "fields '%s' and '%s' are the same messages", "chosen", "rejected");
    const char *role = json_string_value(json_object_get(json_array_get(a, n), "role"));
    const char *other = json_string_value(json_object_get(json_array_get(b, n), "role"));
    if (n == 0 || strcmp(role, "assistant") != 0 || strcmp(other, "assistant") != 0)
        return BAD(r,
                   "fields '%s' and '%s' do not begin with the same prompt, and the row has no "
                   "field 'prompt'",
                   "chosen", "rejected");
    t->shared = (int32_t)n;
    return RLHF_OK;
}

// Takes the prompt, which is a string or messages. If `needed` is 1, the row must have a prompt,
// because its responses do not contain one.
static rlhf_status take_prompt(const struct place *r, const json_t *row, int empty_prompt,
                               int needed, struct rlhf__preference_texts *t) {
    const json_t *messages = json_object_get(row, "messages");
    t->prompt_name = "prompt";
    t->prompt = json_object_get(row, "prompt");
    if (messages && !json_is_null(messages)) {
        if (t->prompt && !json_is_null(t->prompt))
            return BAD(r, "the row has '%s' and also '%s'; one of them is expected", "messages",
                       "prompt");
        t->prompt_name = "messages";
        t->prompt = messages;
    }
    const int implicit = !needed && !t->prompt && json_is_array(json_object_get(row, "chosen")) &&
                         json_is_array(json_object_get(row, "rejected"));
    t->is_chat = messages == t->prompt ? messages != NULL : json_is_array(t->prompt);
    t->is_chat |= implicit;
    if (!t->is_chat) return check_text(r, t->prompt, "prompt", empty_prompt);
    struct rlhf__messages m = {0};
    struct rlhf__error err = {0, ""};
    json_t *tools = NULL;
    rlhf_status st = rlhf__messages_check_row(row, &err);
    if (st == RLHF_OK) st = rlhf__messages_tools(row, &tools, &err);
    json_decref(tools);
    t->row = row;
    if (st == RLHF_OK && !implicit) st = rlhf__messages_read(&m, t->prompt, t->prompt_name, &err);
    if (st == RLHF_OK && !implicit) st = rlhf__messages_check_prompt(&m, t->prompt_name, &err);
    rlhf__messages_finish(&m);
    return st == RLHF_OK ? RLHF_OK : BAD(r, "%s", err.text);
}

static rlhf_status take_pair(const struct place *r, const json_t *row,
                             struct rlhf__preference_texts *t) {
    static const char *const name[] = {"chosen", "rejected"};
    for (t->n = 0; t->n < 2; t->n++) {
        t->response[t->n] = json_object_get(row, name[t->n]);
        RLHF_TRY(check_response(r, t, name[t->n]));
    }
    if (t->is_chat && !t->prompt) RLHF_TRY(take_shared(r, t));
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
        RLHF_TRY(check_response(r, t, name));
    }
    return take_best(r, row, t);
}

// Reads "margin". Rows without a margin omit it or set it to null.
static rlhf_status take_margin(const struct place *r, const json_t *row, const char *refused_by,
                               struct rlhf__preference_texts *t) {
    const json_t *v = json_object_get(row, "margin");
    if (!v || json_is_null(v)) return RLHF_OK;
    if (refused_by)
        return BAD(r,
                   "the row has a 'margin', which %s does not use; remove the field with jq -c "
                   "'del(.margin)' FILE, or train a reward model with bradley_terry.so, which uses "
                   "it",
                   refused_by);
    if (!json_is_number(v))
        return BAD(r, "field 'margin' is %s, expected a number", rlhf__json_kind(v));
    if (!(fabs(json_number_value(v)) <= MARGIN_MAX))
        return BAD(r, "field 'margin' is %g; allowed: -%d to %d", json_number_value(v), MARGIN_MAX,
                   MARGIN_MAX);
    t->margin = (float)json_number_value(v);
    t->has_margin = 1;
    return RLHF_OK;
}

// Reads "cut": for each response, in the row's order, whether it was cut off.
static rlhf_status take_cut(const struct place *r, const json_t *row,
                            struct rlhf__preference_texts *t) {
    const json_t *list = json_object_get(row, "cut");
    if (!list || json_is_null(list)) return RLHF_OK;
    if (!json_is_array(list) || json_array_size(list) != (size_t)t->n)
        return BAD(r, "field 'cut' is expected to be a list of %d booleans, one for each response",
                   t->n);
    for (int32_t i = 0; i < t->n; i++) {
        const json_t *v = json_array_get(list, (size_t)i);
        if (!json_is_boolean(v))
            return BAD(r, "entry %d of field 'cut' is %s, expected true or false", i,
                       rlhf__json_kind(v));
        t->cut[i] = json_is_true(v);
    }
    return RLHF_OK;
}

// Takes a completion and its label.
static rlhf_status take_completion(const struct place *r, const json_t *row,
                                   struct rlhf__preference_texts *t) {
    static const char *const others[] = {"chosen", "rejected", "responses"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (json_object_get(row, others[i]))
            return BAD(r, "the row has '%s'; a row of one 'completion' with a 'label' is expected",
                       others[i]);
    t->response[0] = json_object_get(row, "completion");
    RLHF_TRY(check_response(r, t, "completion"));
    const json_t *label = json_object_get(row, "label");
    if (!label) return BAD(r, "the row has no field '%s'", "label");
    if (!json_is_boolean(label))
        return BAD(r, "field 'label' is %s, expected true or false", rlhf__json_kind(label));
    t->n = 1;
    t->best = json_is_true(label) ? 0 : -1;
    return RLHF_OK;
}

rlhf_status rlhf__preference_texts_read(const json_t *row, const struct rlhf__preference_opts *o,
                                        const char *path, int64_t line,
                                        struct rlhf__preference_texts *t, struct rlhf__error *err) {
    const struct place at = {path, line, err}, *r = &at;
    *t = (struct rlhf__preference_texts){0};
    RLHF_TRY(take_prompt(r, row, o->prepend_bos, o->completions, t));
    if (o->completions) return take_completion(r, row, t);
    RLHF_TRY(take_margin(r, row, o->no_margins, t));
    int pair = json_object_get(row, "chosen") || json_object_get(row, "rejected");
    if (!json_object_get(row, "responses")) {
        RLHF_TRY(take_pair(r, row, t));
        return take_cut(r, row, t);
    }
    if (pair)
        return BAD(r, "the row has 'responses' and also '%s'; one form is expected",
                   json_object_get(row, "chosen") ? "chosen" : "rejected");
    RLHF_TRY(take_responses(r, row, t));
    return take_cut(r, row, t);
}
