// jinja_filter.h: the filters of a chat template, `v | name(arguments)`.
//
// Filters never change a value. The filters are in three tables: of any values (jinja_filter.c), of
// lists (jinja_list_filter.c) and of text (jinja_text_filter.c).
#ifndef RLHF_FORMATS_JINJA_JINJA_FILTER_H
#define RLHF_FORMATS_JINJA_JINJA_FILTER_H

#include "values/jinja_args.h"

// A call of a filter: the state, the filter's name, its value and its arguments.
struct rlhf__jinja_filtering {
    struct rlhf__jinja_work *w;
    rlhf_str name;
    rlhf__value v, a[RLHF__JINJA_PARAMS_MAX];
    const struct rlhf__jinja_args *args;
    int32_t depth; // depth of nested filters, as in map('map', ...)
};

// A row of a table. `params` is as for rlhf__jinja_bind; NULL means that the filter binds its
// arguments itself. A filter without a function exists in jinja2, but not here.
struct rlhf__jinja_filter_row {
    const char *name, *params;
    rlhf__value (*run)(struct rlhf__jinja_filtering *);
};
// The name of the last row is NULL.
extern const struct rlhf__jinja_filter_row rlhf__jinja_list_filters[], rlhf__jinja_text_filters[];

// The filter of this name; 0 = unknown. [any]
int32_t rlhf__jinja_filter_find(rlhf_str name);

// Apply filter `which` to v. `name` is only used in messages. [any]
rlhf__value rlhf__jinja_filter(struct rlhf__jinja_work *, int32_t which, rlhf_str name,
                               rlhf__value v, const struct rlhf__jinja_args *args, int32_t depth);

// Fails because the filter does not take such a value: with an error of jinja2 if `state` is
// RLHF__JINJA_RAISED, otherwise because this program does not know it.
static inline rlhf__value rlhf__jinja_filter_fails(struct rlhf__jinja_filtering *f, int state) {
    return rlhf__jinja_stop(f->w, state, "the filter '%.*s' of %s", RLHF__JINJA_NAME(f->name),
                            rlhf__jinja_kind(f->v));
}

#endif
