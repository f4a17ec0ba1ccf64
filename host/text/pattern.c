// pattern.c: see pattern.h.
#include "text/pattern.h"

#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct rlhf__pattern {
    pcre2_code *code;
};

// Unicode's White_Space, which is what \s means to the tokenizers library.
#define SPACE                                                                                      \
    "\\t-\\r "                                                                                     \
    "\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
static const char gpt2[] = "'(?:[sdmt]|ll|ve|re)"
                           "| ?\\p{L}+"
                           "| ?\\p{N}+"
                           "| ?[^" SPACE "\\p{L}\\p{N}]+"
                           "|[" SPACE "]+(?![^" SPACE "])"
                           "|[" SPACE "]+";

rlhf_status rlhf__pattern_gpt2(struct rlhf__pattern **out, struct rlhf__error *err) {
    int code = 0;
    size_t at = 0;
    struct rlhf__pattern *pattern = *out = calloc(1, sizeof *pattern);
    if (!pattern) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a tokenizer");
    pattern->code = pcre2_compile((PCRE2_SPTR)gpt2, PCRE2_ZERO_TERMINATED,
                                  PCRE2_UTF | PCRE2_NO_UTF_CHECK, &code, &at, NULL);
    if (!pattern->code && code == PCRE2_ERROR_HEAP_FAILED)
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the pattern of words");
    if (!pattern->code)
        return rlhf__fail(err, RLHF_E_INTERNAL, "PCRE2 refuses the pattern of words (code %d)",
                          code);
    pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE); // without, the interpreter does the same
    return RLHF_OK;
}

void rlhf__pattern_destroy(struct rlhf__pattern *pattern) {
    if (!pattern) return;
    pcre2_code_free(pattern->code);
    free(pattern);
}

rlhf_status rlhf__pattern_next(const struct rlhf__pattern *pattern, const char *s, size_t n,
                               struct rlhf__found *found, struct rlhf__error *err) {
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    if (!match) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a tokenizer");
    size_t at = found->end;
    int code = pcre2_match(pattern->code, (PCRE2_SPTR)s, n, at, PCRE2_NO_UTF_CHECK, match, NULL);
    if (code == PCRE2_ERROR_JIT_STACKLIMIT)
        code = pcre2_match(pattern->code, (PCRE2_SPTR)s, n, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                           match, NULL);
    const size_t *range = pcre2_get_ovector_pointer(match);
    *found = code < 1 ? (struct rlhf__found){n, n} : (struct rlhf__found){range[0], range[1]};
    pcre2_match_data_free(match);
    if (code >= 1 || code == PCRE2_ERROR_NOMATCH) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INTERNAL, "PCRE2 failed to cut a text (code %d)", code);
}
