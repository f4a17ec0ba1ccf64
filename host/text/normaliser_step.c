// normaliser_step.c: each type of normaliser that there is, from its part of tokenizer.json.
#include "text/normaliser_impl.h"

#include "text/tokenizer_part.h"
#include "text/utf8.h"

#include <stdlib.h>

static rlhf_status apply_bert(const struct rlhf__normal_step *step, const char *s, size_t n,
                              struct rlhf__buf *out, struct rlhf__error *err) {
    struct rlhf__codepoints text = {0};
    rlhf_status st = rlhf__bert_normalise(&step->bert, s, n, &text, err);
    for (size_t i = 0; st == RLHF_OK && i < text.n; i++) {
        char c[4];
        rlhf__buf_put(out, c, rlhf__utf8_put(text.cp[i], c));
    }
    free(text.cp);
    return st;
}

static rlhf_status read_bert(const json_t *part, struct rlhf__normal_step *step,
                             struct rlhf__error *err) {
    const json_t *strip = json_object_get(part, "strip_accents");
    if (json_is_false(json_object_get(part, "clean_text")))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the normalizer BertNormalizer with clean_text = false is not supported");
    step->bert.lower = !json_is_false(json_object_get(part, "lowercase"));
    step->bert.strip_accents = json_is_boolean(strip) ? json_is_true(strip) : step->bert.lower;
    step->bert.split_cjk = !json_is_false(json_object_get(part, "handle_chinese_chars"));
    step->is_bert = 1;
    step->apply = apply_bert;
    return RLHF_OK;
}

rlhf_status rlhf__normal_step_read(const json_t *part, struct rlhf__normal_step *step,
                                   struct rlhf__error *err) {
    if (rlhf__part_is(part, "BertNormalizer")) return read_bert(part, step, err);
    return rlhf__part_refuse("normalizer", part, "BertNormalizer, a Sequence of them", err);
}

void rlhf__normal_step_finish(struct rlhf__normal_step *step) { (void)step; }
