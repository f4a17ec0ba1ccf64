// wordpiece.c: see wordpiece.h.
#include "text/wordpiece.h"

#include "text/utf8.h"

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

// The characters of s[0..n) into w; 0 when there are too many or one is ill-formed.
static int read_word(struct word *w, const char *s, size_t n) {
    size_t at = 0;
    w->n = 0;
    w->end[0] = 2;
    while (at < n && w->n < WORD_MAX) {
        size_t len = rlhf__utf8_next(s + at, n - at, NULL, NULL);
        if (!len) return 0;
        at += len;
        w->end[++w->n] = 2 + at;
    }
    if (at < n) return 0;
    memcpy(w->bytes + 2, s, n);
    return 1;
}

rlhf_status rlhf__wordpiece_encode(const struct rlhf__wordpiece *wp, const char *s, size_t n,
                                   struct rlhf__ids *out, struct rlhf__error *err) {
    struct word w;
    if (!read_word(&w, s, n)) return rlhf__ids_push(out, wp->unk, err);
    size_t before = out->n;
    for (size_t at = 0; at < w.n;) {
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
