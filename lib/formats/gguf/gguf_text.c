// gguf_text.c: see gguf_text.h.
#include "gguf/gguf_text.h"

#include "base/buf.h"
#include "base/printable.h"
#include "gguf/gguf_merges.h"
#include "gguf/gguf_words.h"
#include "text/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rlhf_status no_memory(struct rlhf__error *err) {
    return RLHF__NOMEM(err, "out of memory for the tokenizer of a GGUF file");
}

// Appends a value that the list then owns. Returns the list, or NULL if that failed.
static json_t *appended(json_t *list, json_t *value) {
    if (json_array_append_new(list, value) == 0) return list;
    json_decref(list);
    return NULL;
}

// ---- tokens ----

// Appends the text of a token as the vocabulary writes it. In Gemma's vocabulary, runs of spaces
// are pieces that merges make, so they have the signs for spaces there, although the file has
// spaces. Returns 1 for such a piece.
static int put_text(const struct rlhf__gguf_words *w, int32_t i, struct rlhf__buf *out) {
    size_t n, spaces = 0;
    const char *text = rlhf__gguf_word(w, i, &n);
    while (spaces < n && text[spaces] == ' ')
        spaces++;
    const int blank = w->by_place && spaces == n && n > 0;
    rlhf__buf_clear(out);
    if (!blank) rlhf__buf_put(out, text, n);
    for (size_t k = 0; blank && k < n; k++)
        rlhf__buf_puts(out, RLHF__GGUF_SPACE);
    return blank;
}

static int is_added(const struct rlhf__gguf_words *w, int32_t i, int32_t type) {
    return type == RLHF__GGUF_TOKEN_CONTROL || type == RLHF__GGUF_TOKEN_USER_DEFINED ||
           i == w->id[RLHF__GGUF_UNK];
}

// Pieces that merges join and make.
static int is_piece(int32_t type) {
    return type == RLHF__GGUF_TOKEN_NORMAL || type == RLHF__GGUF_TOKEN_USER_DEFINED;
}

// Adds token i to the vocabulary, where `shown` is its text. llama.cpp refuses equal tokens, too.
static rlhf_status add_token(const struct rlhf__gguf_words *w, json_t *vocab, int32_t i,
                             const char *shown, struct rlhf__error *err) {
    const json_t *other = json_object_get(vocab, shown);
    const int32_t k = (int32_t)json_integer_value(other);
    struct rlhf__buf safe = RLHF__BUF_INIT;
    size_t n, m = 0;
    const char *text = rlhf__gguf_word(w, i, &n), *same = other ? rlhf__gguf_word(w, k, &m) : NULL;
    if (!same || n != m || memcmp(text, same, n) != 0)
        return json_object_set_new(vocab, shown, json_integer(i)) == 0 ? RLHF_OK : no_memory(err);
    rlhf__put_printable(&safe, text, n < 60 ? n : 60, "");
    rlhf__fail(err, RLHF_E_INVALID,
               "%s: the tokens %d and %d of tokenizer.ggml.tokens have the same text, \"%s\"; each "
               "may occur once",
               w->path, (int)k, (int)i, rlhf__buf_text(&safe));
    rlhf__buf_finish(&safe);
    return RLHF_E_INVALID;
}

// Fills the vocabulary, the list of added tokens and, for merges by scores, the pieces.
static rlhf_status put_tokens(const struct rlhf__gguf_words *w, json_t *vocab, json_t *added,
                              struct rlhf__vocab *pieces, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf_status st = w->spm ? rlhf__vocab_index(pieces, w->n, err) : RLHF_OK;
    for (int32_t i = 0; i < w->n && st == RLHF_OK; i++) {
        const int32_t type = rlhf__gguf_word_type(w, i);
        if (type == RLHF__GGUF_TOKEN_UNUSED) continue;
        const int blank = put_text(w, i, &text);
        const char *shown = rlhf__buf_text(&text);
        st = rlhf__buf_ok(&text, err);
        if (st == RLHF_OK) st = add_token(w, vocab, i, shown, err);
        if (st == RLHF_OK && w->spm) st = rlhf__vocab_add(pieces, i, shown, text.len, err);
        if (st == RLHF_OK && w->spm && is_piece(type)) rlhf__vocab_hash(pieces, i);
        if (st == RLHF_OK && is_added(w, i, type) && !blank &&
            json_array_append_new(
                added, json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (int)i, "content",
                                 shown, "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0,
                                 "special", type != RLHF__GGUF_TOKEN_USER_DEFINED)) != 0)
            st = no_memory(err);
    }
    rlhf__buf_finish(&text);
    return st;
}

