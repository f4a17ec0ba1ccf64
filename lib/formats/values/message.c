// message.c: see message.h.
#include "values/message.h"

#include "base/json.h"
#include "base/printable.h"

#include <stdlib.h>
#include <string.h>

static const char *const role_names[RLHF__N_ROLES] = {"system", "user", "assistant", "tool",
                                                      "developer"};

const char *rlhf__role_name(int32_t role) { return role_names[role]; }

const char *const *rlhf__thought_names(void) {
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning", NULL};
    return names;
}

rlhf_status rlhf__messages_put(struct rlhf__messages *m, const struct rlhf__message *message,
                               struct rlhf__error *err) {
    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 8;
        struct rlhf__message *grown = realloc(m->item, cap * sizeof *grown);
        if (!grown) return RLHF__NOMEM(err, "out of memory for messages");
        m->item = grown;
        m->cap = cap;
    }
    m->item[m->n++] = *message;
    return RLHF_OK;
}

rlhf_status rlhf__messages_add(struct rlhf__messages *m, int32_t role, rlhf_str content,
                               struct rlhf__error *err) {
    const struct rlhf__message message = {.role = role, .content = content};
    return rlhf__messages_put(m, &message, err);
}

static rlhf_status read_role(const json_t *v, const char *field, size_t i, int32_t *out,
                             struct rlhf__error *err) {
    char shown[120];
    if (!json_is_string(v))
        return rlhf__fail(err, RLHF_E_INVALID, "%s[%zu]: field 'role' is %s, expected a string",
                          field, i, rlhf__json_kind(v));
    for (*out = 0; *out < RLHF__N_ROLES; ++*out)
        if (strcmp(role_names[*out], json_string_value(v)) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s[%zu]: the role is '%.60s'; allowed: system, user, assistant, tool, "
                      "developer",
                      field, i, rlhf__printable(json_string_value(v), shown, sizeof shown));
}

// 1 unless the value is missing, null or empty.
static int is_given(const json_t *v) {
    if (json_is_array(v)) return json_array_size(v) > 0;
    if (json_is_object(v)) return json_object_size(v) > 0;
    return json_is_string(v) ? json_string_length(v) > 0 : v && !json_is_null(v);
}

// Reads the member `name`, which only messages of the role `role` may have; -1 means any role.
static rlhf_status read_text(const json_t *message, const char *name, int32_t role,
                             const char *field, size_t i, const struct rlhf__message *of,
                             rlhf_str *out, struct rlhf__error *err) {
    const json_t *v = json_object_get(message, name);
    if (!v || json_is_null(v)) return RLHF_OK;
    if (is_given(v) && !json_is_string(v))
        return rlhf__fail(err, RLHF_E_INVALID, "%s[%zu]: field '%s' is %s, expected a string",
                          field, i, name, rlhf__json_kind(v));
    if (is_given(v) && role >= 0 && of->role != role)
        return rlhf__fail(err, RLHF_E_INVALID, "%s[%zu]: field '%s' is %s %s's, not the %s's",
                          field, i, name, role == RLHF__ROLE_ASSISTANT ? "an" : "a",
                          role_names[role], role_names[of->role]);
    if (json_is_string(v) && !out->ptr)
        *out = (rlhf_str){json_string_value(v), json_string_length(v)};
    return RLHF_OK;
}

// Checks a tool call of a message. The call may be {"type": "function", "function": {"name",
// "arguments"}} or only the inner object {"name", "arguments"}.
static rlhf_status check_call(const json_t *call, const char *field, size_t i, size_t k,
                              struct rlhf__error *err) {
    const json_t *inner = json_object_get(call, "function");
    if (!json_is_object(inner)) inner = call;
    const json_t *name = json_object_get(inner, "name"),
                 *arguments = json_object_get(inner, "arguments");
    if (!json_is_string(name))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s[%zu]: tool_calls[%zu] has no name; a call is {\"type\": "
                          "\"function\", \"function\": {\"name\": ..., \"arguments\": {...}}}",
                          field, i, k);
    if (rlhf__json_is_object(arguments) || json_is_string(arguments)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s[%zu]: tool_calls[%zu]: field 'arguments' is %s, expected an object or "
                      "its JSON as a string",
                      field, i, k, rlhf__json_kind(arguments));
}

static rlhf_status read_calls(const json_t *v, const char *field, size_t i,
                              struct rlhf__message *out, struct rlhf__error *err) {
    if (!is_given(v)) return RLHF_OK;
    if (!json_is_array(v))
        return rlhf__fail(err, RLHF_E_INVALID, "%s[%zu]: field 'tool_calls' is %s, expected a list",
                          field, i, rlhf__json_kind(v));
    if (out->role != RLHF__ROLE_ASSISTANT)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s[%zu]: field 'tool_calls' is an assistant's, not the %s's", field, i,
                          role_names[out->role]);
    for (size_t k = 0; k < json_array_size(v); k++)
        RLHF_TRY(check_call(json_array_get(v, k), field, i, k, err));
    out->calls = v;
    return RLHF_OK;
}

