// tokenizer.c: see tokenizer.h. Queries, encoding and decoding.
#include "tokenizer/tokenizer.h"

#include "base/file.h"
#include "text/added.h"
#include "text/decoder.h"
#include "text/unicode.h"
#include "tokenizer/tokenizer_impl.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rlhf__tokenizer_close(struct rlhf__tokenizer *tok) {
    if (!tok) return;
    rlhf__bpe_close(tok->bpe);
    rlhf__normalizer_close(tok->normalizer);
    rlhf__pre_tokenizer_close(tok->pre_tokenizer);
    rlhf__decoder_close(tok->decoder);
    rlhf__chat_close(tok->chat);
    json_decref(tok->vars);
    if (tok->works) rlhf__works_finish(tok->works);
    free(tok->works);
    rlhf__merges_finish(&tok->merges);
    rlhf__vocab_finish(&tok->vocab);
    rlhf__added_finish(&tok->added);
    free(tok->dir);
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
    return id < tok->vocab.n ? id : -1;
}

rlhf_str rlhf__tokenizer_written(const struct rlhf__tokenizer *tok, int32_t id) {
    rlhf_str s = rlhf__added_content(&tok->added, id);
    return s.ptr ? s : rlhf__vocab_bytes(&tok->vocab, id);
}

int rlhf__tokenizer_is_special(const struct rlhf__tokenizer *tok, int32_t id) {
    return id >= 0 && id < tok->vocab.n && tok->vocab.token[id].special;
}

int rlhf__tokenizer_next_special(const struct rlhf__tokenizer *tok, rlhf_str text, size_t from,
                                 size_t *at) {
    return rlhf__added_next_special(&tok->added, text, from, at);
}

// 1 if texts cannot contain the token, and nothing puts it around a text. Such a token is special,
// and its only role may be that of the pad token.
static int is_spare(const struct rlhf__tokenizer *tok, int32_t id) {
    const struct rlhf__tokenizer_info *info = &tok->info;
    const struct rlhf__tokenizer_frame *f = &tok->frame;
    const int32_t roles[] = {info->bos, info->eos, info->unk, info->cls, info->sep};
    int used = !tok->vocab.token[id].special && tok->vocab.token[id].used;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        used |= roles[i] == id;
    for (size_t i = 0; i < f->n_before; i++)
        used |= f->before[i] == id;
    for (size_t i = 0; i < f->n_after; i++)
        used |= f->after[i] == id;
    return !used;
}

// Removes the tokens from id n_vocab on. Encoding skips them, because `split` looks at n_vocab.
static void drop_spare(struct rlhf__tokenizer *tok, int32_t n_vocab, const char *what) {
    const rlhf_str s = rlhf__tokenizer_written(tok, n_vocab);
    rlhf__logf(tok->log, RLHF_LOG_WARN,
               "%s: its tokenizer has %d tokens and the model %d rows (vocab_size): the special "
               "tokens without a row, from '%.*s' on, are left out",
               what, (int)tok->info.n_vocab, (int)n_vocab, (int)s.len, s.ptr ? s.ptr : "");
    tok->info.n_vocab = tok->vocab.n = n_vocab;
    if (tok->info.pad >= n_vocab) tok->info.pad = -1;
}

rlhf_status rlhf__tokenizer_fit(struct rlhf__tokenizer *tok, int32_t n_vocab, const char *what,
                                struct rlhf__error *err) {
    const int32_t tokens = tok->info.n_vocab;
    int32_t id = n_vocab;
    while (id < tokens && is_spare(tok, id))
        id++;
    if (id < tokens)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "%s: its vocabulary has %d tokens but the model has %d (vocab_size); allowed: the same "
            "number, more rows, or special tokens without a row; if the tokens are new, call "
            "resize_token_embeddings() of transformers and save the model",
            what, (int)tokens, (int)n_vocab);
    if (tokens > n_vocab) drop_spare(tok, n_vocab, what);
    if (n_vocab - tokens >= 1024)
        rlhf__logf(tok->log, RLHF_LOG_WARN,
                   "%s: the model has %d rows (vocab_size), %d more than its tokenizer has tokens: "
                   "is it the model's own tokenizer?",
                   what, (int)n_vocab, (int)(n_vocab - tokens));
    return RLHF_OK;
}

