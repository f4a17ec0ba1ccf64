// decoder.c: see decoder.h. Each step changes a list of texts, as the decoder of the same name in
// the tokenizers library does.
#include "text/decoder.h"

#include "base/json.h"
#include "text/tokenizer_part.h"
#include "text/unicode.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

// ---- steps ----

struct step;

struct decoding {
    int inside; // 1: the tokens are from the middle of a text, without its first and last token
    int fused;  // 1: the list has become one text; before, it has one text per token
};

typedef void step_fn(const struct step *step, const struct rlhf__spans *in, struct decoding *how,
                     struct rlhf__spans *out);

struct step {
    step_fn *apply;
    rlhf_str what, with; // borrowed from the JSON of the decoder
    int32_t start, stop; // Strip: how many characters to remove at most
    int32_t on;    // Metaspace: encoding adds a space at the start; WordPiece: clean up spaces
    int32_t bytes; // ByteLevel
};

#define REPLACEMENT "\xEF\xBF\xBD" // U+FFFD

static int begins(rlhf_str s, rlhf_str with) {
    return s.len >= with.len && (!with.len || !memcmp(s.ptr, with.ptr, (size_t)with.len));
}

// Append s, with every occurrence of `what` replaced by `with`.
static void put_replaced(struct rlhf__spans *out, rlhf_str s, rlhf_str what, rlhf_str with) {
    for (uint64_t at = 0; at < s.len;) {
        rlhf_str rest = {s.ptr + at, s.len - at};
        int found = what.len && begins(rest, what);
        rlhf__spans_put(out, found ? with.ptr : rest.ptr, found ? (size_t)with.len : 1);
        at += found ? what.len : 1;
    }
}

static void apply_replace(const struct step *step, const struct rlhf__spans *in,
                          struct decoding *how, struct rlhf__spans *out) {
    (void)how;
    for (size_t i = 0; i < in->n; i++) {
        put_replaced(out, rlhf__spans_get(in, i), step->what, step->with);
        rlhf__spans_end(out);
    }
}

// Replaces the step's character with a space. In the first token of a text, the character is the
// prefix that encoding added, so it is dropped.
static void apply_metaspace(const struct step *step, const struct rlhf__spans *in,
                            struct decoding *how, struct rlhf__spans *out) {
    for (size_t i = 0; i < in->n; i++) {
        int first = !i && !how->inside && step->on;
        put_replaced(out, rlhf__spans_get(in, i), step->what, (rlhf_str){" ", !first});
        rlhf__spans_end(out);
    }
}

// Join all texts into one. Invalid UTF-8 becomes U+FFFD unless how->inside is set.
static void apply_fuse(const struct step *step, const struct rlhf__spans *in, struct decoding *how,
                       struct rlhf__spans *out) {
    rlhf_str all = {rlhf__buf_text(&in->bytes), in->n ? in->end[in->n - 1] : 0};
    how->fused = 1;
    if (step->bytes && !how->inside) {
        size_t len = rlhf__utf8_repair(all.ptr, (size_t)all.len, NULL, 0);
        char *to = rlhf__buf_grow(&out->bytes, len);
        if (to) rlhf__utf8_repair(all.ptr, (size_t)all.len, to, len);
    } else {
        rlhf__spans_put(out, all.ptr, (size_t)all.len);
    }
    rlhf__spans_end(out);
}

