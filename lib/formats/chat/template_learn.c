// template_learn.c: finds out properties of a chat template by rendering short conversations; see
// template.h.
#include "chat/template.h"
#include "chat/tool_calls.h"

#include <stdlib.h>
#include <string.h>

static const char stand_in[] = "Zq7learn7qZ";

static rlhf_str text(const char *s) { return (rlhf_str){s, strlen(s)}; }

// What the conversations of a template need, besides messages.
struct probe {
    struct rlhf__template *t;
    const json_t *tools; // NULL = none
    struct rlhf__jinja_result r;
    struct rlhf__error *err;
};

static rlhf_status render(const struct probe *p, struct rlhf__message *m, size_t n, int generate,
                          struct rlhf__jinja_result *out, struct rlhf__error *err) {
    const struct rlhf__messages talk = {.item = m, .n = n, .tools = p->tools};
    for (size_t i = 0; i < n; i++)
        if (p->t->parts_only && m[i].written == RLHF__CONTENT_TEXT)
            m[i].written = RLHF__CONTENT_PARTS;
    return rlhf__template_render(p->t, &talk, generate, out, err);
}

// The text after the stand-in in a rendered result. ptr is NULL if the stand-in is missing.
static rlhf_str after_stand_in(const struct rlhf__jinja_result *r) {
    const char *s = rlhf__buf_text(&r->turns.text), *at = strstr(s, stand_in);
    if (!at) return (rlhf_str){NULL, 0};
    at += strlen(stand_in);
    return (rlhf_str){at, r->turns.text.len - (size_t)(at - s)};
}

static const char silent[] = "it does not write what a user says";

static rlhf_status learn_question(struct probe *p, struct rlhf__error *why) {
    struct rlhf__message q = {.role = RLHF__ROLE_USER, .content = text(stand_in)};
    struct rlhf__jinja_result asks = {0}, *r = &p->r;
    rlhf_status st = render(p, &q, 1, 0, r, why);
    if (st == RLHF_OK && !after_stand_in(r).ptr) st = rlhf__fail(why, RLHF_E_INVALID, "%s", silent);
    if (st == RLHF_OK) st = render(p, &q, 1, 1, &asks, why);
    const struct rlhf__buf *a = &r->turns.text, *b = &asks.turns.text;
    const size_t same = rlhf__template_common(rlhf__template_text(r), rlhf__template_text(&asks));
    if (st == RLHF_OK) {
        rlhf__buf_put(&p->t->header, b->data + same, b->len - same);
        rlhf__buf_put(&p->t->before, a->data,
                      a->len - (size_t)after_stand_in(r).len - strlen(stand_in));
    }
    rlhf__turns_finish(&asks.turns);
    return st;
}

// Finds how the template renders a question: as a text, with a list of tools, or as a list of
// parts.
static rlhf_status learn_form(struct probe *p, const json_t *tools) {
    struct rlhf__error why = {0, ""}, no = {0, ""};
    rlhf_status st = learn_question(p, &why);
    if (st == RLHF_E_INVALID) {
        p->tools = tools;
        st = learn_question(p, &no);
    }
    if (st == RLHF_E_INVALID) {
        p->tools = NULL;
        p->t->parts_only = 1;
        st = learn_question(p, &no);
    }
    if (st != RLHF_OK) p->t->parts_only = 0;
    if (st == RLHF_E_INVALID)
        return rlhf__fail(
            p->err, RLHF_E_UNSUPPORTED, "%s%.600s",
            strcmp(why.text, silent) == 0 ? "" : "it does not render a question: ", why.text);
    return st == RLHF_OK ? st : RLHF__NOMEM(p->err, "out of memory for a chat template");
}

// ---- what ends a turn ----

static rlhf_status add_end(struct probe *p, rlhf_str end) {
    struct rlhf__template *t = p->t;
    end = rlhf__space_trim(end, 1, 0);
    for (int32_t i = 0; i < t->n_ends; i++)
        if (rlhf__jinja_is(end, t->ends[i])) return RLHF_OK;
    if (t->n_ends == RLHF__TEMPLATE_ENDS) return RLHF_OK;
    t->ends[t->n_ends] = strndup(end.ptr, (size_t)end.len);
    return t->ends[t->n_ends++] ? RLHF_OK
                                : RLHF__NOMEM(p->err, "out of memory for a chat template");
}

// Returns the first special token of the tokenizer in s at or after *at, and moves *at past the
// token. Its ptr is NULL if s contains none.
static rlhf_str next_token(const struct rlhf__template *t, rlhf_str s, size_t *at) {
    while (t->special.at && *at < s.len) {
        const rlhf_str rest = {s.ptr + *at, s.len - *at};
        const size_t n = t->special.at(t->special.tokenizer, rest);
        *at += n ? n : 1;
        if (n) return (rlhf_str){rest.ptr, n};
    }
    return (rlhf_str){NULL, 0};
}

