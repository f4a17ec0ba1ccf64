// fuzzy.c: see fuzzy.h.
#include "grader/fuzzy.h"

#include "grader/lcs.h"
#include "grader/letters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Characters as code points.
struct letters {
    uint32_t *of;
    uint32_t n;
};

static rlhf_status no_memory(const rlhf_host *h) {
    return (h->fail)(h, RLHF_E_NOMEM, "out of memory");
}

static rlhf_status letters_init(struct letters *l, const rlhf_host *h, rlhf_str text) {
    l->n = 0;
    l->of = h->alloc(h, (text.len + 1) * sizeof *l->of);
    if (!l->of) return no_memory(h);
    for (uint64_t at = 0; at < text.len;)
        l->of[l->n++] = rlhf__letter_next(text, &at);
    return RLHF_OK;
}

// ---- ratios of letters ----

#define MOST_WORK 0x1p34 // about 10 s

// 1 - (insertions and deletions that turn one text into the other) / (letters of both).
static double ratio_of(uint32_t common, uint32_t n_a, uint32_t n_b) {
    const double all = (double)n_a + n_b;
    return all > 0 ? 1 - (all - 2.0 * common) / all : 1;
}

// The larger one; NaN if one of them is.
static double best_of(double a, double b) { return isnan(a) || a > b ? a : b; }

static rlhf_status ratio(const rlhf_host *h, const struct letters *a, const struct letters *b,
                         double *out) {
    uint32_t common;
    RLHF_TRY(rlhf__lcs_of(h, a->of, a->n, b->of, b->n, &common));
    *out = ratio_of(common, a->n, b->n);
    return RLHF_OK;
}

// The best ratio of the pattern and a part of the text that has as many letters as the pattern, or
// that has fewer and is at one end of the text. Where a part begins one letter later, its LCS
// differs by at most 1; and a shorter one has no longer LCS. So parts that cannot be better than
// the best so far are left out.
static double best_part(struct rlhf__lcs *l, const int32_t *row, uint32_t n) {
    double best = 0;
    for (uint32_t from = 0; from + l->n <= n && best < 1;) {
        const uint32_t common = rlhf__lcs_length(l, row + from, l->n);
        best = fmax(best, ratio_of(common, l->n, l->n));
        const uint32_t better = (uint32_t)(best * l->n) + 1;
        from += better > common ? better - common : 1;
    }
    for (int end = 0; end < 2; end++) { // parts at the end of the text, then those at its beginning
        uint32_t common = l->n;
        for (uint32_t most = l->n - 1; most > 0 && best < 1; most--) {
            const int32_t *part = end ? row : row + n - most;
            if (common > most) common = most;
            if (ratio_of(common, l->n, most) <= best) continue;
            common = rlhf__lcs_length(l, part, most);
            best = fmax(best, ratio_of(common, l->n, most));
        }
    }
    return best;
}

static rlhf_status partial_one_way(const rlhf_host *h, const struct letters *shorter,
                                   const struct letters *longer, double *out) {
    struct rlhf__lcs l;
    if (((double)longer->n + shorter->n) * shorter->n * ((double)shorter->n / 64 + 1) > MOST_WORK) {
        *out = (double)NAN;
        return RLHF_OK;
    }
    int32_t *row = h->alloc(h, ((uint64_t)longer->n + 1) * sizeof *row);
    rlhf_status st = rlhf__lcs_init(&l, h, shorter->of, shorter->n);
    if (st == RLHF_OK && !row)
        st = no_memory(h);
    else if (st == RLHF_OK) {
        rlhf__lcs_rows(&l, longer->of, longer->n, row);
        *out = best_part(&l, row, longer->n);
    }
    h->free(h, row);
    rlhf__lcs_finish(&l);
    return st;
}

