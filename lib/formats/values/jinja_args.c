// jinja_args.c: see jinja_args.h.
#include "values/jinja_args.h"

#include <string.h>

struct parameter {
    rlhf_str name;
    int optional, given;
};

// Splits "old new count=" into parameters. Returns their number.
static size_t parameters(const char *names, struct parameter out[RLHF__JINJA_PARAMS_MAX]) {
    size_t n = 0;
    while (*names && n < RLHF__JINJA_PARAMS_MAX) {
        size_t len = strcspn(names, " ");
        const size_t step = len + (names[len] == ' ');
        const int optional = len && names[len - 1] == '=';
        len -= (size_t)optional;
        out[n++] = (struct parameter){.name = {names, len}, .optional = optional};
        names += step;
    }
    return n;
}

int rlhf__jinja_bind(struct rlhf__jinja_work *w, const char *what, rlhf_str of, const char *names,
                     const struct rlhf__jinja_args *args, rlhf__value out[RLHF__JINJA_PARAMS_MAX]) {
    struct parameter p[RLHF__JINJA_PARAMS_MAX];
    const size_t n = parameters(names, p);
    size_t place = 0;
    for (size_t i = 0; i < RLHF__JINJA_PARAMS_MAX; i++)
        out[i] = rlhf__jinja_undefined();
    for (size_t k = 0; k < args->n; k++) {
        const rlhf_str name = args->name[k];
        size_t i = name.len ? 0 : place++;
        while (name.len && i < n &&
               (rlhf__jinja_is(p[i].name, "_") || !rlhf__jinja_same(p[i].name, name)))
            i++;
        if (i >= n && name.len)
            rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "%s '%.*s' has no argument '%.*s'", what,
                             RLHF__JINJA_NAME(of), RLHF__JINJA_NAME(name));
        else if (i >= n)
            rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "%s '%.*s' has at most %zu arguments", what,
                             RLHF__JINJA_NAME(of), n);
        else if (p[i].given++)
            rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "%s '%.*s' got the argument '%.*s' twice", what,
                             RLHF__JINJA_NAME(of), RLHF__JINJA_NAME(p[i].name));
        else
            out[i] = args->value[k];
        if (w->state) return 0;
    }
    for (size_t i = 0; i < n; i++)
        if (!p[i].optional && !p[i].given) {
            rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "%s '%.*s' has too few arguments", what,
                             RLHF__JINJA_NAME(of));
            return 0;
        }
    return !w->state;
}
