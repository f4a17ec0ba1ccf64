// fuzzy.c: see fuzzy.h.
#include "grader/fuzzy.h"

#include "grader/lcs.h"
#include "grader/ratio.h"

#include <stdlib.h>
#include <string.h>

static rlhf_status no_memory(const rlhf_host *h) {
    return (h->fail)(h, RLHF_E_NOMEM, "out of memory");
}

// ---- words ----

// Words by their numbers in a pair, sorted. Their texts joined by spaces are `letters`.
struct list {
    uint32_t *place, n; // place: of a word in the text
    struct rlhf__letters letters;
};

struct words {
    const struct rlhf__word_pair *pair;
    struct list sorted[2]; // all words
    struct list only[2];   // each word once that the other text does not have
    uint32_t common;       // words in both, each once
    uint32_t common_len;   // letters of these with spaces between
};

static int compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static rlhf_status join(const struct words *w, int of, struct list *l) {
    const rlhf_host *h = w->pair->host;
    struct rlhf__bytes text = {.host = h};
    for (uint32_t i = 0; i < l->n; i++) {
        const rlhf_str word = w->pair->string[of][l->place[i]];
        if (i) rlhf__bytes_text(&text, " ");
        rlhf__bytes_add(&text, word.ptr, (size_t)word.len);
    }
    const rlhf_status st =
        text.full ? no_memory(h)
                  : rlhf__letters_init(&l->letters, h, (rlhf_str){text.data, text.len});
    rlhf__bytes_finish(&text);
    return st;
}

// Sorts the words of a text; words are numbered in the order of the alphabet.
static rlhf_status sort_words(struct words *w, int of) {
    const rlhf_host *h = w->pair->host;
    struct list *l = &w->sorted[of];
    const uint32_t n = w->pair->n[of];
    uint64_t *key = h->alloc(h, ((uint64_t)n + 1) * sizeof *key);
    l->place = h->alloc(h, ((uint64_t)n + 1) * sizeof *l->place);
    if (!key || !l->place) {
        h->free(h, key);
        return no_memory(h);
    }
    l->n = n;
    for (uint32_t i = 0; i < n; i++)
        key[i] = (uint64_t)w->pair->word[of][i] << 32 | i;
    qsort(key, n, sizeof *key, compare);
    for (uint32_t i = 0; i < n; i++)
        l->place[i] = (uint32_t)key[i];
    h->free(h, key);
    return RLHF_OK;
}

static uint32_t count_letters(rlhf_str text) {
    uint32_t n = 0;
    for (uint64_t at = 0; at < text.len; n++)
        rlhf__letter_next(text, &at);
    return n;
}

// Finds the words that both texts have, and those that only one has.
static rlhf_status compare_words(struct words *w) {
    const struct rlhf__word_pair *p = w->pair;
    uint32_t i[2] = {0, 0};
    for (int of = 0; of < 2; of++) {
        RLHF_TRY(sort_words(w, of));
        w->only[of].place = p->host->alloc(p->host, ((uint64_t)p->n[of] + 1) * sizeof(uint32_t));
        if (!w->only[of].place) return no_memory(p->host);
    }
    while (i[0] < p->n[0] || i[1] < p->n[1]) {
        uint32_t number[2], least = UINT32_MAX;
        for (int of = 0; of < 2; of++) {
            number[of] = i[of] < p->n[of] ? p->word[of][w->sorted[of].place[i[of]]] : UINT32_MAX;
            if (number[of] < least) least = number[of];
        }
        const int both = number[0] == number[1], first = number[0] == least ? 0 : 1;
        const uint32_t place = w->sorted[first].place[i[first]];
        if (both)
            w->common_len += count_letters(p->string[first][place]) + (w->common++ > 0);
        else
            w->only[first].place[w->only[first].n++] = place;
        for (int of = 0; of < 2; of++)
            while (i[of] < p->n[of] && p->word[of][w->sorted[of].place[i[of]]] == least)
                i[of]++;
    }
    for (int of = 0; of < 2; of++) {
        RLHF_TRY(join(w, of, &w->sorted[of]));
        RLHF_TRY(join(w, of, &w->only[of]));
    }
    return RLHF_OK;
}

