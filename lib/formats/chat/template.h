// template.h: a chat template: its parsed Jinja, its variables, and properties that are learned by
// rendering short conversations.
//
// This file does not read files or choose a template (chat.h does). Internal to chat/.
#ifndef RLHF_FORMATS_CHAT_TEMPLATE_H
#define RLHF_FORMATS_CHAT_TEMPLATE_H

#include "jinja/jinja_run.h"

// What a template does with tools and their calls.
struct rlhf__template_tools {
    int32_t lists;   // 1: it writes the list of tools
    int32_t calls;   // 1: it writes the tool calls of an assistant message
    int32_t results; // 1: it writes tool messages
    int32_t form;    // the form of its calls: enum rlhf__tool_form; RLHF__TOOL_FORM_NONE = unknown
};

// Finds the special tokens of a tokenizer: the length of the token with which s begins, 0 = none.
struct rlhf__template_special {
    size_t (*at)(const void *tokenizer, rlhf_str s); // NULL: no tokenizer
    const void *tokenizer;
};

enum { RLHF__TEMPLATE_ENDS = 4 };

// Zero-initialize; release with rlhf__template_finish.
struct rlhf__template {
    struct rlhf__jinja jinja;
    json_t *vars;
    char date[12]; // of strftime_now, as 2026-11-28; "" = the function is undefined
    struct rlhf__template_special special;
    struct rlhf__buf
        before; // text before the first question of a conversation without a system message
    struct rlhf__buf header;         // text that add_generation_prompt adds after a question
    struct rlhf__buf lead;           // text between the header and the content of an answer
    char *end;                       // the last token that ends an answer; NULL = none
    char *ends[RLHF__TEMPLATE_ENDS]; // [n_ends]: texts after an answer, up to a token that ends it
    int32_t n_ends;
    int32_t thoughts;   // 1: the template writes thoughts
    int32_t developer;  // 1: it writes what a developer says
    int32_t parts_only; // 1: it writes a content only if that is a list of parts
    struct rlhf__template_tools tools;
};

// Parse a template's text. `vars` has the variables that transformers also passes (bos_token, ...,
// tools). Errors: RLHF_E_UNSUPPORTED ("line 3: ..."), RLHF_E_NOMEM. [any]
rlhf_status rlhf__template_parse(struct rlhf__template *, const char *text, size_t n,
                                 const json_t *vars, struct rlhf__error *err);
void rlhf__template_finish(struct rlhf__template *);

// Render short conversations to find out the members `before` to `tools`, and replace them. If the
// template renders a question only with a list of tools, or only as a list of parts, the
// conversations have that. A member such as `thoughts` is 0 if the short conversations do not show
// that the template writes this part; other conversations may show it. Errors: RLHF_E_UNSUPPORTED
// if the template cannot render a conversation with one question (the members then stay empty);
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__template_learn(struct rlhf__template *, struct rlhf__error *err);

// Render a conversation. For *out, see rlhf__jinja_run. Errors: RLHF_E_NOMEM, and RLHF_E_INVALID if
// the template cannot render the conversation or refuses it. If the template refuses it, `err` has
// the template's own message. [any]
rlhf_status rlhf__template_render(const struct rlhf__template *, const struct rlhf__messages *,
                                  int generate, struct rlhf__jinja_result *out,
                                  struct rlhf__error *err);

// Returns the token with which s begins, after any white space: a special token of the tokenizer,
// the eos token or, if the tokenizer lacks the template's tokens, <...> or [...]. Returns an empty
// string if s does not begin with such a token. [any]
rlhf_str rlhf__template_token_at(const struct rlhf__template *, rlhf_str s);

// If s begins with a text that ends an answer, after any white space, returns the length of the
// white space and that text together. Otherwise returns 0. [any]
size_t rlhf__template_end(const struct rlhf__template *, rlhf_str s);

// Drop `end` and `ends`. [any]
void rlhf__template_forget_ends(struct rlhf__template *);

// ---- where the assistant speaks ----

// Append the text of a conversation to *out, with the positions of the assistant's turns in
// messages [first, n).
//
// If the template has {% generation %} blocks, they mark the turns. Otherwise, the conversation is
// rendered again for each answer, with a stand-in instead of the answer. This shows which text
// comes before and after the answer. The text before the answer is compared with the prompt that
// add_generation_prompt produces, and the turn begins at the first difference. The turn ends with
// the template's end token.
//
// Errors: those of rlhf__template_render, and RLHF_E_INVALID if the position of a turn cannot be
// determined. [any]
rlhf_status rlhf__template_render_turns(const struct rlhf__template *,
                                        const struct rlhf__messages *m, size_t first, int generate,
                                        struct rlhf__turns *out, struct rlhf__error *err);

// Returns the rendered text of a result; it belongs to the result. [any]
rlhf_str rlhf__template_text(const struct rlhf__jinja_result *);

// Returns the length of the common beginning of `a` and `b`, in bytes. [any]
size_t rlhf__template_common(rlhf_str a, rlhf_str b);

#endif
