// reports.c: see reports.h.
#include "team/reports.h"

#include "plugin/metric_names.h"

#include <string.h>

struct report {
    double value, weight;
    int32_t combine;
    uint32_t length; // of the name, which follows
};

void rlhf__reports_put(void *ctx, const char *name, double value, double weight, int32_t combine) {
    const struct report one = {value, weight, combine, (uint32_t)strlen(name)};
    rlhf__buf_put(ctx, &one, sizeof one);
    rlhf__buf_put(ctx, name, one.length);
}

rlhf_status rlhf__reports_take(struct rlhf__part *p, uint64_t bytes, rlhf__metric_fn *metric,
                               void *ctx, struct rlhf__error *err) {
    char name[RLHF__METRIC_NAME];
    if ((uint64_t)(p->end - p->at) < bytes)
        return rlhf__fail(err, RLHF_E_INTERNAL, "another rank sent too few bytes");
    for (const char *end = p->at + bytes; p->at < end;) {
        struct report one;
        RLHF_TRY(rlhf__part_get(p, &one, sizeof one, err));
        if (one.length >= sizeof name)
            return rlhf__fail(err, RLHF_E_INTERNAL,
                              "another rank sent a metric's name that is too long");
        RLHF_TRY(rlhf__part_get(p, name, one.length, err));
        name[one.length] = '\0';
        if (metric) metric(ctx, name, one.value, one.weight, one.combine);
    }
    return RLHF_OK;
}
