// word_cache.c: see word_cache.h. One place for each hash; the latest word has it.
#include "text/word_cache.h"

#include "text/vocab.h"

#include <stdlib.h>
#include <string.h>

enum { N_WORDS = 1 << 14, WORD_BYTES = 38, WORD_IDS = 6 };

// A cache line; len 0 = empty.
struct word {
    uint8_t len, n_ids;
    char bytes[WORD_BYTES];
    int32_t ids[WORD_IDS];
};
_Static_assert(sizeof(struct word) == 64, "one cache line");

struct rlhf__word_cache {
    struct word word[N_WORDS];
};

struct rlhf__word_cache *rlhf__word_cache_create(void) {
    return calloc(1, sizeof(struct rlhf__word_cache));
}

static size_t place(const char *s, size_t n) {
    return (size_t)rlhf__vocab_hash_bytes(s, n) & (N_WORDS - 1);
}

rlhf_status rlhf__word_cache_get(const struct rlhf__word_cache *cache, const char *s, size_t n,
                                 struct rlhf__ids *out, struct rlhf__error *err) {
    if (n > WORD_BYTES) return 0;
    const struct word *w = &cache->word[place(s, n)];
    if (w->len != n || memcmp(w->bytes, s, n) != 0) return 0;
    RLHF_TRY(rlhf__ids_reserve(out, WORD_IDS, err));
    memcpy(out->data + out->n, w->ids, sizeof w->ids); // all of them: quicker than counting
    out->n += w->n_ids;
    return 1;
}

void rlhf__word_cache_put(struct rlhf__word_cache *cache, const char *s, size_t n,
                          const int32_t *ids, size_t n_ids) {
    if (!n || n > WORD_BYTES || n_ids > WORD_IDS) return;
    struct word *w = &cache->word[place(s, n)];
    w->len = (uint8_t)n;
    w->n_ids = (uint8_t)n_ids;
    memcpy(w->bytes, s, n);
    if (n_ids) memcpy(w->ids, ids, n_ids * sizeof *ids);
}
