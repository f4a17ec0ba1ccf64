// work.h: the memory that one encoding needs beside the tokenizer, kept from text to text.
//
// A tokenizer is read-only and used by many threads; each call takes a work from the tokenizer's
// store and puts it back, so there are as many as threads that encoded at once.
//
// What it is not: nothing in it changes what a text encodes to; internal to text/.
#ifndef RLHF_HOST_TEXT_WORK_H
#define RLHF_HOST_TEXT_WORK_H

#include "text/pattern.h"
#include "text/pieces.h"
#include "text/word_cache.h"

#include <pthread.h>

struct rlhf__work {
    struct rlhf__work *next;
    struct rlhf__buf normal, spare;  // a normaliser's result, and what it needs meanwhile
    struct rlhf__pieces pieces, cut; // a pre-tokeniser's result, and what it needs meanwhile
    struct rlhf__search search;
    struct rlhf__word_cache *cache;
};

struct rlhf__works {
    pthread_mutex_t lock;
    struct rlhf__work *unused;
};

void rlhf__works_init(struct rlhf__works *store);

// A work to use until it is given back. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__works_take(struct rlhf__works *store, struct rlhf__work **out,
                             struct rlhf__error *err);
void rlhf__works_give(struct rlhf__works *store, struct rlhf__work *work);

// Free all; none may be in use. [one thread]
void rlhf__works_finish(struct rlhf__works *store);

#endif
