// isa_neon.c: the instruction set of aarch64. Every such CPU has NEON.
#include "machine/hot.h"
#include "machine/isa.h"

#include <stddef.h>

static const struct rlhf__level neon = {
    "neon", &rlhf__hot_table_neon, "NEON, 4 lanes", "own tiles", "as f32", NULL};

const struct rlhf__level *rlhf__isa_level(int isa) {
    (void)isa; // there is only one level
    return &neon;
}

const char *rlhf__isa_arithmetic(int isa) {
    (void)isa;
    return "v1";
}

int rlhf__isa_is_slow(int isa) {
    (void)isa;
    return 0;
}

const char *rlhf__isa_lacks(int isa) {
    (void)isa;
    return NULL;
}
