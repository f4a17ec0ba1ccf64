// fuzz_safetensors.c: a weight file of any bytes. The tensors of an accepted file cover its data
// without gaps and overlaps, and can be read to the last byte.
#include "fuzz.h"

#include "weights/safetensors_header.h"

static void read_all(const struct rlhf__tensor *t) {
    volatile uint8_t sum = 0;
    for (uint64_t i = 0; i < t->n_bytes; i++)
        sum = (uint8_t)(sum + t->data[i]);
    struct rlhf__error err = {0};
    int is_float = t->dtype == RLHF__TENSOR_F32 || t->dtype == RLHF__TENSOR_F16 ||
                   t->dtype == RLHF__TENSOR_BF16;
    float *out = malloc(((size_t)t->count + 1) * sizeof *out);
    FUZZ_CHECK(out);
    FUZZ_CHECK((rlhf__tensor_read_f32(t, 0, t->count, out, &err) == RLHF_OK) == is_float);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    json_t *header = NULL;
    struct rlhf__tensor *t = NULL;
    size_t count = 0;
    struct rlhf__error err = {0};
    uint64_t size;
    if (n < 8) return 0;
    if (rlhf__safetensors_size(data, n, &size, &err) < 0 ||
        rlhf__safetensors_parse("input", (const char *)data + 8, size, data + 8 + size,
                                n - 8 - size, &header, &t, &count, &err) < 0) {
        FUZZ_CHECK(!header && !t && !count && err.text[0] && err.code < 0);
        return 0;
    }
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        FUZZ_CHECK(t[i].data >= data + 8 && t[i].data + t[i].n_bytes <= data + n);
        FUZZ_CHECK(t[i].n_bytes <= n && t[i].ndim >= 0 && t[i].ndim <= RLHF__TENSOR_MAX_DIMS);
        total += t[i].n_bytes;
        if (t[i].count <= (1 << 20)) read_all(&t[i]);
    }
    FUZZ_CHECK(count ? t[0].data + total == data + n : total == 0);
    free(t);
    json_decref(header);
    return 0;
}
