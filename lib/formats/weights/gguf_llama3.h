// gguf_llama3.h: the divisors of rotary frequencies of the type llama3, as a GGUF file has them.
#ifndef RLHF_FORMATS_WEIGHTS_GGUF_LLAMA3_H
#define RLHF_FORMATS_WEIGHTS_GGUF_LLAMA3_H

#include <stdint.h>

// llama.cpp's divisor of frequency i in positions of type llama3: 1 for wavelengths below context /
// high, `factor` for those above context / low, and between 1 and `factor` for the others. The
// frequency is theta^(-2 i / dim). transformers' modeling_rope_utils.py has the formula. [any]
struct rlhf__gguf_llama3 {
    double theta, context, factor, low, high;
    int32_t dim;
};
float rlhf__gguf_llama3_divisor(const struct rlhf__gguf_llama3 *r, int32_t i);

// Finds the settings from which the divisors x[dim / 2] were made, and sets the context and the
// factors low and high of *r. Returns 0 if they were not made so. All Llama 3 models have a low
// factor of 1 and a high one of 4, and most have an original context of 8,192. Other settings are
// given for this context, because only context / low and context / high have an effect. [any]
int rlhf__gguf_llama3_find(struct rlhf__gguf_llama3 *r, const float *x);

#endif
