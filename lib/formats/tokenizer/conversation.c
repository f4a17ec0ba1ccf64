// conversation.c: see conversation.h.
#include "tokenizer/conversation.h"

#include "tokenizer/spelled.h"

#include <string.h>

static rlhf_str text_of(const struct rlhf__buf *b, size_t from, size_t to) {
    return (rlhf_str){rlhf__buf_text(b) + from, to - from};
}

// ---- the positions of tokens in a text ----

// The place of a token in the text s[0..n): the token begins at `begin` and ends at `at`.
struct place {
    const char *s;
    size_t n, at, begin;
};

static int is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static int is_here(struct place *p, size_t at, const char *t, size_t n) {
    if (p->n - at < n || memcmp(p->s + at, t, n) != 0) return 0;
    p->begin = at;
    p->at = at + n;
    return 1;
}

// Moves past a token with the bytes t[0..n) and returns 1, or returns 0 if the token is not here.
// The token is here if the text continues with one of these:
//   these bytes
//   these bytes without the space at their beginning
//   white space, which belongs to the special token before, and then these bytes
static int step(struct place *p, const char *t, size_t n) {
    if (is_here(p, p->at, t, n)) return 1;
    if (n && t[0] == ' ' && is_here(p, p->at, t + 1, n - 1)) return 1;
    for (size_t at = p->at; at < p->n && is_blank(p->s[at]); at++)
        if (is_here(p, at + 1, t, n)) return 1;
    return 0;
}

// Sets says[i] = 1 for the ids that contain at least one byte of a turn.
static rlhf_status mark(const struct rlhf__tokenizer *tok, const struct rlhf__buf *text,
                        const struct rlhf__turn *turn, size_t n_turns, const int32_t *ids, size_t n,
                        char *says, struct rlhf__error *err) {
    struct place p = {rlhf__buf_text(text), text->len, 0, 0};
    size_t t = 0;
    for (size_t i = 0; i < n; i++) {
        char bytes[1024];
        size_t len = rlhf__tokenizer_decode(tok, ids + i, 1, 0, bytes, sizeof bytes);
        if (len > sizeof bytes || !step(&p, bytes, len))
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "the tokenizer changes this text, so the assistant's tokens cannot "
                              "be identified");
        while (t < n_turns && turn[t].to <= p.begin)
            t++;
        says[i] = t < n_turns && p.at > turn[t].from;
    }
    return RLHF_OK;
}

// Does the same as mark() for a tokenizer whose normalizer changes the text. Normalizes each turn
// and each part between turns separately, and joins the results. The ids and the turns are then
// found in the joined text.
static rlhf_status mark_normal(const struct rlhf__tokenizer *tok, struct rlhf__turns *c,
                               const int32_t *ids, size_t n, char *says, struct rlhf__error *err) {
    struct rlhf__buf normal = RLHF__BUF_INIT;
    size_t at = 0;
    rlhf_status st = RLHF_OK;
    for (size_t i = 0; st == RLHF_OK && i <= c->n; i++) {
        size_t from = i < c->n ? c->item[i].from : c->text.len,
               to = i < c->n ? c->item[i].to : from;
        st = rlhf__tokenizer_normal(tok, rlhf__buf_text(&c->text) + at, from - at, &normal, err);
        if (i < c->n) c->item[i].from = normal.len;
        if (st == RLHF_OK)
            st = rlhf__tokenizer_normal(tok, rlhf__buf_text(&c->text) + from, to - from, &normal,
                                        err);
        if (i < c->n) c->item[i].to = normal.len;
        at = to;
    }
    if (st == RLHF_OK) st = mark(tok, &normal, c->item, c->n, ids, n, says, err);
    rlhf__buf_finish(&normal);
    return st;
}

// ---- ids ----