const struct rlhf__chat *rlhf__tokenizer_chat(const struct rlhf__tokenizer *tok) {
    return tok->chat;
}

rlhf_status rlhf__tokenizer_name_chat(struct rlhf__tokenizer *tok, const char *name,
                                      struct rlhf__error *err) {
    return rlhf__chat_name(tok->chat, name, err);
}

rlhf_status rlhf__tokenizer_choose_chat(struct rlhf__tokenizer *tok,
                                        const struct rlhf__chat_choice *choice,
                                        const struct rlhf__chat_choice *flags,
                                        struct rlhf__error *err) {
    return rlhf__chat_choose(tok->chat, choice, flags, err);
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

// ---- WordPiece ----

enum { WORD_MAX = 100, WORD_BYTES = WORD_MAX * 4 };

// A word as UTF-8, with two free bytes before it for "##". end[i] is where character i ends.
struct word {
    char bytes[2 + WORD_BYTES];
    size_t end[WORD_MAX + 1];
    size_t n; // characters
};

// Finds the longest token that begins at character `from`. Returns the number of its characters, or
// 0 if no token begins there.
static size_t longest(const struct rlhf__vocab *v, struct word *w, size_t from, int32_t *id) {
    size_t at = w->end[from];
    if (from) { // the bytes before are already encoded, so "##" may overwrite them
        at -= 2;
        memcpy(w->bytes + at, "##", 2);
    }
    size_t to = w->n;
    while (to > from && w->end[to] - at > v->longest)
        to--;
    for (; to > from; to--) {
        *id = rlhf__vocab_find(v, w->bytes + at, w->end[to] - at);
        if (*id >= 0) return to - from;
    }
    return 0;
}

// Puts the characters of s[0..n) into w. Returns 0 if there are too many, or if a character is
// invalid.
static int read_word(struct word *w, const char *s, size_t n) {
    size_t at = 0;
    w->n = 0;
    w->end[0] = 2;
    while (at < n && w->n < WORD_MAX) {
        size_t len = rlhf__utf8_next(s + at, n - at, NULL, NULL);
        if (!len) return 0;
        at += len;
        w->end[++w->n] = 2 + at;
    }
    if (at < n) return 0;
    memcpy(w->bytes + 2, s, n);
    return 1;
}

// Append the ids of the word s[0..n). A word becomes unk if it is too long, has invalid UTF-8, or
// cannot be divided into tokens. Errors: RLHF_E_NOMEM.
static rlhf_status wordpiece_encode(const struct rlhf__wordpiece *wp, const char *s, size_t n,
                                    struct rlhf__ids *out, struct rlhf__error *err) {
    struct word w;
    if (!read_word(&w, s, n)) return rlhf__ids_push(out, wp->unk, err);
    size_t before = out->n;
    for (size_t at = 0; at < w.n;) {
        int32_t id = -1;
        size_t taken = longest(wp->vocab, &w, at, &id);
        if (!taken) {
            out->n = before;
            return rlhf__ids_push(out, wp->unk, err);
        }
        RLHF_TRY(rlhf__ids_push(out, id, err));
        at += taken;
    }
    return RLHF_OK;
}

// ---- words ----

// Sets *out and *len to the normal form of s[0..n). Without a normalizer this is s itself;
// otherwise it is stored in work->normal.
static rlhf_status normal_of(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                             const char *s, size_t n, const char **out, size_t *len,
                             struct rlhf__error *err) {
    *out = s;
    *len = n;
    if (!tok->normalizer || !n) return RLHF_OK;
    RLHF_TRY(rlhf__normalizer_apply(tok->normalizer, s, n, &work->search, &work->normal,
                                    &work->spare, err));
    *out = rlhf__buf_text(&work->normal);
    *len = work->normal.len;
    return RLHF_OK;
}

rlhf_status rlhf__tokenizer_normal(const struct rlhf__tokenizer *tok, const char *s, size_t n,
                                   struct rlhf__buf *out, struct rlhf__error *err) {
    struct rlhf__work *work;
    const char *normal;
    size_t len;
    RLHF_TRY(rlhf__works_take(tok->works, &work, err));
    rlhf__search_new_text(&work->search);
    rlhf_status st = normal_of(tok, work, s, n, &normal, &len, err);
    if (st == RLHF_OK) rlhf__buf_put(out, normal, len);
    rlhf__works_give(tok->works, work);
    return st == RLHF_OK ? rlhf__buf_ok(out, err) : st;
}

// Appends the ids of a word, or of a part of a word that can be encoded separately.
static rlhf_status encode_part(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                               const char *s, size_t n, struct rlhf__ids *out,
                               struct rlhf__error *err) {
    rlhf_status st = rlhf__word_cache_get(work->cache, s, n, out, err);
    if (st != 0) return st < 0 ? st : RLHF_OK;
    size_t from = out->n;
    RLHF_TRY(tok->bpe ? rlhf__bpe_encode(tok->bpe, s, n, out, &work->lost, err)
                      : wordpiece_encode(&tok->piece, s, n, out, err));
    rlhf__word_cache_put(work->cache, s, n, out->data + from, out->n - from);
    return RLHF_OK;
}

rlhf_status rlhf__pipeline_words(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                                 const char *s, size_t n, int at_start, size_t stop_at,
                                 struct rlhf__ids *out, struct rlhf__error *err) {
    if (!n) return RLHF_OK;
    RLHF_TRY(rlhf__pre_tokenizer_cut(tok->pre_tokenizer, work, s, n, at_start, err));
    const struct rlhf__pieces *words = &work->pieces;
    for (size_t i = 0; i < words->n && out->n < stop_at; i++) {
        const char *word = words->text + words->item[i].at;
        size_t len = words->item[i].n;
        for (size_t at = 0, end; at < len && out->n < stop_at; at = end) {
            end = tok->bpe ? rlhf__bpe_part_end(tok->bpe, word, len, at) : len;
            RLHF_TRY(encode_part(tok, work, word + at, end - at, out, err));
        }
    }
    return RLHF_OK;
}

// ---- splitting a text by its added tokens ----
//
// This follows the tokenizers library. First the original text is split at the added tokens whose
// flag `normalized` is not set. Then the text between them is normalized and split at the other
// added tokens.

struct splitting {
    const struct rlhf__tokenizer *tok;
    struct rlhf__work *work;
    uint32_t flags;
    size_t stop_at;
    struct rlhf__ids *out;
    struct rlhf__error *err;
    const char *whole; // the text that the positions of the cuts refer to
    const struct rlhf__cuts *cuts;
};

// 1 if a cut is in s[from..to), where s is a part of the whole text.
static int is_cut(const struct splitting *sp, const char *s, size_t from, size_t to) {
    const size_t base = sp->cuts ? (size_t)(s - sp->whole) : 0;
    for (size_t i = 0; sp->cuts && i < sp->cuts->n; i++)
        if (sp->cuts->at[i] >= base + from && sp->cuts->at[i] < base + to) return 1;
    return 0;
}

typedef rlhf_status piece_fn(const struct splitting *sp, const char *s, size_t n, int at_start);

// The character that ends at s + n. Returns 0 at the start of the text and after invalid bytes.
static uint32_t last_char(const char *s, size_t n, size_t *len) {
    for (size_t back = 1; back <= 4 && back <= n; back++) {
        uint32_t cp = 0;
        *len = back;
        if (rlhf__utf8_next(s + n - back, back, &cp, NULL) == back) return cp;
    }
    return 0;
}

static int within_word(const char *s, size_t n, const struct rlhf__match *m) {
    size_t len;
    uint32_t next = 0;
    if (m->begin && rlhf__unicode_is_word(last_char(s, m->begin, &len))) return 1;
    if (m->end < n) rlhf__utf8_next(s + m->end, n - m->end, &next, NULL);
    return m->end < n && rlhf__unicode_is_word(next);
}

static size_t space_before(const char *s, size_t at) {
    size_t len = 0;
    while (at && rlhf__unicode_is_space(last_char(s, at, &len)))
        at -= len;
    return at;
}

static size_t space_behind(const char *s, size_t n, size_t at) {
    while (at < n) {
        uint32_t cp = 0;
        size_t len = rlhf__utf8_next(s + at, n - at, &cp, NULL);
        if (!len || !rlhf__unicode_is_space(cp)) break;
        at += len;
    }
    return at;
}

// ---- splitting ----

// Splits s at the tokens of m, and calls `piece` for the texts between them. Without
// RLHF__ENCODE_SPECIAL, ignores all special tokens, otherwise those that contain a cut. Ignores a
// token with the flag `single_word` within a word. The search continues after the end of an ignored
// token. As in the library, two tokens may share white space.
static rlhf_status split(const struct splitting *sp, const struct rlhf__matcher *m, int ordinary,
                         const char *s, size_t n, int at_start, piece_fn *piece) {
    const struct rlhf__added *added = &sp->tok->added;
    int specials = (sp->flags & RLHF__ENCODE_SPECIAL) != 0;
    size_t from = 0;
    struct rlhf__match at = {0};
    while ((ordinary || specials) && sp->out->n < sp->stop_at &&
           rlhf__matcher_next(m, s, n, at.end, &at)) {
        const struct rlhf__added_token *t = &added->item[at.value];
        if (t->id >= sp->tok->vocab.n) continue; // rlhf__tokenizer_fit has dropped it
        if ((t->special && (!specials || is_cut(sp, s, at.begin, at.end))) ||
            (t->single_word && within_word(s, n, &at)))
            continue;
        size_t begin = t->lstrip ? space_before(s, at.begin) : at.begin;
        if (from < begin) RLHF_TRY(piece(sp, s + from, begin - from, at_start && !from));
        if (sp->out->n < sp->stop_at) RLHF_TRY(rlhf__ids_push(sp->out, t->id, sp->err));
        from = t->rstrip ? space_behind(s, n, at.end) : at.end;
    }
    return from < n ? piece(sp, s + from, n - from, at_start && !from) : RLHF_OK;
}

static rlhf_status put_words(const struct splitting *sp, const char *s, size_t n, int at_start) {
    return rlhf__pipeline_words(sp->tok, sp->work, s, n, at_start, sp->stop_at, sp->out, sp->err);
}

// Calls split() for the normal form of s[0..n). Cuts are positions in the original text, not in the
// normal form. So if there are cuts, s is divided into parts, and each part is normalized and split
// separately. A part ends with the character that follows a cut, so a token that begins at the cut
// is divided.
static rlhf_status normal_text(const struct splitting *sp, const char *s, size_t n, int at_start) {
    const struct rlhf__added *added = &sp->tok->added;
    const char *normal;
    size_t len, next;
    struct splitting in = *sp;
    const int in_pieces = sp->tok->normalizer && sp->cuts && sp->cuts->n;
    if (in_pieces) in.cuts = NULL;
    for (size_t from = 0; from < n && sp->out->n < sp->stop_at; from = next) {
        for (next = in_pieces ? from : n; next < n && !is_cut(sp, s, next, next + 1);)
            next++;
        if (next < n) {
            const size_t one = rlhf__utf8_next(s + next, n - next, NULL, NULL);
            next += one ? one : 1;
        }
        RLHF_TRY(normal_of(sp->tok, sp->work, s + from, next - from, &normal, &len, sp->err));
        RLHF_TRY(split(&in, &added->normal, added->normal_ordinary, normal, len, at_start && !from,
                       put_words));
    }
    return RLHF_OK;
}

// Append the ids of s[0..n). Special tokens are recognized only with RLHF__ENCODE_SPECIAL, all
// other added tokens always. Stops early when out->n >= stop_at. Errors: RLHF_E_NOMEM,
// RLHF_E_UNSUPPORTED (a pattern that takes too long).
static rlhf_status added_encode(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                                const char *s, size_t n, uint32_t flags, size_t stop_at,
                                const struct rlhf__cuts *cuts, struct rlhf__ids *out,
                                struct rlhf__error *err) {
    struct splitting sp = {tok, work, flags, stop_at, out, err, s, cuts};
    return split(&sp, &tok->added.plain, tok->added.plain_ordinary, s, n, 1, normal_text);
}

// ---- encoding ----

// The ids before and after a text. The outer ids are requested by flags; the inner ids are the
// tokenizer's frame.
struct around {
    int32_t before[1 + RLHF__FRAME_MAX], after[RLHF__FRAME_MAX + 1];
    size_t n_before, n_after;
};

static rlhf_status make_frame(const struct rlhf__tokenizer *tok, uint32_t flags, struct around *f,
                              struct rlhf__error *err) {
    const struct rlhf__tokenizer_info *info = &tok->info;
    const struct rlhf__tokenizer_frame *own = &tok->frame;
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

void rlhf__tokenizer_set_log(struct rlhf__tokenizer *tok, struct rlhf__log *log) { tok->log = log; }

// Logs, once for each tokenizer, that a text had a character or byte without a token.
static void say_lost(const struct rlhf__tokenizer *tok, int64_t lost) {
    const int32_t unk = tok->bpe_opts.unk;
    char what[32];
    if (!tok->log || atomic_exchange(&tok->works->said, 1)) return;
    if (lost < RLHF__LOST_BYTE)
        snprintf(what, sizeof what, "the character U+%04X", (unsigned)lost);
    else
        snprintf(what, sizeof what, "the byte 0x%02x", (unsigned)(lost - RLHF__LOST_BYTE));
    const rlhf_str s = rlhf__tokenizer_written(tok, unk);
    rlhf__logf(tok->log, RLHF_LOG_WARN,
               "the tokenizer of '%s' has no token for %s, which a text contains: %s%.*s", tok->dir,
               what, unk < 0 ? "what has no token is left out" : "what has no token becomes ",
               (int)s.len, s.ptr ? s.ptr : "");
}

static rlhf_status encode(const struct rlhf__tokenizer *tok, rlhf_str text, uint32_t flags,
                          size_t max_tokens, const struct rlhf__cuts *cuts, struct rlhf__ids *out,
                          struct rlhf__error *err) {
    struct around f;
    RLHF_TRY(make_frame(tok, flags, &f, err));
    if (max_tokens && max_tokens < f.n_before + f.n_after)
        return rlhf__fail(err, RLHF_E_INVALID, "%zu tokens leave no room for the special tokens",
                          max_tokens);
    for (size_t i = 0; i < f.n_before; i++)
        RLHF_TRY(rlhf__ids_push(out, f.before[i], err));
    size_t room = max_tokens ? max_tokens - f.n_before - f.n_after : SIZE_MAX;
    size_t stop_at = room > SIZE_MAX - out->n ? SIZE_MAX : out->n + room;
    if (text.len) {
        size_t n = (size_t)text.len;
        struct rlhf__work *work;
        RLHF_TRY(rlhf__works_take(tok->works, &work, err));
        work->lost = -1;
        rlhf__search_new_text(&work->search);
        rlhf_status st = added_encode(tok, work, text.ptr, n, flags, stop_at, cuts, out, err);
        if (work->lost >= 0) say_lost(tok, work->lost);
        rlhf__works_give(tok->works, work);
        RLHF_TRY(st);
    }
    if (out->n > stop_at) out->n = stop_at; // the last word may have too many ids
    for (size_t i = 0; i < f.n_after; i++)
        RLHF_TRY(rlhf__ids_push(out, f.after[i], err));
    return RLHF_OK;
}

rlhf_status rlhf__tokenizer_encode(const struct rlhf__tokenizer *tok, rlhf_str text, uint32_t flags,
                                   size_t max_tokens, struct rlhf__ids *out,
                                   struct rlhf__error *err) {
    return encode(tok, text, flags, max_tokens, NULL, out, err);
}

rlhf_status rlhf__tokenizer_encode_cut(const struct rlhf__tokenizer *tok, rlhf_str text,
                                       const struct rlhf__cuts *cuts, struct rlhf__ids *out,
                                       struct rlhf__error *err) {
    return encode(tok, text, RLHF__ENCODE_SPECIAL, 0, cuts, out, err);
}

// ---- decoding ----

// Returns 1 if the id adds nothing to the text, because it is unused, or because it is special and
// the flags say to skip special tokens.
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
