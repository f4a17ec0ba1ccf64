// chat_tokenizer.h: a tokenizer with the special tokens of all named chat templates.
#ifndef RLHF_TESTS_SUPPORT_CHAT_TOKENIZER_H
#define RLHF_TESTS_SUPPORT_CHAT_TOKENIZER_H

#include "support/scratch.h"

#include "tokenizer/tokenizer.h"

#include <jansson.h>

static const char *const chat_specials[] = {
    "<|im_start|>",      "<|im_end|>", "<|start_header_id|>",
    "<|end_header_id|>", "<|eot_id|>", "<start_of_turn>",
    "<end_of_turn>",     "<s>",        "</s>",
    "<|begin_of_text|>", "<|im_",
};

static inline void chat_copy(struct scratch *s, const char *from_dir, const char *name) {
    char from[256];
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error err = {0, ""};
    snprintf(from, sizeof from, "%s/%s", from_dir, name);
    check_ok(rlhf__file_read(from, 1 << 24, &text, &err), &err);
    scratch_bytes(s, name, text.data, text.len);
    rlhf__buf_finish(&text);
}

// The tokenizer in from_dir (tests/text/data/bpe) with the special tokens of all templates.
static inline struct rlhf__tokenizer *chat_tokenizer(struct scratch *s, const char *from_dir) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0, ""};
    chat_copy(s, from_dir, "vocab.json");
    chat_copy(s, from_dir, "merges.txt");
    json_error_t why;
    json_t *vocab = json_load_file(scratch_path(s, "vocab.json"), 0, &why), *added = json_object(),
           *names = json_array();
    assert_non_null(vocab);
    for (size_t i = 0; i < CHECK_COUNT(chat_specials); i++) {
        json_object_set_new(added, chat_specials[i],
                            json_integer((json_int_t)(json_object_size(vocab) + i)));
        json_array_append_new(names, json_string(chat_specials[i]));
    }
    json_t *map = json_pack("{s:s,s:s,s:o}", "bos_token", "<s>", "eos_token", "</s>",
                            "additional_special_tokens", names);
    char *text = json_dumps(added, 0), *roles = json_dumps(map, 0);
    scratch_text(s, "added_tokens.json", text);
    scratch_text(s, "special_tokens_map.json", roles);
    free(text);
    free(roles);
    json_decref(added);
    json_decref(map);
    json_decref(vocab);
    check_ok(rlhf__tokenizer_open(s->dir, &tok, &err), &err);
    return tok;
}

#endif