// Encodes a rendered conversation and marks the assistant's ids.
static rlhf_status encode_turns(const struct rlhf__tokenizer *tok, struct rlhf__turns *c,
                                const struct rlhf__cuts *cuts, struct rlhf__ids *out,
                                struct rlhf__buf *says, struct rlhf__error *err) {
    const size_t before = out->n;
    RLHF_TRY(rlhf__tokenizer_encode_cut(tok, text_of(&c->text, 0, c->text.len), cuts, out, err));
    const size_t n = out->n - before;
    char *mine = says && n ? rlhf__buf_grow(says, n) : NULL;
    if (says) RLHF_TRY(rlhf__buf_ok(says, err));
    const int32_t *ids = mine ? out->data + before : NULL;
    if (!mine) return RLHF_OK;
    const rlhf_status st = mark(tok, &c->text, c->item, c->n, ids, n, mine, err);
    return st == RLHF_E_UNSUPPORTED ? mark_normal(tok, c, ids, n, mine, err) : st;
}

rlhf_status rlhf__conversation_encode(const struct rlhf__tokenizer *tok,
                                      const struct rlhf__messages *m, int generate,
                                      struct rlhf__ids *out, struct rlhf__buf *says,
                                      struct rlhf__error *err) {
    struct rlhf__turns c = {0};
    struct rlhf__spelled s = {.mark = ""};
    rlhf_status st = rlhf__spelled_mark(tok, m, &s, err);
    if (st == RLHF_OK && says)
        st = rlhf__chat_turns(rlhf__tokenizer_chat(tok), &s.marked, 0, generate, &c, err);
    else if (st == RLHF_OK)
        st = rlhf__chat_render(rlhf__tokenizer_chat(tok), &s.marked, generate, &c.text, err);
    if (st == RLHF_OK) st = rlhf__spelled_unmark(&s, &c, err);
    if (st == RLHF_OK) st = encode_turns(tok, &c, &s.cuts, out, says, err);
    rlhf__turns_finish(&c);
    rlhf__spelled_finish(&s);
    return st;
}

// Returns the number of bytes at the beginning that are the same in both texts.
static size_t common(const struct rlhf__buf *a, const struct rlhf__buf *b) {
    size_t n = 0;
    while (n < a->len && n < b->len && a->data[n] == b->data[n])
        n++;
    return n;
}

static int begins_with(const struct rlhf__ids *all, const int32_t *prompt, size_t n) {
    return all->n > n && (!n || memcmp(all->data, prompt, n * sizeof *prompt) == 0);
}

rlhf_status rlhf__conversation_answer(const struct rlhf__tokenizer *tok,
                                      const struct rlhf__messages *m,
                                      const struct rlhf__messages *answer, const int32_t *prompt,
                                      size_t n, struct rlhf__ids *out, struct rlhf__error *err) {
    struct rlhf__messages both = {.tools = m->tools, .vars = m->vars};
    struct rlhf__buf asked = RLHF__BUF_INIT;
    struct rlhf__turns whole = {0};
    struct rlhf__ids all = {0};
    rlhf_status st = RLHF_OK;
    for (size_t i = 0; st == RLHF_OK && i < m->n + answer->n; i++) {
        st = rlhf__messages_put(&both, i < m->n ? &m->item[i] : &answer->item[i - m->n], err);
    }
    if (st == RLHF_OK) st = rlhf__chat_render(rlhf__tokenizer_chat(tok), m, 1, &asked, err);
    if (st == RLHF_OK)
        st = rlhf__chat_turns(rlhf__tokenizer_chat(tok), &both, both.n - 1, 0, &whole, err);
    size_t end = whole.n ? whole.item[whole.n - 1].end : 0;
    if (st == RLHF_OK)
        st = rlhf__tokenizer_encode(tok, text_of(&whole.text, 0, end), RLHF__ENCODE_SPECIAL, 0,
                                    &all, err);
    // `all` has the ids of prompt and answer, encoded together. If `all` does not begin with the
    // ids that the prompt has in a rollout, encode the answer separately.
    size_t from = common(&asked, &whole.text);
    if (st == RLHF_OK && begins_with(&all, prompt, n)) {
        for (size_t i = n; st == RLHF_OK && i < all.n; i++)
            st = rlhf__ids_push(out, all.data[i], err);
    } else if (st == RLHF_OK && end > from) {
        st = rlhf__tokenizer_encode(tok, text_of(&whole.text, from, end), RLHF__ENCODE_SPECIAL, 0,
                                    out, err);
    }
    rlhf__messages_finish(&both);
    rlhf__buf_finish(&asked);
    rlhf__turns_finish(&whole);
    rlhf__ids_finish(&all);
    return st;
}
