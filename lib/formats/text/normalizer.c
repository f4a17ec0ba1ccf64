// normalizer.c: see normalizer.h. The types of steps come first, followed by the functions that
// read and run a list of steps.
#include "text/normalizer.h"

#include "base/json.h"
#include "text/normal_form.h"
#include "text/pattern.h"
#include "text/tokenizer_part.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

// ---- BERT's text cleaning ----

static int is_cjk(uint32_t cp) {
    return (cp >= 0x4E00 && cp <= 0x9FFF) || (cp >= 0x3400 && cp <= 0x4DBF) ||
           (cp >= 0x20000 && cp <= 0x2A6DF) || (cp >= 0x2A700 && cp <= 0x2B73F) ||
           (cp >= 0x2B740 && cp <= 0x2B81F) || (cp >= 0x2B920 && cp <= 0x2CEAF) ||
           (cp >= 0xF900 && cp <= 0xFAFF) || (cp >= 0x2F800 && cp <= 0x2FA1F);
}

static void put(struct rlhf__buf *out, uint32_t cp) {
    char c[4];
    rlhf__buf_put(out, c, rlhf__utf8_put(cp, c));
}

// Append s[0..n) to `out`. If `clean` is set, drop control characters, NUL and U+FFFD, and replace
// white space with ' '. If split_cjk is set, put spaces around CJK ideographs. Invalid UTF-8 is
// treated as U+FFFD.
static void bert_clean(const struct rlhf__bert_opts *opts, const char *s, size_t n,
                       struct rlhf__buf *out) {
    for (size_t at = 0; at < n;) {
        uint32_t cp = 0xFFFD;
        size_t bad = 1, len = rlhf__utf8_next(s + at, n - at, &cp, &bad);
        at += len ? len : bad;
        if (!len) cp = 0xFFFD;
        if (opts->clean && (cp == 0 || cp == 0xFFFD || rlhf__unicode_is_control(cp))) continue;
        if (opts->clean && rlhf__unicode_is_space(cp)) cp = ' ';
        int apart = opts->split_cjk && is_cjk(cp);
        if (apart) put(out, ' ');
        put(out, cp);
        if (apart) put(out, ' ');
    }
}

// Appends s[0..n) to `out`. Depending on the options, converts the text to lower case and drops
// accents (non-spacing marks). To drop accents, s must be in NFD.
static void bert_finish(const struct rlhf__bert_opts *opts, const char *s, size_t n,
                        struct rlhf__buf *out) {
    for (size_t at = 0, len; at < n; at += len) {
        uint32_t cp = 0, lower[2];
        len = rlhf__utf8_next(s + at, n - at, &cp, NULL);
        if (!len) len = 1; // always advance
        if (opts->strip_accents && rlhf__unicode_is_accent(cp)) continue;
        size_t k = 1;
        lower[0] = cp;
        if (opts->lower) k = rlhf__unicode_lower(cp, lower);
        for (size_t i = 0; i < k; i++)
            put(out, lower[i]);
    }
}

// ---- steps ----

enum { STEPS_MAX = 16 };

struct step {
    // Append the result of applying the step to s[0..n) to `out`, which is empty.
    // NULL for Replace, whose searches need more.
    rlhf_status (*apply)(const struct step *step, const char *s, size_t n, struct rlhf__buf *out,
                         struct rlhf__error *err);
    struct rlhf__bert_opts bert;
    struct rlhf__pattern *pattern; // Replace: owned
    char *text;                    // owned; Replace: the replacement; Prepend: the prefix
    size_t n_text;
    int32_t is_bert, left, right; // Strip: remove white space on the left, on the right
    int32_t form;                 // utf8proc's options of NFC, NFD, NFKC, NFKD
};

struct rlhf__normalizer {
    struct step step[STEPS_MAX];
    size_t n;
};

