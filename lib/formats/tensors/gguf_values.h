// gguf_values.h: the keys of a GGUF file and their values.
#ifndef RLHF_FORMATS_TENSORS_GGUF_VALUES_H
#define RLHF_FORMATS_TENSORS_GGUF_VALUES_H

#include "tensors/gguf_head.h"

// Types of values and of the elements of arrays. The numbers are those of the format.
enum rlhf__gguf_type {
    RLHF__GGUF_U8 = 0,
    RLHF__GGUF_I8 = 1,
    RLHF__GGUF_U16 = 2,
    RLHF__GGUF_I16 = 3,
    RLHF__GGUF_U32 = 4,
    RLHF__GGUF_I32 = 5,
    RLHF__GGUF_F32 = 6,
    RLHF__GGUF_BOOL = 7,
    RLHF__GGUF_STR = 8,
    RLHF__GGUF_ARRAY = 9,
    RLHF__GGUF_U64 = 10,
    RLHF__GGUF_I64 = 11,
    RLHF__GGUF_F64 = 12,
    RLHF__N_GGUF_TYPES
};

struct rlhf__gguf_value; // opaque: the value of a key

// Returns an enum rlhf__gguf_type. [any]
int32_t rlhf__gguf_value_type(const struct rlhf__gguf_value *v);

// The next functions get a value. If it has another type or is out of range, they return
// RLHF_E_INVALID with the file, the key, the value found and the type expected. [any]

// A string of *len bytes, borrowed from the file's memory. It may contain any bytes and is not
// NUL-ended.
rlhf_status rlhf__gguf_value_str(const struct rlhf__gguf_value *v, const char **text, size_t *len,
                                 struct rlhf__error *err);
// An integer of any type from min to max.
rlhf_status rlhf__gguf_value_int(const struct rlhf__gguf_value *v, int64_t min, int64_t max,
                                 int64_t *out, struct rlhf__error *err);
// A finite number of any type. An f32 becomes the shortest decimal number that rounds to it, e.g.
// 1e-05.
rlhf_status rlhf__gguf_value_num(const struct rlhf__gguf_value *v, double *out,
                                 struct rlhf__error *err);
rlhf_status rlhf__gguf_value_bool(const struct rlhf__gguf_value *v, int *out,
                                  struct rlhf__error *err);

// The number of elements of an array. `item_type` is the type that they must have, or
// RLHF__GGUF_I64 for integers of any type, or RLHF__GGUF_F64 for numbers of any type.
rlhf_status rlhf__gguf_value_count(const struct rlhf__gguf_value *v, int32_t item_type, size_t *n,
                                   struct rlhf__error *err);

// Element i of an array of strings, integers or numbers. i is below the count, and the type was
// checked by rlhf__gguf_value_count. A number may be infinite or NaN. [any]
const char *rlhf__gguf_item_text(const struct rlhf__gguf_value *v, size_t i, size_t *len);
int64_t rlhf__gguf_item_int(const struct rlhf__gguf_value *v, size_t i);
double rlhf__gguf_item_num(const struct rlhf__gguf_value *v, size_t i);

// ---- for gguf_file.c ----

// Read n keys with their values. [main]
rlhf_status rlhf__gguf_take_keys(struct rlhf__gguf_head *, uint64_t n, struct rlhf__error *err);

const struct rlhf__gguf_value *rlhf__gguf_head_find(const struct rlhf__gguf_head *,
                                                    const char *key); // NULL: not found [any]

// Release everything, also the mapped file. A zeroed struct is allowed. [main]
void rlhf__gguf_head_finish(struct rlhf__gguf_head *);

#endif