// The token with which the template begins a turn: the first one of a conversation after bos.
static rlhf_str first_token(const struct rlhf__template *t) {
    const char *bos = json_string_value(json_object_get(t->vars, "bos_token"));
    const rlhf_str before = {rlhf__buf_text(&t->before), t->before.len};
    size_t at = 0;
    const rlhf_str token = next_token(t, before, &at);
    return token.ptr && bos && rlhf__jinja_is(token, bos) ? next_token(t, before, &at) : token;
}

// Returns the end of the last special token in `s`, and sets *token to this token. A token that
// begins a turn is not an end: some templates always write the beginning of a further turn.
static size_t last_token(const struct rlhf__template *t, rlhf_str s, rlhf_str *token) {
    const rlhf_str begins = first_token(t);
    size_t end = 0;
    for (size_t at = 0;;) {
        const rlhf_str next = next_token(t, s, &at);
        if (!next.ptr || (begins.ptr && rlhf__jinja_same(next, begins))) return end;
        *token = next;
        end = at;
    }
}

// Finds what ends the answer `says`. That is the text after the answer which the template writes
// whether or not another turn follows, up to the last special token in this text; some templates
// write several tokens. Without such a text, it is the first token after the answer. This token may
// differ if another turn follows, so `ends` then has two texts.
static rlhf_status learn_end(struct probe *p, const struct rlhf__message *says) {
    struct rlhf__message m[] = {{.role = RLHF__ROLE_USER, .content = text("Q")},
                                *says,
                                {.role = RLHF__ROLE_USER, .content = text("R")}};
    struct rlhf__jinja_result more = {0};
    struct rlhf__error no = {0, ""};
    rlhf_status st = render(p, m, 2, 0, &p->r, &no);
    const int goes_on = st == RLHF_OK && render(p, m, 3, 0, &more, &no) == RLHF_OK;
    const rlhf_str none = {NULL, 0}, alone = st == RLHF_OK ? after_stand_in(&p->r) : none,
                   followed = goes_on ? after_stand_in(&more) : none;
    rlhf_str both = {alone.ptr, followed.ptr ? rlhf__template_common(alone, followed) : 0},
             token = none;
    both.len = last_token(p->t, both, &token);
    if (both.len) {
        st = add_end(p, both);
    } else if (alone.ptr) {
        token = rlhf__template_token_at(p->t, alone);
        if (token.len) st = add_end(p, token);
        const rlhf_str other = followed.ptr ? rlhf__template_token_at(p->t, followed) : none;
        if (token.len && st == RLHF_OK && other.len) st = add_end(p, other);
    }
    if (alone.ptr && st == RLHF_OK && token.len && !p->t->end) {
        p->t->end = strndup(token.ptr, (size_t)token.len);
        if (!p->t->end) st = RLHF__NOMEM(p->err, "out of memory for a chat template");
    }
    rlhf__turns_finish(&more.turns);
    return st == RLHF_E_INVALID ? RLHF_OK : st;
}

// ---- the parts of a turn ----

static rlhf_status learn_lead(struct probe *p) {
    struct rlhf__message m[] = {{.role = RLHF__ROLE_USER, .content = text("Q")},
                                {.role = RLHF__ROLE_ASSISTANT, .content = text(stand_in)}};
    struct rlhf__jinja_result asks = {0};
    struct rlhf__error no = {0, ""};
    rlhf_status st = render(p, m, 1, 1, &asks, &no);
    if (st == RLHF_OK) st = render(p, m, 2, 0, &p->r, &no);
    if (st == RLHF_OK && after_stand_in(&p->r).ptr) {
        const struct rlhf__buf *all = &p->r.turns.text;
        const size_t same = rlhf__template_common(rlhf__template_text(&asks),
                                                  rlhf__template_text(&p->r)),
                     head = all->len - (size_t)after_stand_in(&p->r).len - strlen(stand_in);
        if (same < head) rlhf__buf_put(&p->t->lead, all->data + same, head - same);
    }
    rlhf__turns_finish(&asks.turns);
    return st == RLHF_E_INVALID ? RLHF_OK : st;
}

// The messages contain the stand-in. Sets *yes to 1 if the rendered text contains it too.
static rlhf_status writes(struct probe *p, struct rlhf__message *m, size_t n, int32_t *yes) {
    struct rlhf__error no = {0, ""};
    const rlhf_status st = render(p, m, n, 0, &p->r, &no);
    *yes = st == RLHF_OK && after_stand_in(&p->r).ptr;
    return st == RLHF_E_INVALID ? RLHF_OK : st;
}

static rlhf_status learn_members(struct probe *p) {
    struct rlhf__message thinks[] = {
        {.role = RLHF__ROLE_USER, .content = text("Q")},
        {.role = RLHF__ROLE_ASSISTANT, .content = text("A"), .thoughts = text(stand_in)}};
    struct rlhf__message asks[] = {{.role = RLHF__ROLE_DEVELOPER, .content = text(stand_in)},
                                   {.role = RLHF__ROLE_USER, .content = text("Q")}};
    RLHF_TRY(writes(p, thinks, 2, &p->t->thoughts));
    return writes(p, asks, 2, &p->t->developer);
}

