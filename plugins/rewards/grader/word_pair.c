// word_pair.c: see word_pair.h.
#include "grader/word_pair.h"

#include "grader/letters.h"

#include <stdlib.h>
#include <string.h>

// ---- the tokenizer of mteval-v13a ----

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_stop(char c) { return c == '.' || c == ','; }

// The characters that always are words of their own.
static int is_mark(char c) {
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

struct swap {
    const char *from, *to;
};

// Append the text with all occurrences of `swap` replaced.
static void replace(struct rlhf__bytes *to, rlhf_str text, const struct swap *s) {
    const size_t n = strlen(s->from);
    for (size_t i = 0; i < text.len;) {
        if (text.len - i >= n && memcmp(text.ptr + i, s->from, n) == 0) {
            rlhf__bytes_text(to, s->to);
            i += n;
        } else
            rlhf__bytes_add(to, text.ptr + i++, 1);
    }
}

static void swap_buffers(struct rlhf__bytes *a, struct rlhf__bytes *b) {
    const struct rlhf__bytes c = *a;
    *a = *b;
    *b = c;
    b->len = 0;
}

static rlhf_str str_of(const struct rlhf__bytes *b) { return (rlhf_str){b->data, b->len}; }

// The four rules of the tokenizer, each over the whole text. A rule goes on after the characters
// that it matched.
static void apply_rule(int rule, rlhf_str t, struct rlhf__bytes *to) {
    for (size_t i = 0; i < t.len;) {
        const char a = t.ptr[i], b = i + 1 < t.len ? t.ptr[i + 1] : 0;
        const char mark[] = {' ', a, ' '}, before[] = {a, ' ', b, ' '}, after[] = {' ', a, ' ', b};
        const int two = i + 1 < t.len;
        size_t used = 2;
        if (rule == 0 && is_mark(a)) {
            rlhf__bytes_add(to, mark, 3);
            used = 1;
        } else if (two && ((rule == 1 && !is_digit(a) && is_stop(b)) ||
                           (rule == 3 && is_digit(a) && b == '-')))
            rlhf__bytes_add(to, before, 4);
        else if (two && rule == 2 && is_stop(a) && !is_digit(b))
            rlhf__bytes_add(to, after, 4);
        else {
            rlhf__bytes_add(to, &a, 1);
            used = 1;
        }
        i += used;
    }
}

static void write_13a(struct rlhf__bytes *to, rlhf_str text) {
    static const struct swap swaps[] = {{"<skipped>", ""}, {"-\n", ""},    {"\n", " "},
                                        {"&quot;", "\""},  {"&amp;", "&"}, {"&lt;", "<"},
                                        {"&gt;", ">"}};
    struct rlhf__bytes other = {.host = to->host};
    while (text.len && (text.ptr[text.len - 1] == ' ' || text.ptr[text.len - 1] == '\n' ||
                        text.ptr[text.len - 1] == '\t' || text.ptr[text.len - 1] == '\r'))
        text.len--;
    rlhf__bytes_add(to, text.ptr, (size_t)text.len);
    for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++) {
        replace(&other, str_of(to), &swaps[i]);
        swap_buffers(to, &other);
    }
    rlhf__bytes_text(&other, " ");
    rlhf__bytes_add(&other, to->data, to->len);
    rlhf__bytes_text(&other, " ");
    swap_buffers(to, &other);
    for (int rule = 0; rule < 4; rule++) {
        apply_rule(rule, str_of(to), &other);
        swap_buffers(to, &other);
    }
    to->full |= other.full;
    rlhf__bytes_finish(&other);
}

// ---- the other forms ----

static void write_13a_lower(struct rlhf__bytes *to, rlhf_str text) {
    struct rlhf__bytes words = {.host = to->host};
    write_13a(&words, text);
    rlhf__letters_lower(to, str_of(&words));
    to->full |= words.full;
    rlhf__bytes_finish(&words);
}

static void write_rouge(struct rlhf__bytes *to, rlhf_str text) {
    for (uint64_t at = 0; at < text.len;) {
        const uint32_t cp = rlhf__letter_lower(rlhf__letter_next(text, &at));
        const int is_part = (cp >= 'a' && cp <= 'z') || (cp >= '0' && cp <= '9');
        rlhf__letter_put(to, is_part ? cp : ' ');
    }
}

