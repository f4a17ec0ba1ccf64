// turn_texts.c: see turn_texts.h.
#include "sample/turn_texts.h"

#include "base/buf.h"
#include "base/json.h"

#include <stdlib.h>

void rlhf__turn_texts_finish(struct rlhf__turn_texts *x) {
    free(x->before);
    free(x->after);
    free(x->messages);
    *x = (struct rlhf__turn_texts){0};
}

// Append the text of n tokens. With flags 0, special tokens are kept, as in prompts.
static void put_tokens(struct rlhf__buf *b, const struct rlhf__tokenizer *tok, const int32_t *ids,
                       int32_t n, uint32_t flags) {
    size_t bytes = 0;
    char *text = rlhf__tokenizer_text(tok, ids, (size_t)n, flags, &bytes);
    if (text)
        rlhf__buf_put(b, text, bytes);
    else
        b->bad = 1;
    free(text);
}

static void put_message(struct rlhf__buf *b, const char *role, const char *text, size_t n) {
    rlhf__buf_printf(b, "%s{\"role\": \"%s\", \"content\": ", b->len > 1 ? ", " : "", role);
    rlhf__json_write_string(b, text, n);
    rlhf__buf_putc(b, '}');
}

// Append everything between the prompt and the last turn, as one message for each turn.
static void put_pieces(struct rlhf__buf *b, const struct rlhf__tokenizer *tok,
                       const struct rlhf__rows *e, uint32_t i, int32_t last) {
    const int32_t end = e->offset[i] + last;
    for (int32_t t = e->offset[i] + e->prompt_len[i], from; t < end;) {
        struct rlhf__buf piece = RLHF__BUF_INIT;
        for (from = t++; t < end && e->turn[t] == e->turn[from];)
            t++;
        put_tokens(&piece, tok, e->ids + from, t - from, RLHF__DECODE_SKIP_SPECIAL);
        if (piece.bad) b->bad = 1;
        put_message(b, e->turn[from] < 0 ? "user" : "assistant", rlhf__buf_text(&piece), piece.len);
        rlhf__buf_finish(&piece);
    }
}

// Move the text of b to *text.
static int move(struct rlhf__buf *b, char **text, size_t *len) {
    rlhf__buf_putc(b, 0);
    *text = b->data;
    *len = b->len - (b->len > 0);
    const int ok = !b->bad;
    *b = (struct rlhf__buf)RLHF__BUF_INIT;
    return ok;
}

rlhf_status rlhf__turn_texts_init(struct rlhf__turn_texts *x, const struct rlhf__tokenizer *tok,
                                  const struct rlhf__rows *e, uint32_t i, int32_t len,
                                  rlhf_str prompt, rlhf_str response, struct rlhf__error *err) {
    struct rlhf__buf before = RLHF__BUF_INIT, after = RLHF__BUF_INIT, list = RLHF__BUF_INIT;
    const int32_t *ids = e->ids + e->offset[i], first = e->prompt_len[i];
    int32_t end;
    x->last = rlhf__rows_last_turn(e, i, &end);
    rlhf__buf_put(&before, prompt.ptr, (size_t)prompt.len);
    put_tokens(&before, tok, ids + first, x->last - first, 0);
    put_tokens(&after, tok, ids + first, len - first, RLHF__DECODE_SKIP_SPECIAL);
    rlhf__buf_putc(&list, '[');
    put_message(&list, "user", prompt.ptr, (size_t)prompt.len);
    put_pieces(&list, tok, e, i, x->last);
    put_message(&list, "assistant", response.ptr, (size_t)response.len);
    rlhf__buf_putc(&list, ']');
    int ok = move(&before, &x->before, &x->before_len);
    ok = move(&after, &x->after, &x->after_len) && ok;
    ok = move(&list, &x->messages, &x->messages_len) && ok;
    return ok ? RLHF_OK : RLHF__NOMEM(err, "out of memory for the turns of row %u", i);
}
