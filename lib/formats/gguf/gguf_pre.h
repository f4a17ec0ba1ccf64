// gguf_pre.h: how byte-level vocabularies split a text into words: llama.cpp's names of these rules
// (the key tokenizer.ggml.pre) and the same rules as steps of a tokenizer.json. Writer and reader
// of GGUF files use this table.
#ifndef RLHF_FORMATS_GGUF_GGUF_PRE_H
#define RLHF_FORMATS_GGUF_GGUF_PRE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct rlhf__gguf_pre {
    const char *name;
    const char *split;      // the pattern of a Split step; NULL: ByteLevel's own pattern
    int32_t digits;         // 1: before that, every digit becomes a word
    int32_t ignores_merges; // 1: a word that is a token becomes that token
    int32_t adds_bos;       // 1: bos is put before a text unless the file says otherwise
    int32_t composes; // 1: the published tokenizers compose characters (NFC); llama.cpp does not
};

// The rule with a name; NULL = unknown. [any]
const struct rlhf__gguf_pre *rlhf__gguf_pre_named(const char *name, size_t n);

// The rule i, or NULL. The first rules are those that an export writes; the others are further
// names for what llama.cpp treats alike. [any]
const struct rlhf__gguf_pre *rlhf__gguf_pre_at(size_t i);

// The "pre_tokenizer" of a tokenizer.json, a new reference. [any]
json_t *rlhf__gguf_pre_json(const struct rlhf__gguf_pre *);

#endif
