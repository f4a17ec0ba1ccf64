// safetensors_writer.c: see safetensors_writer.h. Only the layout is kept in memory; the data is
// written by the atomic writer of base/file.
#include "weights/safetensors_writer.h"

#include "base/file.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

struct slot {
    uint64_t n_bytes, size; // bytes of the tensor, bytes of an element
    int32_t dtype;
    char *name;
};

struct rlhf__weights_writer {
    struct rlhf__file_writer *file;
    char *path;
    struct slot *slot; // [n]
    size_t n, at;      // number of tensors; index of the tensor that is being written
    uint64_t done;     // bytes of that tensor written so far
};

static void destroy(struct rlhf__weights_writer *w) {
    for (size_t i = 0; w->slot && i < w->n; i++)
        free(w->slot[i].name);
    free(w->slot);
    free(w->path);
    free(w);
}

// Moves past tensors of zero bytes, which need no data.
static void skip_full(struct rlhf__weights_writer *w) {
    while (w->at < w->n && w->done == w->slot[w->at].n_bytes) {
        w->at++;
        w->done = 0;
    }
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static rlhf_status check_names(const struct rlhf__tensor_spec *specs, size_t n,
                               struct rlhf__error *err) {
    const char **name = malloc((n + 1) * sizeof *name);
    if (!name) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu tensors", n);
    for (size_t i = 0; i < n; i++)
        name[i] = specs[i].name;
    if (n) qsort(name, n, sizeof *name, compare_names);
    rlhf_status st = RLHF_OK;
    for (size_t i = 0; i < n && st == RLHF_OK; i++)
        if (!strcmp(name[i], "__metadata__") || (i && !strcmp(name[i - 1], name[i])))
            st = rlhf__fail(err, RLHF_E_INVALID, "the tensor name '%s' is taken", name[i]);
    free(name);
    return st;
}

static rlhf_status layout(struct rlhf__weights_writer *w, const struct rlhf__tensor_spec *spec,
                          struct slot *slot, uint64_t *at, struct rlhf__error *err) {
    uint64_t count = 1;
    int bad = spec->dtype < 0 || spec->dtype >= RLHF__N_TENSOR_DTYPES || spec->ndim < 0 ||
              spec->ndim > RLHF__TENSOR_MAX_DIMS;
    for (int32_t i = 0; !bad && i < spec->ndim; i++)
        bad = spec->shape[i] < 0 || __builtin_mul_overflow(count, (uint64_t)spec->shape[i], &count);
    slot->dtype = spec->dtype;
    slot->size = bad ? 1 : rlhf__tensor_dtype_size(spec->dtype);
    bad = bad || __builtin_mul_overflow(count, slot->size, &slot->n_bytes) ||
          slot->n_bytes > INT64_MAX - *at;
    if (bad)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: tensor '%s' has a bad dtype or shape", w->path,
                          spec->name);
    if (*at % slot->size)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: tensor '%s' would be unaligned; order wide dtypes first", w->path,
                          spec->name);
    slot->name = strdup(spec->name);
    if (!slot->name) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a tensor name");
    *at += slot->n_bytes;
    return RLHF_OK;
}

static void header_entry(struct rlhf__buf *out, const struct rlhf__tensor_spec *spec,
                         uint64_t begin, uint64_t end) {
    char shape[256];
    rlhf__buf_puts(out, ",");
    rlhf__json_write_string(out, spec->name, strlen(spec->name));
    rlhf__buf_printf(out, ":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%llu,%llu]}",
                     rlhf__tensor_dtype_name(spec->dtype),
                     rlhf__tensor_shape_text(spec->shape, spec->ndim, shape, sizeof shape),
                     (unsigned long long)begin, (unsigned long long)end);
}

static rlhf_status write_header(struct rlhf__weights_writer *w,
                                const struct rlhf__tensor_spec *specs,
                                const char *const (*metadata)[2], size_t n_meta,
                                struct rlhf__error *err) {
    struct rlhf__buf head = RLHF__BUF_INIT;
    static const char *const format[1][2] = {{"format", "pt"}};
    if (!metadata) {
        metadata = format;
        n_meta = 1;
    }
    rlhf__buf_puts(&head, "{\"__metadata__\":{");
    for (size_t i = 0; i < n_meta; i++) {
        if (i) rlhf__buf_puts(&head, ",");
        rlhf__json_write_string(&head, metadata[i][0], strlen(metadata[i][0]));
        rlhf__buf_puts(&head, ":");
        rlhf__json_write_string(&head, metadata[i][1], strlen(metadata[i][1]));
    }
    rlhf__buf_puts(&head, "}");
    uint64_t at = 0;
    for (size_t i = 0; i < w->n; i++) {
        header_entry(&head, &specs[i], at, at + w->slot[i].n_bytes);
        at += w->slot[i].n_bytes;
    }
    rlhf__buf_puts(&head, "}");
    for (size_t i = head.len; i % 8; i++)
        rlhf__buf_puts(&head, " "); // so that the data begins at a multiple of 8
    rlhf_status st = rlhf__buf_ok(&head, err);
    uint8_t size[8];
    for (int i = 0; i < 8; i++)
        size[i] = (uint8_t)((uint64_t)head.len >> (8 * i));
    if (st == RLHF_OK) st = rlhf__file_writer_put(w->file, size, sizeof size, err);
    if (st == RLHF_OK) st = rlhf__file_writer_put(w->file, head.data, head.len, err);
    rlhf__buf_finish(&head);
    return st;
}

