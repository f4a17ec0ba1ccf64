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

// ---- texts ----

static rlhf_str text(const char *s) { return (rlhf_str){s, strlen(s)}; }

static rlhf_str text_of(const struct rlhf__jinja_result *r) {
    return (rlhf_str){rlhf__buf_text(&r->turns.text), r->turns.text.len};
}

static size_t common(rlhf_str a, rlhf_str b) {
    size_t n = 0;
    while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n])
        n++;
    return n;
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

static const char stand_in[] = "Zq7learn7qZ";

// The text after the stand-in in a rendered result. ptr is NULL if the stand-in is missing.
static rlhf_str after_stand_in(const struct rlhf__jinja_result *r) {
    const char *s = rlhf__buf_text(&r->turns.text), *at = strstr(s, stand_in);
    if (!at) return (rlhf_str){NULL, 0};
    at += strlen(stand_in);
    return (rlhf_str){at, r->turns.text.len - (size_t)(at - s)};
}

static rlhf_status learn_question(struct rlhf__template *t, struct rlhf__jinja_result *r,
                                  struct rlhf__error *err) {
    const struct rlhf__message q = {.role = RLHF__ROLE_USER, .content = text(stand_in)};
    struct rlhf__jinja_result asks = {0};
    rlhf_status st = rlhf__template_render(t, &q, 1, 0, r, err);
    if (st == RLHF_OK && !after_stand_in(r).ptr)
        st = rlhf__fail(err, RLHF_E_UNSUPPORTED, "it does not write what a user says");
    if (st == RLHF_OK) st = rlhf__template_render(t, &q, 1, 1, &asks, err);
    const struct rlhf__buf *a = &r->turns.text, *b = &asks.turns.text;
    const size_t same = common(text_of(r), text_of(&asks));
    if (st == RLHF_OK) {
        rlhf__buf_put(&t->header, b->data + same, b->len - same);
        rlhf__buf_put(&t->before, a->data,
                      a->len - (size_t)after_stand_in(r).len - strlen(stand_in));
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
    const rlhf_str token = token_at(t, after_stand_in(r));
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
    if (st == RLHF_OK && after_stand_in(r).ptr) {
        const struct rlhf__buf *all = &r->turns.text;
        const size_t same = common(text_of(&asks), text_of(r)),
                     head = all->len - (size_t)after_stand_in(r).len - strlen(stand_in);
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
    t->thoughts = st == RLHF_OK && after_stand_in(r).ptr;
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

// ---- where the assistant speaks ----

// WORK_MAX bounds the work for one conversation. The work is the number of turns times the bytes of
// text, because the text is rendered twice for each turn. STAND_INS is how many stand-ins are tried
// to find one that does not occur in the text.
enum { WORK_MAX = 256 << 20, STAND_INS = 1000 };

// A conversation whose turns are to be found.
struct search {
    const struct rlhf__template *t;
    const struct rlhf__messages *m;
    int generate;
    char stand_in[32];
    struct rlhf__jinja_result whole, with, prompt; // unchanged, with a stand-in, up to the turn
    struct rlhf__turns *out;
    size_t base; // of the text in out
    struct rlhf__error *err;
};

// Returns where the last occurrence of `part` in s ends, or 0 if s does not contain it.
static size_t last_end(rlhf_str s, rlhf_str part) {
    size_t end = 0;
    for (size_t at = 0; part.len && at + part.len <= s.len; at++) {
        const char *p = memmem(s.ptr + at, (size_t)s.len - at, part.ptr, (size_t)part.len);
        if (!p) break;
        at = (size_t)(p - s.ptr);
        end = at + (size_t)part.len;
    }
    return end;
}

// Finds where turn i begins. head is the text before the turn's stand-in.
static rlhf_status begin_of(struct search *s, size_t i, rlhf_str head, size_t *from) {
    const rlhf_str header = {rlhf__buf_text(&s->t->header), s->t->header.len};
    struct rlhf__error why = {0, ""};
    if (i) {
        rlhf_status st = rlhf__template_render(s->t, s->m->item, i, 1, &s->prompt, &why);
        if (st == RLHF_E_NOMEM) return rlhf__fail(s->err, st, "%s", why.text);
        *from = st == RLHF_OK ? common(text_of(&s->prompt), head) : 0;
        // If the common part is shorter, an earlier turn was rendered differently.
        if (st == RLHF_OK && *from + header.len >= s->prompt.turns.text.len) return RLHF_OK;
    }
    // Otherwise the turn begins after the last header. In a text without headers, it begins before
    // the text that precedes the content.
    const rlhf_str lead = {rlhf__buf_text(&s->t->lead), s->t->lead.len};
    const int led = head.len >= lead.len && lead.len &&
                    memcmp(head.ptr + (head.len - lead.len), lead.ptr, (size_t)lead.len) == 0;
    *from = last_end(head, header);
    if (!*from) *from = (size_t)(head.len - (led ? lead.len : 0));
    return RLHF_OK;
}

static rlhf_status not_told(const struct search *s, size_t i) {
    if (!s->m->item[i].content.len && !s->m->item[i].thoughts.len) return RLHF_OK; // says nothing
    return rlhf__fail(s->err, RLHF_E_INVALID,
                      "messages[%zu]: it cannot be told which part of the text is this turn, since "
                      "what the chat template writes around it depends on its content; mark the "
                      "turns in the template by {%% generation %%} blocks",
                      i);
}

static rlhf_status add_turn(struct search *s, struct rlhf__message *copy, size_t i) {
    const rlhf_str whole = text_of(&s->whole), answer = {s->stand_in, strlen(s->stand_in)};
    struct rlhf__error why = {0, ""};
    size_t from = 0;
    copy[i].content = answer;
    rlhf_status st = rlhf__template_render(s->t, copy, s->m->n, s->generate, &s->with, &why);
    copy[i].content = s->m->item[i].content;
    if (st == RLHF_E_NOMEM) return rlhf__fail(s->err, st, "%s", why.text);
    const rlhf_str with = text_of(&s->with);
    const char *at = st == RLHF_OK ? strstr(with.ptr, s->stand_in) : NULL;
    if (!at || strstr(at + answer.len, s->stand_in)) return not_told(s, i);
    const rlhf_str head = {with.ptr, (uint64_t)(at - with.ptr)},
                   tail = {at + answer.len, with.len - head.len - answer.len};
    RLHF_TRY(begin_of(s, i, head, &from));
    if (whole.len < from + tail.len || common(whole, head) < from ||
        memcmp(whole.ptr + (whole.len - tail.len), tail.ptr, (size_t)tail.len) != 0)
        return not_told(s, i);
    const size_t to = (size_t)(whole.len - tail.len) + rlhf__template_end(s->t, tail);
    return rlhf__turns_add(s->out, s->base + from, s->base + to, s->err);
}

// The assistant's turns from message `first` on.
static size_t turns_from(const struct search *s, size_t first) {
    size_t n = 0;
    for (size_t i = first; i < s->m->n; i++)
        n += s->m->item[i].role == RLHF__ROLE_ASSISTANT;
    return n;
}

static rlhf_status add_turns(struct search *s, size_t first) {
    struct rlhf__message *copy = malloc((s->m->n + 1) * sizeof *copy);
    rlhf_status st = copy ? RLHF_OK : RLHF__NOMEM(s->err, "out of memory for a conversation");
    if (copy && s->m->n) memcpy(copy, s->m->item, s->m->n * sizeof *copy);
    int number = 0;
    do
        snprintf(s->stand_in, sizeof s->stand_in, "Zq7turn%d7qZ", number++);
    while (number < STAND_INS && strstr(text_of(&s->whole).ptr, s->stand_in));
    if (st == RLHF_OK && turns_from(s, first) > WORK_MAX / (s->whole.turns.text.len + 1))
        st = rlhf__fail(s->err, RLHF_E_INVALID,
                        "%zu turns in a text of %zu bytes: too many to look for each of them; mark "
                        "the turns in the template by {%% generation %%} blocks",
                        turns_from(s, first), s->whole.turns.text.len);
    for (size_t i = first; st == RLHF_OK && i < s->m->n; i++)
        if (s->m->item[i].role == RLHF__ROLE_ASSISTANT) st = add_turn(s, copy, i);
    free(copy);
    return st;
}

// Finds turns by their {% generation %} blocks. The token that ends a turn is inside the turn's
// block or follows it.
static rlhf_status add_marks(struct search *s) {
    const rlhf_str whole = text_of(&s->whole);
    const char *end = s->t->past_end ? s->t->past_end : s->t->end;
    for (size_t i = 0; i < s->whole.turns.n; i++) {
        const struct rlhf__turn *mark = &s->whole.turns.item[i];
        RLHF_TRY(rlhf__turns_add(s->out, s->base + mark->from, s->base + mark->to, s->err));
        const rlhf_str in = {whole.ptr + mark->from, mark->to - mark->from},
                       rest = {whole.ptr + mark->to, whole.len - mark->to};
        const size_t inside = end ? last_end(in, (rlhf_str){end, strlen(end)}) : 0;
        s->out->item[s->out->n - 1].end =
            s->base + (inside ? mark->from + inside : mark->to + rlhf__template_end(s->t, rest));
    }
    return RLHF_OK;
}

rlhf_status rlhf__template_render_turns(const struct rlhf__template *t,
                                        const struct rlhf__messages *m, size_t first, int generate,
                                        struct rlhf__turns *out, struct rlhf__error *err) {
    struct search s = {
        .t = t, .m = m, .generate = generate, .out = out, .base = out->text.len, .err = err};
    rlhf_status st = rlhf__template_render(t, m->item, m->n, generate, &s.whole, err);
    if (st == RLHF_OK) rlhf__buf_put(&out->text, s.whole.turns.text.data, s.whole.turns.text.len);
    if (st == RLHF_OK) st = rlhf__buf_ok(&out->text, err);
    if (st == RLHF_OK) st = t->jinja.marks ? add_marks(&s) : add_turns(&s, first);
    rlhf__turns_finish(&s.whole.turns);
    rlhf__turns_finish(&s.with.turns);
    rlhf__turns_finish(&s.prompt.turns);
    return st;
}
