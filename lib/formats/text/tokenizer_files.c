// tokenizer_files.c: reading the vocabulary files: vocab.json with merges.txt, or vocab.txt, and
// which of a directory's files count.
//
// What it is not: tokenizer.json is tokenizer_json.c's, special tokens and options special.c's.
#include "text/tokenizer_impl.h"

#include "base/file.h"
#include "base/json.h"
#include "text/utf8.h"

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

static int has(const char *dir, const char *name) {
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n > 0 && (size_t)n < sizeof path && rlhf__is_file(path);
}

// A byte-level token that is not written in stand-ins (an added token in plain text) keeps its own
// bytes and is not found by merges.
rlhf_status rlhf__tokenizer_add_vocab(struct rlhf__tokenizer *tok, json_t *vocab, int byte_level,
                                      struct rlhf__error *err) {
    RLHF_TRY(rlhf__vocab_index(&tok->vocab, (int32_t)json_object_size(vocab), err));
    char *bytes = NULL;
    size_t cap = 0;
    const char *text;
    json_t *id;
    rlhf_status st = RLHF_OK;
    json_object_foreach(vocab, text, id) {
        size_t len = strlen(text), n = SIZE_MAX;
        if (len > cap) {
            free(bytes);
            cap = len * 2;
            bytes = malloc(cap);
        }
        if (len && !bytes) st = rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the vocabulary");
        if (st == RLHF_OK && !json_is_integer(id))
            st = rlhf__fail(err, RLHF_E_INVALID, "the id of '%.60s' is %s, expected an integer",
                            text, rlhf__json_kind(id));
        if (st < 0) break;
        if (byte_level) n = rlhf__bpe_token_bytes(text, len, bytes);
        st = rlhf__vocab_add(&tok->vocab, json_integer_value(id), n == SIZE_MAX ? text : bytes,
                             n == SIZE_MAX ? len : n, err);
        if (st < 0) break;
        int32_t at = (int32_t)json_integer_value(id);
        if (byte_level && n == SIZE_MAX)
            tok->vocab.token[at].special = !tok->has_json; // there added_tokens says it
        else
            rlhf__vocab_hash(&tok->vocab, at);
    }
    free(bytes);
    return st;
}

// The bytes of a token in out; returns how many, SIZE_MAX when it is not written in stand-ins.
static size_t token_bytes(int bytes, const char *s, size_t n, char *out) {
    if (bytes) return rlhf__bpe_token_bytes(s, n, out);
    memcpy(out, s, n);
    return n;
}

rlhf_status rlhf__tokenizer_add_merge(struct rlhf__tokenizer *tok, int byte_level, const char *left,
                                      size_t n_left, const char *right, size_t n_right,
                                      uint32_t rank, struct rlhf__error *err) {
    char bytes[4096];
    if (!n_left || !n_right)
        return rlhf__fail(err, RLHF_E_INVALID, "expected two tokens with one space between");
    if (n_left > sizeof bytes - n_right || n_right > sizeof bytes)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "a token of more than %zu bytes", sizeof bytes);
    size_t a = token_bytes(byte_level, left, n_left, bytes);
    size_t b = a == SIZE_MAX ? a : token_bytes(byte_level, right, n_right, bytes + a);
    if (a == SIZE_MAX || b == SIZE_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "'%.*s %.*s' is not written in byte characters",
                          (int)n_left, left, (int)n_right, right);
    int32_t l = rlhf__vocab_find(&tok->vocab, bytes, a);
    int32_t r = rlhf__vocab_find(&tok->vocab, bytes + a, b);
    int32_t both = rlhf__vocab_find(&tok->vocab, bytes, a + b);
    if (l < 0 || r < 0 || both < 0)
        return rlhf__fail(err, RLHF_E_INVALID, "'%.*s%.*s' is not in the vocabulary",
                          l < 0 || r >= 0 ? (int)n_left : 0, left, l >= 0 ? (int)n_right : 0,
                          right);
    rlhf__merges_add(&tok->merges, l, r, rank, both);
    return RLHF_OK;
}

// merges.txt: "left right" a line, best first, after an optional "#version" line.
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

