// gguf_form.c: see gguf_form.h.
#include "gguf_write/gguf_form.h"

#include "base/buf.h"
#include "gguf/gguf_words.h"

#include <stdio.h>
#include <string.h>

static const char *type_of(const json_t *part) {
    const char *type = json_string_value(json_object_get(part, "type"));
    return json_is_null(part) || !part ? "none" : type ? type : "?";
}

static int is(const json_t *part, const char *type) { return strcmp(type_of(part), type) == 0; }

static rlhf_status refuse(const char *dir, const char *what, const char *type,
                          struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s/tokenizer.json: llama.cpp does not support %s %.200s", dir, what, type);
}

// Lists the parts of a Sequence in `list`, which has space for `cap` parts. If `part` is not a
// Sequence, lists `part` itself.
static size_t parts_of(const json_t *part, const char *member, const json_t **list, size_t cap) {
    if (!part || json_is_null(part)) return 0;
    if (!is(part, "Sequence")) {
        list[0] = part;
        return 1;
    }
    const json_t *all = json_object_get(part, member);
    for (size_t i = 0; i < json_array_size(all) && i < cap; i++)
        list[i] = json_array_get(all, i);
    return json_array_size(all);
}

static int flag(const json_t *part, const char *name, int fallback) {
    const json_t *v = json_object_get(part, name);
    return json_is_boolean(v) ? json_is_true(v) : fallback;
}

// ---- byte-level BPE ----

struct rlhf__gguf_form rlhf__gguf_form_gpt2(void) {
    return (struct rlhf__gguf_form){.pre = "gpt-2"};
}

static int is_byte_level(const json_t *part, int splits_itself) {
    return is(part, "ByteLevel") && !flag(part, "add_prefix_space", 1) &&
           flag(part, "use_regex", 1) == splits_itself;
}

// The first rule with these steps; NULL if llama.cpp lacks it.
static const char *rule(const char *split, int digits, int ignores_merges) {
    const struct rlhf__gguf_pre *r;
    for (size_t i = 0; (r = rlhf__gguf_pre_at(i)) != NULL; i++)
        if (r->digits == digits && r->ignores_merges == ignores_merges &&
            (split ? r->split && strcmp(r->split, split) == 0 : !r->split))
            return r->name;
    return NULL;
}

// Returns llama.cpp's name of the pre-tokenizer, or NULL if llama.cpp lacks it.
static const char *pre_of(const json_t *pre, int ignore_merges) {
    const json_t *p[4] = {NULL};
    const size_t n = parts_of(pre, "pretokenizers", p, 4);
    if (n == 1 && is_byte_level(p[0], 1)) return rule(NULL, 0, ignore_merges);
    if (n != 2) return NULL;
    if (is(p[0], "Digits") && flag(p[0], "individual_digits", 0) && is_byte_level(p[1], 1))
        return rule(NULL, 1, ignore_merges);
    const char *behavior = json_string_value(json_object_get(p[0], "behavior"));
    const char *regex =
        json_string_value(json_object_get(json_object_get(p[0], "pattern"), "Regex"));
    if (!is(p[0], "Split") || !regex || !behavior || strcmp(behavior, "Isolated") != 0 ||
        flag(p[0], "invert", 0) || !is_byte_level(p[1], 0))
        return NULL;
    return rule(regex, 0, ignore_merges);
}

static rlhf_status byte_level(const json_t *t, const char *dir, struct rlhf__gguf_form *out,
                              struct rlhf__error *err) {
    const json_t *normalizer = json_object_get(t, "normalizer");
    const json_t *pre = json_object_get(t, "pre_tokenizer");
    const int ignore = flag(json_object_get(t, "model"), "ignore_merges", 0);
    const json_t *p[4] = {NULL};
    // Qwen uses NFC. llama.cpp omits NFC but otherwise gives Qwen's tokens.
    const size_t n = parts_of(normalizer, "normalizers", p, 4);
    if (n > 1 || (n == 1 && !is(p[0], "NFC")))
        return refuse(dir, "the normalizer", type_of(n == 1 ? p[0] : normalizer), err);
    out->pre = pre_of(pre, ignore);
    if (out->pre) return RLHF_OK;
    char *text = json_dumps(pre, JSON_COMPACT | JSON_ENCODE_ANY);
    struct rlhf__buf what = RLHF__BUF_INIT;
    rlhf__buf_printf(&what, "%.160s%s", text ? text : "none", ignore ? " with ignore_merges" : "");
    rlhf_status st = refuse(dir, "the pre_tokenizer", rlhf__buf_text(&what), err);
    rlhf__buf_finish(&what);
    free(text);
    return st;
}

