// phase_range.c: see phase_range.h.
#include "verify/phase_range.h"

#include "cmd/flags.h"

#include <stdio.h>
#include <string.h>

rlhf_status rlhf__phase_range(const char *flag, const char *text, int64_t phases, int64_t *first,
                              int64_t *last, struct rlhf__error *err) {
    char a[32];
    *first = 1;
    *last = phases;
    if (!text) return RLHF_OK;
    const char *dots = strstr(text, "..");
    snprintf(a, sizeof a, "%.*s", (int)(dots ? dots - text : 30), text);
    const int ok = rlhf__typed_integer(a, first) &&
                   rlhf__typed_integer(dots ? dots + 2 : a, last) && *first >= 1 && *first <= *last;
    if (!ok)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s must be a phase or a range of phases, as 7 or 2..5, found %s", flag,
                          *text ? text : "nothing");
    if (*first <= phases && *last <= phases) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s is %s, but the run has %lld phases", flag, text,
                      (long long)phases);
}
