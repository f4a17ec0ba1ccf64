// jinja_lex.h: splits a Jinja template into tokens. White space is removed where transformers
// removes it (trim_blocks, lstrip_blocks), and next to a "-" in a tag.
//
// It does not know the statements.
#ifndef RLHF_FORMATS_JINJA_JINJA_LEX_H
#define RLHF_FORMATS_JINJA_JINJA_LEX_H

#include "values/jinja_value.h"

enum rlhf__jinja_kind {
    RLHF__JINJA_TEXT = 1, // value: a string, the text between tags
    RLHF__JINJA_TAG,      // {%
    RLHF__JINJA_TAG_END,
    RLHF__JINJA_OUT, // {{
    RLHF__JINJA_OUT_END,
    RLHF__JINJA_NAME,    // value: a string
    RLHF__JINJA_LITERAL, // value: a string or a number
    RLHF__JINJA_OP,      // op
    RLHF__JINJA_END
};

struct rlhf__jinja_token {
    int32_t kind, line;
    char op[4];
    rlhf__value value; // undefined for operators and tags
};

// Zero-initialize; release with rlhf__jinja_tokens_finish. The last token is an END.
struct rlhf__jinja_tokens {
    struct rlhf__jinja_token *item;
    size_t n, cap;
};

// Split the text into tokens. `w` owns the strings of the tokens. Errors: RLHF_E_UNSUPPORTED ("line
// 3: ..."), RLHF_E_NOMEM. [any]
rlhf_status rlhf__jinja_lex(const char *text, size_t n, struct rlhf__jinja_work *w,
                            struct rlhf__jinja_tokens *out, struct rlhf__error *err);
void rlhf__jinja_tokens_finish(struct rlhf__jinja_tokens *);

#endif
