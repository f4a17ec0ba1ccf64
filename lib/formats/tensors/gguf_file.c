// gguf_file.c: see gguf_file.h.
#include "tensors/gguf_file.h"

#include "base/regular.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_NAME = 64, MAX_DIMS = 4 };

struct rlhf__gguf_file {
    struct rlhf__gguf_head head;
    struct rlhf__tensor *tensor;   // [n]
    struct rlhf__tensor **by_name; // [n] sorted
    size_t n;
};

// ggml's types of tensors. dtype -1: a type that is not read.
static const struct {
    const char *name;
    int32_t type, dtype;
} tensor_types[] = {
    {"F32", 0, RLHF__TENSOR_F32},
    {"F16", 1, RLHF__TENSOR_F16},
    {"Q4_0", 2, RLHF__TENSOR_Q4_0},
    {"Q4_1", 3, RLHF__TENSOR_Q4_1},
    {"Q5_0", 6, RLHF__TENSOR_Q5_0},
    {"Q5_1", 7, RLHF__TENSOR_Q5_1},
    {"Q8_0", 8, RLHF__TENSOR_Q8_0},
    {"Q8_1", 9, -1},
    {"Q2_K", 10, -1},
    {"Q3_K", 11, -1},
    {"Q4_K", 12, RLHF__TENSOR_Q4_K},
    {"Q5_K", 13, RLHF__TENSOR_Q5_K},
    {"Q6_K", 14, RLHF__TENSOR_Q6_K},
    {"Q8_K", 15, -1},
    {"IQ2_XXS", 16, -1},
    {"IQ2_XS", 17, -1},
    {"IQ3_XXS", 18, -1},
    {"IQ1_S", 19, -1},
    {"IQ4_NL", 20, -1},
    {"IQ3_S", 21, -1},
    {"IQ2_S", 22, -1},
    {"IQ4_XS", 23, -1},
    {"I8", 24, RLHF__TENSOR_I8},
    {"I16", 25, RLHF__TENSOR_I16},
    {"I32", 26, RLHF__TENSOR_I32},
    {"I64", 27, RLHF__TENSOR_I64},
    {"F64", 28, RLHF__TENSOR_F64},
    {"IQ1_M", 29, -1},
    {"BF16", 30, RLHF__TENSOR_BF16},
    {"TQ1_0", 34, -1},
    {"TQ2_0", 35, -1},
    {"MXFP4", 39, -1},
    {"NVFP4", 40, -1},
    {"Q1_0", 41, -1},
};

#define READ_TYPES "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K and Q6_K"

// ---- descriptions of tensors ----

static rlhf_status take_type(struct rlhf__gguf_file *f, struct rlhf__tensor *t,
                             struct rlhf__error *err) {
    uint32_t type = 0;
    RLHF_TRY(rlhf__gguf_take_u32(&f->head, "tensor", t->name, &type, err));
    for (size_t i = 0; i < sizeof tensor_types / sizeof *tensor_types; i++) {
        if (tensor_types[i].type != (int64_t)type) continue;
        t->dtype = tensor_types[i].dtype;
        if (t->dtype >= 0) return RLHF_OK;
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "tensor %s is of type %s, which is not read; make the file again in one "
                          "of these types: " READ_TYPES,
                          t->name, tensor_types[i].name);
    }
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "tensor %s is of the unknown type %lu; types that are read: " READ_TYPES,
                      t->name, (unsigned long)type);
}

static rlhf_status take_shape(struct rlhf__gguf_file *f, struct rlhf__tensor *t,
                              struct rlhf__error *err) {
    uint32_t n = 0;
    RLHF_TRY(rlhf__gguf_take_u32(&f->head, "tensor", t->name, &n, err));
    if (n < 1 || n > MAX_DIMS)
        return rlhf__fail(err, RLHF_E_INVALID, "tensor %s has %lu dimensions; allowed: 1 to %d",
                          t->name, (unsigned long)n, MAX_DIMS);
    t->ndim = (int32_t)n;
    t->count = 1;
    for (uint32_t i = n; i-- > 0;) { // the file has the contiguous dimension first
        uint64_t d = 0;
        RLHF_TRY(rlhf__gguf_take_u64(&f->head, "tensor", t->name, &d, err));
        if (d < 1 || d > INT64_MAX || __builtin_mul_overflow(t->count, (int64_t)d, &t->count))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "tensor %s: dimension %lu is %llu, or makes the tensor larger than "
                              "2^63 elements; allowed: 1 or more",
                              t->name, (unsigned long)(n - i), (unsigned long long)d);
        t->shape[i] = (int64_t)d;
    }
    return RLHF_OK;
}

