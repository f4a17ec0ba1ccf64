// tokenizer.c: see tokenizer.h. Closing a tokenizer and asking it questions.
#include "text/tokenizer_impl.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

void rlhf__tokenizer_close(struct rlhf__tokenizer *tok) {
    if (!tok) return;
    rlhf__bpe_destroy(tok->bpe);
    rlhf__normaliser_destroy(tok->normaliser);
    rlhf__pre_tokenizer_destroy(tok->pre_tokenizer);
    rlhf__decoder_destroy(tok->decoder);
    rlhf__chat_close(tok->chat);
    if (tok->works) rlhf__works_finish(tok->works);
    free(tok->works);
    rlhf__merges_finish(&tok->merges);
    rlhf__vocab_finish(&tok->vocab);
    rlhf__added_finish(&tok->added);
    free(tok);
}

const struct rlhf__tokenizer_info *rlhf__tokenizer_info(const struct rlhf__tokenizer *tok) {
    return &tok->info;
}

int32_t rlhf__tokenizer_find(const struct rlhf__tokenizer *tok, rlhf_str token) {
    int32_t id = rlhf__vocab_find(&tok->vocab, token.ptr, (size_t)token.len);
    const struct rlhf__added_token *t = NULL;
    if (id < 0) t = rlhf__added_find(&tok->added, token.ptr, (size_t)token.len);
    if (t) id = t->id;
    return id;
}

int rlhf__tokenizer_is_special(const struct rlhf__tokenizer *tok, int32_t id) {
    return id >= 0 && id < tok->vocab.n && tok->vocab.token[id].special;
}

rlhf_status rlhf__tokenizer_check_model(const struct rlhf__tokenizer *tok, int32_t n_vocab,
                                        const char *what, struct rlhf__error *err) {
    int32_t tokens = tok->info.n_vocab;
    if (tokens <= n_vocab && n_vocab - tokens < 1024) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "%s: its vocabulary has %d tokens but the model has %d (vocab_size); allowed: "
        "the same number, or up to 1023 rows of padding",
        what, (int)tokens, (int)n_vocab);
}

const struct rlhf__chat *rlhf__tokenizer_chat(const struct rlhf__tokenizer *tok) {
    return tok->chat;
}

rlhf_status rlhf__tokenizer_name_chat(struct rlhf__tokenizer *tok, const char *name,
                                      struct rlhf__error *err) {
    return rlhf__chat_name(tok->chat, name, err);
}

rlhf_status rlhf__tokenizer_write_chat(const struct rlhf__tokenizer *tok,
                                       const struct rlhf__folder *dir, struct rlhf__error *err) {
    const char *text = rlhf__chat_jinja(tok->chat);
    if (!text) return RLHF_OK;
    return rlhf__file_write(dir, "chat_template.jinja", text, strlen(text), err);
}

int rlhf__tokenizer_equal(const struct rlhf__tokenizer *a, const struct rlhf__tokenizer *b) {
    if (a == b) return 1;
    if (a->info.kind != b->info.kind || a->vocab.n != b->vocab.n) return 0;
    for (int32_t i = 0; i < a->vocab.n; i++) {
        rlhf_str x = rlhf__vocab_bytes(&a->vocab, i), y = rlhf__vocab_bytes(&b->vocab, i);
        if (x.len != y.len || (x.len && memcmp(x.ptr, y.ptr, (size_t)x.len) != 0)) return 0;
    }
    return 1;
}
