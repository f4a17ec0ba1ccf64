// tokenizer_files.c: opens a tokenizer. Chooses among the files of a directory, and reads the
// vocabulary files: vocab.json with merges.txt, or vocab.txt.
//
// tokenizer_json.c reads tokenizer.json, and tokenizer_config.c reads special tokens and options.
#include "tokenizer/tokenizer_impl.h"

#include "base/file.h"
#include "base/json.h"
#include "gguf/model_text.h"
#include "text/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VOCAB_FILE_MAX ((uint64_t)256 << 20)

static rlhf_status read_text(const char *dir, const char *name, struct rlhf__buf *out,
                             struct rlhf__error *err) {
    char *path = rlhf__path_join(dir, name);
    if (!path) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a path");
    rlhf_status st = rlhf__file_read(path, VOCAB_FILE_MAX, out, err);
    free(path);
    return st;
}

// Parses merges.txt. Each line is one merge, "left right"; earlier merges have precedence. A
// "#version" line may come first.
static rlhf_status parse_merges(struct rlhf__tokenizer *tok, const char *dir, const char *s,
                                size_t n, struct rlhf__error *err) {
    size_t lines = 1, line = 0;
    for (size_t i = 0; i < n; i++)
        lines += s[i] == '\n';
    RLHF_TRY(rlhf__merges_init(&tok->merges, lines, err));
    uint32_t rank = 0;
    for (size_t at = 0, next; at < n; at = next) {
        const char *eol = memchr(s + at, '\n', n - at);
        size_t len = eol ? (size_t)(eol - (s + at)) : n - at;
        next = at + len + 1;
        line++;
        if (len && s[at + len - 1] == '\r') len--;
        if (!len || (len >= 8 && !memcmp(s + at, "#version", 8))) continue;
        const char *space = memchr(s + at, ' ', len);
        size_t left = space ? (size_t)(space - (s + at)) : 0;
        size_t right = space ? len - left - 1 : 0;
        rlhf_status st = rlhf__tokenizer_add_merge(tok, tok->bpe_opts.bytes, s + at, left,
                                                   s + at + left + 1, right, rank++, err);
        if (st < 0) {
            rlhf__error_context(err, "%s/merges.txt:%zu", dir, line);
            return st;
        }
    }
    return RLHF_OK;
}

// Reads vocab.json and merges.txt. If `bytes` is 1, tokens are written with stand-ins for bytes
// (vocab.h).
static rlhf_status load_bpe(struct rlhf__tokenizer *tok, const char *dir, int bytes,
                            struct rlhf__error *err) {
    json_t *vocab = NULL;
    struct rlhf__buf merges = RLHF__BUF_INIT;
    tok->info.kind = RLHF__TOKENIZER_BPE;
    tok->bpe_opts = (struct rlhf__bpe_opts){.bytes = bytes, .unk = -1};
    rlhf_status st = rlhf__model_json(dir, "vocab.json", &vocab, err);
    if (st == RLHF_OK) {
        st = rlhf__tokenizer_add_vocab(tok, vocab, bytes, err);
        if (st < 0) rlhf__error_context(err, "%s/vocab.json", dir);
    }
    if (st == RLHF_OK) st = read_text(dir, "merges.txt", &merges, err);
    if (st == RLHF_OK) st = parse_merges(tok, dir, rlhf__buf_text(&merges), merges.len, err);
    rlhf__buf_finish(&merges);
    json_decref(vocab);
    return st;
}

// Parses vocab.txt. Each line is one token, whose id is the line number, counted from 0.
static rlhf_status parse_lines(struct rlhf__tokenizer *tok, const char *s, size_t n,
                               struct rlhf__error *err) {
    size_t lines = 1, good = rlhf__utf8_valid(s, n);
    for (size_t i = 0; i < n; i++) {
        if (i == good) return rlhf__fail(err, RLHF_E_INVALID, "line %zu is not valid UTF-8", lines);
        lines += s[i] == '\n';
    }
    if (lines > RLHF__VOCAB_MAX) return rlhf__fail(err, RLHF_E_INVALID, "too many tokens");
    RLHF_TRY(rlhf__vocab_index(&tok->vocab, (int32_t)lines, err));
    int32_t id = 0;
    for (size_t at = 0, next; at < n; at = next, id++) {
        const char *eol = memchr(s + at, '\n', n - at);
        size_t len = eol ? (size_t)(eol - (s + at)) : n - at;
        next = at + len + 1;
        if (len && s[at + len - 1] == '\r') len--;
        RLHF_TRY(rlhf__vocab_add(&tok->vocab, id, s + at, len, err));
        rlhf__vocab_hash(&tok->vocab, id);
    }
    return id ? RLHF_OK : rlhf__fail(err, RLHF_E_INVALID, "the file is empty");
}

