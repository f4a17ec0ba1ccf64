// uses.c: see uses.h.
#include "model/uses.h"

#include <stdio.h>
#include <string.h>

const char *rlhf__use_name(int32_t use) {
    static const char *const names[] = {"weights",     "packed weights", "gradients", "moments",
                                        "activations", "cache",          "workspace", "rows",
                                        "undo copy",   "program"};
    return use >= 0 && use < RLHF__USES ? names[use] : "memory";
}

uint32_t rlhf__uses_owner(struct rlhf__uses *u, const char *name) {
    uint32_t i = 0;
    while (i < u->n && strcmp(u->name[i], name) != 0)
        i++;
    if (i == RLHF__OWNERS) return i - 1;
    if (i == u->n) snprintf(u->name[u->n++], sizeof u->name[0], "%s", name);
    return i;
}

uint64_t rlhf__uses_total(const struct rlhf__uses *u) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < u->n; i++)
        for (int32_t k = 0; k < RLHF__USES; k++)
            sum += u->bytes[i][k];
    return sum;
}
