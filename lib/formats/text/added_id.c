// added_id.c: see added_id.h.
#include "text/added_id.h"

#include "text/tokenizer_impl.h"

#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__added_bytes(const struct rlhf__tokenizer *tok, const char *s, size_t len,
                              char **out, size_t *n, int *stands, struct rlhf__error *err) {
    *out = malloc(len + 1);
    if (!*out) return RLHF__NOMEM(err, "out of memory for the added tokens");
    *n = rlhf__pre_tokenizer_bytes(tok->pre_tokenizer) ? rlhf__bpe_token_bytes(s, len, *out)
                                                       : SIZE_MAX;
    *stands = *n != SIZE_MAX || !rlhf__pre_tokenizer_bytes(tok->pre_tokenizer);
    if (*n != SIZE_MAX) return RLHF_OK;
    memcpy(*out, s, len);
    *n = len;
    return RLHF_OK;
}

int32_t rlhf__added_model_id(const struct rlhf__tokenizer *tok, const char *bytes, size_t n,
                             int stands) {
    if (stands) return rlhf__vocab_find(&tok->vocab, bytes, n);
    int32_t other = rlhf__vocab_find(&tok->vocab, bytes, n); // written in stand-ins
    for (int32_t i = 0; i < tok->vocab.n; i++) {
        rlhf_str b = rlhf__vocab_bytes(&tok->vocab, i);
        if (b.len == n && n && i != other && !memcmp(b.ptr, bytes, n)) return i;
    }
    return -1;
}

int32_t rlhf__added_id(const struct rlhf__tokenizer *tok, const char *content, size_t len) {
    const struct rlhf__added_token *t = rlhf__added_find(&tok->added, content, len);
    struct rlhf__error err;
    char *bytes = NULL;
    size_t n;
    int stands;
    if (t) return t->id;
    int32_t id = -1;
    if (rlhf__added_bytes(tok, content, len, &bytes, &n, &stands, &err) == RLHF_OK)
        id = rlhf__added_model_id(tok, bytes, n, stands);
    free(bytes);
    return id;
}
