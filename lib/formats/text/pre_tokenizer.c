// pre_tokenizer.c: see pre_tokenizer.h. Reading each type of step and the list of them.
#include "text/pre_tokenizer.h"

#include "base/json.h"
#include "text/pre_tokenizer_cut.h"
#include "text/tokenizer_part.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

// ---- steps ----

static rlhf_status invalid(const char *type, const char *key, const json_t *found,
                           const char *allowed, struct rlhf__error *err) {
    const char *text = json_string_value(found);
    return rlhf__fail(err, RLHF_E_INVALID, "the pre_tokenizer %s: %s: expected %s, found %s%.40s%s",
                      type, key, allowed, text ? "'" : "", text ? text : rlhf__json_kind(found),
                      text ? "'" : "");
}

// "behavior", or `fallback` if it is not given.
static rlhf_status read_behaviour(const json_t *part, int32_t fallback, int32_t *out,
                                  struct rlhf__error *err) {
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const json_t *behaviour = json_object_get(part, "behavior");
    *out = fallback;
    if (!behaviour && fallback >= 0) return RLHF_OK;
    for (int32_t i = 0; i < 5 && json_is_string(behaviour); i++) {
        if (strcmp(json_string_value(behaviour), names[i]) != 0) continue;
        *out = i;
        return RLHF_OK;
    }
    return invalid(rlhf__part_type(part), "behavior", behaviour,
                   "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous", err);
}

static rlhf_status read_split(const json_t *part, struct rlhf__cut_step *step,
                              struct rlhf__error *err) {
    RLHF_TRY(read_behaviour(part, -1, &step->behaviour, err));
    step->invert = json_is_true(json_object_get(part, "invert"));
    rlhf_status st = rlhf__pattern_read(json_object_get(part, "pattern"), &step->pattern, err);
    if (st < 0) rlhf__error_context(err, "the pre_tokenizer Split");
    return st;
}

static rlhf_status read_byte_level(const json_t *part, struct rlhf__cut_step *step,
                                   struct rlhf__error *err) {
    step->behaviour = RLHF__CUT_ISOLATED;
    if (json_is_true(json_object_get(part, "add_prefix_space"))) {
        step->space[0] = ' ';
        step->n_space = 1;
        step->prefix = RLHF__PREFIX_ALWAYS;
    }
    if (json_is_false(json_object_get(part, "use_regex"))) return RLHF_OK;
    return rlhf__pattern_create(RLHF__PATTERN_GPT2, strlen(RLHF__PATTERN_GPT2), 1, &step->pattern,
                                err);
}

// One character; UTF-8 in out, its length in *n.
static rlhf_status read_character(const json_t *part, const char *key, char out[4], size_t *n,
                                  struct rlhf__error *err) {
    const json_t *value = json_object_get(part, key);
    const char *text = json_string_value(value);
    size_t len = json_string_length(value);
    size_t first = len ? rlhf__utf8_next(text, len, NULL, NULL) : 0;
    if (!first || first != len)
        return invalid(rlhf__part_type(part), key, value, "one character", err);
    memcpy(out, text, len);
    *n = len;
    return RLHF_OK;
}

static rlhf_status read_metaspace(const json_t *part, struct rlhf__cut_step *step,
                                  struct rlhf__error *err) {
    const json_t *scheme = json_object_get(part, "prepend_scheme");
    const char *name = json_string_value(scheme);
    RLHF_TRY(read_character(part, "replacement", step->space, &step->n_space, err));
    if (!scheme || (name && !strcmp(name, "always")))
        step->prefix = RLHF__PREFIX_ALWAYS;
    else if (name && !strcmp(name, "first"))
        step->prefix = RLHF__PREFIX_FIRST;
    else if (name && !strcmp(name, "never"))
        step->prefix = RLHF__PREFIX_NEVER;
    else
        return invalid("Metaspace", "prepend_scheme", scheme, "always, first or never", err);
    if (json_is_false(json_object_get(part, "add_prefix_space")) &&
        step->prefix != RLHF__PREFIX_NEVER)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the pre_tokenizer Metaspace: add_prefix_space = false contradicts its "
                          "prepend_scheme; allowed beside it: never");
    step->replaces = 1;
    step->behaviour = RLHF__CUT_NEXT;
    if (json_is_false(json_object_get(part, "split"))) return RLHF_OK;
    json_t *pattern = json_pack("{s:s%}", "String", step->space, step->n_space);
    if (!pattern) return RLHF__NOMEM(err, "out of memory for a tokenizer");
    rlhf_status st = rlhf__pattern_read(pattern, &step->pattern, err);
    json_decref(pattern);
    return st;
}

static rlhf_status read_delimiter(const json_t *part, struct rlhf__cut_step *step,
                                  struct rlhf__error *err) {
    char text[4];
    size_t n = 0;
    RLHF_TRY(read_character(part, "delimiter", text, &n, err));
    json_t *pattern = json_pack("{s:s%}", "String", text, n);
    if (!pattern) return RLHF__NOMEM(err, "out of memory for a tokenizer");
    rlhf_status st = rlhf__pattern_read(pattern, &step->pattern, err);
    json_decref(pattern);
    return st;
}