static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Returns the byte of a token such as "<0x41>", or -1 for other tokens. As in the library, "<0x+A>"
// is allowed too.
static int byte_of(rlhf_str s) {
    if (s.len != 6 || memcmp(s.ptr, "<0x", 3) != 0 || s.ptr[5] != '>') return -1;
    int high = s.ptr[3] == '+' ? 0 : hex(s.ptr[3]), low = hex(s.ptr[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// Turns a run of byte tokens into one text. If the bytes are not valid UTF-8 and `inside` is 0,
// each byte becomes a separate text, U+FFFD.
static void put_bytes(struct rlhf__spans *out, const struct rlhf__spans *in, size_t from, size_t to,
                      int inside) {
    size_t begin = out->bytes.len, n = to - from;
    for (size_t i = from; i < to; i++) {
        char c = (char)byte_of(rlhf__spans_get(in, i));
        rlhf__spans_put(out, &c, 1);
    }
    if (!inside && !out->bytes.bad && rlhf__utf8_valid(out->bytes.data + begin, n) != n) {
        out->bytes.len = begin;
        for (size_t i = from; i < to; i++) {
            rlhf__spans_put(out, REPLACEMENT, 3);
            if (i + 1 < to) rlhf__spans_end(out);
        }
    }
    if (n) rlhf__spans_end(out);
}

static void apply_byte_fallback(const struct step *step, const struct rlhf__spans *in,
                                struct decoding *how, struct rlhf__spans *out) {
    (void)step;
    for (size_t i = 0; i < in->n;) {
        size_t end = i;
        while (end < in->n && byte_of(rlhf__spans_get(in, end)) >= 0)
            end++;
        put_bytes(out, in, i, end, how->inside);
        if (end < in->n) {
            rlhf_str s = rlhf__spans_get(in, end);
            rlhf__spans_put(out, s.ptr, (size_t)s.len);
            rlhf__spans_end(out);
        }
        i = end + 1;
    }
}

static void apply_strip(const struct step *step, const struct rlhf__spans *in, struct decoding *how,
                        struct rlhf__spans *out) {
    int off = how->fused && how->inside; // these are not the ends of the whole text
    for (size_t i = 0; i < in->n; i++) {
        rlhf_str s = rlhf__spans_get(in, i), c = step->what;
        for (int32_t k = 0; !off && k < step->start && begins(s, c); k++)
            s = (rlhf_str){s.ptr + c.len, s.len - c.len};
        for (int32_t k = 0; !off && k < step->stop && s.len >= c.len; k++) {
            if (memcmp(s.ptr + s.len - c.len, c.ptr, (size_t)c.len) != 0) break;
            s.len -= c.len;
        }
        rlhf__spans_put(out, s.ptr, (size_t)s.len);
        rlhf__spans_end(out);
    }
}

// The step of a tokenizer without a decoder: it puts spaces between the tokens.
static void apply_spaces(const struct step *step, const struct rlhf__spans *in,
                         struct decoding *how, struct rlhf__spans *out) {
    (void)step;
    for (size_t i = 0; i < in->n; i++) {
        rlhf_str s = rlhf__spans_get(in, i);
        if (i || how->inside) rlhf__spans_put(out, " ", 1);
        rlhf__spans_put(out, s.ptr, (size_t)s.len);
        rlhf__spans_end(out);
    }
}

// Removes superfluous spaces of English from the text of each token separately, as the library
// does.
static void clean(struct rlhf__spans *text, struct rlhf__spans *spare) {
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        rlhf_str from = {pairs[i][0], strlen(pairs[i][0])}, to = {pairs[i][1], strlen(pairs[i][1])};
        rlhf__spans_clear(spare);
        put_replaced(spare, (rlhf_str){rlhf__buf_text(&text->bytes), text->bytes.len}, from, to);
        struct rlhf__spans swap = *text;
        *text = *spare;
        *spare = swap;
    }
}

static void apply_wordpiece(const struct step *step, const struct rlhf__spans *in,
                            struct decoding *how, struct rlhf__spans *out) {
    struct rlhf__spans word = {0}, spare = {0};
    for (size_t i = 0; i < in->n; i++) {
        rlhf_str s = rlhf__spans_get(in, i);
        int first = !i && !how->inside, piece = !first && begins(s, step->what);
        if (piece) s = (rlhf_str){s.ptr + step->what.len, s.len - step->what.len};
        rlhf__spans_clear(&word);
        if (!first && !piece) rlhf__spans_put(&word, " ", 1);
        rlhf__spans_put(&word, s.ptr, (size_t)s.len);
        if (step->on) clean(&word, &spare);
        if (word.bytes.bad || spare.bytes.bad) out->bytes.bad = 1;
        rlhf__spans_put(out, rlhf__buf_text(&word.bytes), word.bytes.len);
        rlhf__spans_end(out);
    }
    rlhf__spans_finish(&word);
    rlhf__spans_finish(&spare);
}

// ---- reading ----

static rlhf_status text_of(const json_t *part, const char *key, const char *missing, int one,
                           rlhf_str *out, struct rlhf__error *err) {
    const json_t *v = json_object_get(part, key);
    *out = (rlhf_str){missing, missing ? strlen(missing) : 0};
    if (json_is_string(v)) *out = (rlhf_str){json_string_value(v), json_string_length(v)};
    if ((v || missing) && !json_is_string(v) && !(missing && !v))
        return rlhf__fail(err, RLHF_E_INVALID, "the decoder %s: %s is %s, expected a string",
                          rlhf__part_type(part), key, rlhf__json_kind(v));
    if (!out->ptr || (one && rlhf__utf8_next(out->ptr, (size_t)out->len, NULL, NULL) != out->len))
        return rlhf__fail(err, RLHF_E_INVALID, "the decoder %s: %s must be %s",
                          rlhf__part_type(part), key, one ? "one character" : "a string");
    return RLHF_OK;
}

static rlhf_status count_of(const json_t *part, const char *key, int32_t *out,
                            struct rlhf__error *err) {
    const json_t *v = json_object_get(part, key);
    json_int_t n = json_is_integer(v) ? json_integer_value(v) : -1;
    if (n < 0 || n > INT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "the decoder Strip: %s must be a count", key);
    *out = (int32_t)n;
    return RLHF_OK;
}

static rlhf_status read_metaspace(const json_t *part, struct step *step, struct rlhf__error *err) {
    rlhf_str scheme;
    step->apply = apply_metaspace;
    RLHF_TRY(text_of(part, "replacement", "\xE2\x96\x81", 1, &step->what, err));
    RLHF_TRY(text_of(part, "prepend_scheme", "always", 0, &scheme, err));
    int older = json_is_false(json_object_get(part, "add_prefix_space"));
    step->on = !older && strcmp(scheme.ptr, "never") != 0;
    return RLHF_OK;
}

static rlhf_status read_replace(const json_t *part, struct step *step, struct rlhf__error *err) {
    const json_t *pattern = json_object_get(part, "pattern");
    step->apply = apply_replace;
    if (json_object_get(pattern, "Regex"))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the decoder Replace with a pattern Regex is not supported; allowed: "
                          "String");
    RLHF_TRY(text_of(pattern, "String", NULL, 0, &step->what, err));
    return text_of(part, "content", NULL, 0, &step->with, err);
}

static rlhf_status read_strip(const json_t *part, struct step *step, struct rlhf__error *err) {
    step->apply = apply_strip;
    RLHF_TRY(text_of(part, "content", NULL, 1, &step->what, err));
    RLHF_TRY(count_of(part, "start", &step->start, err));
    return count_of(part, "stop", &step->stop, err);
}

// Makes a step from `part`, a part of tokenizer.json that must outlive the step. If `part` is NULL,
// the step puts spaces between the tokens. Errors: RLHF_E_UNSUPPORTED (the message has the type),
// RLHF_E_INVALID (the message has the field).
static rlhf_status read_step(const json_t *part, struct step *step, struct rlhf__error *err) {
    *step = (struct step){.apply = apply_spaces};
    if (!part) return RLHF_OK;
    if (rlhf__part_is(part, "Metaspace")) return read_metaspace(part, step, err);
    if (rlhf__part_is(part, "Replace")) return read_replace(part, step, err);
    if (rlhf__part_is(part, "Strip")) return read_strip(part, step, err);
    if (rlhf__part_is(part, "ByteFallback")) {
        step->apply = apply_byte_fallback;
    } else if (rlhf__part_is(part, "Fuse") || rlhf__part_is(part, "ByteLevel")) {
        step->apply = apply_fuse;
        step->bytes = rlhf__part_is(part, "ByteLevel");
    } else if (rlhf__part_is(part, "WordPiece")) {
        step->apply = apply_wordpiece;
        step->on = !json_is_false(json_object_get(part, "cleanup"));
        return text_of(part, "prefix", "##", 0, &step->what, err);
    } else {
        return rlhf__part_refuse("decoder", part,
                                 "ByteLevel, Metaspace, ByteFallback, Fuse, Strip, Replace, "
                                 "WordPiece, a Sequence of them",
                                 err);
    }
    return RLHF_OK;
}

// ---- the list of steps ----

struct rlhf__decoder {
    json_t *json; // the steps borrow from it
    struct step *step;
    size_t n;
    int bytes;                // 1: the tokens of the model are bytes
    struct rlhf__spans piece; // [n_vocab] if `bytes` is 0
};

static rlhf_status add_step(struct rlhf__decoder *d, const json_t *part, struct rlhf__error *err) {
    struct step *step = realloc(d->step, (d->n + 1) * sizeof *step);
    if (!step) return RLHF__NOMEM(err, "out of memory for a decoder");
    d->step = step;
    RLHF_TRY(read_step(part, &d->step[d->n], err));
    int first = d->n++ == 0;
    if (d->step[d->n - 1].bytes == (first && d->bytes)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED, "the decoder '%s' is not supported %s",
                      rlhf__part_type(part),
                      d->bytes && first ? "for tokens of bytes; allowed: ByteLevel"
                      : d->bytes        ? "after another one"
                                        : "for tokens that are not bytes");
}

// Adds the steps of a part. A Sequence may contain other Sequences.
static rlhf_status add_part(struct rlhf__decoder *d, const json_t *part, int depth,
                            struct rlhf__error *err) {
    const json_t *inner = json_object_get(part, "decoders"), *item;
    if (!rlhf__part_is(part, "Sequence")) return add_step(d, part, err);
    if (!json_is_array(inner) || depth == 8)
        return rlhf__fail(err, RLHF_E_INVALID, "the decoder Sequence: decoders is %s",
                          json_is_array(inner) ? "nested too deep" : rlhf__json_kind(inner));
    size_t i;
    json_array_foreach(inner, i, item) RLHF_TRY(add_part(d, item, depth + 1, err));
    return RLHF_OK;
}

rlhf_status rlhf__decoder_open(const json_t *part, int bytes, struct rlhf__decoder **out,
                               struct rlhf__error *err) {
    struct rlhf__decoder *d = calloc(1, sizeof *d);
    if (!d) return RLHF__NOMEM(err, "out of memory for a decoder");
    d->bytes = bytes;
    rlhf_status st = RLHF_OK;
    if (part && !json_is_null(part))
        d->json = json_deep_copy(part);
    else if (bytes)
        d->json = json_pack("{s:s}", "type", "ByteLevel");
    else
        st = add_step(d, NULL, err);
    if (st == RLHF_OK && d->json)
        st = add_part(d, d->json, 0, err);
    else if (st == RLHF_OK && !d->n)
        st = RLHF__NOMEM(err, "out of memory for a decoder");
    if (st == RLHF_OK) {
        *out = d;
        return RLHF_OK;
    }
    rlhf__decoder_close(d);
    return st;
}

void rlhf__decoder_close(struct rlhf__decoder *d) {
    if (!d) return;
    rlhf__spans_finish(&d->piece);
    json_decref(d->json);
    free(d->step);
    free(d);
}

rlhf_status rlhf__decoder_run(const struct rlhf__decoder *d, struct rlhf__spans *list,
                              struct rlhf__spans *spare, int inside, struct rlhf__error *err) {
    struct decoding how = {.inside = inside};
    for (size_t i = 0; i < d->n; i++) {
        rlhf__spans_clear(spare);
        d->step[i].apply(&d->step[i], list, &how, spare);
        struct rlhf__spans swap = *list;
        *list = *spare;
        *spare = swap;
    }
    RLHF_TRY(rlhf__buf_ok(&spare->bytes, err));
    return rlhf__buf_ok(&list->bytes, err);
}

// ---- single tokens ----

rlhf_status rlhf__decoder_prepare(struct rlhf__decoder *d, const struct rlhf__added *added,
                                  const struct rlhf__vocab *vocab, struct rlhf__error *err) {
    struct rlhf__spans one = {0}, spare = {0};
    rlhf_status st = RLHF_OK;
    rlhf__spans_clear(&d->piece);
    for (int32_t id = 0; !d->bytes && id < vocab->n && st == RLHF_OK; id++) {
        rlhf_str s = rlhf__added_shown(added, vocab, id);
        rlhf__spans_clear(&one);
        rlhf__spans_put(&one, s.ptr, (size_t)s.len);
        if (s.ptr) rlhf__spans_end(&one);
        st = rlhf__decoder_run(d, &one, &spare, 1, err);
        rlhf__spans_put(&d->piece, rlhf__buf_text(&one.bytes), one.bytes.len);
        rlhf__spans_end(&d->piece);
    }
    rlhf__spans_finish(&one);
    rlhf__spans_finish(&spare);
    return st == RLHF_OK ? rlhf__buf_ok(&d->piece.bytes, err) : st;
}

rlhf_str rlhf__decoder_piece(const struct rlhf__decoder *d, const struct rlhf__added *added,
                             const struct rlhf__vocab *vocab, int32_t id) {
    if (d->bytes) return rlhf__added_shown(added, vocab, id);
    if (id < 0 || (size_t)id >= d->piece.n) return (rlhf_str){NULL, 0};
    return rlhf__spans_get(&d->piece, (size_t)id);
}
