// isa.c: chooses the instruction set at run time. isa_x86.c and isa_neon.c list the instruction
// sets of their machines; no other file queries the CPU.
#include "machine/isa.h"

#include "machine/hot.h"

#include <string.h>

int rlhf__isa_choose(const char *cap) {
    const int named = cap && *cap;
    int isa = RLHF__ISA_COUNT - 1;
    if (named)
        while (strcmp(cap, rlhf__isa_level(isa)->name) != 0)
            if (--isa < 0) return -1;
    while (isa > 0 && (!rlhf__isa_level(isa)->hot || rlhf__isa_lacks(isa) ||
                       (!named && rlhf__isa_is_slow(isa))))
        isa--;
    return isa;
}

int rlhf__isa_keeping(int isa, const char *arithmetic) {
    if (!arithmetic || !*arithmetic) return isa;
    while (isa >= 0 &&
           (!rlhf__isa_level(isa)->hot || strcmp(rlhf__isa_arithmetic(isa), arithmetic) != 0))
        isa--;
    return isa;
}
