// gguf_pre.c: see gguf_pre.h. The patterns are those of the published tokenizers. llama.cpp writes
// some of them in another way, because its engine lacks parts of the syntax.
#include "gguf/gguf_pre.h"

#include <string.h>

#define WORDS   "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define OTHERS  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SLASHES "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA3  WORDS "\\p{N}{1,3}" OTHERS
#define QWEN2   WORDS "\\p{N}" OTHERS

// Words that end with a lower-case or begin with an upper-case letter.
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(tail)                                                                                \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" tail "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER    \
    "*" tail "|"
#define GPT4O  CASED("(?i:'s|'t|'re|'ve|'m|'ll|'d)?") "\\p{N}{1,3}" SLASHES
#define TEKKEN CASED("") "\\p{N}" SLASHES

// Combining marks belong to the letters.
#define QWEN35                                                                                     \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"                    \
    "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct rlhf__gguf_pre rules[] = {
    // name, split, digits, ignores_merges, adds_bos, composes
    {"gpt-2", NULL, 0, 0, 0, 0},
    {"smollm", NULL, 1, 0, 0, 0},
    {"llama-bpe", LLAMA3, 0, 1, 1, 0},
    {"dbrx", LLAMA3, 0, 0, 0, 0},
    {"qwen2", QWEN2, 0, 0, 0, 1},
    {"gpt-4o", GPT4O, 0, 0, 0, 0},
    {"tekken", TEKKEN, 0, 1, 1, 0},
    {"qwen35", QWEN35, 0, 0, 0, 1},
    // the same under other names
    {"phi-2", NULL, 0, 0, 0, 0},
    {"mpt", NULL, 0, 0, 0, 0},
    {"olmo", NULL, 0, 0, 0, 0},
    {"jais", NULL, 0, 0, 0, 0},
    {"exaone4", NULL, 0, 0, 0, 0},
    {"mellum", NULL, 0, 0, 0, 0},
    {"gigachat", NULL, 0, 0, 0, 0},
    {"a.x-4.0", NULL, 0, 0, 0, 0},
    {"trillion", NULL, 0, 0, 0, 0},
    {"granite-docling", NULL, 0, 0, 0, 0},
    {"starcoder", NULL, 1, 0, 0, 0},
    {"refact", NULL, 1, 0, 0, 0},
    {"command-r", NULL, 1, 0, 0, 0},
    {"codeshell", NULL, 1, 0, 0, 0},
    {"exaone", NULL, 1, 0, 0, 0},
    {"minerva-7b", NULL, 1, 0, 0, 0},
    {"llama3", LLAMA3, 0, 1, 1, 0},
    {"llama-v3", LLAMA3, 0, 1, 1, 0},
    {"falcon3", LLAMA3, 0, 1, 1, 0},
    {"falcon-h1", LLAMA3, 0, 1, 1, 0},
    {"pixtral", LLAMA3, 0, 1, 1, 0},
    {"midm-2.0", LLAMA3, 0, 1, 1, 0},
    {"lfm2", LLAMA3, 0, 1, 1, 0},
    {"smaug-bpe", LLAMA3, 0, 0, 0, 0},
    {"glm4", LLAMA3, 0, 0, 0, 0},
    {"chatglm-bpe", LLAMA3, 0, 0, 0, 0},
    {"deepseek-r1-qwen", QWEN2, 0, 0, 0, 0},
    {"stablelm2", QWEN2, 0, 0, 0, 0},
    {"megrez", QWEN2, 0, 0, 0, 0},
    {"kormo", QWEN2, 0, 0, 0, 0},
    {"hunyuan", QWEN2, 0, 0, 0, 0},
    {"llama4", GPT4O, 0, 0, 0, 0},
    {"kanana2", GPT4O, 0, 0, 0, 0},
};

const struct rlhf__gguf_pre *rlhf__gguf_pre_at(size_t i) {
    return i < sizeof rules / sizeof *rules ? &rules[i] : NULL;
}

const struct rlhf__gguf_pre *rlhf__gguf_pre_named(const char *name, size_t n) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strlen(rules[i].name) == n && memcmp(rules[i].name, name, n) == 0) return &rules[i];
    return NULL;
}

json_t *rlhf__gguf_pre_json(const struct rlhf__gguf_pre *pre) {
    json_t *steps = json_array();
    if (pre->digits)
        json_array_append_new(steps,
                              json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1));
    if (pre->split)
        json_array_append_new(steps,
                              json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern",
                                        "Regex", pre->split, "behavior", "Isolated", "invert", 0));
    json_array_append_new(steps,
                          json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space",
                                    0, "trim_offsets", 1, "use_regex", pre->split == NULL));
    return json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", steps);
}