// ---- merges ----

static rlhf_status copy_merges(const struct rlhf__gguf_words *w, json_t **out,
                               struct rlhf__error *err) {
    size_t n, len;
    if (!w->merge)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the file lacks tokenizer.ggml.merges", w->path);
    RLHF_TRY(rlhf__gguf_value_count(w->merge, RLHF__GGUF_STR, &n, err));
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const char *text = rlhf__gguf_item_text(w->merge, i, &len);
        if (json_array_append_new(list, json_stringn(text, len)) == 0) continue;
        json_decref(list);
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: merge %zu of tokenizer.ggml.merges is not a text in UTF-8", w->path,
                          i);
    }
    *out = list;
    return RLHF_OK;
}

static rlhf_status make_merges(const struct rlhf__gguf_words *w, const struct rlhf__vocab *pieces,
                               json_t **out, struct rlhf__error *err) {
    if (!w->spm || w->merge) return copy_merges(w, out, err);
    if (!w->score)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the file lacks tokenizer.ggml.scores", w->path);
    double *score = calloc((size_t)w->n, sizeof *score);
    if (!score) return RLHF__NOMEM(err, "out of memory for the merges of a tokenizer");
    for (int32_t i = 0; i < w->n; i++) {
        score[i] = w->by_place ? -(double)i : rlhf__gguf_item_num(w->score, (size_t)i);
        if (!(score[i] == score[i])) score[i] = 0; // NaN cannot be ordered
    }
    const rlhf_status st = rlhf__gguf_merges_make(pieces, score, out, err);
    free(score);
    return st == RLHF_E_INVALID ? rlhf__error_context(err, "%s", w->path) : st;
}

// ---- the steps ----

// The text of a token as a JSON string.
static json_t *word(const struct rlhf__gguf_words *w, int32_t id) {
    size_t n;
    if (id < 0) return json_null();
    const char *text = rlhf__gguf_word(w, id, &n);
    return json_stringn(text, n);
}

static json_t *special(json_t *text) {
    return json_pack("{s:{s:O, s:i}}", "SpecialToken", "id", text, "type_id", 0);
}

static json_t *sequence(const char *id, int type) {
    return json_pack("{s:{s:s, s:i}}", "Sequence", "id", id, "type_id", type);
}

// Adds the description of a token. Returns the object, or NULL if that failed.
static json_t *described(json_t *tokens, json_t *text, int32_t id) {
    json_t *value = json_pack("{s:O, s:[i], s:[O]}", "id", text, "ids", (int)id, "tokens", text);
    const char *key = json_string_value(text);
    if (key && json_object_set_new(tokens, key, value) == 0) return tokens;
    json_decref(tokens);
    return NULL;
}

// What puts bos before and eos after a text.
static json_t *post_processor(const struct rlhf__gguf_words *w) {
    if (!w->adds_bos && !w->adds_eos) return json_null();
    json_t *single = json_array(), *tokens = json_object();
    for (int after = 0; after < 2; after++) {
        const int32_t id = w->id[after ? RLHF__GGUF_EOS : RLHF__GGUF_BOS];
        json_t *text = word(w, id);
        if (after) single = appended(single, sequence("A", 0));
        if (after ? w->adds_eos : w->adds_bos) {
            single = appended(single, special(text));
            tokens = described(tokens, text, id);
        }
        json_decref(text);
    }
    json_t *pair = appended(json_deep_copy(single), sequence("B", 1));
    return json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single", single, "pair",
                     pair, "special_tokens", tokens);
}