static rlhf_status load_lines(struct rlhf__tokenizer *tok, const char *dir,
                              struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    tok->info.kind = RLHF__TOKENIZER_WORDPIECE;
    rlhf_status st = read_text(dir, "vocab.txt", &text, err);
    if (st == RLHF_OK) {
        st = parse_lines(tok, rlhf__buf_text(&text), text.len, err);
        if (st < 0) rlhf__error_context(err, "%s/vocab.txt", dir);
    }
    rlhf__buf_finish(&text);
    return st;
}

// ---- two forms of one vocabulary ----

static int same_token(rlhf_str a, rlhf_str b) {
    if (!a.ptr || !b.ptr) return !a.ptr && !b.ptr;
    return a.len == b.len && memcmp(a.ptr, b.ptr, (size_t)a.len) == 0;
}

// Checks that the tokenizer in older files agrees with tokenizer.json. An older file whose partner
// is missing (vocab.json without merges.txt, for example) is ignored, because it is not a tokenizer
// by itself.
static rlhf_status agree(const struct rlhf__tokenizer *full, const struct rlhf__tokenizer *old,
                         const char *dir, const char *name, struct rlhf__error *err) {
    int32_t n = full->vocab.n > old->vocab.n ? full->vocab.n : old->vocab.n;
    for (int32_t i = 0; i < n; i++) {
        rlhf_str a = rlhf__vocab_bytes(&full->vocab, i), b = rlhf__vocab_bytes(&old->vocab, i);
        const struct rlhf__vocab_token *t = i < full->vocab.n ? &full->vocab.token[i] : NULL;
        if (!b.ptr && t && (t->special || t->added)) continue; // only tokenizer.json lists these
        if (same_token(a, b)) continue;
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: %s and tokenizer.json contradict each other: the id %d is '%.*s' in "
                          "one and '%.*s' in the other",
                          dir, name, (int)i, (int)b.len, b.ptr ? b.ptr : "", (int)a.len,
                          a.ptr ? a.ptr : "");
    }
    if (rlhf__merges_equal(&full->merges, &old->merges)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: merges.txt and tokenizer.json contradict each other: their merges are "
                      "not the same",
                      dir);
}

static rlhf_status check_old(const struct rlhf__tokenizer *tok, const char *dir,
                             struct rlhf__error *err) {
    struct rlhf__tokenizer old = {0};
    int lines = tok->info.kind == RLHF__TOKENIZER_WORDPIECE;
    if (lines ? !rlhf__model_has(dir, "vocab.txt")
              : !(rlhf__model_has(dir, "merges.txt") && rlhf__model_has(dir, "vocab.json")))
        return RLHF_OK;
    rlhf_status st =
        lines ? load_lines(&old, dir, err) : load_bpe(&old, dir, tok->bpe_opts.bytes, err);
    if (st == RLHF_OK) st = agree(tok, &old, dir, lines ? "vocab.txt" : "vocab.json", err);
    rlhf__merges_finish(&old.merges);
    rlhf__vocab_finish(&old.vocab);
    return st;
}

// Creates the parts that the older files imply. `normalizer` may be NULL.
static rlhf_status imply(struct rlhf__tokenizer *tok, const char *normalizer, const char *cut,
                         struct rlhf__error *err) {
    json_t *parts =
               json_pack("{s:{s:s, s:b}}", "pre_tokenizer", "type", cut, "add_prefix_space", 0),
           *words = json_pack("{s:s}", "type", "WordPiece");
    int bytes = tok->info.kind == RLHF__TOKENIZER_BPE, bad = !parts || !words;
    if (!bad && normalizer)
        bad = json_object_set_new(parts, "normalizer", json_pack("{s:s}", "type", normalizer));
    rlhf_status st = bad ? RLHF__NOMEM(err, "out of memory for a tokenizer") : RLHF_OK;
    if (st == RLHF_OK) st = rlhf__tokenizer_read_cut(tok, parts, err);
    if (st == RLHF_OK) st = rlhf__decoder_open(bytes ? NULL : words, bytes, &tok->decoder, err);
    json_decref(parts);
    json_decref(words);
    return st;
}

