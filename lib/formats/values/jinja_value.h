// jinja_value.h: the values that exist while a template is rendered, and their memory.
//
// All memory of a rendering is freed together when the rendering ends. So values need no owners and
// can be copied freely. Only namespaces, iterators, cyclers and joiners change after they are
// created.
//
// This file does not know a template's variables: each function reads only its arguments.
#ifndef RLHF_FORMATS_VALUES_JINJA_VALUE_H
#define RLHF_FORMATS_VALUES_JINJA_VALUE_H

#include "base/buf.h"

enum {
    // Limits of one rendering. Published templates take a few hundred steps for each message.
    RLHF__JINJA_STEPS_MAX = 2 << 20,   // steps: evaluated nodes
    RLHF__JINJA_MEMORY_MAX = 64 << 20, // bytes of all values created
    RLHF__JINJA_TEXT_MAX = 32 << 20,   // bytes of text written
    RLHF__JINJA_LEVELS_MAX = 200,      // depth of nested calls, blocks and expressions
    RLHF__JINJA_RANGE_MAX = 100000     // length of a range(), as in Jinja's own sandbox
};

enum rlhf__jinja_state {
    RLHF__JINJA_GOES_ON = 0,
    RLHF__JINJA_RAISED = 1, // raise_exception(), or an error that Jinja itself would raise
    RLHF__JINJA_UNKNOWN = 2 // an unknown operation, or a limit that is exceeded
};

struct rlhf__jinja_memory {
    struct rlhf__jinja_block *block; // the newest first
    char *at, *end;                  // the free part of the newest block
    int64_t left;                    // bytes that may still be allocated
};

// The state of a rendering.
struct rlhf__jinja_work {
    struct rlhf__jinja_memory memory;
    int64_t steps;       // steps that are left
    int32_t state, line; // enum rlhf__jinja_state; the line at which rendering stopped
    char why[300];       // the unknown construct, or the raised error
};

enum rlhf__jinja_type {
    RLHF__JINJA_UNDEFINED = 0,
    RLHF__JINJA_NONE,
    RLHF__JINJA_BOOL,      // i
    RLHF__JINJA_INT,       // i
    RLHF__JINJA_BIG,       // big: an integer that does not fit into 64 bits
    RLHF__JINJA_FLOAT,     // f
    RLHF__JINJA_STRING,    // s: UTF-8; mark: 1 = safe HTML
    RLHF__JINJA_LIST,      // list
    RLHF__JINJA_TUPLE,     // list; printed with parentheses; mark: 1 = made by groupby
    RLHF__JINJA_RANGE,     // list
    RLHF__JINJA_VIEW,      // list: the keys, values or items of a dictionary
    RLHF__JINJA_ITERATOR,  // list: can be visited once, from list->at
    RLHF__JINJA_DICT,      // dict
    RLHF__JINJA_NAMESPACE, // dict; can change
    RLHF__JINJA_LOOP,      // loop
    RLHF__JINJA_MACRO,     // macro
    RLHF__JINJA_METHOD,    // method: a method that is not called yet, as in {{ d.items }}
    RLHF__JINJA_FUNCTION,  // i: its number (jinja_function.h)
    RLHF__JINJA_CYCLER,    // list; list->at is the current item
    RLHF__JINJA_JOINER,    // list of the separator; list->at: 1 = was called
    RLHF__JINJA_DATE       // the function strftime_now
};

struct rlhf__jinja_value {
    int32_t type, mark; // type: enum rlhf__jinja_type
    union {
        int64_t i;
        double f;
        rlhf_str s;
        const struct rlhf__jinja_big *big;
        struct rlhf__jinja_list *list;
        struct rlhf__jinja_dict *dict;
        struct rlhf__jinja_loop *loop;
        const struct rlhf__jinja_macro *macro;
        const struct rlhf__jinja_method *method;
    };
};
typedef struct rlhf__jinja_value rlhf__value;

struct rlhf__jinja_list {
    rlhf__value *item; // [n]
    size_t n, cap, at;
    rlhf_str shown; // how a range or a view is printed: "range(0, 3)", "dict_keys"
};

// Members are in the order of insertion. Two keys are the same if they are equal: 1, 1.0 and true.
struct rlhf__jinja_dict {
    struct rlhf__jinja_pair {
        rlhf__value key, value;
    } * pair; // [n]
    size_t n, cap;
};

struct rlhf__jinja_method {
    rlhf__value of;
    rlhf_str name;
};

// A macro, or the body of a call block, with the variables that it can see besides the global ones.
struct rlhf__jinja_macro {
    rlhf_str name;
    int32_t node;
    const struct rlhf__jinja_local *seen; // [n_seen]
    size_t n_seen;
};

// The variable `loop`: iteration `at` of a list.
struct rlhf__jinja_loop {
    const struct rlhf__jinja_list *list;
    size_t at;
    int64_t depth;                         // 1, or more if a recursive loop has called itself
    int32_t node;                          // the statement, if the loop is recursive; otherwise 0
    int32_t has_changed;                   // 1: changed() was called
    rlhf__value changed;                   // the arguments of the last call of changed()
    const struct rlhf__jinja_macro *frame; // what a recursive loop can see
};

