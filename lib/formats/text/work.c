// work.c: see work.h.
#include "text/work.h"

#include "text/vocab.h"

#include <stdlib.h>
#include <string.h>

// ---- a text and its cuts ----

static rlhf_status grow(struct rlhf__pieces *p, struct rlhf__error *err) {
    size_t cap = p->cap ? p->cap * 2 : 256;
    struct rlhf__text_piece *item =
        cap <= SIZE_MAX / 2 / sizeof *item ? realloc(p->item, cap * sizeof *item) : NULL;
    if (!item) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu words", cap);
    p->item = item;
    p->cap = cap;
    return RLHF_OK;
}

rlhf_status rlhf__pieces_push(struct rlhf__pieces *p, size_t at, size_t n, uint32_t flags,
                              struct rlhf__error *err) {
    if (!n) return RLHF_OK;
    if (p->n == p->cap) RLHF_TRY(grow(p, err));
    p->item[p->n++] = (struct rlhf__text_piece){at, n, flags};
    return RLHF_OK;
}

static void pieces_finish(struct rlhf__pieces *p) {
    free(p->item);
    rlhf__buf_finish(&p->own);
    *p = (struct rlhf__pieces){0};
}

// ---- the ids of recent words: each hash value has one slot, which holds the latest word ----

enum { N_WORDS = 1 << 14, WORD_BYTES = 38, WORD_IDS = 6 };

// An entry of the cache. If `len` is 0, the entry is empty.
struct word {
    uint8_t len, n_ids;
    char bytes[WORD_BYTES];
    int32_t ids[WORD_IDS];
};
_Static_assert(sizeof(struct word) == 64, "one cache line");

struct rlhf__word_cache {
    struct word word[N_WORDS];
};

// Returns NULL if memory runs out. The caller frees the cache with free().
static struct rlhf__word_cache *word_cache_create(void) {
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
    memcpy(out->data + out->n, w->ids, sizeof w->ids); // copying all is faster than counting
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

// ---- lists of texts ----

void rlhf__spans_put(struct rlhf__spans *list, const void *bytes, size_t n) {
    rlhf__buf_put(&list->bytes, bytes, n);
}

void rlhf__spans_end(struct rlhf__spans *list) {
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 64;
        size_t *end = realloc(list->end, cap * sizeof *end);
        if (!end) {
            list->bytes.bad = 1;
            return;
        }
        list->end = end;
        list->cap = cap;
    }
    list->end[list->n++] = list->bytes.len;
}

rlhf_str rlhf__spans_get(const struct rlhf__spans *list, size_t i) {
    size_t from = i ? list->end[i - 1] : 0;
    return (rlhf_str){rlhf__buf_text(&list->bytes) + from, list->end[i] - from};
}

void rlhf__spans_clear(struct rlhf__spans *list) {
    rlhf__buf_clear(&list->bytes);
    list->n = 0;
}

void rlhf__spans_finish(struct rlhf__spans *list) {
    rlhf__buf_finish(&list->bytes);
    free(list->end);
    *list = (struct rlhf__spans){0};
}

// ---- works ----

void rlhf__works_init(struct rlhf__works *store) {
    pthread_mutex_init(&store->lock, NULL);
    store->unused = NULL;
    atomic_init(&store->said, 0);
}

rlhf_status rlhf__works_take(struct rlhf__works *store, struct rlhf__work **out,
                             struct rlhf__error *err) {
    pthread_mutex_lock(&store->lock);
    struct rlhf__work *work = store->unused;
    if (work) store->unused = work->next;
    pthread_mutex_unlock(&store->lock);
    if (!work) {
        work = calloc(1, sizeof *work);
        if (work) work->cache = word_cache_create();
        if (!work || !work->cache) {
            free(work);
            return RLHF__NOMEM(err, "out of memory for a tokenizer");
        }
    }
    *out = work;
    return RLHF_OK;
}

void rlhf__works_give(struct rlhf__works *store, struct rlhf__work *work) {
    pthread_mutex_lock(&store->lock);
    work->next = store->unused;
    store->unused = work;
    pthread_mutex_unlock(&store->lock);
}

void rlhf__works_finish(struct rlhf__works *store) {
    for (struct rlhf__work *work = store->unused, *next; work; work = next) {
        next = work->next;
        rlhf__buf_finish(&work->normal);
        rlhf__buf_finish(&work->spare);
        pieces_finish(&work->pieces);
        pieces_finish(&work->cut);
        rlhf__search_finish(&work->search);
        free(work->cache);
        free(work);
    }
    pthread_mutex_destroy(&store->lock);
}
