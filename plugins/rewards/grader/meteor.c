// meteor.c: see meteor.h.
#include "grader/meteor.h"

#include "grader/stem.h"

#include <string.h>

struct work {
    const struct rlhf__word_pair *words;
    int32_t *match; // [n[0]] the word of the reference; -1: none
    uint8_t *taken; // [n[1]]
    struct rlhf__word_pair stems;
};

// Matches words that have no partner, from the last to the first, each with the last that is equal.
static void match(struct work *w, const struct rlhf__word_pair *of) {
    for (uint32_t i = of->n[0]; i-- > 0;) {
        if (w->match[i] >= 0) continue;
        for (uint32_t k = of->n[1]; k-- > 0;) {
            if (w->taken[k] || of->word[0][i] != of->word[1][k]) continue;
            w->match[i] = (int32_t)k;
            w->taken[k] = 1;
            break;
        }
    }
}

// Writes the stems of the words, with spaces between.
static void write_stems(const struct rlhf__word_pair *p, int of, struct rlhf__bytes *to) {
    char stem[RLHF__STEM_MOST];
    for (uint32_t i = 0; i < p->n[of]; i++) {
        const rlhf_str word = p->string[of][i];
        const size_t n = rlhf__stem(word.ptr, (size_t)word.len, stem);
        if (i) rlhf__bytes_text(to, " ");
        rlhf__bytes_add(to, n ? stem : word.ptr, n ? n : (size_t)word.len);
    }
}

static rlhf_status find_stems(struct work *w) {
    const rlhf_host *host = w->words->host;
    struct rlhf__bytes text[2] = {{.host = host}, {.host = host}};
    int too_long;
    write_stems(w->words, 0, &text[0]);
    write_stems(w->words, 1, &text[1]);
    return rlhf__word_pair_take(&w->stems, host, text, &too_long);
}

static double grade(const struct work *w) {
    const struct rlhf__word_pair *p = w->words;
    uint32_t matches = 0, chunks = 0;
    int32_t last = -1;    // of the match before, in the reference
    uint32_t last_at = 0; // likewise, in the text
    for (uint32_t i = 0; i < p->n[0]; i++) {
        if (w->match[i] < 0) continue;
        chunks += !matches || i != last_at + 1 || w->match[i] != last + 1;
        matches++;
        last = w->match[i];
        last_at = i;
    }
    if (!matches) return 0;
    const double precision = (double)matches / p->n[0], recall = (double)matches / p->n[1];
    const double mean = precision * recall / (0.9 * precision + (1 - 0.9) * recall);
    const double parts = (double)chunks / matches;
    return (1 - 0.5 * parts * parts * parts) * mean;
}

static rlhf_status match_all(struct work *w, double *out) {
    const struct rlhf__word_pair *p = w->words;
    if (!w->match || !w->taken) {
        (p->host->fail)(p->host, RLHF_E_NOMEM, "out of memory");
        return RLHF_E_NOMEM;
    }
    memset(w->match, 0xff, ((size_t)p->n[0] + 1) * sizeof *w->match);
    match(w, p);
    RLHF_TRY(find_stems(w));
    match(w, &w->stems);
    *out = grade(w);
    return RLHF_OK;
}

rlhf_status rlhf__meteor(const struct rlhf__word_pair *p, double *out) {
    const rlhf_host *host = p->host;
    struct work w = {.words = p};
    w.match = host->alloc(host, ((uint64_t)p->n[0] + 1) * sizeof *w.match);
    w.taken = host->alloc(host, (uint64_t)p->n[1] + 1);
    const rlhf_status st = match_all(&w, out);
    rlhf__word_pair_finish(&w.stems);
    host->free(host, w.match);
    host->free(host, w.taken);
    return st;
}
