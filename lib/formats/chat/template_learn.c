// template_learn.c: finds out properties of a chat template by rendering short conversations; see
// template.h.
#include "chat/template.h"
#include "chat/tool_calls.h"

#include <stdlib.h>
#include <string.h>

static const char stand_in[] = "Zq7learn7qZ";

static rlhf_str text(const char *s) { return (rlhf_str){s, strlen(s)}; }

static rlhf_status render(const struct rlhf__template *t, struct rlhf__message *m, size_t n,
                          int generate, struct rlhf__jinja_result *out, struct rlhf__error *err) {
    const struct rlhf__messages talk = {.item = m, .n = n};
    return rlhf__template_render(t, &talk, generate, out, err);
}

// The text after the stand-in in a rendered result. ptr is NULL if the stand-in is missing.
static rlhf_str after_stand_in(const struct rlhf__jinja_result *r) {
    const char *s = rlhf__buf_text(&r->turns.text), *at = strstr(s, stand_in);
    if (!at) return (rlhf_str){NULL, 0};
    at += strlen(stand_in);
    return (rlhf_str){at, r->turns.text.len - (size_t)(at - s)};
}

static rlhf_status learn_question(struct rlhf__template *t, struct rlhf__jinja_result *r,
                                  struct rlhf__error *err) {
    struct rlhf__message q = {.role = RLHF__ROLE_USER, .content = text(stand_in)};
    struct rlhf__jinja_result asks = {0};
    rlhf_status st = render(t, &q, 1, 0, r, err);
    if (st == RLHF_OK && !after_stand_in(r).ptr)
        st = rlhf__fail(err, RLHF_E_UNSUPPORTED, "it does not write what a user says");
    if (st == RLHF_OK) st = render(t, &q, 1, 1, &asks, err);
    const struct rlhf__buf *a = &r->turns.text, *b = &asks.turns.text;
    const size_t same = rlhf__template_common(rlhf__template_text(r), rlhf__template_text(&asks));
    if (st == RLHF_OK) {
        rlhf__buf_put(&t->header, b->data + same, b->len - same);
        rlhf__buf_put(&t->before, a->data,
                      a->len - (size_t)after_stand_in(r).len - strlen(stand_in));
    }
    rlhf__turns_finish(&asks.turns);
    return st;
}

// Finds the token that ends the assistant's turn in a conversation of n messages.
static rlhf_status learn_end(struct rlhf__template *t, size_t n, char **to,
                             struct rlhf__jinja_result *r, struct rlhf__error *err) {
    struct rlhf__message m[] = {{.role = RLHF__ROLE_USER, .content = text("Q")},
                                {.role = RLHF__ROLE_ASSISTANT, .content = text(stand_in)},
                                {.role = RLHF__ROLE_USER, .content = text("R")}};
    rlhf_status st = render(t, m, n, 0, r, err);
    if (st == RLHF_E_INVALID) return RLHF_OK;
    RLHF_TRY(st);
    const rlhf_str token = rlhf__template_token_at(t, after_stand_in(r));
    if (!token.len) return RLHF_OK;
    *to = strndup(token.ptr, (size_t)token.len);
    return *to ? RLHF_OK : RLHF__NOMEM(err, "out of memory for a chat template");
}

static rlhf_status learn_lead(struct rlhf__template *t, struct rlhf__jinja_result *r,
                              struct rlhf__error *err) {
    struct rlhf__message m[] = {{.role = RLHF__ROLE_USER, .content = text("Q")},
                                {.role = RLHF__ROLE_ASSISTANT, .content = text(stand_in)}};
    struct rlhf__jinja_result asks = {0};
    rlhf_status st = render(t, m, 1, 1, &asks, err);
    if (st == RLHF_OK) st = render(t, m, 2, 0, r, err);
    if (st == RLHF_OK && after_stand_in(r).ptr) {
        const struct rlhf__buf *all = &r->turns.text;
        const size_t same =
                         rlhf__template_common(rlhf__template_text(&asks), rlhf__template_text(r)),
                     head = all->len - (size_t)after_stand_in(r).len - strlen(stand_in);
        if (same < head) rlhf__buf_put(&t->lead, all->data + same, head - same);
    }
    rlhf__turns_finish(&asks.turns);
    return st == RLHF_E_INVALID ? RLHF_OK : st;
}

static rlhf_status learn_thoughts(struct rlhf__template *t, struct rlhf__jinja_result *r,
                                  struct rlhf__error *err) {
    struct rlhf__message m[] = {
        {.role = RLHF__ROLE_USER, .content = text("Q")},
        {.role = RLHF__ROLE_ASSISTANT, .content = text("A"), .thoughts = text(stand_in)}};
    const rlhf_status st = render(t, m, 2, 0, r, err);
    t->thoughts = st == RLHF_OK && after_stand_in(r).ptr;
    return st == RLHF_E_INVALID ? RLHF_OK : st;
}

// ---- tools ----

// The messages `m` contain the stand-in. Sets *yes to 1 if the rendered text contains it too.
static rlhf_status writes(const struct rlhf__template *t, const struct rlhf__messages *m,
                          struct rlhf__jinja_result *r, int32_t *yes, struct rlhf__error *err) {
    const rlhf_status st = rlhf__template_render(t, m, 1, r, err);
    *yes = st == RLHF_OK && after_stand_in(r).ptr;
    return st == RLHF_E_INVALID ? RLHF_OK : st;
}

