// similarity.c: see similarity.h.
#include "grader/similarity.h"

#include "grader/fuzzy.h"
#include "grader/letters.h"
#include "grader/meteor.h"
#include "grader/overlap.h"

#include <math.h>
#include <string.h>

static int equal(rlhf_str a, rlhf_str b) {
    return a.len == b.len && (!a.len || memcmp(a.ptr, b.ptr, (size_t)a.len) == 0);
}

static int contains(rlhf_str text, rlhf_str part) {
    if (!part.len) return 1;
    const char *at = text.ptr;
    for (uint64_t left = text.len; left >= part.len; left = text.len - (uint64_t)(at - text.ptr)) {
        at = memchr(at, *part.ptr, (size_t)(left - part.len + 1));
        if (!at) return 0;
        if (memcmp(at, part.ptr, (size_t)part.len) == 0) return 1;
        at++;
    }
    return 0;
}

static rlhf_status contains_any_case(const rlhf_host *host, rlhf_str text, rlhf_str part,
                                     double *out) {
    struct rlhf__bytes lower[2] = {{.host = host}, {.host = host}};
    rlhf__letters_lower(&lower[0], text);
    rlhf__letters_lower(&lower[1], part);
    const int full = lower[0].full || lower[1].full;
    *out = !full && contains((rlhf_str){lower[0].data, lower[0].len},
                             (rlhf_str){lower[1].data, lower[1].len});
    rlhf__bytes_finish(&lower[0]);
    rlhf__bytes_finish(&lower[1]);
    return full ? (host->fail)(host, RLHF_E_NOMEM, "out of memory") : RLHF_OK;
}

static rlhf_status check(const rlhf_host *host, int how, rlhf_str text, rlhf_str reference,
                         double *out) {
    if (how == RLHF__CHECK_ILIKE) return contains_any_case(host, text, reference, out);
    *out = how == RLHF__CHECK_LIKE ? contains(text, reference)
                                   : equal(text, reference) == (how == RLHF__CHECK_EQ);
    return RLHF_OK;
}

static enum rlhf__word_form form_of(int how) {
    if (how == RLHF__SIMILAR_FUZZY) return RLHF__WORDS_FUZZY;
    if (how == RLHF__SIMILAR_METEOR) return RLHF__WORDS_13A_LOWER;
    return how >= RLHF__SIMILAR_ROUGE_1 ? RLHF__WORDS_ROUGE : RLHF__WORDS_13A;
}

static rlhf_status compare(const struct rlhf__word_pair *p, int how, double *out) {
    switch (how) {
    case RLHF__SIMILAR_FUZZY:
        return rlhf__fuzzy(p, out);
    case RLHF__SIMILAR_BLEU:
        return rlhf__overlap_bleu(p, out);
    case RLHF__SIMILAR_GLEU:
        return rlhf__overlap_gleu(p, out);
    case RLHF__SIMILAR_METEOR:
        return rlhf__meteor(p, out);
    case RLHF__SIMILAR_ROUGE_L:
        return rlhf__overlap_rouge_l(p, out);
    default:
        return rlhf__overlap_rouge(p, (uint32_t)(how - RLHF__SIMILAR_ROUGE_1 + 1), out);
    }
}

rlhf_status rlhf__similarity(const rlhf_host *host, const struct rlhf__grader *g, rlhf_str text,
                             rlhf_str reference, double *out) {
    struct rlhf__word_pair pair;
    int too_long;
    if (g->type == RLHF__GRADER_STRING_CHECK) return check(host, g->how, text, reference, out);
    rlhf_status st = rlhf__word_pair_init(&pair, host, form_of(g->how), text, reference, &too_long);
    *out = (double)NAN;
    if (st == RLHF_OK && !too_long) st = compare(&pair, g->how, out);
    rlhf__word_pair_finish(&pair);
    return st;
}