static rlhf_status partial_ratio(const rlhf_host *h, const struct letters *a,
                                 const struct letters *b, double *out) {
    double other = 0;
    *out = a->n == b->n; // both empty
    if (a->n && b->n)
        RLHF_TRY(a->n <= b->n ? partial_one_way(h, a, b, out) : partial_one_way(h, b, a, out));
    else if (a->n != b->n)
        *out = 0;
    if (a->n && a->n == b->n) RLHF_TRY(partial_one_way(h, b, a, &other));
    *out = best_of(*out, other);
    return RLHF_OK;
}

// ---- words ----

// Words by their numbers in a pair, sorted. Their texts joined by spaces are `letters`.
struct list {
    uint32_t *place, n; // place: of a word in the text
    struct letters letters;
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
        text.full ? no_memory(h) : letters_init(&l->letters, h, (rlhf_str){text.data, text.len});
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
    const struct letters *a = &w->only[0].letters, *b = &w->only[1].letters;
    const uint32_t with = w->common_len + (w->common_len > 0);
    uint32_t common;
    double set;
    if (w->common && (!w->only[0].n || !w->only[1].n)) {
        *out = 1;
        return RLHF_OK;
    }
    RLHF_TRY(ratio(h, &w->sorted[0].letters, &w->sorted[1].letters, out));
    RLHF_TRY(rlhf__lcs_of(h, a->of, a->n, b->of, b->n, &common));
    set = ratio_of(common + with, a->n + with, b->n + with);
    if (w->common) {
        set = best_of(set, ratio_of(w->common_len, w->common_len, a->n + with));
        set = best_of(set, ratio_of(w->common_len, w->common_len, b->n + with));
    }
    *out = best_of(*out, set);
    return RLHF_OK;
}

static rlhf_status partial_token_ratio(const struct words *w, double *out) {
    const rlhf_host *h = w->pair->host;
    double other = 0;
    *out = 1;
    if (w->common) return RLHF_OK;
    RLHF_TRY(partial_ratio(h, &w->sorted[0].letters, &w->sorted[1].letters, out));
    if (w->only[0].n != w->sorted[0].n || w->only[1].n != w->sorted[1].n)
        RLHF_TRY(partial_ratio(h, &w->only[0].letters, &w->only[1].letters, &other));
    *out = best_of(*out, other);
    return RLHF_OK;
}

// ---- all together ----

static rlhf_status weigh(const struct words *w, const struct letters *a, const struct letters *b,
                         double *out) {
    const rlhf_host *h = w->pair->host;
    const double longer = a->n > b->n ? (double)a->n / b->n : (double)b->n / a->n;
    const double part = longer < 8 ? 0.9 : 0.6;
    double other;
    RLHF_TRY(ratio(h, a, b, out));
    if (longer < 1.5) {
        RLHF_TRY(token_ratio(w, &other));
        *out = best_of(*out, other * 0.95);
        return RLHF_OK;
    }
    RLHF_TRY(partial_ratio(h, a, b, &other));
    *out = best_of(*out, other * part);
    RLHF_TRY(partial_token_ratio(w, &other));
    *out = best_of(*out, other * 0.95 * part);
    return RLHF_OK;
}

rlhf_status rlhf__fuzzy(const struct rlhf__word_pair *p, double *out) {
    struct words w = {.pair = p};
    struct letters whole[2] = {{NULL, 0}, {NULL, 0}};
    rlhf_status st = RLHF_OK;
    *out = 0;
    if (!p->n[0] || !p->n[1]) return RLHF_OK;
    for (int of = 0; st == RLHF_OK && of < 2; of++)
        st = letters_init(&whole[of], p->host, (rlhf_str){p->text[of].data, p->text[of].len});
    if (st == RLHF_OK) st = compare_words(&w);
    if (st == RLHF_OK) st = weigh(&w, &whole[0], &whole[1], out);
    words_finish(&w);
    for (int of = 0; of < 2; of++)
        p->host->free(p->host, whole[of].of);
    return st;
}