// ---- memory and failure ----

// Allocate n bytes, aligned for any value. If that fails, sets the state and returns NULL. [any]
void *rlhf__jinja_alloc(struct rlhf__jinja_work *, size_t n);
void rlhf__jinja_memory_finish(struct rlhf__jinja_memory *); // [any]

// Set the state and the reason, unless an earlier call has set them. Returns undefined. [any]
__attribute__((format(printf, 3, 4))) rlhf__value rlhf__jinja_stop(struct rlhf__jinja_work *,
                                                                   int state, const char *fmt, ...);

// Count an operation on n bytes or items toward the limit of steps. Returns 0 if the rendering must
// stop. [any]
int rlhf__jinja_pay(struct rlhf__jinja_work *, size_t n);

// ---- making values ----

static inline rlhf__value rlhf__jinja_undefined(void) { return (rlhf__value){0}; }
static inline rlhf__value rlhf__jinja_none(void) { return (rlhf__value){.type = RLHF__JINJA_NONE}; }
static inline rlhf__value rlhf__jinja_bool(int yes) {
    return (rlhf__value){.type = RLHF__JINJA_BOOL, .i = yes != 0};
}
static inline rlhf__value rlhf__jinja_int(int64_t i) {
    return (rlhf__value){.type = RLHF__JINJA_INT, .i = i};
}
static inline rlhf__value rlhf__jinja_float(double f) {
    return (rlhf__value){.type = RLHF__JINJA_FLOAT, .f = f};
}
// The value borrows the bytes.
static inline rlhf__value rlhf__jinja_str(rlhf_str s) {
    return (rlhf__value){.type = RLHF__JINJA_STRING, .s = s};
}
static inline rlhf__value rlhf__jinja_empty(void) { return rlhf__jinja_str((rlhf_str){"", 0}); }

// rlhf__jinja_copied makes a string from a copy of the n bytes at s. rlhf__jinja_joined makes the
// string `a` + `b`. If `a` is the string that was made last, `b` is appended in place. [any]
rlhf__value rlhf__jinja_copied(struct rlhf__jinja_work *, const char *s, size_t n);
rlhf__value rlhf__jinja_joined(struct rlhf__jinja_work *, rlhf_str a, rlhf_str b);

// rlhf__jinja_list makes an empty list of this type, and rlhf__jinja_add adds a value to it before
// the list is used. After a failure (the state is set), the list is undefined, and adding does
// nothing. [any]
rlhf__value rlhf__jinja_list(struct rlhf__jinja_work *, int32_t type, size_t cap);
void rlhf__jinja_add(struct rlhf__jinja_work *, rlhf__value list, rlhf__value v);

// Makes the method of a value that has one of this name. [any]
rlhf__value rlhf__jinja_bound(struct rlhf__jinja_work *, rlhf__value of, rlhf_str name);

// ---- looking at values ----

int rlhf__jinja_same(rlhf_str a, rlhf_str b);
int rlhf__jinja_is(rlhf_str a, const char *text);
static inline int rlhf__jinja_is_list(rlhf__value v) { // with members `list` and an index
    return v.type == RLHF__JINJA_LIST || v.type == RLHF__JINJA_TUPLE || v.type == RLHF__JINJA_RANGE;
}
static inline int rlhf__jinja_is_dict(rlhf__value v) {
    return v.type == RLHF__JINJA_DICT || v.type == RLHF__JINJA_NAMESPACE;
}
static inline int rlhf__jinja_is_whole(rlhf__value v) { // in Python, a bool is a number
    return v.type == RLHF__JINJA_BOOL || v.type == RLHF__JINJA_INT || v.type == RLHF__JINJA_BIG;
}
static inline int rlhf__jinja_is_number(rlhf__value v) {
    return rlhf__jinja_is_whole(v) || v.type == RLHF__JINJA_FLOAT;
}

int rlhf__jinja_true(rlhf__value v);

// The type of v in words for messages: "a list", "an undefined value" and so on.
const char *rlhf__jinja_kind(rlhf__value v);

// Returns the list of items that a `for` statement visits: the items of a list, the keys of a
// dictionary, or the characters of a string. If v is undefined, the list is empty. An iterator has
// no items afterwards. [any]
rlhf__value rlhf__jinja_items(struct rlhf__jinja_work *, rlhf__value v);
// Like rlhf__jinja_items, but the result is a new list. [any]
rlhf__value rlhf__jinja_own_items(struct rlhf__jinja_work *, rlhf__value v);
// Returns 1 if v has items. [any]
int rlhf__jinja_has_items(rlhf__value v);

// The number of characters of a string. [any]
int64_t rlhf__jinja_characters(struct rlhf__jinja_work *, rlhf_str s);

#endif
