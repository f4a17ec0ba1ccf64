// template.c: see template.h.
#include "chat/template.h"

#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__template_parse(struct rlhf__template *t, const char *text, size_t n,
                                 const json_t *vars, struct rlhf__error *err) {
    t->vars = json_copy((json_t *)(uintptr_t)vars);
    if (!t->vars) return RLHF__NOMEM(err, "out of memory for a chat template");
    return rlhf__jinja_parse(text, n, &t->jinja, err);
}

void rlhf__template_finish(struct rlhf__template *t) {
    rlhf__jinja_finish(&t->jinja);
    json_decref(t->vars);
    rlhf__buf_free(&t->before);
    rlhf__buf_free(&t->header);
    rlhf__buf_free(&t->lead);
    free(t->end);
    free(t->past_end);
    *t = (struct rlhf__template){0};
}

rlhf_status rlhf__template_render(const struct rlhf__template *t, const struct rlhf__message *m,
                                  size_t n, int generate, struct rlhf__jinja_result *out,
                                  struct rlhf__error *err) {
    const struct rlhf__jinja_input in = {
        .vars = t->vars, .messages = m, .n = n, .generate = generate};
    rlhf_status st = rlhf__jinja_run(&t->jinja, &in, out, err);
    if (st == RLHF_E_UNSUPPORTED && err) err->code = st = RLHF_E_INVALID;
    if (st == RLHF_OK && out->raised) st = rlhf__fail(err, RLHF_E_INVALID, "%s", out->why);
    return st;
}

// ---- what ends a turn ----

// The token at the beginning of s, after white space: <...>, [...] or the eos token.
static rlhf_str token_at(const struct rlhf__template *t, rlhf_str s) {
    const json_t *eos = json_object_get(t->vars, "eos_token");
    const size_t n = json_string_length(eos);
    s = rlhf__space_trim(s, 1, 0);
    if (n && s.len >= n && memcmp(s.ptr, json_string_value(eos), n) == 0)
        return (rlhf_str){s.ptr, n};
    if (!s.len || (*s.ptr != '<' && *s.ptr != '[')) return (rlhf_str){s.ptr, 0};
    const char *end = memchr(s.ptr, *s.ptr == '<' ? '>' : ']', (size_t)s.len);
    return (rlhf_str){s.ptr, end ? (uint64_t)(end + 1 - s.ptr) : 0};
}

static int is_text(rlhf_str s, const char *text) { return text && rlhf__jinja_is(s, text); }

size_t rlhf__template_end(const struct rlhf__template *t, rlhf_str s) {
    const rlhf_str token = token_at(t, s);
    if (!token.len || !(is_text(token, t->end) || is_text(token, t->past_end))) return 0;
    return (size_t)(token.ptr + token.len - s.ptr);
}

// ---- learning ----

static rlhf_str text(const char *s) { return (rlhf_str){s, strlen(s)}; }

static const char stand_in[] = "Zq7learn7qZ";

// The text after the stand-in of a result; ptr NULL: it has no stand-in.
static rlhf_str behind(const struct rlhf__jinja_result *r) {
    const char *s = rlhf__buf_text(&r->turns.text), *at = strstr(s, stand_in);
    if (!at) return (rlhf_str){NULL, 0};
    at += strlen(stand_in);
    return (rlhf_str){at, r->turns.text.len - (size_t)(at - s)};
}

static size_t common(const struct rlhf__buf *a, const struct rlhf__buf *b) {
    size_t n = 0;
    while (n < a->len && n < b->len && a->data[n] == b->data[n])
        n++;
    return n;
}

static rlhf_status learn_question(struct rlhf__template *t, struct rlhf__jinja_result *r,
                                  struct rlhf__error *err) {
    const struct rlhf__message q = {.role = RLHF__ROLE_USER, .content = text(stand_in)};
    struct rlhf__jinja_result asks = {0};
    rlhf_status st = rlhf__template_render(t, &q, 1, 0, r, err);
    if (st == RLHF_OK && !behind(r).ptr)
        st = rlhf__fail(err, RLHF_E_UNSUPPORTED, "it does not write what a user says");
    if (st == RLHF_OK) st = rlhf__template_render(t, &q, 1, 1, &asks, err);
    const struct rlhf__buf *a = &r->turns.text, *b = &asks.turns.text;
    const size_t same = common(a, b);
    if (st == RLHF_OK) {
        rlhf__buf_put(&t->header, b->data + same, b->len - same);
        rlhf__buf_put(&t->before, a->data, a->len - (size_t)behind(r).len - strlen(stand_in));
    }
    rlhf__turns_finish(&asks.turns);
    return st;
}

// The token that ends the assistant's turn in a conversation of n messages.
static rlhf_status learn_end(struct rlhf__template *t, size_t n, char **to,
                             struct rlhf__jinja_result *r, struct rlhf__error *err) {
    const struct rlhf__message m[] = {{.role = RLHF__ROLE_USER, .content = text("Q")},
                                      {.role = RLHF__ROLE_ASSISTANT, .content = text(stand_in)},
                                      {.role = RLHF__ROLE_USER, .content = text("R")}};
    rlhf_status st = rlhf__template_render(t, m, n, 0, r, err);
    if (st == RLHF_E_INVALID) return RLHF_OK;
    RLHF_TRY(st);
    const rlhf_str token = token_at(t, behind(r));
    if (!token.len) return RLHF_OK;
    *to = strndup(token.ptr, (size_t)token.len);
    return *to ? RLHF_OK : RLHF__NOMEM(err, "out of memory for a chat template");
}

static rlhf_status learn_lead(struct rlhf__template *t, struct rlhf__jinja_result *r,
                              struct rlhf__error *err) {
    const struct rlhf__message m[] = {{.role = RLHF__ROLE_USER, .content = text("Q")},
                                      {.role = RLHF__ROLE_ASSISTANT, .content = text(stand_in)}};
    struct rlhf__jinja_result asks = {0};
    rlhf_status st = rlhf__template_render(t, m, 1, 1, &asks, err);
    if (st == RLHF_OK) st = rlhf__template_render(t, m, 2, 0, r, err);
    if (st == RLHF_OK && behind(r).ptr) {
        const struct rlhf__buf *all = &r->turns.text;
        const size_t same = common(&asks.turns.text, all),
                     head = all->len - (size_t)behind(r).len - strlen(stand_in);
        if (same < head) rlhf__buf_put(&t->lead, all->data + same, head - same);
    }
    rlhf__turns_finish(&asks.turns);
    return st == RLHF_E_INVALID ? RLHF_OK : st;
}

static rlhf_status learn_thoughts(struct rlhf__template *t, struct rlhf__jinja_result *r,
                                  struct rlhf__error *err) {
    const struct rlhf__message m[] = {
        {.role = RLHF__ROLE_USER, .content = text("Q")},
        {.role = RLHF__ROLE_ASSISTANT, .content = text("A"), .thoughts = text(stand_in)}};
    const rlhf_status st = rlhf__template_render(t, m, 2, 0, r, err);
    t->thoughts = st == RLHF_OK && behind(r).ptr;
    return st == RLHF_E_INVALID ? RLHF_OK : st;
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
    if (st == RLHF_OK) st = rlhf__buf_ok(&t->header, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&t->before, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&t->lead, err);
    rlhf__turns_finish(&r.turns);
    return st;
}
