// dataset_row.c: see dataset_row.h.
#include "data/dataset_row.h"

#include "base/json.h"
#include "values/message.h"

#include <string.h>

// ---- prompt and completion ----

static rlhf_status no_memory(struct rlhf__error *err) {
    return RLHF__NOMEM(err, "out of memory for a row");
}

static json_t *said_by_assistant(const json_t *text) {
    json_t *m = json_object();
    if (!m || json_object_set_new(m, "role", json_string("assistant")) != 0 ||
        json_object_set_new(m, "content", json_deep_copy(text)) != 0) {
        json_decref(m);
        return NULL;
    }
    return m;
}

// Joins prompt and completion into one list, which the caller owns. Returns NULL if memory runs
// out.
static json_t *join(const json_t *prompt, const json_t *completion) {
    json_t *all = json_deep_copy(prompt), *rest = NULL;
    int bad = !all;
    if (!bad && json_is_array(completion)) {
        rest = json_deep_copy(completion);
        bad = !rest || json_array_extend(all, rest) != 0;
    } else if (!bad) {
        bad = json_array_append_new(all, said_by_assistant(completion)) != 0;
    }
    json_decref(rest);
    if (!bad) return all;
    json_decref(all);
    return NULL;
}

static rlhf_status check_completion(const json_t *completion, struct rlhf__error *err) {
    struct rlhf__messages m = {0};
    rlhf_status st = rlhf__messages_read(&m, completion, "completion", err);
    if (st == RLHF_OK && (m.n == 0 || m.item[0].role != RLHF__ROLE_ASSISTANT ||
                          m.item[m.n - 1].role != RLHF__ROLE_ASSISTANT))
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "field 'completion' does not begin and end with the assistant's turn");
    rlhf__messages_finish(&m);
    return st;
}

static rlhf_status read_messages(const json_t *row, const json_t *prompt, const json_t *completion,
                                 struct rlhf__completion_row *out, struct rlhf__error *err) {
    struct rlhf__messages m = {0};
    rlhf_status st = rlhf__messages_check_row(row, err);
    if (st == RLHF_OK) st = rlhf__messages_read(&m, prompt, "prompt", err);
    if (st == RLHF_OK) st = rlhf__messages_check_prompt(&m, "prompt", err);
    if (st == RLHF_OK && json_is_array(completion)) st = check_completion(completion, err);
    out->asked = (int32_t)m.n;
    rlhf__messages_finish(&m);
    if (st != RLHF_OK) return st;
    json_t *tools = NULL;
    RLHF_TRY(rlhf__messages_tools(row, &tools, err));
    json_t *all = join(prompt, completion);
    out->messages = all ? rlhf__messages_pack(all, tools, rlhf__messages_vars(row)) : NULL;
    json_decref(all);
    json_decref(tools);
    return out->messages ? RLHF_OK : no_memory(err);
}

rlhf_status rlhf__completion_row_read(const json_t *row, struct rlhf__completion_row *out,
                                      struct rlhf__error *err) {
    const json_t *prompt = json_object_get(row, "prompt");
    const json_t *completion = json_object_get(row, "completion");
    const int chat = json_is_array(prompt), said = json_is_string(completion);
    if (!prompt)
        return rlhf__fail(err, RLHF_E_INVALID, "the row has a 'completion' but no field 'prompt'");
    if (!chat && !json_is_string(prompt))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "field 'prompt' is %s, expected a string or a list of messages",
                          rlhf__json_kind(prompt));
    if (!said && !(chat && json_is_array(completion)))
        return rlhf__fail(err, RLHF_E_INVALID, "field 'completion' is %s, expected a string%s",
                          rlhf__json_kind(completion), chat ? " or a list of messages" : "");
    if (said && json_string_length(completion) == 0)
        return rlhf__fail(err, RLHF_E_INVALID, "field 'completion' is empty");
    if (chat) return read_messages(row, prompt, completion, out, err);
    out->prompt = (rlhf_str){json_string_value(prompt), json_string_length(prompt)};
    out->completion = (rlhf_str){json_string_value(completion), json_string_length(completion)};
    return RLHF_OK;
}

// Recognizes the row formats of other tools and names the commands that convert them.
const char *rlhf__completion_row_hint(const json_t *row) {
    const json_t *turns = json_object_get(row, "conversations");
    if (json_is_string(json_object_get(json_array_get(turns, 0), "from")))
        return "; ShareGPT rows become messages by: jq -c '{messages: [.conversations[] | {role: "
               "({human: \"user\", gpt: \"assistant\"}[.from] // .from), content: .value}]}' FILE";
    if (json_object_get(row, "instruction") && json_object_get(row, "output"))
        return "; Alpaca rows become prompts and completions by: jq -c '{prompt: (.instruction + "
               "(if (.input // \"\") == \"\" then \"\" else \"\\n\\n\" + .input end) + "
               "\"\\n\\n\"), "
               "completion: .output}' FILE";
    return "";
}

// ---- labels ----

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
                      o->labels ? "which is not a label of the model (the first is '" : "",
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