static void write_fuzzy(struct rlhf__bytes *to, rlhf_str text) {
    for (uint64_t at = 0; at < text.len;) {
        const uint32_t cp = rlhf__letter_next(text, &at);
        rlhf__letter_put(to, rlhf__letter_is_word(cp) ? rlhf__letter_lower(cp) : ' ');
    }
    size_t from = 0;
    while (to->len && to->data[to->len - 1] == ' ')
        to->len--;
    while (from < to->len && to->data[from] == ' ')
        from++;
    if (!from) return;
    to->len -= from;
    memmove(to->data, to->data + from, to->len);
}

// ---- words ----

// Finds the words between white space. If `out` is NULL, only counts them.
static uint32_t split(rlhf_str text, rlhf_str *out) {
    uint32_t n = 0;
    uint64_t begin = 0, at = 0;
    while (begin < text.len) {
        const uint64_t end = at;
        const int space = at == text.len || rlhf__letter_is_space(rlhf__letter_next(text, &at));
        if (!space) continue;
        if (end > begin) {
            if (out) out[n] = (rlhf_str){text.ptr + begin, end - begin};
            n++;
        }
        begin = at;
    }
    return n;
}

struct entry {
    rlhf_str string;
    uint32_t *to;
};

static int compare(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    const uint64_t n = x->string.len < y->string.len ? x->string.len : y->string.len;
    const int c = memcmp(x->string.ptr, y->string.ptr, (size_t)n);
    if (c) return c;
    return (x->string.len > y->string.len) - (x->string.len < y->string.len);
}

static rlhf_status number_words(struct rlhf__word_pair *p) {
    const uint32_t all = p->n[0] + p->n[1];
    struct entry *e = p->host->alloc(p->host, (all + 1) * sizeof *e);
    if (!e) return RLHF_E_NOMEM;
    for (uint32_t i = 0; i < all; i++) {
        const uint32_t of = i >= p->n[0], k = of ? i - p->n[0] : i;
        e[i] = (struct entry){p->string[of][k], &p->word[of][k]};
    }
    qsort(e, all, sizeof *e, compare);
    for (uint32_t i = 0, number = 0; i < all; i++) {
        if (i && compare(&e[i - 1], &e[i]) != 0) number++;
        *e[i].to = number;
    }
    p->host->free(p->host, e);
    return RLHF_OK;
}

static rlhf_status split_pair(struct rlhf__word_pair *p, int *too_long) {
    for (int k = 0; k < 2; k++) {
        p->n[k] = split(str_of(&p->text[k]), NULL);
        if (p->n[k] > RLHF__WORDS_MOST) *too_long = 1;
    }
    if (*too_long) {
        p->n[0] = p->n[1] = 0;
        return RLHF_OK;
    }
    for (int k = 0; k < 2; k++) {
        p->string[k] = p->host->alloc(p->host, (p->n[k] + 1) * sizeof **p->string);
        p->word[k] = p->host->alloc(p->host, (p->n[k] + 1) * sizeof **p->word);
        if (!p->string[k] || !p->word[k]) return RLHF_E_NOMEM;
        split(str_of(&p->text[k]), p->string[k]);
    }
    return number_words(p);
}

rlhf_status rlhf__word_pair_take(struct rlhf__word_pair *p, const rlhf_host *host,
                                 struct rlhf__bytes text[2], int *too_long) {
    *p = (struct rlhf__word_pair){.host = host, .text = {text[0], text[1]}};
    *too_long = 0;
    const rlhf_status st = text[0].full || text[1].full ? RLHF_E_NOMEM : split_pair(p, too_long);
    return st < 0 ? (host->fail)(host, st, "out of memory") : RLHF_OK;
}

rlhf_status rlhf__word_pair_init(struct rlhf__word_pair *p, const rlhf_host *host,
                                 enum rlhf__word_form form, rlhf_str graded, rlhf_str reference,
                                 int *too_long) {
    static void (*const write[])(struct rlhf__bytes *, rlhf_str) = {write_13a, write_13a_lower,
                                                                    write_rouge, write_fuzzy};
    struct rlhf__bytes text[2] = {{.host = host}, {.host = host}};
    if (graded.len > RLHF__WORDS_BYTES || reference.len > RLHF__WORDS_BYTES) {
        *p = (struct rlhf__word_pair){.host = host};
        *too_long = 1;
        return RLHF_OK;
    }
    write[form](&text[0], graded);
    write[form](&text[1], reference);
    return rlhf__word_pair_take(p, host, text, too_long);
}

void rlhf__word_pair_finish(struct rlhf__word_pair *p) {
    for (int k = 0; k < 2; k++) {
        if (!p->host) continue;
        p->host->free(p->host, p->string[k]);
        p->host->free(p->host, p->word[k]);
        rlhf__bytes_finish(&p->text[k]);
    }
    *p = (struct rlhf__word_pair){0};
}