// Load the tokenizer from the files of `dir`: the kind, the vocabulary, the merges of BPE, and the
// parts that the files define or imply. Errors: those of rlhf__tokenizer_open.
static rlhf_status load(struct rlhf__tokenizer *tok, const char *dir, struct rlhf__error *err) {
    int merges = rlhf__model_has(dir, "merges.txt"), vocab = rlhf__model_has(dir, "vocab.json");
    // tokenizer.json contains the most information, so it takes precedence.
    if (rlhf__model_has(dir, "tokenizer.json")) {
        RLHF_TRY(rlhf__tokenizer_load_json(tok, dir, err));
        return check_old(tok, dir, err);
    }
    if (merges && vocab) {
        RLHF_TRY(load_bpe(tok, dir, 1, err));
        return imply(tok, NULL, "ByteLevel", err);
    }
    if (rlhf__model_has(dir, "vocab.txt")) {
        RLHF_TRY(load_lines(tok, dir, err));
        return imply(tok, "BertNormalizer", "BertPreTokenizer", err);
    }
    if (merges || vocab)
        return rlhf__fail(err, RLHF_E_INVALID, "%s has %s but no %s", dir,
                          merges ? "merges.txt" : "vocab.json",
                          merges ? "vocab.json" : "merges.txt");
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s holds no tokenizer; expected tokenizer.json, vocab.json with "
                      "merges.txt, or vocab.txt: copy the files of the model's tokenizer there, or "
                      "write them with save_pretrained() of transformers",
                      dir);
}

// ---- opening ----

static rlhf_status build(struct rlhf__tokenizer *tok, const char *dir, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    if (tok->info.kind == RLHF__TOKENIZER_BPE) {
        st = rlhf__bpe_open(&tok->bpe_opts, &tok->vocab, &tok->merges, &tok->bpe, err);
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

// Returns the length of the special token with which s begins; 0 = none.
static size_t special_at(const void *tokenizer, rlhf_str s) {
    enum { LONGEST = 256 };
    return rlhf__added_special_at(&((const struct rlhf__tokenizer *)tokenizer)->added,
                                  (rlhf_str){s.ptr, s.len < LONGEST ? s.len : LONGEST});
}

// The special tokens that only an id names, as variables.
static json_t *vars_by_id(const struct rlhf__tokenizer *tok) {
    const struct {
        const char *name;
        int32_t id;
    } all[] = {{"bos_token", tok->info.bos},
               {"eos_token", tok->info.eos},
               {"unk_token", tok->info.unk},
               {"pad_token", tok->info.pad}};
    json_t *out = json_object();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const rlhf_str s = rlhf__tokenizer_written(tok, all[i].id);
        if (s.ptr && !json_object_get(tok->vars, all[i].name))
            json_object_set_new(out, all[i].name, json_stringn(s.ptr, (size_t)s.len));
    }
    return out;
}

static rlhf_status open_chat(struct rlhf__tokenizer *tok, const char *dir,
                             struct rlhf__error *err) {
    json_t *by_id = vars_by_id(tok);
    char *vars = json_dumps(tok->vars, 0), *more = json_dumps(by_id, 0);
    const struct rlhf__chat_tokens tokens = {vars, more, special_at, tok};
    const rlhf_status st = vars && more ? rlhf__chat_open(dir, &tokens, &tok->chat, err)
                                        : RLHF__NOMEM(err, "out of memory for a chat template");
    json_decref(by_id);
    free(vars);
    free(more);
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
    tok->dir = strdup(dir);
    if (tok->works) rlhf__works_init(tok->works);
    if (!tok->works || !tok->dir) st = RLHF__NOMEM(err, "out of memory for a tokenizer");
    if (st == RLHF_OK) st = load(tok, dir, err);
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
