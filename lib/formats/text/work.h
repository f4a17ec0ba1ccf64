// work.h: scratch memory for encoding and decoding, which is reused for later texts.
//
// A tokenizer is read-only and shared by threads. Each call takes a work object from the
// tokenizer's store and puts it back. So the number of objects is at most the number of threads
// that have encoded at the same time. The contents of a work object never change the ids of a text.
// Internal to text/.
#ifndef RLHF_FORMATS_TEXT_WORK_H
#define RLHF_FORMATS_TEXT_WORK_H

#include "base/buf.h"
#include "text/pattern.h"
#include "text/vocab.h"

#include <pthread.h>
#include <stdatomic.h>

// ---- a text and its cuts ----

enum rlhf__piece_flag {
    RLHF__PIECE_RAW = 1, // invalid UTF-8: every part of the pipeline skips it
    RLHF__PIECE_ON = 2   // comes after invalid bytes, so it is not the beginning of a text
};

struct rlhf__text_piece {
    size_t at, n; // position and length in the text
    uint32_t flags;
};

// Zero-initialize; release with rlhf__pieces_finish. item[0..n) are valid.
struct rlhf__pieces {
    const char *text; // borrowed, or own.data
    struct rlhf__text_piece *item;
    size_t n, cap;
    struct rlhf__buf own; // the text, if a part of the pipeline changed it
};

// Append the bytes [at, at + n) of the text as a piece. If n is 0, appends nothing. Errors:
// RLHF_E_NOMEM. [any, one thread per list]
rlhf_status rlhf__pieces_push(struct rlhf__pieces *p, size_t at, size_t n, uint32_t flags,
                              struct rlhf__error *err);

// ---- the ids of recent words ----

struct rlhf__word_cache; // opaque: about 1 MiB

// If the cache has the ids of s[0..n), n >= 1, append them to `out` and return 1. Otherwise return
// 0. Errors: RLHF_E_NOMEM. [any, one thread per cache]
rlhf_status rlhf__word_cache_get(const struct rlhf__word_cache *cache, const char *s, size_t n,
                                 struct rlhf__ids *out, struct rlhf__error *err);

// Remember that s[0..n) encodes to ids[0..n_ids). Does nothing if the text or the list of ids is
// too long for the cache. [any, one thread per cache]
void rlhf__word_cache_put(struct rlhf__word_cache *cache, const char *s, size_t n,
                          const int32_t *ids, size_t n_ids);

// ---- lists of texts ----

// Zero-initialize; release with rlhf__spans_finish. Text i ends at end[i], where text i + 1 begins.
// Bytes after the last end are the beginning of an unfinished text. After a failed allocation the
// list stays bad, as in buf.h.
struct rlhf__spans {
    struct rlhf__buf bytes;
    size_t *end; // [n]
    size_t n, cap;
};

// Append bytes to the unfinished text. [one thread]
void rlhf__spans_put(struct rlhf__spans *list, const void *bytes, size_t n);

// Finish the text. The next rlhf__spans_put begins another text. [one thread]
void rlhf__spans_end(struct rlhf__spans *list);

// Text i < n. Borrowed until the next put. [any]
rlhf_str rlhf__spans_get(const struct rlhf__spans *list, size_t i);

// Make the list empty, but keep its memory. [one thread]
void rlhf__spans_clear(struct rlhf__spans *list);

void rlhf__spans_finish(struct rlhf__spans *list);

// ---- works ----

struct rlhf__work {
    struct rlhf__work *next;
    struct rlhf__buf normal, spare;  // a normalizer's result and scratch
    struct rlhf__pieces pieces, cut; // a pre-tokenizer's result and scratch
    struct rlhf__search search;
    struct rlhf__word_cache *cache;
    int64_t lost; // a symbol without a token (rlhf__bpe_encode), or -1
};

struct rlhf__works {
    pthread_mutex_t lock;
    struct rlhf__work *unused;
    atomic_int said; // 1: the log says that a text had a symbol without a token
};

void rlhf__works_init(struct rlhf__works *store);

// Take a work object from the store; rlhf__works_give puts it back. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__works_take(struct rlhf__works *store, struct rlhf__work **out,
                             struct rlhf__error *err);
void rlhf__works_give(struct rlhf__works *store, struct rlhf__work *work);

// Free all work objects; none of them may be in use. [one thread]
void rlhf__works_finish(struct rlhf__works *store);

#endif