rlhf_status rlhf__weights_writer_open(const struct rlhf__folder *in, const char *name,
                                      const struct rlhf__tensor_spec *specs, size_t n,
                                      const char *const (*metadata)[2], size_t n_meta,
                                      struct rlhf__weights_writer **out, struct rlhf__error *err) {
    struct rlhf__weights_writer *w = calloc(1, sizeof *w);
    if (!w) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a weight file");
    w->path = in ? rlhf__path_join(in->path, name) : strdup(name);
    w->slot = calloc(n + 1, sizeof *w->slot);
    w->n = n;
    rlhf_status st = w->path && w->slot
                         ? RLHF_OK
                         : rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a weight file");
    if (st == RLHF_OK) st = check_names(specs, n, err);
    uint64_t at = 0;
    for (size_t i = 0; i < n && st == RLHF_OK; i++)
        st = layout(w, &specs[i], &w->slot[i], &at, err);
    if (st == RLHF_OK) st = rlhf__file_writer_open(in, name, &w->file, err);
    if (st == RLHF_OK) st = write_header(w, specs, metadata, n_meta, err);
    if (st < 0) {
        rlhf__weights_abort(w);
        return st;
    }
    skip_full(w);
    *out = w;
    return RLHF_OK;
}

rlhf_status rlhf__weights_put_bytes(struct rlhf__weights_writer *w, const void *data, size_t len,
                                    struct rlhf__error *err) {
    if (!len) return RLHF_OK;
    if (w->at == w->n || len > w->slot[w->at].n_bytes - w->done)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: more data than tensor '%s' holds", w->path,
                          w->n ? w->slot[w->at < w->n ? w->at : w->n - 1].name : "");
    RLHF_TRY(rlhf__file_writer_put(w->file, data, len, err));
    w->done += len;
    skip_full(w);
    return RLHF_OK;
}

rlhf_status rlhf__weights_put_f32(struct rlhf__weights_writer *w, const float *data, size_t count,
                                  struct rlhf__error *err) {
    if (!count) return RLHF_OK;
    int32_t dtype = w->at < w->n ? w->slot[w->at].dtype : RLHF__TENSOR_F32;
    if (dtype == RLHF__TENSOR_F32) return rlhf__weights_put_bytes(w, data, count * 4, err);
    if (dtype != RLHF__TENSOR_BF16 && dtype != RLHF__TENSOR_F16)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: tensor '%s' is %s, not a float to round to",
                          w->path, w->slot[w->at].name, rlhf__tensor_dtype_name(dtype));
    if (count > (w->slot[w->at].n_bytes - w->done) / 2)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: more data than tensor '%s' holds", w->path,
                          w->slot[w->at].name);
    uint16_t half[4096];
    for (size_t i = 0; i < count;) {
        size_t n = count - i < 4096 ? count - i : 4096;
        for (size_t k = 0; k < n; k++)
            half[k] = dtype == RLHF__TENSOR_BF16 ? rlhf__f32_to_bf16(data[i + k])
                                                 : rlhf__f32_to_f16(data[i + k]);
        RLHF_TRY(rlhf__weights_put_bytes(w, half, n * sizeof *half, err));
        i += n;
    }
    return RLHF_OK;
}

rlhf_status rlhf__weights_commit(struct rlhf__weights_writer *w, struct rlhf__error *err) {
    if (w->at < w->n) {
        rlhf_status st =
            rlhf__fail(err, RLHF_E_INVALID, "%s: tensor '%s' got %llu of its %llu bytes", w->path,
                       w->slot[w->at].name, (unsigned long long)w->done,
                       (unsigned long long)w->slot[w->at].n_bytes);
        rlhf__weights_abort(w);
        return st;
    }
    rlhf_status st = rlhf__file_writer_commit(w->file, err);
    destroy(w);
    return st;
}

void rlhf__weights_abort(struct rlhf__weights_writer *w) {
    if (!w) return;
    rlhf__file_writer_abort(w->file);
    destroy(w);
}
