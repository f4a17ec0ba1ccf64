// probe.h: which of the fixed set a model's own template is, told by what it produces: it is run on
// conversations that tell the set apart, and every one must come out as the form writes it.
//
// What it is not: a reader of template texts; a template that looks different and does the same is
// recognised. Internal to chat/.
#ifndef RLHF_HOST_CHAT_PROBE_H
#define RLHF_HOST_CHAT_PROBE_H

#include "chat/style.h"

// *out becomes the style of a template's text: a form, a standing system's turn, what it refuses,
// where its {% generation %} blocks begin and end. vars: what the template finds beside messages
// and add_generation_prompt (bos_token, ...). bos, eos: NULL = the tokenizer has none. Errors:
// RLHF_E_UNSUPPORTED with the reason (what is not known in it, or that it is none of the set),
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__probe_style(const char *text, size_t n, const json_t *vars, const char *bos,
                              const char *eos, struct rlhf__style *out, struct rlhf__error *err);

#endif
