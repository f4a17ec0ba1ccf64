// gguf_merges.c: see gguf_merges.h.
#include "gguf/gguf_merges.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PIECE = 1024 }; // bytes; all divisions of a piece take time in the square of this

struct merge {
    double score;
    int32_t left, right, made; // ids
    int32_t n_left, n_right;   // characters
};

struct merges {
    struct merge *item; // [n]
    size_t n, cap;
};

static int is_inside(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

static int32_t characters(const char *s, size_t n) {
    int32_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += !is_inside(s[i]);
    return count;
}

static rlhf_status add(struct merges *m, struct merge one, struct rlhf__error *err) {
    if (m->n == m->cap) {
        const size_t cap = m->cap ? 2 * m->cap : 1024;
        struct merge *more = realloc(m->item, cap * sizeof *more);
        if (!more) return RLHF__NOMEM(err, "out of memory for the merges of a tokenizer");
        m->item = more;
        m->cap = cap;
    }
    m->item[m->n++] = one;
    return RLHF_OK;
}

// Adds the divisions of a piece.
static rlhf_status divide(struct merges *m, const struct rlhf__vocab *v, int32_t made, double score,
                          struct rlhf__error *err) {
    const rlhf_str s = rlhf__vocab_bytes(v, made);
    const size_t n = (size_t)s.len;
    if (!s.ptr || memchr(s.ptr, ' ', n) || rlhf__vocab_find(v, s.ptr, n) != made) return RLHF_OK;
    if (n > MAX_PIECE)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "token %d has %zu bytes; allowed are at most %d, because the merges "
                          "follow from the scores of the tokens",
                          (int)made, n, MAX_PIECE);
    for (size_t i = 1; i < n; i++) {
        if (is_inside(s.ptr[i])) continue;
        const int32_t left = rlhf__vocab_find(v, s.ptr, i);
        const int32_t right = left < 0 ? -1 : rlhf__vocab_find(v, s.ptr + i, n - i);
        if (right < 0) continue;
        const struct merge one = {
            score, left, right, made, characters(s.ptr, i), characters(s.ptr + i, n - i)};
        RLHF_TRY(add(m, one, err));
    }
    return RLHF_OK;
}

static int by_score(const void *a, const void *b) {
    const struct merge *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->n_left != y->n_left) return x->n_left > y->n_left ? -1 : 1;
    if (x->n_right != y->n_right) return x->n_right > y->n_right ? -1 : 1;
    return x->made < y->made ? -1 : x->made > y->made;
}

rlhf_status rlhf__gguf_merges_make(const struct rlhf__vocab *pieces, const double *score,
                                   json_t **out, struct rlhf__error *err) {
    struct merges m = {0};
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf_status st = RLHF_OK;
    *out = NULL;
    for (int32_t i = 0; i < pieces->n && st == RLHF_OK; i++)
        st = divide(&m, pieces, i, score[i], err);
    if (m.n) qsort(m.item, m.n, sizeof *m.item, by_score);
    json_t *list = json_array();
    for (size_t i = 0; i < m.n && st == RLHF_OK; i++) {
        const rlhf_str left = rlhf__vocab_bytes(pieces, m.item[i].left);
        const rlhf_str right = rlhf__vocab_bytes(pieces, m.item[i].right);
        rlhf__buf_clear(&line);
        rlhf__buf_put(&line, left.ptr, (size_t)left.len);
        rlhf__buf_putc(&line, ' ');
        rlhf__buf_put(&line, right.ptr, (size_t)right.len);
        st = rlhf__buf_ok(&line, err);
        if (st == RLHF_OK)
            json_array_append_new(list, json_stringn(rlhf__buf_text(&line), line.len));
    }
    rlhf__buf_finish(&line);
    free(m.item);
    if (st == RLHF_OK)
        *out = list;
    else
        json_decref(list);
    return st;
}
