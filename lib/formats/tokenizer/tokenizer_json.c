// tokenizer_json.c: reads tokenizer.json, the file format of the tokenizers library. This file
// reads the model; the other parts of the pipeline have separate readers.
//
// If the file contains a part that changes ids but is not implemented, the file is refused, and the
// message names the part's type.
#include "tokenizer/tokenizer_impl.h"

#include "base/json.h"
#include "gguf/model_text.h"
#include "text/tokenizer_part.h"
#include "tokenizer/added_read.h"
#include "tokenizer/tokenizer_config.h"

#include <stdlib.h>
#include <string.h>

// ---- vocabulary and merges ----

// In a byte-level vocabulary, a token that is not written in stand-ins is an added token in plain
// text. Such a token keeps its bytes, and merges cannot produce it.
rlhf_status rlhf__tokenizer_add_vocab(struct rlhf__tokenizer *tok, json_t *vocab, int byte_level,
                                      struct rlhf__error *err) {
    if (!json_object_size(vocab))
        return rlhf__fail(err, RLHF_E_INVALID, "the vocabulary has no tokens");
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
            tok->vocab.token[at].special = !tok->has_json; // tokenizer.json has added_tokens
        else
            rlhf__vocab_hash(&tok->vocab, at);
    }
    free(bytes);
    return st;
}

// Writes the bytes of a token to `out`. Returns their number, or SIZE_MAX if the token is not
// written in stand-ins.
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

// ---- the file ----

static int text_is(const json_t *v, const char *key, const char *want) {
    const char *s = json_string_value(json_object_get(v, key));
    return !s || strcmp(s, want) == 0;
}

static int is_set(const json_t *model, const char *key) {
    return json_is_true(json_object_get(model, key));
}

// Checks the types of the model's options. Each option may also be null or missing.
static rlhf_status check_kinds(const json_t *model, struct rlhf__error *err) {
    static const struct {
        const char *key, *want;
        int text, number, flag;
    } kinds[] = {
        {"dropout", "a number", 0, 1, 0},
        {"unk_token", "a text", 1, 0, 0},
        {"fuse_unk", "true or false", 0, 0, 1},
        {"continuing_subword_prefix", "a text", 1, 0, 0},
        {"end_of_word_suffix", "a text", 1, 0, 0},
        {"byte_fallback", "true or false", 0, 0, 1},
        {"ignore_merges", "true or false", 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const json_t *v = json_object_get(model, kinds[i].key);
        if (!v || json_is_null(v) || (kinds[i].text && json_is_string(v)) ||
            (kinds[i].number && json_is_number(v)) || (kinds[i].flag && json_is_boolean(v)))
            continue;
        return rlhf__fail(err, RLHF_E_INVALID, "model.%s: expected %s, found %s", kinds[i].key,
                          kinds[i].want, rlhf__json_kind(v));
    }
    return RLHF_OK;
}

// Read the options of a BPE model except unk. An option that changes ids but is not implemented is
// refused.
static rlhf_status read_bpe_opts(struct rlhf__tokenizer *tok, const json_t *model,
                                 struct rlhf__error *err) {
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    if (json_number_value(json_object_get(model, "dropout")) > 0)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "a BPE model with dropout is not supported; allowed: null or 0");
    for (size_t i = 0; i < 2; i++)
        if (!text_is(model, affixes[i], ""))
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "a BPE model with %s is not supported; allowed: null or \"\"",
                              affixes[i]);
    tok->bpe_opts = (struct rlhf__bpe_opts){
        .bytes = rlhf__pre_tokenizer_bytes(tok->pre_tokenizer),
        .ignore_merges = is_set(model, "ignore_merges"),
        .byte_fallback = is_set(model, "byte_fallback"),
        .fuse_unk = is_set(model, "fuse_unk"),
        .unk = -1,
    };
    return RLHF_OK;
}

// Reads unk, the token for symbols that lack a token. Nearly all byte-level models have a token
// for every byte, so theirs may name an unk that does not exist; the library then fails only on a
// text that needs it, and here such bytes are dropped.
static rlhf_status read_unk(struct rlhf__tokenizer *tok, const json_t *model,
                            struct rlhf__error *err) {
    const char *text = json_string_value(json_object_get(model, "unk_token"));
    const json_t *id = text ? json_object_get(json_object_get(model, "vocab"), text) : NULL;
    if (id) tok->bpe_opts.unk = (int32_t)json_integer_value(id);
    if (!text || id || tok->bpe_opts.bytes) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "unk_token: '%.60s' is not in the vocabulary", text);
}

