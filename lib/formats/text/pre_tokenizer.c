// pre_tokenizer.c: see pre_tokenizer.h. Reads the list of steps, and splits texts with it.
#include "text/pre_tokenizer.h"

#include "base/json.h"
#include "text/pattern.h"
#include "text/tokenizer_part.h"
#include "text/unicode.h"
#include "text/word_rule.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 16 };

// What to do with a delimiter: the values of "behavior" in tokenizer.json, in the library's order.
enum behavior {
    CUT_REMOVED,
    CUT_ISOLATED,
    CUT_PREVIOUS, // it joins the piece before it
    CUT_NEXT,     // it joins the piece after it
    CUT_RUNS      // adjacent delimiters are joined, and so are adjacent other spans
};

enum prefix {
    PREFIX_NEVER,
    PREFIX_FIRST, // only at the beginning of the whole text
    PREFIX_ALWAYS
};

// `is` or `pattern` finds the delimiters. If both are NULL, the step finds none.
struct step {
    int (*is)(uint32_t cp);
    struct rlhf__pattern *pattern; // owned
    int32_t behavior, invert;      // `invert` 1: the text between matches is the delimiter
    // The step first changes the text, and then splits it. If `replaces` is 1, each space becomes
    // the character `space`. `prefix` says whether that character is put before a piece that does
    // not begin with it.
    char space[4];
    size_t n_space;
    int32_t prefix, replaces; // enum prefix
};

struct rlhf__pre_tokenizer {
    struct step step[STEPS_MAX];
    size_t n;
    int32_t bytes;     // 1: the model works on bytes
    size_t bytes_step; // the step ByteLevel; the library's later steps see stand-ins for bytes
};

// ---- reading a step ----

static rlhf_status invalid(const char *type, const char *key, const json_t *found,
                           const char *allowed, struct rlhf__error *err) {
    const char *text = json_string_value(found);
    return rlhf__fail(err, RLHF_E_INVALID, "the pre_tokenizer %s: %s: expected %s, found %s%.40s%s",
                      type, key, allowed, text ? "'" : "", text ? text : rlhf__json_kind(found),
                      text ? "'" : "");
}

// Reads "behavior"; a missing value is `fallback`.
static rlhf_status read_behavior(const json_t *part, int32_t fallback, int32_t *out,
                                 struct rlhf__error *err) {
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const json_t *behavior = json_object_get(part, "behavior");
    *out = fallback;
    if (!behavior && fallback >= 0) return RLHF_OK;
    for (int32_t i = 0; i < 5 && json_is_string(behavior); i++) {
        if (strcmp(json_string_value(behavior), names[i]) != 0) continue;
        *out = i;
        return RLHF_OK;
    }
    return invalid(rlhf__part_type(part), "behavior", behavior,
                   "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous", err);
}

static rlhf_status read_split(const json_t *part, struct step *step, struct rlhf__error *err) {
    RLHF_TRY(read_behavior(part, -1, &step->behavior, err));
    step->invert = json_is_true(json_object_get(part, "invert"));
    rlhf_status st = rlhf__pattern_read(json_object_get(part, "pattern"), &step->pattern, err);
    if (st < 0) rlhf__error_context(err, "the pre_tokenizer Split");
    return st;
}

static rlhf_status read_byte_level(const json_t *part, struct step *step, struct rlhf__error *err) {
    step->behavior = CUT_ISOLATED;
    if (json_is_true(json_object_get(part, "add_prefix_space"))) {
        step->space[0] = ' ';
        step->n_space = 1;
        step->prefix = PREFIX_ALWAYS;
    }
    if (json_is_false(json_object_get(part, "use_regex"))) return RLHF_OK;
    return rlhf__pattern_open(RLHF__PATTERN_GPT2, strlen(RLHF__PATTERN_GPT2), 1, &step->pattern,
                              err);
}

// Reads one character. Writes its UTF-8 to `out` and the length of the UTF-8 to *n.
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