static rlhf_status check_part(const json_t *part, const char *field, size_t i, size_t k,
                              struct rlhf__error *err) {
    const json_t *type = json_object_get(part, "type");
    char shown[120];
    if (json_is_string(type) && strcmp(json_string_value(type), "text") == 0 &&
        json_is_string(json_object_get(part, "text")))
        return RLHF_OK;
    if (json_is_string(type) && strcmp(json_string_value(type), "text") != 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s[%zu]: content[%zu] is of the type '%.60s'; only text is supported",
                          field, i, k,
                          rlhf__printable(json_string_value(type), shown, sizeof shown));
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "%s[%zu]: content[%zu] is not a part with text; a list of content consists of "
        "{\"type\": \"text\", \"text\": \"...\"}",
        field, i, k);
}

static rlhf_status read_content(const json_t *v, const char *field, size_t i,
                                struct rlhf__message *out, struct rlhf__error *err) {
    out->content = (rlhf_str){"", 0};
    if (json_is_string(v)) {
        out->content = (rlhf_str){json_string_value(v), json_string_length(v)};
        return RLHF_OK;
    }
    if (json_is_array(v)) {
        for (size_t k = 0; k < json_array_size(v); k++)
            RLHF_TRY(check_part(json_array_get(v, k), field, i, k, err));
        out->parts = v;
        out->written = RLHF__CONTENT_PARTS;
        return RLHF_OK;
    }
    if ((!out->calls && !out->thoughts.len) || (v && !json_is_null(v)))
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "%s[%zu]: field 'content' is %s, expected a string or a list of text parts", field, i,
            rlhf__json_kind(v));
    out->written = RLHF__CONTENT_ABSENT;
    return RLHF_OK;
}

static rlhf_status read_message(const json_t *v, const char *field, size_t i,
                                struct rlhf__message *out, struct rlhf__error *err) {
    const char *const *thoughts = rlhf__thought_names();
    if (!json_is_object(v))
        return rlhf__fail(err, RLHF_E_INVALID, "%s[%zu] is %s, expected a message", field, i,
                          rlhf__json_kind(v));
    out->given = v;
    RLHF_TRY(read_role(json_object_get(v, "role"), field, i, &out->role, err));
    if (is_given(json_object_get(v, "function_call")))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s[%zu]: field 'function_call' is not supported; write it as tool_calls",
                          field, i);
    RLHF_TRY(read_calls(json_object_get(v, "tool_calls"), field, i, out, err));
    for (size_t k = 0; thoughts[k]; k++)
        RLHF_TRY(
            read_text(v, thoughts[k], RLHF__ROLE_ASSISTANT, field, i, out, &out->thoughts, err));
    RLHF_TRY(read_content(json_object_get(v, "content"), field, i, out, err));
    RLHF_TRY(read_text(v, "tool_call_id", RLHF__ROLE_TOOL, field, i, out, &out->call_id, err));
    return read_text(v, "name", -1, field, i, out, &out->name, err);
}

rlhf_status rlhf__messages_read(struct rlhf__messages *m, const json_t *list, const char *field,
                                struct rlhf__error *err) {
    if (!json_is_array(list))
        return rlhf__fail(err, RLHF_E_INVALID, "field '%s' is %s, expected a list of messages",
                          field, rlhf__json_kind(list));
    if (json_array_size(list) == 0)
        return rlhf__fail(err, RLHF_E_INVALID, "field '%s' has no messages", field);
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct rlhf__message message = {.role = 0};
        RLHF_TRY(read_message(json_array_get(list, i), field, i, &message, err));
        RLHF_TRY(rlhf__messages_put(m, &message, err));
    }
    return RLHF_OK;
}

// ---- rows ----

rlhf_status rlhf__messages_check_row(const json_t *row, struct rlhf__error *err) {
    static const char *const refused[] = {"functions", "documents"};
    const json_t *vars = json_object_get(row, "chat_template_kwargs");
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++)
        if (is_given(json_object_get(row, refused[k])))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "the row has messages and also '%s', which no template here does",
                              refused[k]);
    if (!is_given(vars) || json_is_object(vars)) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "field 'chat_template_kwargs' is %s, expected an object with variables of the "
        "chat template",
        rlhf__json_kind(vars));
}

const json_t *rlhf__messages_vars(const json_t *row) {
    const json_t *vars = json_object_get(row, "chat_template_kwargs");
    return json_is_object(vars) && json_object_size(vars) ? vars : NULL;
}