static rlhf_status read_bpe(struct rlhf__tokenizer *tok, const json_t *model,
                            struct rlhf__error *err) {
    const json_t *merges = json_object_get(model, "merges"), *item;
    tok->info.kind = RLHF__TOKENIZER_BPE;
    if (!json_is_array(merges))
        return rlhf__fail(err, RLHF_E_INVALID, "model.merges: expected an array, found %s",
                          rlhf__json_kind(merges));
    RLHF_TRY(read_bpe_opts(tok, model, err));
    int bytes = tok->bpe_opts.bytes;
    RLHF_TRY(rlhf__tokenizer_add_vocab(tok, json_object_get(model, "vocab"), bytes, err));
    RLHF_TRY(read_unk(tok, model, err));
    RLHF_TRY(rlhf__merges_init(&tok->merges, json_array_size(merges), err));
    size_t i;
    json_array_foreach(merges, i, item) {
        const char *left = json_string_value(json_is_array(item) ? json_array_get(item, 0) : item);
        const char *right = json_string_value(json_array_get(item, 1));
        size_t n_left = left ? strlen(left) : 0;
        if (left && !right) { // the older form, "left right"
            const char *space = strchr(left, ' ');
            right = space ? space + 1 : NULL;
            n_left = space ? (size_t)(space - left) : 0;
        }
        rlhf_status st = rlhf__tokenizer_add_merge(tok, bytes, left, right ? n_left : 0, right,
                                                   right ? strlen(right) : 0, (uint32_t)i, err);
        if (st < 0) {
            rlhf__error_context(err, "merge %zu", i);
            return st;
        }
    }
    return RLHF_OK;
}

static rlhf_status read_wordpiece(struct rlhf__tokenizer *tok, const json_t *model,
                                  struct rlhf__error *err) {
    const json_t *longest = json_object_get(model, "max_input_chars_per_word");
    tok->info.kind = RLHF__TOKENIZER_WORDPIECE;
    if (!text_is(model, "continuing_subword_prefix", "##") ||
        !text_is(model, "unk_token", "[UNK]") || (longest && json_integer_value(longest) != 100))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "a WordPiece model is only supported with the prefix ##, the token [UNK] "
                          "and words of up to 100 characters");
    return rlhf__tokenizer_add_vocab(tok, json_object_get(model, "vocab"), 0, err);
}

// Older files lack the model's type, but it follows from the model's members.
static const char *model_type(const json_t *model) {
    if (json_object_get(model, "type")) return rlhf__part_type(model);
    if (json_object_get(model, "merges")) return "BPE";
    return json_object_get(model, "max_input_chars_per_word") ? "WordPiece" : "none";
}

rlhf_status rlhf__tokenizer_read_cut(struct rlhf__tokenizer *tok, const json_t *file,
                                     struct rlhf__error *err) {
    RLHF_TRY(rlhf__normalizer_open(json_object_get(file, "normalizer"), &tok->normalizer, err));
    return rlhf__pre_tokenizer_open(json_object_get(file, "pre_tokenizer"), &tok->pre_tokenizer,
                                    err);
}

static rlhf_status read_file(struct rlhf__tokenizer *tok, const json_t *file,
                             struct rlhf__error *err) {
    static const char *const parts[] = {"normalizer", "pre_tokenizer", "post_processor", "decoder"};
    const json_t *model = json_object_get(file, "model");
    const json_t *added = json_object_get(file, "added_tokens");
    const char *type = model_type(model);
    if (json_is_object(model) && strcmp(type, "BPE") != 0 && strcmp(type, "WordPiece") != 0)
        return rlhf__part_refuse("model", model, "BPE, WordPiece", err);
    if (!json_is_object(json_object_get(model, "vocab")))
        return rlhf__fail(err, RLHF_E_INVALID, "model.vocab is missing or no object");
    RLHF_TRY(check_kinds(model, err));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        RLHF_TRY(rlhf__part_check(parts[i], json_object_get(file, parts[i]), err));
    RLHF_TRY(rlhf__tokenizer_read_cut(tok, file, err));
    tok->prefix = rlhf__tokenizer_prefix(file);
    RLHF_TRY(strcmp(type, "BPE") == 0 ? read_bpe(tok, model, err)
                                      : read_wordpiece(tok, model, err));
    RLHF_TRY(rlhf__decoder_open(json_object_get(file, "decoder"),
                                rlhf__pre_tokenizer_bytes(tok->pre_tokenizer), &tok->decoder, err));
    RLHF_TRY(rlhf__added_read(tok, added, err));
    return rlhf__frame_read(tok, json_object_get(file, "post_processor"), err);
}

rlhf_status rlhf__tokenizer_load_json(struct rlhf__tokenizer *tok, const char *dir,
                                      struct rlhf__error *err) {
    json_t *file = NULL;
    tok->has_json = 1;
    RLHF_TRY(rlhf__model_json(dir, "tokenizer.json", &file, err));
    rlhf_status st = read_file(tok, file, err);
    if (st < 0) rlhf__error_context(err, "%s/tokenizer.json", dir);
    json_decref(file);
    return st;
}
