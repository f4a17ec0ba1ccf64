// encode.c: rlhf__tokenizer_encode of tokenizer.h: a text's ids, with what goes around them.
#include "text/added.h"
#include "text/tokenizer_impl.h"

// The ids that go around the text: what flags ask for outside, the tokenizer's own inside.
struct around {
    int32_t before[1 + RLHF__FRAME_MAX], after[RLHF__FRAME_MAX + 1];
    size_t n_before, n_after;
};

static rlhf_status make_frame(const struct rlhf__tokenizer *tok, uint32_t flags, struct around *f,
                              struct rlhf__error *err) {
    const struct rlhf__tokenizer_info *info = &tok->info;
    const struct rlhf__frame *own = &tok->frame;
    *f = (struct around){0};
    if ((flags & RLHF__ENCODE_BOS) && info->bos < 0)
        return rlhf__fail(err, RLHF_E_INVALID, "the tokenizer has no bos token");
    if ((flags & RLHF__ENCODE_EOS) && info->eos < 0)
        return rlhf__fail(err, RLHF_E_INVALID, "the tokenizer has no eos token");
    int template = (flags & RLHF__ENCODE_TEMPLATE) != 0;
    if (flags & RLHF__ENCODE_BOS) f->before[f->n_before++] = info->bos;
    for (size_t i = 0; template && i < own->n_before; i++)
        f->before[f->n_before++] = own->before[i];
    for (size_t i = 0; template && i < own->n_after; i++)
        f->after[f->n_after++] = own->after[i];
    if (flags & RLHF__ENCODE_EOS) f->after[f->n_after++] = info->eos;
    return RLHF_OK;
}

rlhf_status rlhf__tokenizer_encode(const struct rlhf__tokenizer *tok, rlhf_str text, uint32_t flags,
                                   size_t max_tokens, struct rlhf__ids *out,
                                   struct rlhf__error *err) {
    struct around f;
    RLHF_TRY(make_frame(tok, flags, &f, err));
    if (max_tokens && max_tokens < f.n_before + f.n_after)
        return rlhf__fail(err, RLHF_E_INVALID, "%zu tokens have no room for the special tokens",
                          max_tokens);
    for (size_t i = 0; i < f.n_before; i++)
        RLHF_TRY(rlhf__ids_push(out, f.before[i], err));
    size_t room = max_tokens ? max_tokens - f.n_before - f.n_after : SIZE_MAX;
    size_t stop_at = room > SIZE_MAX - out->n ? SIZE_MAX : out->n + room;
    if (text.len) {
        size_t n = (size_t)text.len;
        struct rlhf__work *work;
        RLHF_TRY(rlhf__works_take(tok->works, &work, err));
        rlhf_status st = rlhf__added_encode(tok, work, text.ptr, n, flags, stop_at, out, err);
        rlhf__works_give(tok->works, work);
        RLHF_TRY(st);
    }
    if (out->n > stop_at) out->n = stop_at; // the last word overshot
    for (size_t i = 0; i < f.n_after; i++)
        RLHF_TRY(rlhf__ids_push(out, f.after[i], err));
    return RLHF_OK;
}