static rlhf_status take_tensor(struct rlhf__gguf_file *f, size_t i, struct rlhf__tensor *t,
                               uint64_t *offset, struct rlhf__error *err) {
    char *name = NULL;
    const rlhf_status st = rlhf__gguf_take_name(&f->head, "tensor", i, MAX_NAME, &name, err);
    if (st != RLHF_OK || !name) return st;
    *t = (struct rlhf__tensor){.name = name, .file = f->head.file.path, .in = &f->head.file};
    RLHF_TRY(take_shape(f, t, err));
    RLHF_TRY(take_type(f, t, err));
    RLHF_TRY(rlhf__gguf_take_u64(&f->head, "tensor", name, offset, err));
    const int64_t block = rlhf__tensor_dtype_block(t->dtype);
    if (t->shape[t->ndim - 1] % block != 0)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "tensor %s has rows of %lld elements, which is not a multiple of the %lld "
            "of a block of %s",
            name, (long long)t->shape[t->ndim - 1], (long long)block,
            rlhf__tensor_dtype_name(t->dtype));
    if (__builtin_mul_overflow((uint64_t)(t->count / block), rlhf__tensor_dtype_size(t->dtype),
                               &t->n_bytes))
        return rlhf__fail(err, RLHF_E_INVALID, "tensor %s: its shape is too large", name);
    return RLHF_OK;
}

// Sets t->data. The data of all tensors begins at `start`.
static rlhf_status place(const struct rlhf__gguf_file *f, struct rlhf__tensor *t, uint64_t start,
                         uint64_t alignment, uint64_t offset, struct rlhf__error *err) {
    const uint64_t len = start < f->head.file.len ? f->head.file.len - start : 0;
    if (offset % alignment != 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "tensor %s begins at offset %llu, which is not a multiple of the "
                          "alignment %llu",
                          t->name, (unsigned long long)offset, (unsigned long long)alignment);
    if (offset > len || t->n_bytes > len - offset)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "tensor %s takes %llu bytes at offset %llu of the data, but the file "
                          "holds %llu bytes of data; was all of it copied?",
                          t->name, (unsigned long long)t->n_bytes, (unsigned long long)offset,
                          (unsigned long long)len);
    t->data = f->head.file.bytes + start + offset;
    return RLHF_OK;
}

static int by_place(const void *a, const void *b) {
    const struct rlhf__tensor *const *x = a, *const *y = b;
    return (*x)->data < (*y)->data ? -1 : (*x)->data > (*y)->data;
}

static int by_name(const void *a, const void *b) {
    const struct rlhf__tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static rlhf_status check_tensors(struct rlhf__gguf_file *f, struct rlhf__error *err) {
    struct rlhf__tensor **t = f->by_name;
    const size_t n = f->n;
    for (size_t i = 0; i < n; i++)
        t[i] = &f->tensor[i];
    if (n) qsort(t, n, sizeof *t, by_place);
    for (size_t i = 1; i < n; i++)
        if ((uint64_t)(t[i]->data - t[i - 1]->data) < t[i - 1]->n_bytes)
            return rlhf__fail(err, RLHF_E_INVALID, "the tensors %s and %s overlap", t[i - 1]->name,
                              t[i]->name);
    if (n) qsort(t, n, sizeof *t, by_name);
    for (size_t i = 1; i < n; i++)
        if (by_name(&t[i - 1], &t[i]) == 0)
            return rlhf__fail(err, RLHF_E_INVALID, "the tensor %s occurs twice", t[i]->name);
    return RLHF_OK;
}

static rlhf_status find_alignment(const struct rlhf__gguf_file *f, uint64_t *out,
                                  struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = rlhf__gguf_find(f, "general.alignment");
    int64_t n = 32;
    if (v) RLHF_TRY(rlhf__gguf_value_int(v, 1, (int64_t)1 << 30, &n, err));
    if ((n & (n - 1)) != 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the key general.alignment is %lld, expected a power of two",
                          (long long)n);
    *out = (uint64_t)n;
    return RLHF_OK;
}

static rlhf_status take_tensors(struct rlhf__gguf_file *f, uint64_t n, uint64_t *offset,
                                struct rlhf__error *err) {
    uint64_t alignment = 1;
    for (size_t i = 0; i < (size_t)n; i++) {
        f->n++;
        RLHF_TRY(take_tensor(f, i, &f->tensor[i], &offset[i], err));
    }
    RLHF_TRY(find_alignment(f, &alignment, err));
    const uint64_t start = (f->head.at + alignment - 1) / alignment * alignment;
    for (size_t i = 0; i < (size_t)n; i++)
        RLHF_TRY(place(f, &f->tensor[i], start, alignment, offset[i], err));
    return check_tensors(f, err);
}

// ---- the file ----

static rlhf_status check_version(uint32_t version, struct rlhf__error *err) {
    if (version == 2 || version == 3) return RLHF_OK;
    if (version != 0 && (version & 0xFFFF) == 0)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "a big-endian GGUF file, which is not read; take the little-endian one");
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "version %lu of GGUF is not read, only 2 and 3; make the file again with a "
                      "%s llama.cpp",
                      (unsigned long)version, version < 2 ? "newer" : "matching");
}

