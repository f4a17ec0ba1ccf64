// uses.h: bytes of memory by who has them and what they are for.
#ifndef RLHF_HOST_USES_H
#define RLHF_HOST_USES_H

#include <stdint.h>

// What memory is for.
enum rlhf__use {
    RLHF__USE_WEIGHTS,     // f32 values of parameters
    RLHF__USE_PACKED,      // the products' own copy of them
    RLHF__USE_GRADIENTS,   // f32
    RLHF__USE_MOMENTS,     // of the optimiser
    RLHF__USE_ACTIVATIONS, // of the largest microbatch, and what a forward without gradients takes
    RLHF__USE_CACHE,       // keys and values while sampling
    RLHF__USE_WORKSPACE,   // of the backend: logits, operands of products
    RLHF__USE_ROWS,        // tokens and numbers of a phase, texts
    RLHF__USE_UNDO,        // what an update changes, copied (keep/boundary.h)
    RLHF__USE_PROGRAM,     // what the process has before models are loaded: code, data, tokenizers
    RLHF__USES
};
const char *rlhf__use_name(int32_t use); // "packed weights" [any]

#define RLHF__OWNERS 12

// Bytes by owner and use. name: a role, "policy"; n owners in the order they were first named.
struct rlhf__uses {
    uint32_t n, reserved;
    char name[RLHF__OWNERS][32];
    uint64_t bytes[RLHF__OWNERS][RLHF__USES];
};

// The row of an owner, made when there is none; the last one takes those that are too many. [any]
uint32_t rlhf__uses_owner(struct rlhf__uses *u, const char *name);
uint64_t rlhf__uses_total(const struct rlhf__uses *u); // [any]

#endif