// bytes: tokens are written in stand-ins.
static rlhf_status load_bpe(struct rlhf__tokenizer *tok, const char *dir, int bytes,
                            struct rlhf__error *err) {
    json_t *vocab = NULL;
    struct rlhf__buf merges = RLHF__BUF_INIT;
    tok->info.kind = RLHF__TOKENIZER_BPE;
    tok->bpe_opts = (struct rlhf__bpe_opts){.bytes = bytes, .unk = -1};
    rlhf_status st = rlhf__tokenizer_json(dir, "vocab.json", &vocab, err);
    if (st == RLHF_OK) {
        st = rlhf__tokenizer_add_vocab(tok, vocab, bytes, err);
        if (st < 0) rlhf__error_context(err, "%s/vocab.json", dir);
    }
    if (st == RLHF_OK) st = read_text(dir, "merges.txt", &merges, err);
    if (st == RLHF_OK) st = parse_merges(tok, dir, rlhf__buf_text(&merges), merges.len, err);
    rlhf__buf_free(&merges);
    json_decref(vocab);
    return st;
}

// vocab.txt: a token a line, its id the line number from 0.
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
    rlhf__buf_free(&text);
    return st;
}

// ---- two forms of one vocabulary
// ---------------------------------------------------------------------

static int same_token(rlhf_str a, rlhf_str b) {
    if (!a.ptr || !b.ptr) return !a.ptr && !b.ptr;
    return a.len == b.len && memcmp(a.ptr, b.ptr, (size_t)a.len) == 0;
}

// What the older files say must be what tokenizer.json says. One of two alone makes no tokenizer
// and is not looked at.
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
    if (lines ? !has(dir, "vocab.txt") : !(has(dir, "merges.txt") && has(dir, "vocab.json")))
        return RLHF_OK;
    rlhf_status st =
        lines ? load_lines(&old, dir, err) : load_bpe(&old, dir, tok->bpe_opts.bytes, err);
    if (st == RLHF_OK) st = agree(tok, &old, dir, lines ? "vocab.txt" : "vocab.json", err);
    rlhf__merges_finish(&old.merges);
    rlhf__vocab_finish(&old.vocab);
    return st;
}

// The parts that the older files mean without naming them.
static rlhf_status imply(struct rlhf__tokenizer *tok, const char *normaliser, const char *cut,
                         struct rlhf__error *err) {
    json_t *normal = json_pack("{s:s}", "type", normaliser),
           *pre = json_pack("{s:s, s:b}", "type", cut, "add_prefix_space", 0),
           *words = json_pack("{s:s}", "type", "WordPiece");
    int bytes = tok->info.kind == RLHF__TOKENIZER_BPE;
    rlhf_status st =
        pre && normal && words ? RLHF_OK : RLHF__NOMEM(err, "out of memory for a tokenizer");
    if (st == RLHF_OK && *normaliser) st = rlhf__normaliser_create(normal, &tok->normaliser, err);
    if (st == RLHF_OK) st = rlhf__pre_tokenizer_create(pre, &tok->pre_tokenizer, err);
    if (st == RLHF_OK) st = rlhf__decoder_create(bytes ? NULL : words, bytes, &tok->decoder, err);
    json_decref(normal);
    json_decref(pre);
    json_decref(words);
    return st;
}

rlhf_status rlhf__tokenizer_load(struct rlhf__tokenizer *tok, const char *dir,
                                 struct rlhf__error *err) {
    int merges = has(dir, "merges.txt"), vocab = has(dir, "vocab.json");
    // tokenizer.json says the most, so it is the one to go by.
    if (has(dir, "tokenizer.json")) {
        RLHF_TRY(rlhf__tokenizer_load_json(tok, dir, err));
        return check_old(tok, dir, err);
    }
    if (merges && vocab) {
        RLHF_TRY(load_bpe(tok, dir, 1, err));
        return imply(tok, "", "ByteLevel", err);
    }
    if (has(dir, "vocab.txt")) {
        RLHF_TRY(load_lines(tok, dir, err));
        return imply(tok, "BertNormalizer", "BertPreTokenizer", err);
    }
    if (merges || vocab)
        return rlhf__fail(err, RLHF_E_INVALID, "%s has %s but no %s", dir,
                          merges ? "merges.txt" : "vocab.json",
                          merges ? "vocab.json" : "merges.txt");
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s holds no tokenizer; expected vocab.json with merges.txt, vocab.txt, or "
                      "tokenizer.json",
                      dir);
}
