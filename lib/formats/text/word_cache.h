// word_cache.h: the ids of words that were met lately. Most words of a text are few; what they
// become is remembered instead of merged again.
//
// What it is not: it changes no ids; a word that is not there is encoded. Internal to text/.
#ifndef RLHF_HOST_TEXT_WORD_CACHE_H
#define RLHF_HOST_TEXT_WORD_CACHE_H

#include "text/ids.h"

struct rlhf__word_cache; // opaque: about 1 MiB

// NULL when out of memory. Free with free(). [any]
struct rlhf__word_cache *rlhf__word_cache_create(void);

// Append the ids of s[0..n), n >= 1, to out, when it is known: returns 1, else 0. Errors:
// RLHF_E_NOMEM. [any, one thread per cache]
rlhf_status rlhf__word_cache_get(const struct rlhf__word_cache *cache, const char *s, size_t n,
                                 struct rlhf__ids *out, struct rlhf__error *err);

// Remember that s[0..n) is ids[0..n_ids); long words and many ids are not. [any, one thread per
// cache]
void rlhf__word_cache_put(struct rlhf__word_cache *cache, const char *s, size_t n,
                          const int32_t *ids, size_t n_ids);

#endif