static rlhf_status apply_bert(const struct step *step, const char *s, size_t n,
                              struct rlhf__buf *out, struct rlhf__error *err) {
    struct rlhf__buf clean = RLHF__BUF_INIT, form = RLHF__BUF_INIT;
    const struct rlhf__buf *last = &clean;
    bert_clean(&step->bert, s, n, &clean);
    rlhf_status st = rlhf__buf_ok(&clean, err);
    if (st == RLHF_OK && step->bert.strip_accents) {
        st = rlhf__normal_form(step->form, rlhf__buf_text(&clean), clean.len, &form, err);
        if (st == RLHF_OK) st = rlhf__buf_ok(&form, err);
        last = &form;
    }
    if (st == RLHF_OK) bert_finish(&step->bert, rlhf__buf_text(last), last->len, out);
    rlhf__buf_finish(&clean);
    rlhf__buf_finish(&form);
    return st;
}

static rlhf_status read_bert(const json_t *part, struct step *step) {
    const json_t *strip = json_object_get(part, "strip_accents");
    step->bert.clean = !json_is_false(json_object_get(part, "clean_text"));
    step->bert.lower = !json_is_false(json_object_get(part, "lowercase"));
    step->bert.strip_accents = json_is_boolean(strip) ? json_is_true(strip) : step->bert.lower;
    step->bert.split_cjk = !json_is_false(json_object_get(part, "handle_chinese_chars"));
    step->form = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE; // needed by strip_accents
    step->is_bert = 1;
    step->apply = apply_bert;
    return RLHF_OK;
}

// ---- character by character; invalid bytes stay ----

static rlhf_status apply_lower(const struct step *step, const char *s, size_t n,
                               struct rlhf__buf *out, struct rlhf__error *err) {
    (void)step;
    (void)err;
    for (size_t at = 0, len; at < n; at += len) {
        uint32_t cp = 0, lower[2];
        size_t bad = 1;
        len = rlhf__utf8_next(s + at, n - at, &cp, &bad);
        if (!len) {
            rlhf__buf_put(out, s + at, len = bad);
            continue;
        }
        size_t k = rlhf__unicode_lower(cp, lower);
        for (size_t i = 0; i < k; i++) {
            char c[4];
            rlhf__buf_put(out, c, rlhf__utf8_put(lower[i], c));
        }
    }
    return RLHF_OK;
}

static rlhf_status apply_strip_accents(const struct step *step, const char *s, size_t n,
                                       struct rlhf__buf *out, struct rlhf__error *err) {
    (void)step;
    (void)err;
    for (size_t at = 0, len; at < n; at += len) {
        uint32_t cp = 0;
        size_t bad = 1;
        len = rlhf__utf8_next(s + at, n - at, &cp, &bad);
        int mark = len && rlhf__unicode_is_mark(cp);
        if (!len) len = bad;
        if (!mark) rlhf__buf_put(out, s + at, len);
    }
    return RLHF_OK;
}

// space_before returns the length of the white space at the beginning of s[0..n), and space_behind
// that of the white space at its end.
static size_t space_before(const char *s, size_t n) {
    uint32_t cp = 0;
    size_t at = 0, len;
    while (at < n && (len = rlhf__utf8_next(s + at, n - at, &cp, NULL)) != 0 &&
           rlhf__unicode_is_space(cp))
        at += len;
    return at;
}

static size_t space_behind(const char *s, size_t n) {
    size_t end = n;
    while (end > 0) {
        size_t at = end - 1;
        uint32_t cp = 0;
        while (at > 0 && end - at < 4 && ((uint8_t)s[at] & 0xC0) == 0x80)
            at--;
        if (rlhf__utf8_next(s + at, end - at, &cp, NULL) != end - at || !rlhf__unicode_is_space(cp))
            break;
        end = at;
    }
    return n - end;
}

static rlhf_status apply_strip(const struct step *step, const char *s, size_t n,
                               struct rlhf__buf *out, struct rlhf__error *err) {
    (void)err;
    size_t skip = step->left ? space_before(s, n) : 0;
    size_t drop = step->right ? space_behind(s + skip, n - skip) : 0;
    rlhf__buf_put(out, s + skip, n - skip - drop);
    return RLHF_OK;
}

