// tokenizer_open.c: rlhf__tokenizer_open of tokenizer.h: the files of a directory make a tokenizer.
#include "text/tokenizer_impl.h"

#include <stdlib.h>
#include <string.h>

static rlhf_status build(struct rlhf__tokenizer *tok, const char *dir, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    if (tok->info.kind == RLHF__TOKENIZER_BPE) {
        st = rlhf__bpe_create(&tok->bpe_opts, &tok->vocab, &tok->merges, &tok->bpe, err);
    } else {
        tok->piece.vocab = &tok->vocab;
        tok->piece.unk = tok->info.unk;
        if (tok->info.unk < 0 || tok->info.cls < 0 || tok->info.sep < 0)
            st = rlhf__fail(err, RLHF_E_INVALID,
                            "the vocabulary needs the tokens [UNK], [CLS] and [SEP]");
    }
    if (st == RLHF_OK) st = rlhf__decoder_prepare(tok->decoder, &tok->added, &tok->vocab, err);
    if (st < 0) rlhf__error_context(err, "%s", dir);
    return st;
}

// A token as it is written, for templates; NULL when there is none. Caller frees.
static char *written(const struct rlhf__tokenizer *tok, int32_t id) {
    rlhf_str s = rlhf__added_content(&tok->added, id);
    if (!s.ptr && id >= 0) s = rlhf__vocab_bytes(&tok->vocab, id);
    return s.ptr ? strndup(s.ptr, (size_t)s.len) : NULL;
}

static rlhf_status open_chat(struct rlhf__tokenizer *tok, const char *dir,
                             struct rlhf__error *err) {
    const int32_t ids[] = {tok->info.bos, tok->info.eos, tok->info.unk, tok->info.pad};
    char *text[4];
    for (int i = 0; i < 4; i++)
        text[i] = written(tok, ids[i]);
    const struct rlhf__chat_tokens tokens = {text[0], text[1], text[2], text[3]};
    rlhf_status st = rlhf__chat_open(dir, &tokens, &tok->chat, err);
    for (int i = 0; i < 4; i++)
        free(text[i]);
    return st;
}

rlhf_status rlhf__tokenizer_open(const char *dir, struct rlhf__tokenizer **out,
                                 struct rlhf__error *err) {
    struct rlhf__tokenizer *tok = calloc(1, sizeof *tok);
    if (!tok) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a tokenizer");
    tok->info = (struct rlhf__tokenizer_info){
        .bos = -1, .eos = -1, .unk = -1, .cls = -1, .sep = -1, .pad = -1};
    rlhf_status st = RLHF_OK;
    tok->added.largest = -1;
    tok->works = malloc(sizeof *tok->works);
    if (tok->works)
        rlhf__works_init(tok->works);
    else
        st = RLHF__NOMEM(err, "out of memory for a tokenizer");
    if (st == RLHF_OK) st = rlhf__tokenizer_load(tok, dir, err);
    if (st == RLHF_OK) st = rlhf__tokenizer_load_special(tok, dir, err);
    if (st == RLHF_OK) st = build(tok, dir, err);
    if (st == RLHF_OK) st = open_chat(tok, dir, err);
    if (st < 0) {
        rlhf__tokenizer_close(tok);
        return st;
    }
    tok->info.n_vocab = tok->vocab.n;
    *out = tok;
    return RLHF_OK;
}
