// normal_form.h: the normal forms of Unicode, for the characters that the tokenizers library knows.
//
// The other steps of a normalizer are in normalizer.c. Internal to text/.
#ifndef RLHF_FORMATS_TEXT_NORMAL_FORM_H
#define RLHF_FORMATS_TEXT_NORMAL_FORM_H

#include "base/buf.h"

enum { RLHF__NORMAL_BYTES_MAX = 64 << 20 }; // maximal size of a text after a step, in bytes

// Check that n more bytes may be appended to `out`. Errors: RLHF_E_UNSUPPORTED.
rlhf_status rlhf__normal_room(const struct rlhf__buf *out, size_t n, struct rlhf__error *err);

// Append the normal form of s[0..n) to `out`. `form` is utf8proc's options for NFC, NFD, NFKC or
// NFKD. Errors: RLHF_E_NOMEM, RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__normal_form(int32_t form, const char *s, size_t n, struct rlhf__buf *out,
                              struct rlhf__error *err);

#endif