static rlhf_status check_whole(const struct rlhf__gguf_file *f, struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = rlhf__gguf_find(f, "split.count");
    int64_t parts = 0;
    if (v) RLHF_TRY(rlhf__gguf_value_int(v, 0, 65535, &parts, err));
    if (parts <= 1) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "one of the %lld parts of a split file, which are not read; join them first "
                      "(llama-gguf-split --merge)",
                      (long long)parts);
}

static rlhf_status read_file(struct rlhf__gguf_file *f, struct rlhf__error *err) {
    uint32_t version = 0;
    uint64_t n_tensors = 0, n_keys = 0;
    if (f->head.file.len < 4) return rlhf__fail(err, RLHF_E_INVALID, "not a GGUF file");
    RLHF_TRY(rlhf__gguf_need(&f->head, 4, "the magic", "", err));
    if (memcmp(f->head.bytes, "GGUF", 4) != 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "not a GGUF file: it does not begin with \"GGUF\"; was it downloaded "
                          "whole?");
    f->head.at = 4;
    RLHF_TRY(rlhf__gguf_take_u32(&f->head, "the version", "", &version, err));
    RLHF_TRY(check_version(version, err));
    RLHF_TRY(rlhf__gguf_take_u64(&f->head, "the number of tensors", "", &n_tensors, err));
    RLHF_TRY(rlhf__gguf_take_u64(&f->head, "the number of keys", "", &n_keys, err));
    RLHF_TRY(rlhf__gguf_take_keys(&f->head, n_keys, err));
    RLHF_TRY(check_whole(f, err));
    if (n_tensors > (f->head.file.len - f->head.at) / 33) // the least that a description takes
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the file is said to have %llu tensors, more than it has room for",
                          (unsigned long long)n_tensors);
    f->tensor = calloc((size_t)n_tensors + 1, sizeof *f->tensor);
    f->by_name = calloc((size_t)n_tensors + 1, sizeof *f->by_name);
    uint64_t *offset = calloc((size_t)n_tensors + 1, sizeof *offset);
    const rlhf_status st = f->tensor && f->by_name && offset
                               ? take_tensors(f, n_tensors, offset, err)
                               : RLHF__NOMEM(err, "out of memory for the tensors");
    free(offset);
    return st;
}

rlhf_status rlhf__gguf_open(const char *path, struct rlhf__gguf_file **out,
                            struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__gguf_file *f = calloc(1, sizeof *f);
    if (!f) return RLHF__NOMEM(err, "out of memory for %s", path);
    rlhf_status st = rlhf__mapped_open(path, &f->head.file, err);
    if (st == RLHF_OK) {
        st = read_file(f, err);
        const int has_path = st != RLHF_OK && strncmp(err->text, path, strlen(path)) == 0;
        if (st != RLHF_OK && !has_path) rlhf__error_context(err, "%s", path);
    }
    if (st != RLHF_OK) {
        rlhf__gguf_close(f);
        return st;
    }
    *out = f;
    return RLHF_OK;
}

void rlhf__gguf_close(struct rlhf__gguf_file *f) {
    if (!f) return;
    for (size_t i = 0; i < f->n; i++)
        free((void *)(uintptr_t)f->tensor[i].name);
    free(f->tensor);
    free(f->by_name);
    rlhf__gguf_head_finish(&f->head);
    free(f);
}

int rlhf__gguf_is(const char *path) {
    char magic[4];
    const int fd = rlhf__regular_open(AT_FDCWD, path, 1);
    if (fd < 0) return 0;
    const int is = read(fd, magic, sizeof magic) == sizeof magic && !memcmp(magic, "GGUF", 4);
    close(fd);
    return is;
}

const char *rlhf__gguf_path(const struct rlhf__gguf_file *f) { return f->head.file.path; }

const struct rlhf__gguf_value *rlhf__gguf_find(const struct rlhf__gguf_file *f, const char *key) {
    return rlhf__gguf_head_find(&f->head, key);
}

const struct rlhf__tensor *rlhf__gguf_tensors(const struct rlhf__gguf_file *f, size_t *n) {
    *n = f->n;
    return f->tensor;
}

const struct rlhf__tensor *rlhf__gguf_tensor_find(const struct rlhf__gguf_file *f,
                                                  const char *name) {
    const struct rlhf__tensor key = {.name = name}, *at = &key;
    struct rlhf__tensor *const *found =
        f->n ? bsearch(&at, f->by_name, f->n, sizeof *f->by_name, by_name) : NULL;
    return found ? *found : NULL;
}