// ---- Prepend and Replace ----

static rlhf_status apply_prepend(const struct step *step, const char *s, size_t n,
                                 struct rlhf__buf *out, struct rlhf__error *err) {
    if (!n) return RLHF_OK;
    RLHF_TRY(rlhf__normal_room(out, step->n_text, err));
    rlhf__buf_put(out, step->text, step->n_text);
    rlhf__buf_put(out, s, n);
    return RLHF_OK;
}

// Replaces the matches in a run of valid UTF-8.
static rlhf_status replace_run(const struct step *step, const char *s, size_t n,
                               struct rlhf__search *match, struct rlhf__buf *out,
                               struct rlhf__error *err) {
    size_t from = 0;
    rlhf_status st = 0;
    rlhf__search_reset(match, n);
    while (n && (st = rlhf__pattern_next(step->pattern, s, n, match, err)) == 1) {
        RLHF_TRY(rlhf__normal_room(out, match->begin - from + step->n_text, err));
        rlhf__buf_put(out, s + from, match->begin - from);
        rlhf__buf_put(out, step->text, step->n_text);
        from = match->end;
    }
    rlhf__buf_put(out, s + from, n - from);
    return st;
}

static rlhf_status apply_replace(const struct step *step, const char *s, size_t n,
                                 struct rlhf__search *match, struct rlhf__buf *out,
                                 struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    for (size_t at = 0; at < n && st == RLHF_OK;) {
        size_t good = rlhf__utf8_valid(s + at, n - at), bad = 1;
        st = replace_run(step, s + at, good, match, out, err);
        at += good;
        if (at == n) break;
        rlhf__utf8_next(s + at, n - at, NULL, &bad);
        rlhf__buf_put(out, s + at, bad);
        at += bad;
    }
    return st;
}

// ---- reading ----

// Sets step->text from a string member.
static rlhf_status read_text(const json_t *part, const char *key, struct step *step,
                             struct rlhf__error *err) {
    const json_t *value = json_object_get(part, key);
    if (!json_is_string(value))
        return rlhf__fail(err, RLHF_E_INVALID, "the normalizer %s: %s: expected a text, found %s",
                          rlhf__part_type(part), key, rlhf__json_kind(value));
    step->n_text = json_string_length(value);
    step->text = malloc(step->n_text + 1);
    if (!step->text) return RLHF__NOMEM(err, "out of memory for a tokenizer");
    memcpy(step->text, json_string_value(value), step->n_text);
    return RLHF_OK;
}

static rlhf_status read_replace(const json_t *part, struct step *step, struct rlhf__error *err) {
    RLHF_TRY(read_text(part, "content", step, err));
    rlhf_status st = rlhf__pattern_read(json_object_get(part, "pattern"), &step->pattern, err);
    if (st < 0) rlhf__error_context(err, "the normalizer Replace");
    return st;
}

static rlhf_status apply_form(const struct step *step, const char *s, size_t n,
                              struct rlhf__buf *out, struct rlhf__error *err) {
    return rlhf__normal_form(step->form, s, n, out, err);
}

// utf8proc's options for NFC, NFD, NFKC or NFKD; 0 = another type.
static int32_t form_of(const char *type) {
    if (strncmp(type, "NF", 2) != 0) return 0;
    const char *name = type + 2;
    int32_t form = UTF8PROC_STABLE;
    if (*name == 'K') {
        form |= UTF8PROC_COMPAT;
        name++;
    }
    if (!strcmp(name, "C")) return form | UTF8PROC_COMPOSE;
    return strcmp(name, "D") ? 0 : form | UTF8PROC_DECOMPOSE;
}

