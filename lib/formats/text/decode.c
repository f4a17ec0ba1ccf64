// decode.c: rlhf__tokenizer_decode and rlhf__tokenizer_text of tokenizer.h: ids to text.
#include "text/decoder.h"
#include "text/tokenizer_impl.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

// 1 when the id gives nothing: no token has it, or it is special and those are left out.
static int left_out(const struct rlhf__tokenizer *tok, int32_t id, uint32_t flags) {
    if (!rlhf__vocab_bytes(&tok->vocab, id).ptr) return 1;
    return (flags & RLHF__DECODE_SKIP_SPECIAL) && tok->vocab.token[id].special;
}

size_t rlhf__tokenizer_decode(const struct rlhf__tokenizer *tok, const int32_t *ids, size_t n,
                              uint32_t flags, char *out, size_t cap) {
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (left_out(tok, ids[i], flags)) continue;
        rlhf_str b = rlhf__decoder_piece(tok->decoder, &tok->added, &tok->vocab, ids[i]);
        size_t room = len < cap ? cap - len : 0;
        if (room && b.len) memcpy(out + len, b.ptr, b.len < room ? (size_t)b.len : room);
        len += (size_t)b.len;
    }
    return len;
}

static char *repaired(const struct rlhf__spans *list, size_t *len) {
    const char *bytes = rlhf__buf_text(&list->bytes);
    size_t n = list->bytes.len, fixed = rlhf__utf8_repair(bytes, n, NULL, 0);
    char *text = malloc(fixed + 1);
    if (!text) return NULL;
    rlhf__utf8_repair(bytes, n, text, fixed);
    text[fixed] = '\0';
    if (len) *len = fixed;
    return text;
}

char *rlhf__tokenizer_text(const struct rlhf__tokenizer *tok, const int32_t *ids, size_t n,
                           uint32_t flags, size_t *len) {
    struct rlhf__spans list = {0}, spare = {0};
    struct rlhf__error err = {0};
    for (size_t i = 0; i < n; i++) {
        if (left_out(tok, ids[i], flags)) continue;
        rlhf_str s = rlhf__added_shown(&tok->added, &tok->vocab, ids[i]);
        rlhf__spans_put(&list, s.ptr, (size_t)s.len);
        rlhf__spans_end(&list);
    }
    rlhf_status st = rlhf__decoder_run(tok->decoder, &list, &spare, 0, &err);
    char *text = st == RLHF_OK ? repaired(&list, len) : NULL;
    rlhf__spans_finish(&list);
    rlhf__spans_finish(&spare);
    return text;
}
