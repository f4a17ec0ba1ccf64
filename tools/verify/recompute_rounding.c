// recompute_rounding.c: see recompute_rounding.h.
#include "verify/recompute_rounding.h"

#include <string.h>

#define SLACK 4 // the run may be this many times further away than the trials

// Returns 1 if both checks are about the same number: a metric, a tensor, the worst of all rows.
// Places of the worst row, step or element may differ.
static int same_number(const struct rlhf__recompute_check *a,
                       const struct rlhf__recompute_check *b) {
    if (strcmp(a->what, b->what) != 0) return 0;
    // Both would be the difference between the recomputed phase and the recorded rows.
    if (strcmp(a->what, "log-probs of sampling") == 0) return 0;
    if (strncmp(a->what, "element of ", 11) != 0)
        return strncmp(a->what, "metric", 6) != 0 || strcmp(a->where, b->where) == 0;
    const char *end = strrchr(a->where, '[');
    const size_t n = end ? (size_t)(end - a->where) : strlen(a->where);
    return strncmp(a->where, b->where, n) == 0 && b->where[n] == '[';
}

void rlhf__rounding_allow(struct rlhf__checks *checks, const struct rlhf__checks *trial) {
    for (size_t i = 0; i < checks->n; i++) {
        struct rlhf__recompute_check *k = &checks->item[i];
        if (!k->wrong) continue;
        for (size_t j = 0; j < trial->n; j++)
            if (same_number(k, &trial->item[j]) && trial->item[j].relative > k->moved)
                k->moved = trial->item[j].relative;
        if (!(k->relative <= SLACK * k->moved)) continue;
        k->limit = SLACK * k->moved;
        k->raised = 1;
        k->wrong = 0;
    }
}