static json_t *tool(void) {
    return json_pack("[{s:s,s:{s:s,s:s,s:{s:s,s:{s:{s:s,s:s}},s:[s]}}}]", "type", "function",
                     "function", "name", stand_in, "description", "D", "parameters", "type",
                     "object", "properties", "a", "type", "string", "description", "E", "required",
                     "a");
}

static json_t *call(void) {
    return json_pack("[{s:s,s:s,s:{s:s,s:{s:s}}}]", "id", "abcdefgh1", "type", "function",
                     "function", "name", stand_in, "arguments", "a", "b");
}

// The form of the call in a turn: the first form whose parser finds a call there.
static rlhf_status form_of(struct rlhf__template *t, rlhf_str turn, struct rlhf__error *err) {
    struct rlhf__tool_calls found = {0};
    rlhf_status st = RLHF_OK;
    for (int32_t form = 1; st == RLHF_OK && !t->tools.form && form < RLHF__N_TOOL_FORMS; form++) {
        st = rlhf__tool_calls_read(form, turn, NULL, &found, err);
        if (found.n == 1 && !found.item[0].fault &&
            strcmp(json_string_value(found.item[0].name), stand_in) == 0)
            t->tools.form = form;
    }
    rlhf__tool_calls_finish(&found);
    return st;
}

// Finds the form of tool calls. `m` has two messages: a question, and an answer that is a tool
// call.
static rlhf_status learn_call(struct rlhf__template *t, const struct rlhf__messages *m,
                              struct rlhf__jinja_result *r, struct rlhf__error *err) {
    struct rlhf__jinja_result asks = {0};
    RLHF_TRY(writes(t, m, r, &t->tools.calls, err));
    if (!t->tools.calls) return RLHF_OK;
    const struct rlhf__messages asked = {.item = m->item, .n = 1};
    rlhf_status st = rlhf__template_render(t, m, 0, r, err);
    if (st == RLHF_OK) st = rlhf__template_render(t, &asked, 1, &asks, err);
    rlhf_str turn = rlhf__template_text(r);
    if (st == RLHF_OK) {
        const size_t same = rlhf__template_common(turn, rlhf__template_text(&asks));
        turn.ptr += same;
        turn.len -= same;
        const char *end = t->end ? strstr(turn.ptr, t->end) : NULL;
        if (end) turn.len = (uint64_t)(end - turn.ptr);
        st = form_of(t, turn, err);
    }
    rlhf__turns_finish(&asks.turns);
    return st == RLHF_E_INVALID ? RLHF_OK : st;
}

static rlhf_status learn_tools(struct rlhf__template *t, struct rlhf__jinja_result *r,
                               struct rlhf__error *err) {
    json_t *tools = tool(), *calls = call();
    struct rlhf__message m[] = {{.role = RLHF__ROLE_USER, .content = text("Q")},
                                {.role = RLHF__ROLE_ASSISTANT, .content = text(""), .calls = calls},
                                {.role = RLHF__ROLE_TOOL,
                                 .content = text(stand_in),
                                 .name = text("f"),
                                 .call_id = text("abcdefgh1")}};
    const struct rlhf__messages asked = {.item = m, .n = 1, .tools = tools},
                                called = {.item = m, .n = 2}, answered = {.item = m, .n = 3};
    rlhf_status st = tools && calls ? RLHF_OK : RLHF__NOMEM(err, "out of memory for a template");
    if (st == RLHF_OK) st = writes(t, &asked, r, &t->tools.lists, err);
    if (st == RLHF_OK) st = learn_call(t, &called, r, err);
    if (st == RLHF_OK && !t->tools.calls) { // some templates write calls only without content
        m[1].written = RLHF__CONTENT_ABSENT;
        st = learn_call(t, &called, r, err);
    }
    json_object_set_new(json_object_get(json_array_get(calls, 0), "function"), "name",
                        json_string("f"));
    if (st == RLHF_OK) st = writes(t, &answered, r, &t->tools.results, err);
    json_decref(tools);
    json_decref(calls);
    return st;
}

rlhf_status rlhf__template_learn(struct rlhf__template *t, struct rlhf__error *err) {
    struct rlhf__jinja_result r = {0};
    struct rlhf__error why = {0, ""};
    rlhf_status st = learn_question(t, &r, &why);
    if (st == RLHF_E_INVALID)
        st = rlhf__fail(err, RLHF_E_UNSUPPORTED, "it does not render a question: %.600s", why.text);
    else if (st != RLHF_OK)
        st = rlhf__fail(err, st, "%.600s", why.text);
    if (st == RLHF_OK) st = learn_end(t, 2, &t->end, &r, err);
    if (st == RLHF_OK && t->end) st = learn_end(t, 3, &t->past_end, &r, err);
    if (st == RLHF_OK) st = learn_lead(t, &r, err);
    if (st == RLHF_OK) st = learn_thoughts(t, &r, err);
    if (st == RLHF_OK) st = learn_tools(t, &r, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&t->header, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&t->before, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&t->lead, err);
    rlhf__turns_finish(&r.turns);
    return st;
}
