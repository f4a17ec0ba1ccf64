// spelled.c: see spelled.h.
#include "tokenizer/spelled.h"

#include <stdlib.h>
#include <string.h>

static int to_mark(const struct rlhf__tokenizer *tok, const struct rlhf__message *m) {
    size_t at;
    return m->written == RLHF__CONTENT_SPELLED &&
           rlhf__tokenizer_next_special(tok, m->content, 0, &at);
}

// ---- marks ----

// Chooses a mark that does not occur in any message. It consists of characters for private use,
// which templates do not change.
static void choose(struct rlhf__spelled *s, const struct rlhf__messages *m) {
    for (unsigned number = 0, taken = 1; taken; number++) {
        const unsigned c = 0xE000 + number % 6400;
        snprintf(s->mark, sizeof s->mark, "%c%c%c", (char)(0xE0 | (c >> 12)),
                 (char)(0x80 | ((c >> 6) & 63)), (char)(0x80 | (c & 63)));
        if (number >= 6400) memcpy(s->mark + 3, s->mark, 4); // two characters, if every one occurs
        taken = 0;
        for (size_t i = 0; i < m->n && !taken && number < 12800; i++)
            taken = memmem(m->item[i].content.ptr, (size_t)m->item[i].content.len, s->mark,
                           strlen(s->mark)) != NULL;
    }
}

static void put_marked(const struct rlhf__tokenizer *tok, struct rlhf__spelled *s, rlhf_str text) {
    size_t from = 0, at;
    for (size_t look = 0; rlhf__tokenizer_next_special(tok, text, look, &at); look = at + 1) {
        rlhf__buf_put(&s->text, text.ptr + from, at - from);
        rlhf__buf_puts(&s->text, s->mark);
        from = at;
    }
    rlhf__buf_put(&s->text, text.ptr + from, (size_t)text.len - from);
}

rlhf_status rlhf__spelled_mark(const struct rlhf__tokenizer *tok, const struct rlhf__messages *m,
                               struct rlhf__spelled *out, struct rlhf__error *err) {
    out->marked.tools = m->tools;
    out->marked.vars = m->vars;
    for (size_t i = 0; i < m->n; i++) {
        struct rlhf__message copy = m->item[i];
        if (to_mark(tok, &copy)) {
            if (!out->mark[0]) choose(out, m);
            const size_t before = out->text.len;
            put_marked(tok, out, copy.content);
            copy.content.len = out->text.len - before;
        }
        RLHF_TRY(rlhf__messages_put(&out->marked, &copy, err));
    }
    RLHF_TRY(rlhf__buf_ok(&out->text, err));
    // The buffer does not move any more, so set the pointers into it.
    for (size_t i = 0, at = 0; i < m->n; i++) {
        if (!to_mark(tok, &m->item[i])) continue;
        out->marked.item[i].content.ptr = rlhf__buf_text(&out->text) + at;
        at += (size_t)out->marked.item[i].content.len;
    }
    return RLHF_OK;
}

static rlhf_status add_cut(struct rlhf__cuts *c, size_t at, struct rlhf__error *err) {
    if (c->n == c->cap) {
        const size_t cap = c->cap ? 2 * c->cap : 16;
        size_t *grown = realloc(c->at, cap * sizeof *grown);
        if (!grown) return RLHF__NOMEM(err, "out of memory for a conversation");
        c->at = grown;
        c->cap = cap;
    }
    c->at[c->n++] = at;
    return RLHF_OK;
}

// The position that `at` gets when the marks before it, of n bytes each, are removed.
static size_t moved(const struct rlhf__cuts *c, size_t n, size_t at) {
    size_t before = 0;
    while (before < c->n && c->at[before] + before * n < at)
        before++;
    return at - before * n;
}

rlhf_status rlhf__spelled_unmark(struct rlhf__spelled *s, struct rlhf__turns *t,
                                 struct rlhf__error *err) {
    const size_t n = strlen(s->mark);
    char *text = t->text.data;
    size_t to = 0, from = 0;
    s->cuts.n = 0;
    if (!n || !text) return RLHF_OK;
    for (char *at; (at = memmem(text + from, t->text.len - from, s->mark, n));) {
        const size_t len = (size_t)(at - text) - from;
        memmove(text + to, text + from, len);
        to += len;
        from += len + n;
        RLHF_TRY(add_cut(&s->cuts, to, err));
    }
    memmove(text + to, text + from, t->text.len - from);
    t->text.len = to + t->text.len - from;
    text[t->text.len] = 0;
    for (size_t i = 0; i < t->n; i++) {
        struct rlhf__turn *turn = &t->item[i];
        *turn = (struct rlhf__turn){moved(&s->cuts, n, turn->from), moved(&s->cuts, n, turn->to),
                                    moved(&s->cuts, n, turn->end)};
    }
    return RLHF_OK;
}

void rlhf__spelled_finish(struct rlhf__spelled *s) {
    rlhf__messages_finish(&s->marked);
    rlhf__buf_finish(&s->text);
    free(s->cuts.at);
    *s = (struct rlhf__spelled){0};
}
