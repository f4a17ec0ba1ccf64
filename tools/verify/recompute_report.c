// recompute_report.c: see recompute_report.h.
#include "verify/recompute_report.h"

#include "base/printable.h"

#include <math.h>
#include <stdio.h>

static const char *verdict(const struct rlhf__recomputed *p) {
    if (rlhf__checks_wrong(p->checks)) return "differs";
    return rlhf__checks_exact(p->checks) ? "equal to the bit" : "equal within the limits";
}

static void print_check(const struct rlhf__recompute_check *k) {
    printf("  %-40s", k->what);
    if (k->has_values)
        printf(" %13.6g %13.6g", k->run, k->again);
    else
        printf(" %13s %13s", "", "");
    if (isfinite(k->difference)) printf(" %10.2g", k->difference);
    if (isfinite(k->difference) && isfinite(k->limit))
        printf(" %10.2g %8.2g", k->relative, k->limit);
    else if (isfinite(k->difference))
        printf(" %10s %8s", "", ""); // judged tensor by tensor
    if (k->where[0]) printf("  %s", k->where);
    printf("%s\n", k->wrong ? "  DIFFERS" : k->raised ? "  limit raised" : "");
}

void rlhf__recompute_print(const struct rlhf__recomputed *p) {
    const size_t raised = rlhf__checks_raised(p->checks);
    printf("phase %lld: %s (%s%s", (long long)p->phase, verdict(p), p->dtype,
           p->must_equal ? ", same arithmetic" : "");
    if (raised > 0)
        printf("; rounding alone moves %zu number%s further than the usual limit%s", raised,
               raised == 1 ? "" : "s", raised == 1 ? "" : "s");
    printf(")\n");
    printf("  %-40s %13s %13s %10s %10s %8s\n", "", "run", "recomputed", "difference", "relative",
           "limit");
    for (size_t i = 0; i < p->checks->n; i++)
        print_check(&p->checks->item[i]);
}

// Infinity is written as null, because JSON lacks it.
static json_t *real(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *check_json(const struct rlhf__recompute_check *k) {
    json_t *v = json_pack("{s:o, s:o, s:b, s:b}", "what", json_string(k->what), "where",
                          json_string(k->where), "differs", k->wrong, "limit_raised", k->raised);
    if (v && k->has_values) json_object_set_new(v, "run", real(k->run));
    if (v && k->has_values) json_object_set_new(v, "recomputed", real(k->again));
    if (!v) return NULL;
    json_object_set_new(v, "difference", real(k->difference));
    json_object_set_new(v, "relative", real(k->relative));
    json_object_set_new(v, "limit", real(k->limit));
    return v;
}

json_t *rlhf__recompute_json(const struct rlhf__recomputed *p) {
    json_t *checks = json_array();
    for (size_t i = 0; i < p->checks->n; i++)
        json_array_append_new(checks, check_json(&p->checks->item[i]));
    return json_pack("{s:I, s:s, s:s, s:b, s:o}", "phase", (json_int_t)p->phase, "verdict",
                     verdict(p), "dtype", p->dtype, "same_arithmetic", p->must_equal, "checks",
                     checks);
}
