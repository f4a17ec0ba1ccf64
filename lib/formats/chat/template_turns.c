// template_turns.c: finds the assistant's turns in the text of a conversation; see template.h.
#include "chat/template.h"

#include <stdlib.h>
#include <string.h>

// WORK_MAX limits the work for one conversation. The conversation is rendered twice for each turn,
// so the work is the number of turns times the number of bytes of text. STAND_INS limits how many
// stand-ins are tried until one does not occur in the text.
enum { WORK_MAX = 256 << 20, STAND_INS = 1000 };

// A search for the turns of a conversation.
struct search {
    const struct rlhf__template *t;
    const struct rlhf__messages *m;
    int generate;
    char stand_in[32];
    struct rlhf__jinja_result whole, with, prompt; // unchanged, with a stand-in, up to the turn
    struct rlhf__turns *out;
    size_t base; // offset at which the text begins in `out`
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

// Finds where turn i begins. `head` is the rendered text before the stand-in for the turn's
// content.
static rlhf_status begin_of(struct search *s, size_t i, rlhf_str head, size_t *from) {
    const rlhf_str header = {rlhf__buf_text(&s->t->header), s->t->header.len};
    struct rlhf__error why = {0, ""};
    const struct rlhf__messages asked = {
        .item = s->m->item, .n = i, .tools = s->m->tools, .vars = s->m->vars};
    if (i) {
        rlhf_status st = rlhf__template_render(s->t, &asked, 1, &s->prompt, &why);
        if (st == RLHF_E_NOMEM) return rlhf__fail(s->err, st, "%s", why.text);
        *from = st == RLHF_OK ? rlhf__template_common(rlhf__template_text(&s->prompt), head) : 0;
        // The common text must reach the header at the end of the prompt. If it is shorter, an
        // earlier turn was rendered differently, and *from is too early.
        if (st == RLHF_OK && *from + header.len >= s->prompt.turns.text.len) return RLHF_OK;
    }
    // Fallback: the turn begins after the last header in `head`. If `head` contains no header, the
    // turn begins at the lead (the text that the template writes directly before the content).
    const rlhf_str lead = {rlhf__buf_text(&s->t->lead), s->t->lead.len};
    const int led = head.len >= lead.len && lead.len &&
                    memcmp(head.ptr + (head.len - lead.len), lead.ptr, (size_t)lead.len) == 0;
    *from = last_end(head, header);
    if (!*from) *from = (size_t)(head.len - (led ? lead.len : 0));
    return RLHF_OK;
}

static rlhf_status not_told(const struct search *s, size_t i) {
    const struct rlhf__message *m = &s->m->item[i];
    if (!m->content.len && !m->parts && !m->thoughts.len && !m->calls)
        return RLHF_OK; // the turn is empty
    return rlhf__fail(s->err, RLHF_E_INVALID,
                      "messages[%zu]: cannot tell which part of the text is this turn, since the "
                      "text that the chat template writes around it depends on its content; mark "
                      "the turns in the template with {%% generation %%} blocks",
                      i);
}

// If message m is without calls, replaces its content with the stand-in. Otherwise empties the
// content, and replaces the calls with a single call whose name is the stand-in.
static rlhf_status put_stand_in(const struct search *s, struct rlhf__message *m) {
    m->content = (rlhf_str){s->stand_in, strlen(s->stand_in)};
    m->written = m->written == RLHF__CONTENT_PARTS ? RLHF__CONTENT_PARTS : RLHF__CONTENT_TEXT;
    m->parts = NULL;
    if (!m->calls) return RLHF_OK;
    m->content.len = 0;
    m->calls = json_pack("[{s:s,s:s,s:{s:s,s:{}}}]", "id", "abcdefgh1", "type", "function",
                         "function", "name", s->stand_in, "arguments");
    return m->calls ? RLHF_OK : RLHF__NOMEM(s->err, "out of memory for a conversation");
}

// `rest` is the text after the stand-in of turn i. Returns the part of `rest` that also follows the
// real turn in the rendered conversation. For a turn without calls, this is all of `rest`. For a
// turn with calls, it begins with the token that ends the turn; if `rest` lacks such a token, the
// result is {NULL, 0}.
static rlhf_str after_turn(const struct search *s, size_t i, rlhf_str rest) {
    const char *first = NULL, *eos = json_string_value(json_object_get(s->t->vars, "eos_token"));
    if (!s->m->item[i].calls) return rest;
    for (int32_t k = 0; k < s->t->n_ends + 2; k++) {
        const char *end = k < s->t->n_ends ? s->t->ends[k] : k == s->t->n_ends ? s->t->end : eos;
        const char *at = end && *end ? strstr(rest.ptr, end) : NULL;
        if (at && (!first || at < first)) first = at;
    }
    return first ? (rlhf_str){first, (uint64_t)(rest.ptr + rest.len - first)} : (rlhf_str){NULL, 0};
}

// ---- a turn by the conversation's beginnings ----

// Finds turn i by the texts of the conversation's beginnings, if these texts are also the beginning
// of the whole text: the turn begins where the prompt before it ends, and ends where the
// conversation up to it ends. Some templates write a token only after the last turn; it is left
// out. Sets *found to 0 if the texts do not tell.
static rlhf_status by_beginnings(struct search *s, size_t i, int *found) {
    const rlhf_str whole = rlhf__template_text(&s->whole);
    struct rlhf__messages part = *s->m;
    struct rlhf__error no = {0, ""};
    part.n = i;
    rlhf_status st = i ? rlhf__template_render(s->t, &part, 1, &s->prompt, &no) : RLHF_E_INVALID;
    part.n = i + 1;
    if (st == RLHF_OK) st = rlhf__template_render(s->t, &part, 0, &s->with, &no);
    *found = 0;
    if (st != RLHF_OK) return st == RLHF_E_NOMEM ? rlhf__fail(s->err, st, "%s", no.text) : RLHF_OK;
    const rlhf_str asked = rlhf__template_text(&s->prompt), said = rlhf__template_text(&s->with);
    const size_t from = rlhf__template_common(asked, whole),
                 to = rlhf__template_common(said, whole);
    const rlhf_str rest = rlhf__space_trim((rlhf_str){said.ptr + to, said.len - to}, 1, 1);
    if (from + s->t->header.len < asked.len || to <= from ||
        rlhf__template_token_at(s->t, rest).len < rest.len)
        return RLHF_OK;
    rlhf_str turn = rlhf__space_trim((rlhf_str){whole.ptr + from, to - from}, 0, 1);
    const size_t end = s->t->end ? last_end(turn, (rlhf_str){s->t->end, strlen(s->t->end)}) : 0;
    if (end) turn.len = end;
    *found = 1;
    return rlhf__turns_add(s->out, s->base + from, s->base + from + (size_t)turn.len, s->err);
}

// The last resort for turn i.
static rlhf_status otherwise(struct search *s, size_t i) {
    int found = 0;
    RLHF_TRY(by_beginnings(s, i, &found));
    return found ? RLHF_OK : not_told(s, i);
}

// ---- a turn by a stand-in ----

// 1 if bytes [from, to) of the whole text contain what a later message says. The end of a turn with
// calls was then not found.
static int goes_too_far(const struct search *s, size_t i, size_t from, size_t to) {
    const rlhf_str whole = rlhf__template_text(&s->whole);
    int inside = 0;
    for (size_t k = i + 1; !inside && k < s->m->n; k++) {
        const rlhf_str says = s->m->item[k].content;
        inside = says.len && to > from &&
                 memmem(whole.ptr + from, to - from, says.ptr, (size_t)says.len);
    }
    return inside;
}

// Sets *at to the stand-in in s->with, which has the conversation with the stand-in for turn i;
// NULL if the template does not write it just once.
static rlhf_status render_stand_in(struct search *s, struct rlhf__message *copy, size_t i,
                                   const char **at) {
    const struct rlhf__messages talk = {
        .item = copy, .n = s->m->n, .tools = s->m->tools, .vars = s->m->vars};
    struct rlhf__error why = {0, ""};
    *at = NULL;
    RLHF_TRY(put_stand_in(s, &copy[i]));
    const rlhf_status st = rlhf__template_render(s->t, &talk, s->generate, &s->with, &why);
    if (s->m->item[i].calls) json_decref((json_t *)(uintptr_t)copy[i].calls);
    copy[i] = s->m->item[i];
    if (st == RLHF_E_NOMEM) return rlhf__fail(s->err, st, "%s", why.text);
    if (st == RLHF_OK) *at = strstr(rlhf__template_text(&s->with).ptr, s->stand_in);
    if (*at && strstr(*at + strlen(s->stand_in), s->stand_in)) *at = NULL;
    return RLHF_OK;
}

static rlhf_status add_turn(struct search *s, struct rlhf__message *copy, size_t i) {
    const rlhf_str whole = rlhf__template_text(&s->whole);
    const int calls = s->m->item[i].calls != NULL;
    const size_t n = strlen(s->stand_in);
    const char *at;
    size_t from = 0;
    int found = 0;
    if (calls) RLHF_TRY(by_beginnings(s, i, &found));
    if (found) return RLHF_OK;
    RLHF_TRY(render_stand_in(s, copy, i, &at));
    if (!at) return otherwise(s, i);
    const rlhf_str with = rlhf__template_text(&s->with),
                   head = {with.ptr, (uint64_t)(at - with.ptr)},
                   tail = after_turn(s, i, (rlhf_str){at + n, with.len - head.len - n});
    if (!tail.ptr) return not_told(s, i);
    RLHF_TRY(begin_of(s, i, head, &from));
    if (whole.len < from + tail.len || rlhf__template_common(whole, head) < from ||
        memcmp(whole.ptr + (whole.len - tail.len), tail.ptr, (size_t)tail.len) != 0)
        return otherwise(s, i);
    size_t end = rlhf__template_end(s->t, tail);
    if (!end && calls) end = rlhf__template_token_at(s->t, tail).len;
    const size_t to = whole.len - tail.len + end;
    if (calls && goes_too_far(s, i, from, to)) return not_told(s, i);
    return rlhf__turns_add(s->out, s->base + from, s->base + to, s->err);
}

// The number of the assistant's turns from message `first` onward.
static size_t turns_from(const struct search *s, size_t first) {
    size_t n = 0;
    for (size_t i = first; i < s->m->n; i++)
        n += s->m->item[i].role == RLHF__ROLE_ASSISTANT;
    return n;
}

static rlhf_status add_turns(struct search *s, size_t first) {
    struct rlhf__message *copy = calloc(s->m->n + 1, sizeof *copy);
    rlhf_status st = copy ? RLHF_OK : RLHF__NOMEM(s->err, "out of memory for a conversation");
    if (copy && s->m->n) memcpy(copy, s->m->item, s->m->n * sizeof *copy);
    int number = 0;
    do
        snprintf(s->stand_in, sizeof s->stand_in, "Zq7turn%d7qZ", number++);
    while (number < STAND_INS && strstr(rlhf__template_text(&s->whole).ptr, s->stand_in));
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

// Finds turns by their {% generation %} blocks. The token that ends a turn is in the block or
// directly after it.
static rlhf_status add_marks(struct search *s) {
    const rlhf_str whole = rlhf__template_text(&s->whole);
    for (size_t i = 0; i < s->whole.turns.n; i++) {
        const struct rlhf__turn *mark = &s->whole.turns.item[i];
        RLHF_TRY(rlhf__turns_add(s->out, s->base + mark->from, s->base + mark->to, s->err));
        const rlhf_str in = {whole.ptr + mark->from, mark->to - mark->from},
                       rest = {whole.ptr + mark->to, whole.len - mark->to};
        size_t inside = 0;
        for (int32_t k = 0; k < s->t->n_ends; k++) {
            const size_t at = last_end(in, (rlhf_str){s->t->ends[k], strlen(s->t->ends[k])});
            if (at > inside) inside = at;
        }
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
    rlhf_status st = rlhf__template_render(t, m, generate, &s.whole, err);
    if (st == RLHF_OK) rlhf__buf_put(&out->text, s.whole.turns.text.data, s.whole.turns.text.len);
    if (st == RLHF_OK) st = rlhf__buf_ok(&out->text, err);
    if (st == RLHF_OK) st = t->jinja.marks ? add_marks(&s) : add_turns(&s, first);
    rlhf__turns_finish(&s.whole.turns);
    rlhf__turns_finish(&s.with.turns);
    rlhf__turns_finish(&s.prompt.turns);
    return st;
}
