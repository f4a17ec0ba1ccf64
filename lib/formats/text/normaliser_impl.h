// normaliser_impl.h: the steps that a normaliser is made of.
//
// What it is not: for others than normaliser*.c.
#ifndef RLHF_HOST_TEXT_NORMALISER_IMPL_H
#define RLHF_HOST_TEXT_NORMALISER_IMPL_H

#include "text/normaliser.h"
#include "text/pattern.h"

// Steps of a normaliser; bytes that a text may have after one of them.
enum { RLHF__NORMAL_STEPS_MAX = 16, RLHF__NORMAL_BYTES_MAX = 64 << 20 };

struct rlhf__normal_step {
    // Append the normal form of s[0..n) to out, which is empty.
    rlhf_status (*apply)(const struct rlhf__normal_step *step, const char *s, size_t n,
                         struct rlhf__buf *out, struct rlhf__error *err);
    struct rlhf__bert_opts bert;
    struct rlhf__pattern *pattern; // Replace: owned
    char *text;                    // Replace: instead; Prepend: in front; owned
    size_t n_text;
    int32_t is_bert, left, right; // Strip: white space where
    int32_t form;                 // utf8proc's options of NFC, NFD, NFKC, NFKD
};

struct rlhf__normaliser {
    struct rlhf__normal_step step[RLHF__NORMAL_STEPS_MAX];
    size_t n;
};

// Fill *step (zeros) from a part of tokenizer.json that is no Sequence. What it holds is released
// by rlhf__normal_step_finish, also after a failure. [main]
rlhf_status rlhf__normal_step_read(const json_t *part, struct rlhf__normal_step *step,
                                   struct rlhf__error *err);
void rlhf__normal_step_finish(struct rlhf__normal_step *step);

// Whether n more bytes may follow out. Errors: RLHF_E_UNSUPPORTED.
rlhf_status rlhf__normal_room(const struct rlhf__buf *out, size_t n, struct rlhf__error *err);

// `apply` of NFC, NFD, NFKC and NFKD, by step->form.
rlhf_status rlhf__normal_form(const struct rlhf__normal_step *step, const char *s, size_t n,
                              struct rlhf__buf *out, struct rlhf__error *err);

#endif
