// combine.c: see combine.h.
#include "plugin/combine.h"

#include <math.h>

const char *rlhf__combine_name(int32_t combine) {
    switch (combine) {
    case RLHF_COMBINE_MEAN:
        return "mean";
    case RLHF_COMBINE_SUM:
        return "sum";
    case RLHF_COMBINE_LAST:
        return "last";
    case RLHF_COMBINE_MAX:
        return "max";
    case RLHF_COMBINE_MIN:
        return "min";
    default:
        return NULL;
    }
}

const char *rlhf__combine_fault(double weight, int32_t combine) {
    if (!rlhf__combine_name(combine)) return "its combine is not one of enum rlhf_combine";
    if (combine != RLHF_COMBINE_MEAN && combine != RLHF_COMBINE_SUM) return NULL;
    return isfinite(weight) && weight >= 0 ? NULL
                                           : "its weight must be a finite number of 0 or more";
}

// A NaN is kept, because it shows that something is wrong.
static double larger(double a, double b) { return isnan(a) || a > b ? a : b; }
static double smaller(double a, double b) { return isnan(a) || a < b ? a : b; }

int rlhf__combine_merge(struct rlhf__combined *to, const struct rlhf__combined *later) {
    if (later->n == 0) return 1;
    if (to->n == 0) { // first report: take the value as it is, bit for bit
        *to = *later;
        return 1;
    }
    if (to->combine != later->combine) return 0;
    to->n += later->n;
    to->sum += later->sum;
    to->weight += later->weight;
    switch (to->combine) {
    case RLHF_COMBINE_MEAN:
        to->value = to->sum / to->weight;
        break;
    case RLHF_COMBINE_SUM:
        to->value = to->sum;
        break;
    case RLHF_COMBINE_MAX:
        to->value = larger(to->value, later->value);
        break;
    case RLHF_COMBINE_MIN:
        to->value = smaller(to->value, later->value);
        break;
    default:
        to->value = later->value;
    }
    return 1;
}

int rlhf__combine_add(struct rlhf__combined *to, double value, double weight, int32_t combine) {
    const int sum = combine == RLHF_COMBINE_SUM, mean = combine == RLHF_COMBINE_MEAN;
    const struct rlhf__combined one = {.value = sum ? weight * value : value,
                                       .weight = mean ? weight : 1,
                                       .sum = sum || mean ? weight * value : value,
                                       .combine = combine,
                                       .n = !mean || weight > 0};
    return rlhf__combine_merge(to, &one);
}
