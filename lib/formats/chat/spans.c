// spans.c: see spans.h.
#include "chat/spans.h"

#include <stdlib.h>
#include <string.h>

// A conversation whose turns are looked for.
struct search {
    const struct rlhf__template *t;
    const struct rlhf__messages *m;
    int generate;
    char stand_in[32];
    struct rlhf__jinja_result whole, with, prompt; // as it is, with a stand-in, up to the turn
    struct rlhf__turns *out;
    size_t base; // of the text in out
    struct rlhf__error *err;
};

static rlhf_str text_of(const struct rlhf__jinja_result *r) {
    return (rlhf_str){rlhf__buf_text(&r->turns.text), r->turns.text.len};
}

static size_t common(rlhf_str a, rlhf_str b) {
    size_t n = 0;
    while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n])
        n++;
    return n;
}

// Where the last `part` of s ends; 0 = nowhere.
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

// Where turn i begins; head: the text before its stand-in.
static rlhf_status begin_of(struct search *s, size_t i, rlhf_str head, size_t *from) {
    const rlhf_str header = {rlhf__buf_text(&s->t->header), s->t->header.len};
    struct rlhf__error why = {0, ""};
    if (i) {
        rlhf_status st = rlhf__template_render(s->t, s->m->item, i, 1, &s->prompt, &why);
        if (st == RLHF_E_NOMEM) return rlhf__fail(s->err, st, "%s", why.text);
        *from = st == RLHF_OK ? common(text_of(&s->prompt), head) : 0;
        // A shorter common part means that an earlier turn was rendered differently.
        if (st == RLHF_OK && *from + header.len >= s->prompt.turns.text.len) return RLHF_OK;
    }
    // After the last header; without a header, before the text that leads to the content.
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
    const rlhf_str whole = text_of(&s->whole), stand_in = {s->stand_in, strlen(s->stand_in)};
    struct rlhf__error why = {0, ""};
    size_t from = 0;
    copy[i].content = stand_in;
    rlhf_status st = rlhf__template_render(s->t, copy, s->m->n, s->generate, &s->with, &why);
    copy[i].content = s->m->item[i].content;
    if (st == RLHF_E_NOMEM) return rlhf__fail(s->err, st, "%s", why.text);
    const rlhf_str with = text_of(&s->with);
    const char *at = st == RLHF_OK ? strstr(with.ptr, s->stand_in) : NULL;
    if (!at || strstr(at + stand_in.len, s->stand_in)) return not_told(s, i);
    const rlhf_str head = {with.ptr, (uint64_t)(at - with.ptr)},
                   tail = {at + stand_in.len, with.len - head.len - stand_in.len};
    RLHF_TRY(begin_of(s, i, head, &from));
    if (whole.len < from + tail.len || common(whole, head) < from ||
        memcmp(whole.ptr + (whole.len - tail.len), tail.ptr, (size_t)tail.len) != 0)
        return not_told(s, i);
    const size_t to = (size_t)(whole.len - tail.len) + rlhf__template_end(s->t, tail);
    return rlhf__turns_add(s->out, s->base + from, s->base + to, s->err);
}

static rlhf_status add_turns(struct search *s, size_t first) {
    struct rlhf__message *copy = malloc((s->m->n + 1) * sizeof *copy);
    rlhf_status st = copy ? RLHF_OK : RLHF__NOMEM(s->err, "out of memory for a conversation");
    if (copy && s->m->n) memcpy(copy, s->m->item, s->m->n * sizeof *copy);
    int number = 0;
    do
        snprintf(s->stand_in, sizeof s->stand_in, "Zq7turn%d7qZ", number++);
    while (strstr(text_of(&s->whole).ptr, s->stand_in));
    for (size_t i = first; st == RLHF_OK && i < s->m->n; i++)
        if (s->m->item[i].role == RLHF__ROLE_ASSISTANT) st = add_turn(s, copy, i);
    free(copy);
    return st;
}

// {% generation %} blocks. The token that ends a turn is inside its block or follows it.
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

rlhf_status rlhf__spans_render(const struct rlhf__template *t, const struct rlhf__messages *m,
                               size_t first, int generate, struct rlhf__turns *out,
                               struct rlhf__error *err) {
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
