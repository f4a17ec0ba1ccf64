// jinja_test.c: see jinja_test.h.
#include "jinja/jinja_test.h"

#include "values/jinja_casing.h"
#include "values/jinja_dict.h"
#include "values/jinja_operator.h"
#include "values/jinja_print.h"

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
    LOWER,
    UPPER,
    ESCAPED,
    TEST,
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
             {"lower", LOWER},
             {"upper", UPPER},
             {"escaped", ESCAPED},
             {"test", TEST},
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

// Returns 1 if v is of a kind that has a length and items by number or key.
static int is_sequence(rlhf__value v) {
    return rlhf__jinja_is_list(v) || v.type == RLHF__JINJA_DICT || v.type == RLHF__JINJA_STRING ||
           v.type == RLHF__JINJA_UNDEFINED;
}

static int is_callable(rlhf__value v) { // in jinja2, an undefined value is callable, and fails
    return v.type == RLHF__JINJA_MACRO || v.type == RLHF__JINJA_METHOD ||
           v.type == RLHF__JINJA_FUNCTION || v.type == RLHF__JINJA_JOINER ||
           v.type == RLHF__JINJA_LOOP || v.type == RLHF__JINJA_DATE ||
           v.type == RLHF__JINJA_UNDEFINED;
}

static int is_cased(struct rlhf__jinja_work *w, int upper, rlhf__value v) {
    const rlhf__value text = v.type ? rlhf__jinja_text(w, v) : rlhf__jinja_empty();
    const rlhf_str method = {upper ? "isupper" : "islower", 7};
    return !w->state && rlhf__jinja_is_all(w, method, text.s);
}

// v % 2 is 1 (or 0), as jinja2 computes it for any value.
static int has_rest(struct rlhf__jinja_work *w, rlhf__value v, int64_t by, int64_t rest) {
    v = rlhf__jinja_binary(w, RLHF__JINJA_OP_MOD, v, rlhf__jinja_int(by));
    return !w->state && rlhf__jinja_equal(w, v, rlhf__jinja_int(rest));
}

static int of_kind(struct rlhf__jinja_work *w, int32_t which, rlhf__value v) {
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
        return rlhf__jinja_has_items(v) || v.type == RLHF__JINJA_LOOP;
    case SEQUENCE:
        return is_sequence(v);
    case BOOLEAN:
        return v.type == RLHF__JINJA_BOOL;
    case TRUE_:
    case FALSE_:
        return v.type == RLHF__JINJA_BOOL && v.i == (which == TRUE_);
    case NUMBER:
        return rlhf__jinja_is_number(v);
    case INTEGER:
        return v.type == RLHF__JINJA_INT || v.type == RLHF__JINJA_BIG;
    case FLOAT:
        return v.type == RLHF__JINJA_FLOAT;
    case CALLABLE:
        return is_callable(v);
    case LOWER:
    case UPPER:
        return is_cased(w, which == UPPER, v);
    case ESCAPED:
        return v.type == RLHF__JINJA_STRING && v.mark;
    case TEST:
        if (v.type == RLHF__JINJA_LIST || v.type == RLHF__JINJA_DICT)
            rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a test called %s", rlhf__jinja_kind(v));
        return v.type == RLHF__JINJA_STRING &&
               (rlhf__jinja_test_find(v.s) || rlhf__jinja_is(v.s, "filter"));
    default: // odd, even
        return has_rest(w, v, 2, which == ODD);
    }
}

// Compares the types too: 1 differs from true. Lists and objects must be the same one.
static int is_same(struct rlhf__jinja_work *w, rlhf__value v, rlhf__value a) {
    if (v.type != a.type) return 0;
    if (rlhf__jinja_is_list(v) || v.type == RLHF__JINJA_VIEW) return v.list == a.list;
    if (v.type == RLHF__JINJA_DICT) return v.dict == a.dict;
    return rlhf__jinja_equal(w, v, a);
}

int rlhf__jinja_test(struct rlhf__jinja_work *w, int32_t which, rlhf_str name, rlhf__value v,
                     const struct rlhf__jinja_args *args) {
    static const int32_t ops[] = {
        [EQ] = RLHF__JINJA_OP_EQ, [NE] = RLHF__JINJA_OP_NE, [LT] = RLHF__JINJA_OP_LT,
        [LE] = RLHF__JINJA_OP_LE, [GT] = RLHF__JINJA_OP_GT, [GE] = RLHF__JINJA_OP_GE,
        [IN] = RLHF__JINJA_OP_IN};
    rlhf__value a[RLHF__JINJA_PARAMS_MAX];
    if (which == NO_TEST) {
        rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "the test '%.*s' of %s", RLHF__JINJA_NAME(name),
                         rlhf__jinja_kind(v));
        return 0;
    }
    const char *params = which < WITH_ARGUMENT ? ""
                         : which == DIVISIBLE  ? "num"
                         : which == SAME       ? "other"
                         : which == IN         ? "seq"
                                               : "_";
    if (!rlhf__jinja_bind(w, "the test", name, params, args, a)) return 0;
    if (which < WITH_ARGUMENT) return of_kind(w, which, v);
    if (which == SAME) return is_same(w, v, a[0]);
    if (which != DIVISIBLE) return rlhf__jinja_true(rlhf__jinja_binary(w, ops[which], v, a[0]));
    v = rlhf__jinja_binary(w, RLHF__JINJA_OP_MOD, v, a[0]);
    return !w->state && rlhf__jinja_equal(w, v, rlhf__jinja_int(0));
}