static json_t *replace(const char *from, const char *to) {
    return json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "String", from, "content",
                     to);
}

static json_t *normalizer(const struct rlhf__gguf_words *w) {
    if (w->pre) return w->pre->composes ? json_pack("{s:s}", "type", "NFC") : json_null();
    if (!w->space_prefix) return replace(" ", RLHF__GGUF_SPACE);
    return json_pack("{s:s, s:[{s:s, s:s}, o]}", "type", "Sequence", "normalizers", "type",
                     "Prepend", "prepend", RLHF__GGUF_SPACE, replace(" ", RLHF__GGUF_SPACE));
}

static json_t *decoder(const struct rlhf__gguf_words *w) {
    if (!w->spm)
        return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 1,
                         "trim_offsets", 1, "use_regex", 1);
    json_t *steps = json_pack("[o, {s:s}, {s:s}]", replace(RLHF__GGUF_SPACE, " "), "type",
                              "ByteFallback", "type", "Fuse");
    if (w->space_prefix)
        steps = appended(steps, json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip", "content", " ",
                                          "start", 1, "stop", 0));
    return json_pack("{s:s, s:o}", "type", "Sequence", "decoders", steps);
}

rlhf_status rlhf__gguf_tokenizer(const struct rlhf__gguf_file *f, const char *path, json_t **out,
                                 struct rlhf__error *err) {
    struct rlhf__gguf_words w;
    struct rlhf__vocab pieces = {0};
    json_t *merges = NULL;
    *out = NULL;
    RLHF_TRY(rlhf__gguf_words_read(f, path, &w, err));
    json_t *vocab = json_object(), *added = json_array();
    rlhf_status st = put_tokens(&w, vocab, added, &pieces, err);
    if (st == RLHF_OK) st = make_merges(&w, &pieces, &merges, err);
    rlhf__vocab_finish(&pieces);
    if (st != RLHF_OK) {
        json_decref(vocab);
        json_decref(added);
        return st;
    }
    json_t *model = json_pack(
        "{s:s, s:n, s:o, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout", "unk_token",
        w.spm ? word(&w, w.id[RLHF__GGUF_UNK]) : json_null(), "continuing_subword_prefix",
        "end_of_word_suffix", "fuse_unk", w.spm, "byte_fallback", w.spm, "ignore_merges",
        w.pre && w.pre->ignores_merges, "vocab", vocab, "merges", merges);
    *out = json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:o, s:o, s:o}", "version", "1.0",
                     "truncation", "padding", "added_tokens", added, "normalizer", normalizer(&w),
                     "pre_tokenizer", w.pre ? rlhf__gguf_pre_json(w.pre) : json_null(),
                     "post_processor", post_processor(&w), "decoder", decoder(&w), "model", model);
    return *out ? RLHF_OK : no_memory(err);
}

// ---- settings ----

// Sets *out to the text of a template; NULL: missing.
static rlhf_status template_of(const struct rlhf__gguf_file *f, const char *path, const char *key,
                               json_t **out, struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = rlhf__gguf_find(f, key);
    const char *text;
    size_t n;
    *out = NULL;
    if (!v) return RLHF_OK;
    RLHF_TRY(rlhf__gguf_value_str(v, &text, &n, err));
    *out = json_stringn(text, n);
    return *out ? RLHF_OK
                : rlhf__fail(err, RLHF_E_INVALID, "%s: %s is not a text in UTF-8", path, key);
}

static rlhf_status add_named(const struct rlhf__gguf_file *f, const char *path,
                             const struct rlhf__gguf_value *names, json_t *list,
                             struct rlhf__error *err) {
    size_t n, len;
    RLHF_TRY(rlhf__gguf_value_count(names, RLHF__GGUF_STR, &n, err));
    for (size_t i = 0; i < n; i++) {
        char key[256];
        json_t *text;
        const char *name = rlhf__gguf_item_text(names, i, &len);
        if (len > 160 || rlhf__utf8_valid(name, len) != len || memchr(name, 0, len))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: tokenizer.chat_templates has a name that is not a text of at "
                              "most 160 bytes",
                              path);
        snprintf(key, sizeof key, "tokenizer.chat_template.%.*s", (int)len, name);
        RLHF_TRY(template_of(f, path, key, &text, err));
        if (text && json_array_append_new(
                        list, json_pack("{s:s%, s:o}", "name", name, len, "template", text)) != 0)
            return no_memory(err);
    }
    return RLHF_OK;
}

