// tests/models/families.h: one set of rows, complete and with shared prefixes.
#ifndef TESTS_MODELS_FAMILIES_H
#define TESTS_MODELS_FAMILIES_H

#include "support.h"

// A group of `rows` responses, of 0 .. max_new tokens each, to one prompt. The first `shared`
// tokens of the prompt become a prefix row. If `shared` is 0, both batches have complete rows.
struct family {
    int32_t rows, prompt, shared, max_new;
};

// The same rows twice: `full` has complete rows, `compact` has each group's prefix row and then its
// rows without the prefix. Arrays are test_malloc'ed.
struct families {
    rlhf_batch full, compact;
    int32_t *ids, *offset, *prompt_len; // arrays of `full`
    int32_t *c_ids, *c_offset, *c_prompt_len, *c_prefix;
    // [compact.total] The index of each token in `full`. A token of a prefix row is in several rows
    // of `full`: its index is that in the group's first row.
    int32_t *at;
};

// Makes n groups of random ids below `vocab`.
struct families families_make(const struct family *k, uint32_t n, int32_t vocab);
void families_free(struct families *f);

// Groups that fit tiny_gpt2 (24 positions), and wider_gpt2 (96).
enum { N_FAMILIES = 5, TINY_VOCAB = 61, WIDER_VOCAB = 1037 };
extern const struct family tiny_families[N_FAMILIES], wider_families[N_FAMILIES];
extern const struct setting wider_gpt2[];

#endif