rlhf_status rlhf__messages_tools(const json_t *row, json_t **tools, struct rlhf__error *err) {
    json_t *v = json_object_get(row, "tools"), *list = NULL;
    *tools = NULL;
    if (!is_given(v)) return RLHF_OK;
    if (json_is_string(v))
        list = rlhf__json_decode_digits(json_string_value(v), json_string_length(v), 0, NULL);
    else
        list = json_incref(v);
    rlhf_status st = RLHF_OK;
    if (!json_is_array(list))
        st = rlhf__fail(err, RLHF_E_INVALID, "field 'tools' is %s, expected a list of tools",
                        json_is_string(v) ? "a string without a JSON list" : rlhf__json_kind(v));
    for (size_t i = 0; st == RLHF_OK && i < json_array_size(list); i++)
        if (!rlhf__json_is_object(json_array_get(list, i)))
            st = rlhf__fail(err, RLHF_E_INVALID, "tools[%zu] is %s, expected an object", i,
                            rlhf__json_kind(json_array_get(list, i)));
    if (st == RLHF_OK && json_array_size(list))
        *tools = list;
    else
        json_decref(list);
    return st;
}

char *rlhf__messages_pack(const json_t *list, const json_t *tools, const json_t *vars) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    json_t *all = NULL;
    if (tools || vars)
        all = json_pack("{s:O,s:O*,s:O*}", "messages", list, "tools", tools, "vars", vars);
    if (all || !(tools || vars)) rlhf__json_write(&text, all ? all : list, 0);
    json_decref(all);
    if (!text.bad) return text.data;
    rlhf__buf_finish(&text);
    return NULL;
}

rlhf_status rlhf__messages_unpack(rlhf_str packed, json_t **held, struct rlhf__messages *out,
                                  struct rlhf__error *err) {
    rlhf__messages_clear(out);
    *held = rlhf__json_decode_digits(packed.ptr, (size_t)packed.len, JSON_ALLOW_NUL, NULL);
    if (!*held) return RLHF__NOMEM(err, "out of memory for messages"); // the text was valid
    const json_t *list = json_is_object(*held) ? json_object_get(*held, "messages") : *held;
    out->tools = json_object_get(*held, "tools");
    out->vars = json_object_get(*held, "vars");
    return rlhf__messages_read(out, list, "messages", err);
}

rlhf_status rlhf__messages_check_prompt(const struct rlhf__messages *m, const char *field,
                                        struct rlhf__error *err) {
    int users = 0;
    for (size_t i = 0; i < m->n; i++)
        users += m->item[i].role == RLHF__ROLE_USER;
    if (!users) return rlhf__fail(err, RLHF_E_INVALID, "field '%s' has no user's turn", field);
    const int32_t last = m->item[m->n - 1].role;
    if (last == RLHF__ROLE_USER || last == RLHF__ROLE_TOOL) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "field '%s' ends with the %s's turn; a prompt ends with a user's or a tool's",
                      field, role_names[last]);
}

void rlhf__message_text(const struct rlhf__message *m, struct rlhf__buf *out) {
    const json_t *part;
    size_t i;
    json_array_foreach(m->parts, i, part) {
        const json_t *text = json_object_get(part, "text");
        rlhf__buf_put(out, json_string_value(text), json_string_length(text));
    }
    if (!m->parts) rlhf__buf_put(out, m->content.ptr, (size_t)m->content.len);
}

void rlhf__messages_text(const struct rlhf__messages *m, struct rlhf__buf *out) {
    for (size_t i = 0; i < m->n; i++) {
        if (i) rlhf__buf_puts(out, "\n\n");
        rlhf__message_text(&m->item[i], out);
    }
}

void rlhf__messages_clear(struct rlhf__messages *m) {
    m->n = 0;
    m->tools = m->vars = NULL;
}

void rlhf__messages_finish(struct rlhf__messages *m) {
    free(m->item);
    *m = (struct rlhf__messages){0};
}

// ---- a conversation as one text ----

rlhf_status rlhf__turns_add(struct rlhf__turns *t, size_t from, size_t to,
                            struct rlhf__error *err) {
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 8;
        struct rlhf__turn *grown = realloc(t->item, cap * sizeof *grown);
        if (!grown) return RLHF__NOMEM(err, "out of memory for a conversation");
        t->item = grown;
        t->cap = cap;
    }
    t->item[t->n++] = (struct rlhf__turn){from, to, to};
    return RLHF_OK;
}

void rlhf__turns_clear(struct rlhf__turns *t) {
    rlhf__buf_clear(&t->text);
    t->n = 0;
}

void rlhf__turns_finish(struct rlhf__turns *t) {
    rlhf__buf_finish(&t->text);
    free(t->item);
    *t = (struct rlhf__turns){0};
}
