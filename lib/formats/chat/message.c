// message.c: see message.h.
#include "chat/message.h"

#include "base/json.h"
#include "base/printable.h"

#include <stdlib.h>
#include <string.h>

static const char *const role_names[RLHF__N_ROLES] = {"system", "user", "assistant"};

const char *rlhf__role_name(int32_t role) { return role_names[role]; }

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
                      "%s[%zu]: the role is '%.60s'; allowed: system, user, assistant", field, i,
                      rlhf__printable(json_string_value(v), shown, sizeof shown));
}

// Refuses members that are not supported but would have to be rendered.
static rlhf_status check_members(const json_t *message, const char *field, size_t i,
                                 struct rlhf__error *err) {
    static const char *const refused[] = {"tool_calls", "tool_call_id", "function_call",
                                          "reasoning", "thinking"};
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        const json_t *v = json_object_get(message, refused[k]);
        if (v && !json_is_null(v) && !(json_is_array(v) && json_array_size(v) == 0))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s[%zu]: field '%s' is not supported; a message is its role and its "
                              "content",
                              field, i, refused[k]);
    }
    return RLHF_OK;
}

// "reasoning_content": what the assistant thought before the content.
static rlhf_status read_thoughts(const json_t *v, const char *field, size_t i,
                                 struct rlhf__message *out, struct rlhf__error *err) {
    if (!v || json_is_null(v)) return RLHF_OK;
    if (!json_is_string(v))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s[%zu]: field 'reasoning_content' is %s, expected a string", field, i,
                          rlhf__json_kind(v));
    if (out->role != RLHF__ROLE_ASSISTANT)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s[%zu]: field 'reasoning_content' is an assistant's, not the %s's",
                          field, i, out->role == RLHF__ROLE_USER ? "user" : "system");
    out->thoughts = (rlhf_str){json_string_value(v), json_string_length(v)};
    return RLHF_OK;
}

rlhf_status rlhf__messages_read(struct rlhf__messages *m, const json_t *list, const char *field,
                                struct rlhf__error *err) {
    if (!json_is_array(list))
        return rlhf__fail(err, RLHF_E_INVALID, "field '%s' is %s, expected a list of messages",
                          field, rlhf__json_kind(list));
    if (json_array_size(list) == 0)
        return rlhf__fail(err, RLHF_E_INVALID, "field '%s' has no messages", field);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i), *content = json_object_get(v, "content");
        struct rlhf__message message = {.role = 0};
        if (!json_is_object(v))
            return rlhf__fail(err, RLHF_E_INVALID, "%s[%zu] is %s, expected a message", field, i,
                              rlhf__json_kind(v));
        RLHF_TRY(read_role(json_object_get(v, "role"), field, i, &message.role, err));
        RLHF_TRY(check_members(v, field, i, err));
        if (!json_is_string(content))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s[%zu]: field 'content' is %s, expected a string", field, i,
                              rlhf__json_kind(content));
        message.content = (rlhf_str){json_string_value(content), json_string_length(content)};
        RLHF_TRY(read_thoughts(json_object_get(v, "reasoning_content"), field, i, &message, err));
        RLHF_TRY(rlhf__messages_put(m, &message, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__messages_check_row(const json_t *row, struct rlhf__error *err) {
    static const char *const refused[] = {"tools", "functions", "documents",
                                          "chat_template_kwargs"};
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        const json_t *v = json_object_get(row, refused[k]);
        if (v && !json_is_null(v) && !(json_is_array(v) && json_array_size(v) == 0) &&
            !(json_is_object(v) && json_object_size(v) == 0))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "the row has messages and also '%s', which no template here does",
                              refused[k]);
    }
    return RLHF_OK;
}

rlhf_status rlhf__messages_check_prompt(const struct rlhf__messages *m, const char *field,
                                        struct rlhf__error *err) {
    int users = 0;
    for (size_t i = 0; i < m->n; i++)
        users += m->item[i].role == RLHF__ROLE_USER;
    if (!users) return rlhf__fail(err, RLHF_E_INVALID, "field '%s' has no user's turn", field);
    if (m->item[m->n - 1].role == RLHF__ROLE_USER) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "field '%s' ends with the %s's turn; a prompt ends with a user's", field,
                      role_names[m->item[m->n - 1].role]);
}

void rlhf__messages_text(const struct rlhf__messages *m, struct rlhf__buf *out) {
    for (size_t i = 0; i < m->n; i++) {
        if (i) rlhf__buf_puts(out, "\n\n");
        rlhf__buf_put(out, m->item[i].content.ptr, (size_t)m->item[i].content.len);
    }
}

void rlhf__messages_clear(struct rlhf__messages *m) { m->n = 0; }

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
    rlhf__buf_free(&t->text);
    free(t->item);
    *t = (struct rlhf__turns){0};
}