// ---- byte fallback ----

static int is_text(const json_t *part, const char *member, const char *want) {
    const char *text = json_string_value(json_object_get(part, member));
    return text && strcmp(text, want) == 0;
}

static int replaces_spaces(const json_t *part) {
    return is(part, "Replace") && is_text(json_object_get(part, "pattern"), "String", " ") &&
           is_text(part, "content", RLHF__GGUF_SPACE);
}

// Splits at spaces, of which the normalizer leaves none (Gemma).
static int splits_spaces(const json_t *part) {
    return is(part, "Split") && is_text(json_object_get(part, "pattern"), "String", " ");
}

// Requires that normalizers or a Metaspace pre-tokenizer replace spaces by U+2581. If they also
// prepend a space, sets out->space_prefix to 1.
static rlhf_status fallback(const json_t *t, const char *dir, struct rlhf__gguf_form *out,
                            struct rlhf__error *err) {
    const json_t *normalizer = json_object_get(t, "normalizer");
    const json_t *pre = json_object_get(t, "pre_tokenizer");
    const json_t *p[4] = {0}, *q[4] = {0};
    const size_t n = parts_of(normalizer, "normalizers", p, 4);
    const size_t m = parts_of(pre, "pretokenizers", q, 4);
    out->pre = "default";
    out->spm = 1;
    if (n == 2 && is(p[0], "Prepend") && is_text(p[0], "prepend", RLHF__GGUF_SPACE) &&
        replaces_spaces(p[1]))
        out->space_prefix = 1;
    else if (n == 1 && !replaces_spaces(p[0]))
        return refuse(dir, "the normalizer", type_of(p[0]), err);
    else if (n > 1)
        return refuse(dir, "the normalizer", type_of(normalizer), err);
    if (n > 0 && (m == 0 || (m == 1 && splits_spaces(q[0])))) return RLHF_OK;
    if (m != 1 || n > 0 || !is(q[0], "Metaspace") ||
        !is_text(q[0], "replacement", RLHF__GGUF_SPACE) || flag(q[0], "split", 1))
        return refuse(dir, "the pre_tokenizer", m == 1 ? type_of(q[0]) : type_of(pre), err);
    out->space_prefix = json_object_get(q[0], "prepend_scheme")
                            ? !is_text(q[0], "prepend_scheme", "never")
                            : flag(q[0], "add_prefix_space", 1);
    return RLHF_OK;
}

