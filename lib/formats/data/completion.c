// completion.c: see completion.h.
#include "data/completion.h"

#include "tokenizer/conversation.h"

rlhf_status rlhf__token_completion(const struct rlhf__tokenizer *tok,
                                   const struct rlhf__data_row *row, uint32_t flags,
                                   struct rlhf__ids *ids, struct rlhf__error *err) {
    RLHF_TRY(rlhf__tokenizer_encode(tok, row->text[RLHF__FIELD_PROMPT], flags & RLHF__ENCODE_BOS, 0,
                                    ids, err));
    const size_t from = ids->n;
    RLHF_TRY(rlhf__tokenizer_encode(tok, row->text[RLHF__FIELD_CHOSEN], 0, 0, ids, err));
    if (flags & RLHF__ENCODE_EOS)
        RLHF_TRY(rlhf__ids_push(ids, rlhf__tokenizer_info(tok)->eos, err));
    rlhf__token_mark(ids, from);
    return RLHF_OK;
}

rlhf_status rlhf__token_completion_chat(const struct rlhf__tokenizer *tok,
                                        const struct rlhf__messages *m, size_t asked,
                                        struct rlhf__ids *ids, struct rlhf__error *err) {
    const struct rlhf__messages prompt = {
        .item = m->item, .n = asked, .tools = m->tools, .vars = m->vars};
    const struct rlhf__messages answer = {.item = m->item + asked, .n = m->n - asked};
    struct rlhf__ids own = {0}, rest = {0};
    rlhf_status st = rlhf__conversation_encode(tok, &prompt, 1, &own, NULL, err);
    if (st == RLHF_OK)
        st = rlhf__conversation_answer(tok, &prompt, &answer, own.data, own.n, &rest, err);
    rlhf__token_mark(&rest, 0);
    for (size_t i = 0; st == RLHF_OK && i < own.n + rest.n; i++)
        st = rlhf__ids_push(ids, i < own.n ? own.data[i] : rest.data[i - own.n], err);
    rlhf__ids_finish(&own);
    rlhf__ids_finish(&rest);
    return st;
}
