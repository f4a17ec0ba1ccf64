// gguf_writer.c: see gguf_writer.h.
#include "gguf_write/gguf_writer.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

enum { VERSION = 3, ALIGNMENT = 32, MAX_DIMS = 4 };

struct rlhf__gguf {
    struct rlhf__buf keys, infos;
    uint64_t n_keys, n_tensors;
    uint64_t *size; // [n_tensors] bytes of each
    uint64_t at;    // offset of the next tensor in the data
    struct rlhf__file_writer *file;
    uint64_t current, done; // the current tensor, and its bytes so far
};

struct rlhf__gguf *rlhf__gguf_writer_open(void) {
    return calloc(1, sizeof(struct rlhf__gguf));
}

static uint64_t padding(uint64_t n) { return (ALIGNMENT - n % ALIGNMENT) % ALIGNMENT; }

// ---- keys ----

static void put_text(struct rlhf__buf *b, const char *text, size_t len) {
    rlhf__buf_u64le(b, len);
    rlhf__buf_put(b, text, len);
}

static void put_float(struct rlhf__buf *b, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    rlhf__buf_u32le(b, bits);
}

static struct rlhf__buf *key(struct rlhf__gguf *g, const char *name, int32_t type) {
    put_text(&g->keys, name, strlen(name));
    rlhf__buf_u32le(&g->keys, (uint32_t)type);
    g->n_keys++;
    return &g->keys;
}

void rlhf__gguf_u32(struct rlhf__gguf *g, const char *name, uint32_t v) {
    rlhf__buf_u32le(key(g, name, RLHF__GGUF_U32), v);
}

void rlhf__gguf_f32(struct rlhf__gguf *g, const char *name, double v) {
    put_float(key(g, name, RLHF__GGUF_F32), (float)v);
}

void rlhf__gguf_bool(struct rlhf__gguf *g, const char *name, int v) {
    rlhf__buf_putc(key(g, name, RLHF__GGUF_BOOL), v ? 1 : 0);
}

void rlhf__gguf_bytes(struct rlhf__gguf *g, const char *name, const char *text, size_t len) {
    put_text(key(g, name, RLHF__GGUF_STR), text, len);
}

void rlhf__gguf_str(struct rlhf__gguf *g, const char *name, const char *text) {
    rlhf__gguf_bytes(g, name, text, strlen(text));
}

void rlhf__gguf_array(struct rlhf__gguf *g, const char *name, int32_t type, uint64_t n) {
    struct rlhf__buf *b = key(g, name, RLHF__GGUF_ARRAY);
    rlhf__buf_u32le(b, (uint32_t)type);
    rlhf__buf_u64le(b, n);
}

void rlhf__gguf_item_str(struct rlhf__gguf *g, const char *text, size_t len) {
    put_text(&g->keys, text, len);
}

void rlhf__gguf_item_i32(struct rlhf__gguf *g, int32_t v) {
    rlhf__buf_u32le(&g->keys, (uint32_t)v);
}

void rlhf__gguf_item_f32(struct rlhf__gguf *g, float v) { put_float(&g->keys, v); }

void rlhf__gguf_item_bool(struct rlhf__gguf *g, int v) { rlhf__buf_putc(&g->keys, v ? 1 : 0); }

// ---- tensors ----

// ggml's numbers of the dtypes.
static int ggml_type(int32_t dtype, uint32_t *out) {
    *out = dtype == RLHF__TENSOR_F16    ? 1
           : dtype == RLHF__TENSOR_Q8_0 ? 8
           : dtype == RLHF__TENSOR_BF16 ? 30
                                        : 0;
    return dtype == RLHF__TENSOR_F32 || *out;
}