static rlhf_status read_metaspace(const json_t *part, struct step *step, struct rlhf__error *err) {
    const json_t *scheme = json_object_get(part, "prepend_scheme");
    const char *name = json_string_value(scheme);
    RLHF_TRY(read_character(part, "replacement", step->space, &step->n_space, err));
    if (!scheme || (name && !strcmp(name, "always")))
        step->prefix = PREFIX_ALWAYS;
    else if (name && !strcmp(name, "first"))
        step->prefix = PREFIX_FIRST;
    else if (name && !strcmp(name, "never"))
        step->prefix = PREFIX_NEVER;
    else
        return invalid("Metaspace", "prepend_scheme", scheme, "always, first or never", err);
    if (json_is_false(json_object_get(part, "add_prefix_space")) && step->prefix != PREFIX_NEVER)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the pre_tokenizer Metaspace: add_prefix_space = false contradicts its "
                          "prepend_scheme; allowed with it: never");
    step->replaces = 1;
    step->behavior = CUT_NEXT;
    if (json_is_false(json_object_get(part, "split"))) return RLHF_OK;
    json_t *pattern = json_pack("{s:s%}", "String", step->space, step->n_space);
    if (!pattern) return RLHF__NOMEM(err, "out of memory for a tokenizer");
    rlhf_status st = rlhf__pattern_read(pattern, &step->pattern, err);
    json_decref(pattern);
    return st;
}

static rlhf_status read_delimiter(const json_t *part, struct step *step, struct rlhf__error *err) {
    char text[4];
    size_t n = 0;
    RLHF_TRY(read_character(part, "delimiter", text, &n, err));
    json_t *pattern = json_pack("{s:s%}", "String", text, n);
    if (!pattern) return RLHF__NOMEM(err, "out of memory for a tokenizer");
    rlhf_status st = rlhf__pattern_read(pattern, &step->pattern, err);
    json_decref(pattern);
    return st;
}

// The words of the step `Whitespace` are the matches of \w+|[^\w\s]+ in Rust, where \w includes
// joiners and excludes superscripts. The text between the words is dropped.
static rlhf_status read_whitespace(struct step *step, struct rlhf__error *err) {
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}"
    static const char words[] = "[" WORD "]+|[^" WORD "\\s]+";
    step->invert = 1;
    return rlhf__pattern_open(words, sizeof words - 1, 1, &step->pattern, err);
}

