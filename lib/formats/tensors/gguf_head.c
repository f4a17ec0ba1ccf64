// gguf_head.c: see gguf_head.h.
#include "tensors/gguf_head.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 1 << 20 };

#define MAX_HEAD ((uint64_t)1 << 30) // bytes of keys and descriptions; real files have up to 2^24

// The arguments of copy_bytes.
struct copy {
    const uint8_t *from;
    uint8_t *to;
    size_t n;
};

static void copy_bytes(void *copy) {
    const struct copy *c = copy;
    memcpy(c->to, c->from, c->n);
}

// Copies more of the file to the head, so that the head has at least `want` bytes.
static rlhf_status grow(struct rlhf__gguf_head *f, uint64_t want, struct rlhf__error *err) {
    uint64_t cap = f->len ? f->len : FIRST_BYTES;
    while (cap < want)
        cap *= 2;
    if (cap > f->file.len) cap = f->file.len;
    uint8_t *more = realloc(f->bytes, (size_t)cap + 1);
    if (!more) return RLHF__NOMEM(err, "out of memory for the keys");
    f->bytes = more;
    struct copy c = {f->file.bytes + f->len, f->bytes + f->len, (size_t)(cap - f->len)};
    RLHF_TRY(rlhf__mapped_read(&f->file, copy_bytes, &c, err));
    f->len = cap;
    return RLHF_OK;
}

rlhf_status rlhf__gguf_need(struct rlhf__gguf_head *f, uint64_t n, const char *what,
                            const char *name, struct rlhf__error *err) {
    const uint64_t left = f->file.len - f->at;
    if (n > left)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s%s%s takes %llu bytes at offset %llu, but the file ends after %llu; "
                          "was all of it copied?",
                          what, *name ? " " : "", name, (unsigned long long)n,
                          (unsigned long long)f->at, (unsigned long long)left);
    if (f->at + n > MAX_HEAD)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s%s%s ends beyond the first %llu bytes, which is more than the keys of "
                          "a model take",
                          what, *name ? " " : "", name, (unsigned long long)MAX_HEAD);
    return f->at + n <= f->len ? RLHF_OK : grow(f, f->at + n, err);
}

// Files and hosts are little-endian.
uint32_t rlhf__gguf_u32_at(const struct rlhf__gguf_head *f, uint64_t at) {
    uint32_t v;
    memcpy(&v, f->bytes + at, sizeof v);
    return v;
}

uint64_t rlhf__gguf_u64_at(const struct rlhf__gguf_head *f, uint64_t at) {
    uint64_t v;
    memcpy(&v, f->bytes + at, sizeof v);
    return v;
}

rlhf_status rlhf__gguf_take_u32(struct rlhf__gguf_head *f, const char *what, const char *name,
                                uint32_t *out, struct rlhf__error *err) {
    RLHF_TRY(rlhf__gguf_need(f, sizeof *out, what, name, err));
    *out = rlhf__gguf_u32_at(f, f->at);
    f->at += sizeof *out;
    return RLHF_OK;
}

rlhf_status rlhf__gguf_take_u64(struct rlhf__gguf_head *f, const char *what, const char *name,
                                uint64_t *out, struct rlhf__error *err) {
    RLHF_TRY(rlhf__gguf_need(f, sizeof *out, what, name, err));
    *out = rlhf__gguf_u64_at(f, f->at);
    f->at += sizeof *out;
    return RLHF_OK;
}

rlhf_status rlhf__gguf_take_name(struct rlhf__gguf_head *f, const char *what, size_t i,
                                 uint64_t max, char **out, struct rlhf__error *err) {
    char number[32];
    uint64_t n = 0;
    snprintf(number, sizeof number, "%zu", i + 1);
    RLHF_TRY(rlhf__gguf_take_u64(f, what, number, &n, err));
    if (n < 1 || n > max)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the name of %s %s has %llu characters; allowed: 1 to %llu", what, number,
                          (unsigned long long)n, (unsigned long long)max);
    RLHF_TRY(rlhf__gguf_need(f, n, what, number, err));
    for (uint64_t k = 0; k < n; k++)
        if (f->bytes[f->at + k] < 0x20 || f->bytes[f->at + k] > 0x7E)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "the name of %s %s has the byte 0x%02x; allowed is printable ASCII",
                              what, number, f->bytes[f->at + k]);
    *out = strndup((const char *)f->bytes + f->at, (size_t)n);
    f->at += n;
    return *out ? RLHF_OK : RLHF__NOMEM(err, "out of memory for the keys");
}
