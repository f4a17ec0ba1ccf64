// spans.h: where in a rendered conversation the assistant speaks.
//
// {% generation %} blocks mark these places. Without them, each answer in turn is replaced by a
// stand-in and the conversation is rendered again: the text before and after the stand-in is also
// the text before and after the answer. A turn begins where the text differs from the prompt that
// add_generation_prompt produces, and ends with its end token.
//
// What it is not: it knows no tokens; internal to chat/.
#ifndef RLHF_HOST_CHAT_SPANS_H
#define RLHF_HOST_CHAT_SPANS_H

#include "chat/template.h"

// Append the text of a conversation to *out, with the turns of the assistant among messages
// [first, n) (with {% generation %} blocks: all). Errors: those of rlhf__template_render;
// RLHF_E_INVALID: a turn's place cannot be determined. [any]
rlhf_status rlhf__spans_render(const struct rlhf__template *, const struct rlhf__messages *m,
                               size_t first, int generate, struct rlhf__turns *out,
                               struct rlhf__error *err);

#endif
