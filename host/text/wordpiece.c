// wordpiece.c: see wordpiece.h.
#include "text/wordpiece.h"

#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_MAX = 100, WORD_BYTES = WORD_MAX * 4 };

// A word as UTF-8 behind two bytes of room for "##"; end[i] is where character i ends.
struct word {
    char bytes[2 + WORD_BYTES];
    size_t end[WORD_MAX + 1];
    size_t n; // characters
};

// Longest token at character `from`; the number of characters taken, 0 = none.
static size_t longest(const struct rlhf__vocab *v, struct word *w, size_t from, int32_t *id) {
    size_t at = w->end[from];
    if (from) { // the bytes before are used up: "##" may lie over them
        at -= 2;
        memcpy(w->bytes + at, "##", 2);
    }
    size_t to = w->n;
    while (to > from && w->end[to] - at > v->longest)
        to--;
    for (; to > from; to--) {
        *id = rlhf__vocab_find(v, w->bytes + at, w->end[to] - at);
        if (*id >= 0) return to - from;
    }
    return 0;
}

static rlhf_status encode_word(const struct rlhf__wordpiece *wp, const uint32_t *cp, size_t n,
                               struct rlhf__ids *out, struct rlhf__error *err) {
    if (n > WORD_MAX) return rlhf__ids_push(out, wp->unk, err);
    struct word w = {.end = {2}, .n = n};
    for (size_t i = 0; i < n; i++)
        w.end[i + 1] = w.end[i] + rlhf__utf8_put(cp[i], w.bytes + w.end[i]);
    size_t before = out->n;
    for (size_t at = 0; at < n;) {
        int32_t id = -1;
        size_t taken = longest(wp->vocab, &w, at, &id);
        if (!taken) {
            out->n = before;
            return rlhf__ids_push(out, wp->unk, err);
        }
        RLHF_TRY(rlhf__ids_push(out, id, err));
        at += taken;
    }
    return RLHF_OK;
}

rlhf_status rlhf__wordpiece_encode(const struct rlhf__wordpiece *wp, const char *s, size_t n,
                                   size_t stop_at, struct rlhf__ids *out, struct rlhf__error *err) {
    struct rlhf__codepoints text = {0};
    rlhf_status st = rlhf__bert_normalise(&wp->opts, s, n, &text, err);
    for (size_t at = 0; st == RLHF_OK && at < text.n && out->n < stop_at;) {
        if (rlhf__bert_is_space(text.cp[at])) {
            at++;
            continue;
        }
        size_t end = at + 1;
        if (!rlhf__bert_is_punct(text.cp[at]))
            while (end < text.n && !rlhf__bert_is_space(text.cp[end]) &&
                   !rlhf__bert_is_punct(text.cp[end]))
                end++;
        st = encode_word(wp, text.cp + at, end - at, out, err);
        at = end;
    }
    free(text.cp);
    return st;
}