// ---- tools ----

static json_t *tool(const char *name) {
    return json_pack("[{s:s,s:{s:s,s:s,s:{s:s,s:{s:{s:s,s:s}},s:[s]}}}]", "type", "function",
                     "function", "name", name, "description", "D", "parameters", "type", "object",
                     "properties", "a", "type", "string", "description", "E", "required", "a");
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
static rlhf_status learn_call(struct probe *p, struct rlhf__message *m) {
    struct rlhf__jinja_result asks = {0};
    struct rlhf__error no = {0, ""};
    RLHF_TRY(writes(p, m, 2, &p->t->tools.calls));
    if (!p->t->tools.calls) return RLHF_OK;
    rlhf_status st = render(p, m, 1, 1, &asks, &no);
    rlhf_str turn = rlhf__template_text(&p->r);
    if (st == RLHF_OK) {
        const size_t same = rlhf__template_common(turn, rlhf__template_text(&asks));
        turn.ptr += same;
        turn.len -= same;
        const char *end = p->t->end ? strstr(turn.ptr, p->t->end) : NULL;
        if (end) turn.len = (uint64_t)(end - turn.ptr);
        st = form_of(p->t, turn, p->err);
    }
    rlhf__turns_finish(&asks.turns);
    return st == RLHF_E_INVALID ? RLHF_OK : st;
}

// Some templates write calls only without content, others only if there are tools.
static rlhf_status learn_calls(struct probe *p, struct rlhf__message *m, const json_t *tools) {
    const struct {
        const json_t *tools;
        int32_t written;
    } ways[] = {{p->tools, RLHF__CONTENT_TEXT},
                {p->tools, RLHF__CONTENT_ABSENT},
                {tools, RLHF__CONTENT_TEXT},
                {tools, RLHF__CONTENT_ABSENT}};
    const json_t *usual = p->tools;
    rlhf_status st = RLHF_OK;
    for (size_t i = 0; st == RLHF_OK && !p->t->tools.calls && i < sizeof ways / sizeof *ways; i++) {
        p->tools = ways[i].tools;
        m[1].written = ways[i].written;
        st = learn_call(p, m);
    }
    p->tools = usual;
    return st;
}

static rlhf_status learn_tools(struct probe *p, const json_t *tools) {
    json_t *calls = call(), *named = tool(stand_in);
    struct rlhf__message m[] = {{.role = RLHF__ROLE_USER, .content = text("Q")},
                                {.role = RLHF__ROLE_ASSISTANT, .content = text(""), .calls = calls},
                                {.role = RLHF__ROLE_TOOL,
                                 .content = text(stand_in),
                                 .name = text("f"),
                                 .call_id = text("abcdefgh1")}};
    const json_t *usual = p->tools;
    rlhf_status st = calls && named ? RLHF_OK : RLHF__NOMEM(p->err, "out of memory for a template");
    p->tools = named;
    if (st == RLHF_OK) st = writes(p, m, 1, &p->t->tools.lists);
    p->tools = usual;
    if (st == RLHF_OK) st = learn_calls(p, m, tools);
    json_object_set_new(json_object_get(json_array_get(calls, 0), "function"), "name",
                        json_string("f"));
    if (st == RLHF_OK) st = writes(p, m, 3, &p->t->tools.results);
    json_decref(calls);
    json_decref(named);
    return st;
}

static void forget(struct rlhf__template *t) {
    rlhf__buf_clear(&t->before);
    rlhf__buf_clear(&t->header);
    rlhf__buf_clear(&t->lead);
    rlhf__template_forget_ends(t);
    t->thoughts = t->developer = t->parts_only = 0;
    t->tools = (struct rlhf__template_tools){0};
}

rlhf_status rlhf__template_learn(struct rlhf__template *t, struct rlhf__error *err) {
    struct probe p = {.t = t, .err = err};
    const struct rlhf__message says = {.role = RLHF__ROLE_ASSISTANT, .content = text(stand_in)};
    struct rlhf__message thinks = says;
    thinks.thoughts = text("T");
    json_t *tools = tool("f");
    forget(t);
    rlhf_status st =
        tools ? learn_form(&p, tools) : RLHF__NOMEM(err, "out of memory for a template");
    if (st == RLHF_OK) st = learn_end(&p, &says);
    if (st == RLHF_OK && t->end) st = learn_end(&p, &thinks);
    if (st == RLHF_OK) st = learn_lead(&p);
    if (st == RLHF_OK) st = learn_members(&p);
    if (st == RLHF_OK) st = learn_tools(&p, tools);
    if (st == RLHF_OK) st = rlhf__buf_ok(&t->header, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&t->before, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&t->lead, err);
    rlhf__turns_finish(&p.r.turns);
    json_decref(tools);
    return st;
}
