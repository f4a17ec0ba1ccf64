// rlhf/option_check.h: validates an option of a table; shared by the host and tests.
//
// Plugins do not need this header. It is not part of the contract and may change in any version.
#ifndef RLHF_OPTION_CHECK_H
#define RLHF_OPTION_CHECK_H

#include "option.h"

// Size in bytes of an option value of that type in the config struct; 0 for an unknown type. [any]
static inline uint32_t rlhf_opt_value_size(int32_t type) {
    switch (type) {
    case RLHF_T_BOOL:
    case RLHF_T_ENUM:
        return sizeof(int32_t);
    case RLHF_T_I64:
        return sizeof(int64_t);
    case RLHF_T_F64:
        return sizeof(double);
    case RLHF_T_STR:
    case RLHF_T_PATH:
    case RLHF_T_LIST:
        return sizeof(const char *);
    case RLHF_T_I64_LIST:
        return sizeof(rlhf_i64_list);
    case RLHF_T_F64_LIST:
        return sizeof(rlhf_f64_list);
    default:
        return 0;
    }
}

// Returns whether every item of a LIST's default is one of the option's choices.
static inline int rlhf_opt_list_in_choices(const rlhf_opt *o) {
    for (uint32_t i = 0; o->choices && o->l_def && o->l_def[i]; i++) {
        uint32_t k = 0;
        while (o->choices[k] && strcmp(o->choices[k], o->l_def[i]) != 0)
            k++;
        if (!o->choices[k]) return 0;
    }
    return 1;
}

static inline int rlhf_opt_def_in_range(const rlhf_opt *o) {
    int low = o->flags & RLHF_OPT_MIN_OPEN ? o->f_def > o->f_min : o->f_def >= o->f_min;
    int high = o->flags & RLHF_OPT_MAX_OPEN ? o->f_def < o->f_max : o->f_def <= o->f_max;
    return low && high;
}

// Checks an option for a config struct of config_size bytes. Returns NULL if the option is valid,
// or else the error, as text that follows the option's name in a message. [any]
static inline const char *rlhf_opt_fault(const rlhf_opt *o, uint32_t config_size) {
    const uint32_t size = rlhf_opt_value_size(o->type);
    if (size == 0) return "has a type this host does not know";
    if (o->offset % (size < sizeof(void *) ? size : sizeof(void *)) != 0)
        return "has a misaligned offset";
    if (size > config_size || o->offset > config_size - size)
        return "lies outside the config struct";
    int required = (o->flags & RLHF_OPT_REQUIRED) != 0;
    if (o->type == RLHF_T_BOOL && (o->i_def < 0 || o->i_def > 1)) return "has a default not 0 or 1";
    if (o->type == RLHF_T_ENUM) {
        int64_t n = 0;
        while (o->choices && o->choices[n])
            n++;
        if (n == 0) return "has no choices";
        if (o->i_def < 0 || o->i_def >= n) return "has a default that is not a choice";
    }
    if (o->type == RLHF_T_LIST) {
        if (o->choices && !o->choices[0]) return "has no choices";
        if (!rlhf_opt_list_in_choices(o)) return "has a default with an item that is not a choice";
    }
    if (o->type == RLHF_T_I64_LIST && o->i_min > o->i_max) return "has a minimum above its maximum";
    if (o->type == RLHF_T_F64_LIST && !(o->f_min <= o->f_max))
        return "has a minimum above its maximum";
    if (o->type == RLHF_T_I64) {
        if (o->i_min > o->i_max) return "has a minimum above its maximum";
        if (!required && (o->i_def < o->i_min || o->i_def > o->i_max))
            return "has a default outside its range";
    }
    if (o->type == RLHF_T_F64) {
        if (!(o->f_min <= o->f_max)) return "has a minimum above its maximum";
        if (!required && !rlhf_opt_def_in_range(o)) return "has a default outside its range";
    }
    return NULL;
}

#endif
