// options.c: a whole config struct from a table: defaults, required keys, all at once; see
// options.h. Values are read in option_value.c and written in option_json.c.
#include "option/options.h"

#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__opts_defaults(const struct rlhf__opt_table *t, void *config,
                                struct rlhf__strings *strings, struct rlhf__error *err) {
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        char *at = (char *)config + o.offset;
        int32_t small = (int32_t)o.i_def;
        const char *text = NULL;
        switch (o.type) {
        case RLHF_T_BOOL:
        case RLHF_T_ENUM:
            memcpy(at, &small, sizeof small);
            break;
        case RLHF_T_I64:
            memcpy(at, &o.i_def, sizeof o.i_def);
            break;
        case RLHF_T_F64:
            memcpy(at, &o.f_def, sizeof o.f_def);
            break;
        default:
            text = rlhf__strings_add(strings, o.s_def);
            if (o.s_def && !text) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
            memcpy(at, &text, sizeof text);
        }
    }
    return RLHF_OK;
}

rlhf_status rlhf__opts_required(const struct rlhf__opt_table *t, const json_t *object,
                                const struct rlhf__origin *from, struct rlhf__error *err) {
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        if (!(o.flags & RLHF_OPT_REQUIRED) || (object && json_object_get(object, o.key))) continue;
        struct rlhf__buf allowed = RLHF__BUF_INIT;
        rlhf__opt_allowed(&o, &allowed);
        rlhf__fail(err, RLHF_E_INVALID, "%s: %s%s%s is missing; it must be %s", from->source,
                   from->section, *from->section ? "." : "", o.key, rlhf__buf_text(&allowed));
        rlhf__buf_free(&allowed);
        return RLHF_E_INVALID;
    }
    return RLHF_OK;
}

rlhf_status rlhf__opts_new(const struct rlhf__opt_table *t, uint32_t config_size,
                           const json_t *object, const struct rlhf__origin *from,
                           struct rlhf__strings *strings, void **out, struct rlhf__error *err) {
    void *config = calloc(1, config_size ? config_size : 1);
    *out = NULL;
    if (!config) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory (%u bytes)", config_size);
    rlhf_status status = rlhf__opts_defaults(t, config, strings, err);
    if (status == RLHF_OK && object)
        status = rlhf__opts_apply(t, object, NULL, from, config, strings, err);
    if (status == RLHF_OK) status = rlhf__opts_required(t, object, from, err);
    if (status == RLHF_OK)
        *out = config;
    else
        free(config);
    return status;
}

// ---- the host's own members ----

const char *const *rlhf__host_keys(int entry) {
    static const char *const algo[] = {"plugin", NULL};
    static const char *const judge[] = {"plugin", "isolate", "network", NULL};
    static const char *const reward[] = {"plugin", "name", "weight", "isolate", "network", NULL};
    return entry == RLHF__ENTRY_REWARD ? reward : entry == RLHF__ENTRY_JUDGE ? judge : algo;
}