static void words_finish(struct words *w) {
    const rlhf_host *h = w->pair->host;
    struct list *const all[] = {&w->sorted[0], &w->sorted[1], &w->only[0], &w->only[1]};
    for (size_t i = 0; i < 4; i++) {
        h->free(h, all[i]->place);
        h->free(h, all[i]->letters.of);
    }
}

// The best ratio of the words in order of the alphabet: all of them; or only those in both texts
// against these with the others of one text, or of each text.
static rlhf_status token_ratio(const struct words *w, double *out) {
    const rlhf_host *h = w->pair->host;
    const struct rlhf__letters *a = &w->only[0].letters, *b = &w->only[1].letters;
    const uint32_t with = w->common_len + (w->common_len > 0);
    uint32_t common;
    double set;
    if (w->common && (!w->only[0].n || !w->only[1].n)) {
        *out = 1;
        return RLHF_OK;
    }
    RLHF_TRY(rlhf__ratio(h, &w->sorted[0].letters, &w->sorted[1].letters, out));
    RLHF_TRY(rlhf__lcs_of(h, a->of, a->n, b->of, b->n, &common));
    set = rlhf__ratio_of(common + with, a->n + with, b->n + with);
    if (w->common) {
        set = rlhf__ratio_best(set, rlhf__ratio_of(w->common_len, w->common_len, a->n + with));
        set = rlhf__ratio_best(set, rlhf__ratio_of(w->common_len, w->common_len, b->n + with));
    }
    *out = rlhf__ratio_best(*out, set);
    return RLHF_OK;
}

static rlhf_status partial_token_ratio(const struct words *w, double *out) {
    const rlhf_host *h = w->pair->host;
    double other = 0;
    *out = 1;
    if (w->common) return RLHF_OK;
    RLHF_TRY(rlhf__ratio_part(h, &w->sorted[0].letters, &w->sorted[1].letters, out));
    if (w->only[0].n != w->sorted[0].n || w->only[1].n != w->sorted[1].n)
        RLHF_TRY(rlhf__ratio_part(h, &w->only[0].letters, &w->only[1].letters, &other));
    *out = rlhf__ratio_best(*out, other);
    return RLHF_OK;
}

// ---- all together ----

static rlhf_status weigh(const struct words *w, const struct rlhf__letters *a,
                         const struct rlhf__letters *b, double *out) {
    const rlhf_host *h = w->pair->host;
    const double longer = a->n > b->n ? (double)a->n / b->n : (double)b->n / a->n;
    const double part = longer < 8 ? 0.9 : 0.6;
    double other;
    RLHF_TRY(rlhf__ratio(h, a, b, out));
    if (longer < 1.5) {
        RLHF_TRY(token_ratio(w, &other));
        *out = rlhf__ratio_best(*out, other * 0.95);
        return RLHF_OK;
    }
    RLHF_TRY(rlhf__ratio_part(h, a, b, &other));
    *out = rlhf__ratio_best(*out, other * part);
    RLHF_TRY(partial_token_ratio(w, &other));
    *out = rlhf__ratio_best(*out, other * 0.95 * part);
    return RLHF_OK;
}

rlhf_status rlhf__fuzzy(const struct rlhf__word_pair *p, double *out) {
    struct words w = {.pair = p};
    struct rlhf__letters whole[2] = {{NULL, 0}, {NULL, 0}};
    rlhf_status st = RLHF_OK;
    *out = 0;
    if (!p->n[0] || !p->n[1]) return RLHF_OK;
    for (int of = 0; st == RLHF_OK && of < 2; of++)
        st = rlhf__letters_init(&whole[of], p->host, (rlhf_str){p->text[of].data, p->text[of].len});
    if (st == RLHF_OK) st = compare_words(&w);
    if (st == RLHF_OK) st = weigh(&w, &whole[0], &whole[1], out);
    words_finish(&w);
    for (int of = 0; of < 2; of++)
        p->host->free(p->host, whole[of].of);
    return st;
}