// A string or, with named templates, a list. NULL: none.
static rlhf_status templates(const struct rlhf__gguf_file *f, const char *path, json_t **out,
                             struct rlhf__error *err) {
    const struct rlhf__gguf_value *names = rlhf__gguf_find(f, "tokenizer.chat_templates");
    RLHF_TRY(template_of(f, path, "tokenizer.chat_template", out, err));
    if (!names) return RLHF_OK;
    json_t *list = json_array();
    if (*out) list = appended(list, json_pack("{s:s, s:o}", "name", "default", "template", *out));
    *out = list;
    return list ? add_named(f, path, names, list, err) : no_memory(err);
}

// Frees *out if it is not complete.
static rlhf_status done(json_t **out, int failed, struct rlhf__error *err) {
    if (*out && !failed) return RLHF_OK;
    json_decref(*out);
    *out = NULL;
    return no_memory(err);
}

rlhf_status rlhf__gguf_tokenizer_config(const struct rlhf__gguf_file *f, const char *path,
                                        json_t **out, struct rlhf__error *err) {
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    struct rlhf__gguf_words w;
    json_t *chat = NULL;
    *out = NULL;
    RLHF_TRY(rlhf__gguf_words_read(f, path, &w, err));
    const rlhf_status st = templates(f, path, &chat, err);
    if (st != RLHF_OK) {
        json_decref(chat);
        return st;
    }
    *out = json_pack("{s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
                     "clean_up_tokenization_spaces", 0);
    int failed = 0;
    for (int32_t r = 0; r < 4; r++)
        if (w.id[r] >= 0) failed |= json_object_set_new(*out, names[r], word(&w, w.id[r]));
    if (chat) failed |= json_object_set_new(*out, "chat_template", chat);
    return done(out, failed, err);
}

// The token that ends a turn, found by its text; -1: none.
static int32_t find_eot(const struct rlhf__gguf_words *w) {
    static const char *const texts[] = {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        for (int32_t i = 0; i < w->n; i++) {
            size_t n;
            const char *text = rlhf__gguf_word(w, i, &n);
            if (n == strlen(texts[k]) && memcmp(text, texts[k], n) == 0) return i;
        }
    return -1;
}

rlhf_status rlhf__gguf_generation_config(const struct rlhf__gguf_file *f, const char *path,
                                         json_t **out, struct rlhf__error *err) {
    struct rlhf__gguf_words w;
    RLHF_TRY(rlhf__gguf_words_read(f, path, &w, err));
    const int32_t eot = w.id[RLHF__GGUF_EOT] >= 0 ? w.id[RLHF__GGUF_EOT] : find_eot(&w);
    const int32_t ends[] = {w.id[RLHF__GGUF_EOS], eot, w.id[RLHF__GGUF_EOM]};
    json_t *list = json_array();
    for (size_t i = 0; i < 3; i++) {
        int known = ends[i] < 0;
        for (size_t k = 0; k < i; k++)
            known |= ends[k] == ends[i];
        if (!known) list = appended(list, json_integer(ends[i]));
    }
    *out = json_object();
    int failed = 0;
    if (w.id[RLHF__GGUF_BOS] >= 0)
        failed |= json_object_set_new(*out, "bos_token_id", json_integer(w.id[RLHF__GGUF_BOS]));
    failed |= json_object_set_new(*out, "eos_token_id", list);
    if (w.id[RLHF__GGUF_PAD] >= 0)
        failed |= json_object_set_new(*out, "pad_token_id", json_integer(w.id[RLHF__GGUF_PAD]));
    return done(out, failed, err);
}
