// work.c: see work.h.
#include "text/work.h"

#include <stdlib.h>

void rlhf__works_init(struct rlhf__works *store) {
    pthread_mutex_init(&store->lock, NULL);
    store->unused = NULL;
}

rlhf_status rlhf__works_take(struct rlhf__works *store, struct rlhf__work **out,
                             struct rlhf__error *err) {
    pthread_mutex_lock(&store->lock);
    struct rlhf__work *work = store->unused;
    if (work) store->unused = work->next;
    pthread_mutex_unlock(&store->lock);
    if (!work) {
        work = calloc(1, sizeof *work);
        if (work) work->cache = rlhf__word_cache_create();
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
        rlhf__buf_free(&work->normal);
        rlhf__buf_free(&work->spare);
        rlhf__pieces_finish(&work->pieces);
        rlhf__pieces_finish(&work->cut);
        rlhf__search_finish(&work->search);
        free(work->cache);
        free(work);
    }
    pthread_mutex_destroy(&store->lock);
}
