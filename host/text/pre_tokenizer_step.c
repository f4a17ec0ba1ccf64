// pre_tokenizer_step.c: each type of pre-tokeniser that there is, from its part of tokenizer.json.
#include "text/pre_tokenizer_impl.h"

#include "text/bert_normal.h"
#include "text/tokenizer_part.h"
#include "text/utf8.h"

// ---- BertPreTokenizer: words, and each mark of punctuation alone
// -----------------------------------------------------------------

static rlhf_status cut_bert(const struct rlhf__cut_step *step, const char *s, size_t at, size_t n,
                            struct rlhf__pieces *out, struct rlhf__error *err) {
    (void)step;
    size_t from = at, end = at + n;
    while (at < end) {
        uint32_t cp = 0;
        size_t len = rlhf__utf8_next(s + at, end - at, &cp, NULL);
        int space = rlhf__bert_is_space(cp), punct = rlhf__bert_is_punct(cp);
        if (space || punct) {
            RLHF_TRY(rlhf__pieces_push(out, from, at - from, 0, err));
            if (punct) RLHF_TRY(rlhf__pieces_push(out, at, len, 0, err));
            from = at + len;
        }
        at += len;
    }
    return rlhf__pieces_push(out, from, end - from, 0, err);
}

// ---- ByteLevel: GPT-2's pattern
// --------------------------------------------------

// Every character is in some alternative, so the matches are the pieces.
static rlhf_status cut_gpt2(const struct rlhf__cut_step *step, const char *s, size_t at, size_t n,
                            struct rlhf__pieces *out, struct rlhf__error *err) {
    struct rlhf__found found = {0};
    rlhf_status st = RLHF_OK;
    while (st == RLHF_OK && found.end < n) {
        st = rlhf__pattern_next(step->pattern, s + at, n, &found, err);
        if (st == RLHF_OK && found.begin == found.end) break;
        if (st == RLHF_OK)
            st = rlhf__pieces_push(out, at + found.begin, found.end - found.begin, 0, err);
    }
    return st;
}

static rlhf_status read_byte_level(const json_t *part, struct rlhf__pre_tokenizer *pre,
                                   struct rlhf__error *err) {
    if (json_is_true(json_object_get(part, "add_prefix_space")) ||
        json_is_false(json_object_get(part, "use_regex")))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the pre_tokenizer ByteLevel is only supported with add_prefix_space = "
                          "false and use_regex = true");
    struct rlhf__cut_step *step = &pre->step[pre->n++];
    pre->bytes = 1;
    step->cut = cut_gpt2;
    return rlhf__pattern_gpt2(&step->pattern, err);
}

rlhf_status rlhf__cut_steps_read(const json_t *part, struct rlhf__pre_tokenizer *pre,
                                 struct rlhf__error *err) {
    if (pre->bytes)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the pre_tokenizer '%.60s' behind ByteLevel is not supported; allowed: "
                          "ByteLevel as the last of a Sequence",
                          rlhf__part_type(part));
    if (pre->n == RLHF__CUT_STEPS_MAX)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "the pre_tokenizer has more than %d steps",
                          RLHF__CUT_STEPS_MAX);
    if (rlhf__part_is(part, "ByteLevel")) return read_byte_level(part, pre, err);
    if (rlhf__part_is(part, "BertPreTokenizer")) {
        pre->step[pre->n++].cut = cut_bert;
        return RLHF_OK;
    }
    return rlhf__part_refuse("pre_tokenizer", part,
                             "ByteLevel, BertPreTokenizer, a Sequence of them", err);
}