rlhf_status rlhf__gguf_form_of(const json_t *t, const char *dir, struct rlhf__gguf_form *out,
                               struct rlhf__error *err) {
    static const char *const odd[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const json_t *model = json_object_get(t, "model");
    *out = (struct rlhf__gguf_form){0};
    if (!is(model, "BPE")) return refuse(dir, "the model", type_of(model), err);
    for (size_t i = 0; i < 2; i++) {
        const char *text = json_string_value(json_object_get(model, odd[i]));
        if (text && *text) return refuse(dir, odd[i], text, err);
    }
    const json_t *dropout = json_object_get(model, "dropout");
    if (json_is_number(dropout) && json_number_value(dropout) > 0)
        return refuse(dir, "a model with", "dropout", err);
    if (flag(model, "byte_fallback", 0)) return fallback(t, dir, out, err);
    return byte_level(t, dir, out, err);
}

// ---- merges of a SentencePiece vocabulary ----

int rlhf__gguf_merge_of(const json_t *v, struct rlhf__gguf_merge *m) {
    if (json_is_array(v)) {
        const json_t *a = json_array_get(v, 0), *b = json_array_get(v, 1);
        *m = (struct rlhf__gguf_merge){json_string_value(a), json_string_value(b),
                                       json_string_length(a), json_string_length(b)};
        return m->left && m->right && m->n_left && m->n_right && json_array_size(v) == 2;
    }
    const char *text = json_string_value(v), *space = text ? strchr(text, ' ') : NULL;
    if (!space || space == text || !space[1]) return 0;
    *m = (struct rlhf__gguf_merge){text, space + 1, (size_t)(space - text), strlen(space + 1)};
    return 1;
}

// Fills `pairs` with {"left right": true} for each merge. Checks that merges with the same result
// are adjacent.
static rlhf_status index_merges(const json_t *merges, json_t *pairs, const char *dir,
                                struct rlhf__error *err) {
    json_t *seen = json_object();
    char key[1024], piece[1024], last[1024] = "";
    rlhf_status st = RLHF_OK;
    size_t i;
    const json_t *v;
    json_array_foreach(merges, i, v) {
        struct rlhf__gguf_merge m;
        if (!rlhf__gguf_merge_of(v, &m) || m.n_left + m.n_right + 2 > sizeof key) {
            st = rlhf__fail(err, RLHF_E_INVALID, "%s: merge %zu is not two tokens", dir, i);
            break;
        }
        snprintf(key, sizeof key, "%.*s %.*s", (int)m.n_left, m.left, (int)m.n_right, m.right);
        snprintf(piece, sizeof piece, "%.*s%.*s", (int)m.n_left, m.left, (int)m.n_right, m.right);
        json_object_set_new(pairs, key, json_true());
        if (strcmp(piece, last) == 0) continue;
        if (json_object_get(seen, piece)) {
            st = rlhf__fail(err, RLHF_E_INVALID,
                            "%s/tokenizer.json: the merges of '%.60s' do not stand together, and "
                            "llama.cpp orders pieces, not merges",
                            dir, piece);
            break;
        }
        json_object_set_new(seen, piece, json_true());
        snprintf(last, sizeof last, "%s", piece);
    }
    json_decref(seen);
    return st;
}

static rlhf_status check_piece(const char *piece, const json_t *vocab, const json_t *pairs,
                               const char *dir, struct rlhf__error *err) {
    const size_t n = strlen(piece);
    char left[1024], key[2100];
    if (n + 2 > sizeof key) return RLHF_OK; // too long for a merge
    for (size_t i = 1; i < n; i++) {
        if ((piece[i] & 0xC0) == 0x80) continue; // inside a character
        snprintf(left, sizeof left, "%.*s", (int)i, piece);
        if (!json_object_get(vocab, left) || !json_object_get(vocab, piece + i)) continue;
        snprintf(key, sizeof key, "%s %s", left, piece + i);
        if (!json_object_get(pairs, key))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s/tokenizer.json: '%.60s' and '%.60s' are pieces and so is their "
                              "sum, but they are not a merge: llama.cpp would join them anyway",
                              dir, left, piece + i);
    }
    return RLHF_OK;
}

rlhf_status rlhf__gguf_form_spm(const json_t *vocab, const json_t *merges, const json_t *added,
                                const char *dir, struct rlhf__error *err) {
    json_t *pairs = json_object(), *pieces = json_copy((json_t *)(uintptr_t)vocab);
    const char *piece;
    json_t *id, *v;
    size_t i;
    json_array_foreach(added, i, v) {
        const char *text = json_string_value(json_object_get(v, "content"));
        if (text) json_object_del(pieces, text); // the tokenizer finds these before any merge
    }
    rlhf_status st = index_merges(merges, pairs, dir, err);
    if (st == RLHF_OK) {
        json_object_foreach(pieces, piece, id) {
            st = check_piece(piece, pieces, pairs, dir, err);
            if (st != RLHF_OK) break;
        }
    }
    json_decref(pieces);
    json_decref(pairs);
    return st;
}
