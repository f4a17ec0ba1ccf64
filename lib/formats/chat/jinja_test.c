// jinja_test.c: see jinja_test.h.
#include "chat/jinja_test.h"

#include "chat/jinja_operator.h"

#include <string.h>

enum test {
    NO_TEST = 0,
    DEFINED,
    IS_UNDEFINED,
    NONE,
    STRING,
    MAPPING,
    ITERABLE,
    SEQUENCE,
    BOOLEAN,
    TRUE_,
    FALSE_,
    NUMBER,
    INTEGER,
    FLOAT,
    ODD,
    EVEN,
    CALLABLE,
    WITH_ARGUMENT, // the tests from here on take an argument
    DIVISIBLE = WITH_ARGUMENT,
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    IN,
    SAME
};

static const struct {
    const char *name;
    int32_t test;
} names[] = {{"defined", DEFINED},
             {"undefined", IS_UNDEFINED},
             {"none", NONE},
             {"string", STRING},
             {"mapping", MAPPING},
             {"iterable", ITERABLE},
             {"sequence", SEQUENCE},
             {"boolean", BOOLEAN},
             {"true", TRUE_},
             {"false", FALSE_},
             {"number", NUMBER},
             {"integer", INTEGER},
             {"float", FLOAT},
             {"odd", ODD},
             {"even", EVEN},
             {"callable", CALLABLE},
             {"divisibleby", DIVISIBLE},
             {"eq", EQ},
             {"equalto", EQ},
             {"==", EQ},
             {"ne", NE},
             {"!=", NE},
             {"lt", LT},
             {"lessthan", LT},
             {"<", LT},
             {"le", LE},
             {"<=", LE},
             {"gt", GT},
             {"greaterthan", GT},
             {">", GT},
             {"ge", GE},
             {">=", GE},
             {"in", IN},
             {"sameas", SAME}};

int32_t rlhf__jinja_test_find(rlhf_str name) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (rlhf__jinja_is(name, names[i].name)) return names[i].test;
    return NO_TEST;
}

static int of_kind(struct rlhf__jinja_work *w, int32_t which, rlhf__value v) {
    const int whole = v.type == RLHF__JINJA_INT || v.type == RLHF__JINJA_BOOL;
    switch (which) {
    case DEFINED:
        return v.type != RLHF__JINJA_UNDEFINED;
    case IS_UNDEFINED:
        return v.type == RLHF__JINJA_UNDEFINED;
    case NONE:
        return v.type == RLHF__JINJA_NONE;
    case STRING:
        return v.type == RLHF__JINJA_STRING;
    case MAPPING:
        return v.type == RLHF__JINJA_DICT;
    case ITERABLE:
    case SEQUENCE:
        return rlhf__jinja_is_list(v) || v.type == RLHF__JINJA_DICT ||
               v.type == RLHF__JINJA_STRING || v.type == RLHF__JINJA_UNDEFINED;
    case BOOLEAN:
        return v.type == RLHF__JINJA_BOOL;
    case TRUE_:
    case FALSE_:
        return v.type == RLHF__JINJA_BOOL && v.i == (which == TRUE_);
    case NUMBER:
        return whole || v.type == RLHF__JINJA_FLOAT;
    case INTEGER:
        return v.type == RLHF__JINJA_INT;
    case FLOAT:
        return v.type == RLHF__JINJA_FLOAT;
    case CALLABLE:
        return v.type == RLHF__JINJA_MACRO || v.type == RLHF__JINJA_METHOD;
    default: // odd, even
        if (!whole) rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "odd or even %s", rlhf__jinja_kind(v));
        return whole && (v.i % 2 != 0) == (which == ODD);
    }
}

// Compares the types too: 1 differs from true.
static int is_same(struct rlhf__jinja_work *w, rlhf__value v, rlhf__value a) {
    return v.type == a.type && rlhf__jinja_equal(w, v, a);
}

int rlhf__jinja_test(struct rlhf__jinja_work *w, int32_t which, rlhf_str name, rlhf__value v,
                     const struct rlhf__jinja_args *args, size_t first) {
    static const int32_t ops[] = {
        [EQ] = RLHF__JINJA_OP_EQ, [NE] = RLHF__JINJA_OP_NE, [LT] = RLHF__JINJA_OP_LT,
        [LE] = RLHF__JINJA_OP_LE, [GT] = RLHF__JINJA_OP_GT, [GE] = RLHF__JINJA_OP_GE,
        [IN] = RLHF__JINJA_OP_IN};
    if (which == NO_TEST || (which >= WITH_ARGUMENT) != (args->n > first)) {
        rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "the test '%.*s' of %s", (int)name.len, name.ptr,
                         rlhf__jinja_kind(v));
        return 0;
    }
    if (which < WITH_ARGUMENT) return of_kind(w, which, v);
    const rlhf__value a = args->value[first];
    if (which == SAME) return is_same(w, v, a);
    if (which != DIVISIBLE) return rlhf__jinja_true(rlhf__jinja_binary(w, ops[which], v, a));
    return !rlhf__jinja_true(rlhf__jinja_binary(w, RLHF__JINJA_OP_MOD, v, a)) && !w->state;
}
