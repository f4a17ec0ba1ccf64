// text_note.c: see text_note.h.
#include "model/text_note.h"

#include <stdlib.h>

static void put_token(const struct rlhf__tokenizer *tok, int32_t id, struct rlhf__buf *out) {
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    char *text = rlhf__tokenizer_text(tok, &id, 1, 0, NULL);
    const char *role = id == info->bos ? "BOS " : id == info->eos ? "EOS " : "";
    rlhf__buf_printf(out, "%s%s\"%s\"", out->len ? " " : "", role, text ? text : "");
    free(text);
}

// The tokens on one side, from left to right.
static void put_side(const struct rlhf__tokenizer *tok, int behind, uint32_t flags,
                     struct rlhf__buf *out) {
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    const int32_t *ids;
    const size_t n = flags & RLHF__ENCODE_TEMPLATE ? rlhf__tokenizer_around(tok, behind, &ids) : 0;
    if (!behind && flags & RLHF__ENCODE_BOS && info->bos >= 0) put_token(tok, info->bos, out);
    for (size_t i = 0; i < n; i++)
        put_token(tok, ids[i], out);
    if (behind && flags & RLHF__ENCODE_EOS) {
        char *text = rlhf__tokenizer_text(tok, &info->eos, 1, 0, NULL);
        rlhf__buf_printf(out, "%sEOS \"%s\"", out->len ? " " : "", text ? text : "");
        free(text);
    }
}

void rlhf__model_text_note(const struct rlhf__model *m, const char *what, int64_t texts,
                           uint32_t flags, int32_t ends, struct rlhf__log *log) {
    struct rlhf__buf before = RLHF__BUF_INIT, after = RLHF__BUF_INIT;
    if (texts == 0) return;
    put_side(m->tok, 0, flags, &before);
    put_side(m->tok, 1, flags, &after);
    rlhf__logf(log, RLHF_LOG_INFO, "%s: %s before%s%s%s", what,
               before.len ? rlhf__buf_text(&before) : "no BOS", ends ? ", " : "",
               !ends       ? ""
               : after.len ? rlhf__buf_text(&after)
                           : "no EOS",
               ends ? " after" : "");
    rlhf__buf_free(&before);
    rlhf__buf_free(&after);
}