// The words of Whitespace, \w+|[^\w\s]+ in Rust's regular expressions, whose \w includes joiners
// and excludes superscripts; text between matches is dropped.
static rlhf_status read_whitespace(struct rlhf__cut_step *step, struct rlhf__error *err) {
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}"
    static const char words[] = "[" WORD "]+|[^" WORD "\\s]+";
    step->invert = 1;
    return rlhf__pattern_create(words, sizeof words - 1, 1, &step->pattern, err);
}

static rlhf_status read_one(const json_t *part, struct rlhf__pre_tokenizer *pre,
                            struct rlhf__error *err) {
    struct rlhf__cut_step *step = &pre->step[pre->n++];
    const char *type = rlhf__part_type(part);
    if (!strcmp(type, "ByteLevel")) {
        pre->bytes = 1;
        return read_byte_level(part, step, err);
    }
    if (!strcmp(type, "Split")) return read_split(part, step, err);
    if (!strcmp(type, "Metaspace")) return read_metaspace(part, step, err);
    if (!strcmp(type, "CharDelimiterSplit")) return read_delimiter(part, step, err);
    if (!strcmp(type, "Whitespace")) return read_whitespace(step, err);
    if (!strcmp(type, "WhitespaceSplit")) {
        step->is = rlhf__unicode_is_space; // removed
    } else if (!strcmp(type, "Digits")) {
        step->is = rlhf__unicode_is_number;
        step->behaviour = json_is_true(json_object_get(part, "individual_digits"))
                              ? RLHF__CUT_ISOLATED
                              : RLHF__CUT_RUNS;
    } else if (!strcmp(type, "Punctuation")) {
        step->is = rlhf__unicode_is_punct;
        return read_behaviour(part, RLHF__CUT_ISOLATED, &step->behaviour, err);
    } else if (!strcmp(type, "BertPreTokenizer")) {
        step->is = rlhf__unicode_is_space;
        pre->step[pre->n++] =
            (struct rlhf__cut_step){.is = rlhf__unicode_is_punct, .behaviour = RLHF__CUT_ISOLATED};
    } else {
        pre->n--;
        return rlhf__part_refuse("pre_tokenizer", part,
                                 "Split, ByteLevel, Digits, Metaspace, Whitespace, "
                                 "WhitespaceSplit, Punctuation, CharDelimiterSplit, "
                                 "BertPreTokenizer, a Sequence of them",
                                 err);
    }
    return RLHF_OK;
}

// Add the steps of a part of tokenizer.json other than a Sequence.
static rlhf_status read_steps(const json_t *part, struct rlhf__pre_tokenizer *pre,
                              struct rlhf__error *err) {
    if (pre->bytes)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the pre_tokenizer '%.60s' behind ByteLevel is not supported; allowed: "
                          "ByteLevel as the last of a Sequence",
                          rlhf__part_type(part));
    if (pre->n + 2 > RLHF__CUT_STEPS_MAX) // BERT's is two
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "the pre_tokenizer has more than %d steps",
                          RLHF__CUT_STEPS_MAX - 1);
    return read_one(part, pre, err);
}

// ---- the list of steps ----

static rlhf_status add_all(struct rlhf__pre_tokenizer *pre, const json_t *part, int depth,
                           struct rlhf__error *err) {
    if (!part || json_is_null(part)) return RLHF_OK;
    if (!rlhf__part_is(part, "Sequence")) return read_steps(part, pre, err);
    const json_t *inner = json_object_get(part, "pretokenizers"), *item;
    if (depth == RLHF__PART_DEPTH_MAX)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the pre_tokenizer has sequences inside sequences");
    if (!json_is_array(inner))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the pre_tokenizer Sequence: pretokenizers: expected an array, found %s",
                          rlhf__json_kind(inner));
    size_t i;
    json_array_foreach(inner, i, item) RLHF_TRY(add_all(pre, item, depth + 1, err));
    return RLHF_OK;
}

rlhf_status rlhf__pre_tokenizer_create(const json_t *part, struct rlhf__pre_tokenizer **out,
                                       struct rlhf__error *err) {
    struct rlhf__pre_tokenizer *pre = calloc(1, sizeof *pre);
    *out = NULL;
    if (!pre) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a tokenizer");
    rlhf_status st = add_all(pre, part, 0, err);
    if (st < 0 || (!pre->n && !pre->bytes))
        rlhf__pre_tokenizer_destroy(pre);
    else
        *out = pre;
    return st;
}

void rlhf__pre_tokenizer_destroy(struct rlhf__pre_tokenizer *pre) {
    if (!pre) return;
    for (size_t i = 0; i < pre->n; i++)
        rlhf__pattern_destroy(pre->step[i].pattern);
    free(pre);
}

int rlhf__pre_tokenizer_bytes(const struct rlhf__pre_tokenizer *pre) { return pre && pre->bytes; }
