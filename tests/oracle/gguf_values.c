// gguf_values.c: what the program reads from a model, for gguf.py. `gguf_values FILE|DIR` writes
// the config as one line of JSON, then for each tensor "name shape sha256" of its numbers as f32.
#include "base/hash.h"
#include "base/json.h"
#include "weights/hf_dir.h"
#include "weights/safetensors.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHUNK = 100003 }; // numbers read at a time; not a multiple of a block

static rlhf_status put_tensor(const struct rlhf__tensor *t, float *x, struct rlhf__error *err) {
    struct rlhf__sha256 hash;
    char hex[65], shape[128];
    rlhf__sha256_init(&hash);
    for (int64_t at = 0; at < t->count; at += CHUNK) {
        const int64_t n = t->count - at < CHUNK ? t->count - at : CHUNK;
        RLHF_TRY(rlhf__tensor_read_f32(t, at, n, x, err));
        rlhf__sha256_put(&hash, x, (size_t)n * sizeof *x);
    }
    rlhf__sha256_hex(&hash, hex);
    printf("%s\t%s\t%s\n", t->name, rlhf__tensor_shape_text(t->shape, t->ndim, shape, sizeof shape),
           hex);
    return RLHF_OK;
}

static rlhf_status put_config(const char *path, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    json_t *config = NULL;
    RLHF_TRY(rlhf__hf_config_read(path, &config, err));
    rlhf__json_write(&text, config, 0);
    puts(rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
    json_decref(config);
    return RLHF_OK;
}

int main(int argc, char **argv) {
    struct rlhf__weights *w = NULL;
    struct rlhf__error err = {0};
    float *x = malloc(CHUNK * sizeof *x);
    rlhf_status st = argc == 2 && x ? put_config(argv[1], &err) : RLHF_E_INVALID;
    if (st == RLHF_OK) st = rlhf__weights_open(argv[1], &w, &err);
    for (size_t i = 0; st == RLHF_OK && i < rlhf__weights_count(w); i++)
        st = put_tensor(rlhf__weights_at(w, i), x, &err);
    if (st != RLHF_OK) fprintf(stderr, "gguf_values: %s\n", err.text);
    rlhf__weights_close(w);
    free(x);
    return st == RLHF_OK ? 0 : 1;
}