static rlhf_status read_one(const json_t *part, struct rlhf__pre_tokenizer *pre,
                            struct rlhf__error *err) {
    struct step *step = &pre->step[pre->n++];
    const char *type = rlhf__part_type(part);
    if (!strcmp(type, "ByteLevel")) {
        pre->bytes = 1;
        pre->bytes_step = pre->n - 1;
        return read_byte_level(part, step, err);
    }
    if (!strcmp(type, "Split")) return read_split(part, step, err);
    if (!strcmp(type, "Metaspace")) return read_metaspace(part, step, err);
    if (!strcmp(type, "CharDelimiterSplit")) return read_delimiter(part, step, err);
    if (!strcmp(type, "Whitespace")) return read_whitespace(step, err);
    if (!strcmp(type, "WhitespaceSplit")) {
        step->is = rlhf__unicode_is_space; // white space is removed
    } else if (!strcmp(type, "Digits")) {
        step->is = rlhf__unicode_is_number;
        step->behavior =
            json_is_true(json_object_get(part, "individual_digits")) ? CUT_ISOLATED : CUT_RUNS;
    } else if (!strcmp(type, "Punctuation")) {
        step->is = rlhf__unicode_is_punct;
        return read_behavior(part, CUT_ISOLATED, &step->behavior, err);
    } else if (!strcmp(type, "BertPreTokenizer")) {
        step->is = rlhf__unicode_is_space;
        pre->step[pre->n++] = (struct step){.is = rlhf__unicode_is_punct, .behavior = CUT_ISOLATED};
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

// Add the steps of a part of tokenizer.json that is not a Sequence.
static rlhf_status read_steps(const json_t *part, struct rlhf__pre_tokenizer *pre,
                              struct rlhf__error *err) {
    if (pre->bytes && (rlhf__part_is(part, "ByteLevel") || rlhf__part_is(part, "Metaspace")))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the pre_tokenizer '%.60s' after ByteLevel is not supported; allowed "
                          "there: parts that only split, such as Digits and Split",
                          rlhf__part_type(part));
    if (pre->n + 2 > STEPS_MAX) // BERT's part has two steps
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "the pre_tokenizer has more than %d steps",
                          STEPS_MAX - 1);
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

rlhf_status rlhf__pre_tokenizer_open(const json_t *part, struct rlhf__pre_tokenizer **out,
                                     struct rlhf__error *err) {
    struct rlhf__pre_tokenizer *pre = calloc(1, sizeof *pre);
    *out = NULL;
    if (!pre) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a tokenizer");
    rlhf_status st = add_all(pre, part, 0, err);
    if (st < 0 || (!pre->n && !pre->bytes))
        rlhf__pre_tokenizer_close(pre);
    else
        *out = pre;
    return st;
}

void rlhf__pre_tokenizer_close(struct rlhf__pre_tokenizer *pre) {
    if (!pre) return;
    for (size_t i = 0; i < pre->n; i++)
        rlhf__pattern_close(pre->step[i].pattern);
    free(pre);
}

int rlhf__pre_tokenizer_bytes(const struct rlhf__pre_tokenizer *pre) { return pre && pre->bytes; }

// ---- one step over one piece: finding the delimiters and attaching them ----

// Turns the spans of a piece (delimiters and the text between them) into new pieces, in order.
struct joiner {
    const struct step *step;
    struct rlhf__pieces *out;
    struct rlhf__error *err;
    size_t base;        // where the piece begins in the text
    size_t begin, end;  // a span that may still grow
    int waits, matched; // `waits` 1: a span is pending; `matched` 1: it ends with a delimiter
    uint32_t flags;     // flags of the next piece
};

static rlhf_status push(struct joiner *j, size_t begin, size_t end) {
    uint32_t flags = j->flags;
    if (end > begin) j->flags = 0;
    return rlhf__pieces_push(j->out, j->base + begin, end - begin, flags, j->err);
}

static rlhf_status flush(struct joiner *j) {
    int waits = j->waits;
    j->waits = 0;
    return waits ? push(j, j->begin, j->end) : RLHF_OK;
}

// 1 if the next span is joined to the pending span.
static int joins(const struct joiner *j, int matched) {
    switch (j->step->behavior) {
    case CUT_PREVIOUS:
        return matched && !j->matched;
    case CUT_NEXT:
        return !matched && j->matched;
    default:
        return matched == j->matched;
    }
}

static rlhf_status put(struct joiner *j, size_t begin, size_t end, int matched) {
    if (j->step->invert) matched = !matched;
    if (j->step->behavior == CUT_ISOLATED) return push(j, begin, end);
    if (j->step->behavior == CUT_REMOVED) return matched ? RLHF_OK : push(j, begin, end);
    if (j->waits && joins(j, matched)) {
        j->end = end;
    } else {
        RLHF_TRY(flush(j));
        j->begin = begin;
        j->end = end;
        j->waits = 1;
    }
    j->matched = matched;
    return RLHF_OK;
}

static rlhf_status by_character(struct joiner *j, const char *s, size_t n) {
    size_t from = 0;
    for (size_t at = 0, len; at < n; at += len) {
        uint32_t cp = (uint8_t)s[at];
        len = cp < 0x80 ? 1 : rlhf__utf8_next(s + at, n - at, &cp, NULL);
        if (!j->step->is(cp)) continue;
        if (from < at) RLHF_TRY(put(j, from, at, 0));
        RLHF_TRY(put(j, at, at + len, 1));
        from = at + len;
    }
    return from < n ? put(j, from, n, 0) : RLHF_OK;
}

static rlhf_status by_pattern(struct joiner *j, const char *s, size_t n,
                              struct rlhf__search *match) {
    size_t from = 0;
    rlhf_status st;
    rlhf__search_reset(match, n);
    while ((st = rlhf__pattern_next(j->step->pattern, s, n, match, j->err)) == 1) {
        if (from < match->begin) RLHF_TRY(put(j, from, match->begin, 0));
        RLHF_TRY(put(j, match->begin, match->end, 1));
        from = match->end;
    }
    if (st < 0) return st;
    return from < n ? put(j, from, n, 0) : RLHF_OK;
}

// Makes a piece of each word that the rule finds. Nearly all texts are split here.
static rlhf_status by_rule(struct joiner *j, const char *s, size_t n, int32_t rule) {
    for (size_t at = 0, end; at < n; at = end) {
        end = rlhf__word_end(rule, s, n, at);
        RLHF_TRY(push(j, at, end));
    }
    return RLHF_OK;
}

// Append the pieces of s[at..at + n), which is valid UTF-8, to `out`.
static rlhf_status cut_piece(const struct step *step, const char *s, size_t at, size_t n,
                             uint32_t flags, struct rlhf__search *match, struct rlhf__pieces *out,
                             struct rlhf__error *err) {
    struct joiner j = {.step = step, .out = out, .err = err, .base = at, .flags = flags};
    int32_t rule = step->pattern ? rlhf__pattern_rule(step->pattern) : 0;
    if (rule && step->behavior == CUT_ISOLATED)
        RLHF_TRY(by_rule(&j, s + at, n, rule));
    else if (step->is)
        RLHF_TRY(by_character(&j, s + at, n));
    else if (step->pattern)
        RLHF_TRY(by_pattern(&j, s + at, n, match));
    else
        RLHF_TRY(push(&j, 0, n));
    return flush(&j);
}

// ---- all steps over a text ----

// Splits the text into runs of valid UTF-8 and of invalid bytes.
static rlhf_status cut_runs(const char *s, size_t n, struct rlhf__pieces *out,
                            struct rlhf__error *err) {
    uint32_t on = 0;
    for (size_t at = 0; at < n;) {
        size_t good = rlhf__utf8_valid(s + at, n - at), bad = 0;
        RLHF_TRY(rlhf__pieces_push(out, at, good, on, err));
        at += good;
        while (at + bad < n) {
            size_t part = 1;
            if (rlhf__utf8_next(s + at + bad, n - at - bad, NULL, &part)) break;
            bad += part;
        }
        RLHF_TRY(rlhf__pieces_push(out, at, bad, RLHF__PIECE_RAW, err));
        at += bad;
        on = RLHF__PIECE_ON;
    }
    return RLHF_OK;
}

// Appends the text of a piece to `text`, with its spaces replaced and with the prefix.
static void put_changed(const struct step *step, const char *s, const struct rlhf__text_piece *p,
                        int first, struct rlhf__buf *text) {
    const char *from = s + p->at, *end = from + p->n;
    int has = p->n >= step->n_space && memcmp(from, step->space, step->n_space) == 0;
    if (step->replaces && *from == ' ') has = 1;
    int wanted = step->prefix == PREFIX_ALWAYS || (step->prefix == PREFIX_FIRST && first);
    if (wanted && !has && !(p->flags & RLHF__PIECE_ON))
        rlhf__buf_put(text, step->space, step->n_space);
    while (step->replaces && from < end) {
        const char *space = memchr(from, ' ', (size_t)(end - from));
        if (!space) break;
        rlhf__buf_put(text, from, (size_t)(space - from));
        rlhf__buf_put(text, step->space, step->n_space);
        from = space + 1;
    }
    rlhf__buf_put(text, from, (size_t)(end - from));
}

// Makes `text` the text of the pieces in `out`.
static rlhf_status own(struct rlhf__pieces *out, struct rlhf__buf *text, struct rlhf__error *err) {
    RLHF_TRY(rlhf__buf_ok(text, err));
    struct rlhf__buf old = out->own; // the source of out->text, which is no longer needed
    out->own = *text;
    *text = old;
    out->text = rlhf__buf_text(&out->own);
    return RLHF_OK;
}

// Sets `out` to the pieces of `in` after the step's two changes: spaces are replaced and prefixes
// are added. The text of the pieces is a new copy, which `out` owns.
static rlhf_status change(const struct step *step, const struct rlhf__pieces *in,
                          struct rlhf__pieces *out, struct rlhf__buf *text, int at_start,
                          struct rlhf__error *err) {
    rlhf__buf_clear(text);
    out->n = 0;
    for (size_t i = 0; i < in->n; i++) {
        const struct rlhf__text_piece *p = &in->item[i];
        size_t at = text->len;
        if (p->flags & RLHF__PIECE_RAW)
            rlhf__buf_put(text, in->text + p->at, p->n);
        else
            put_changed(step, in->text, p, at_start && i == 0, text);
        RLHF_TRY(rlhf__pieces_push(out, at, text->len - at, p->flags, err));
    }
    return own(out, text, err);
}

// Sets `out` to the pieces of `in`, with each byte written as its stand-in. With `back`, sets it to
// the bytes that the stand-ins represent. `out` owns the new text.
static rlhf_status spell(int back, const struct rlhf__pieces *in, struct rlhf__pieces *out,
                         struct rlhf__buf *text, struct rlhf__error *err) {
    uint16_t chars[256];
    rlhf__bpe_byte_chars(chars);
    rlhf__buf_clear(text);
    out->n = 0;
    for (size_t i = 0; i < in->n; i++) {
        const struct rlhf__text_piece *p = &in->item[i];
        const char *s = in->text + p->at;
        const size_t at = text->len;
        char c[4], *to = back ? rlhf__buf_grow(text, p->n) : NULL;
        if (to) text->len = at + rlhf__bpe_token_bytes(s, p->n, to);
        for (size_t k = 0; k < p->n && !back; k++)
            rlhf__buf_put(text, c, rlhf__utf8_put(chars[(uint8_t)s[k]], c));
        RLHF_TRY(rlhf__pieces_push(out, at, text->len - at, RLHF__PIECE_ON, err));
    }
    return own(out, text, err);
}

static rlhf_status cut_all(const struct step *step, const struct rlhf__pieces *in,
                           struct rlhf__pieces *out, struct rlhf__search *match,
                           struct rlhf__error *err) {
    out->n = 0;
    out->text = in->text;
    for (size_t i = 0; i < in->n; i++) {
        const struct rlhf__text_piece *p = &in->item[i];
        if (p->flags & RLHF__PIECE_RAW)
            RLHF_TRY(rlhf__pieces_push(out, p->at, p->n, p->flags, err));
        else
            RLHF_TRY(cut_piece(step, in->text, p->at, p->n, p->flags, match, out, err));
    }
    return RLHF_OK;
}

static void swap(struct rlhf__work *work) {
    struct rlhf__pieces last = work->pieces;
    work->pieces = work->cut;
    work->cut = last;
}

static rlhf_status run_step(const struct step *step, struct rlhf__work *work, int at_start,
                            struct rlhf__error *err) {
    if (step->prefix || step->replaces) {
        swap(work);
        RLHF_TRY(change(step, &work->cut, &work->pieces, &work->spare, at_start, err));
    }
    if (!step->is && !step->pattern) return RLHF_OK;
    swap(work);
    return cut_all(step, &work->cut, &work->pieces, &work->search, err);
}

rlhf_status rlhf__pre_tokenizer_cut(const struct rlhf__pre_tokenizer *pre, struct rlhf__work *work,
                                    const char *s, size_t n, int at_start,
                                    struct rlhf__error *err) {
    const int spelled = pre && pre->bytes && pre->bytes_step + 1 < pre->n;
    work->pieces.n = 0;
    work->pieces.text = s;
    RLHF_TRY(cut_runs(s, n, &work->pieces, err));
    for (size_t i = 0; pre && i < pre->n; i++) {
        RLHF_TRY(run_step(&pre->step[i], work, at_start, err));
        if (!spelled || i != pre->bytes_step) continue;
        swap(work);
        RLHF_TRY(spell(0, &work->cut, &work->pieces, &work->spare, err));
    }
    if (!spelled) return RLHF_OK;
    swap(work);
    return spell(1, &work->cut, &work->pieces, &work->spare, err);
}