// Fill *step, which is zeroed, from a part of tokenizer.json that is not a Sequence. finish_step
// releases the step, even after a failure.
static rlhf_status read_step(const json_t *part, struct step *step, struct rlhf__error *err) {
    const char *type = rlhf__part_type(part);
    if (!strcmp(type, "BertNormalizer")) return read_bert(part, step);
    if (!strcmp(type, "Replace")) return read_replace(part, step, err);
    step->form = form_of(type);
    step->left = json_is_true(json_object_get(part, "strip_left"));
    step->right = json_is_true(json_object_get(part, "strip_right"));
    if (step->form) {
        step->apply = apply_form;
    } else if (!strcmp(type, "Lowercase")) {
        step->apply = apply_lower;
    } else if (!strcmp(type, "StripAccents")) {
        step->apply = apply_strip_accents;
    } else if (!strcmp(type, "Strip")) {
        step->apply = apply_strip;
    } else if (!strcmp(type, "Prepend")) {
        step->apply = apply_prepend;
        return read_text(part, "prepend", step, err);
    } else {
        return rlhf__part_refuse("normalizer", part,
                                 "NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, Strip, "
                                 "StripAccents, BertNormalizer, a Sequence of them",
                                 err);
    }
    return RLHF_OK;
}

static void finish_step(struct step *step) {
    rlhf__pattern_close(step->pattern);
    free(step->text);
}

// ---- the list of steps ----

static rlhf_status add_step(struct rlhf__normalizer *list, const json_t *part,
                            struct rlhf__error *err) {
    if (list->n == STEPS_MAX)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "the normalizer has more than %d steps",
                          STEPS_MAX);
    return read_step(part, &list->step[list->n++], err);
}

static rlhf_status add_all(struct rlhf__normalizer *list, const json_t *part, int depth,
                           struct rlhf__error *err) {
    if (!part || json_is_null(part)) return RLHF_OK;
    if (!rlhf__part_is(part, "Sequence")) return add_step(list, part, err);
    const json_t *inner = json_object_get(part, "normalizers"), *item;
    if (depth == RLHF__PART_DEPTH_MAX)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "the normalizer has sequences inside sequences");
    if (!json_is_array(inner))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the normalizer Sequence: normalizers: expected an array, found %s",
                          rlhf__json_kind(inner));
    size_t i;
    json_array_foreach(inner, i, item) RLHF_TRY(add_all(list, item, depth + 1, err));
    return RLHF_OK;
}

rlhf_status rlhf__normalizer_open(const json_t *part, struct rlhf__normalizer **out,
                                  struct rlhf__error *err) {
    struct rlhf__normalizer *list = calloc(1, sizeof *list);
    *out = NULL;
    if (!list) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a tokenizer");
    rlhf_status st = add_all(list, part, 0, err);
    if (st < 0 || !list->n)
        rlhf__normalizer_close(list);
    else
        *out = list;
    return st;
}

void rlhf__normalizer_close(struct rlhf__normalizer *normalizer) {
    if (!normalizer) return;
    for (size_t i = 0; i < normalizer->n; i++)
        finish_step(&normalizer->step[i]);
    free(normalizer);
}

rlhf_status rlhf__normalizer_apply(const struct rlhf__normalizer *normalizer, const char *s,
                                   size_t n, struct rlhf__search *match, struct rlhf__buf *out,
                                   struct rlhf__buf *spare, struct rlhf__error *err) {
    for (size_t i = 0; i < normalizer->n; i++) {
        struct rlhf__buf last = *out; // the previous step's output
        *out = *spare;
        *spare = last;
        if (i) {
            s = rlhf__buf_text(spare);
            n = spare->len;
        }
        rlhf__buf_clear(out);
        const struct step *step = &normalizer->step[i];
        RLHF_TRY(step->pattern ? apply_replace(step, s, n, match, out, err)
                               : step->apply(step, s, n, out, err));
        RLHF_TRY(rlhf__buf_ok(out, err));
        RLHF_TRY(rlhf__normal_room(out, 0, err));
    }
    return RLHF_OK;
}

struct rlhf__bert_opts *rlhf__normalizer_bert(struct rlhf__normalizer *normalizer) {
    for (size_t i = 0; normalizer && i < normalizer->n; i++)
        if (normalizer->step[i].is_bert) return &normalizer->step[i].bert;
    return NULL;
}