rlhf_status rlhf__gguf_tensor(struct rlhf__gguf *g, const char *name, int32_t dtype, int32_t ndim,
                              const int64_t *shape, struct rlhf__error *err) {
    uint32_t type = 0;
    uint64_t bytes = rlhf__tensor_dtype_size(dtype);
    const int64_t block = rlhf__tensor_dtype_block(dtype); // of the last dimension
    int bad = ndim < 1 || ndim > MAX_DIMS || !ggml_type(dtype, &type) || shape[ndim - 1] % block;
    for (int32_t d = 0; !bad && d < ndim; d++) {
        const int64_t n = d == ndim - 1 ? shape[d] / block : shape[d];
        bad = n < 1 || __builtin_mul_overflow(bytes, (uint64_t)n, &bytes);
    }
    if (bad || bytes > INT64_MAX - ALIGNMENT - g->at)
        return rlhf__fail(err, RLHF_E_INVALID, "tensor '%s' has a dtype or shape that GGUF has not",
                          name);
    uint64_t *more = realloc(g->size, (g->n_tensors + 1) * sizeof *more);
    if (!more) return RLHF__NOMEM(err, "out of memory for the list of tensors");
    g->size = more;
    more[g->n_tensors++] = bytes;
    put_text(&g->infos, name, strlen(name));
    rlhf__buf_u32le(&g->infos, (uint32_t)ndim);
    for (int32_t d = ndim; d-- > 0;) // the first dimension is contiguous in this format
        rlhf__buf_u64le(&g->infos, (uint64_t)shape[d]);
    rlhf__buf_u32le(&g->infos, type);
    rlhf__buf_u64le(&g->infos, g->at);
    g->at += bytes + padding(bytes);
    return RLHF_OK;
}

static rlhf_status put_zeros(struct rlhf__gguf *g, uint64_t n, struct rlhf__error *err) {
    static const char zeros[ALIGNMENT] = {0};
    return n ? rlhf__file_writer_put(g->file, zeros, (size_t)n, err) : RLHF_OK;
}

rlhf_status rlhf__gguf_begin(struct rlhf__gguf *g, const struct rlhf__folder *in, const char *name,
                             struct rlhf__error *err) {
    struct rlhf__buf head = RLHF__BUF_INIT;
    rlhf__buf_puts(&head, "GGUF");
    rlhf__buf_u32le(&head, VERSION);
    rlhf__buf_u64le(&head, g->n_tensors);
    rlhf__buf_u64le(&head, g->n_keys);
    const uint64_t n = head.len + g->keys.len + g->infos.len;
    rlhf_status st = rlhf__buf_ok(&head, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&g->keys, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&g->infos, err);
    if (st == RLHF_OK) st = rlhf__file_writer_open(in, name, &g->file, err);
    if (st == RLHF_OK) st = rlhf__file_writer_put(g->file, head.data, head.len, err);
    if (st == RLHF_OK)
        st = rlhf__file_writer_put(g->file, rlhf__buf_text(&g->keys), g->keys.len, err);
    if (st == RLHF_OK)
        st = rlhf__file_writer_put(g->file, rlhf__buf_text(&g->infos), g->infos.len, err);
    if (st == RLHF_OK) st = put_zeros(g, padding(n), err);
    rlhf__buf_finish(&head);
    return st;
}

rlhf_status rlhf__gguf_put(struct rlhf__gguf *g, const void *bytes, size_t n,
                           struct rlhf__error *err) {
    if (g->current == g->n_tensors || n > g->size[g->current] - g->done)
        return rlhf__fail(err, RLHF_E_INVALID, "more data than the tensors of the file hold");
    RLHF_TRY(rlhf__file_writer_put(g->file, bytes, n, err));
    g->done += n;
    if (g->done < g->size[g->current]) return RLHF_OK;
    RLHF_TRY(put_zeros(g, padding(g->done), err));
    g->current++;
    g->done = 0;
    return RLHF_OK;
}

static void destroy(struct rlhf__gguf *g) {
    rlhf__buf_finish(&g->keys);
    rlhf__buf_finish(&g->infos);
    free(g->size);
    free(g);
}

rlhf_status rlhf__gguf_commit(struct rlhf__gguf *g, struct rlhf__error *err) {
    if (g->current < g->n_tensors) {
        rlhf__gguf_abort(g);
        return rlhf__fail(err, RLHF_E_INVALID, "a tensor of the GGUF file is not full");
    }
    rlhf_status st = rlhf__file_writer_commit(g->file, err);
    destroy(g);
    return st;
}

void rlhf__gguf_abort(struct rlhf__gguf *g) {
    if (!g) return;
    rlhf__file_writer_abort(g->file);
    destroy(g);
}
