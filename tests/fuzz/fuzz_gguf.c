// fuzz_gguf.c: a GGUF file of any bytes. The tensors of an accepted file lie inside of it, and all
// that are numbers can be read, with the names and shapes that the model needs. The files of its
// tokenizer are made and opened, or refused. A refusal is one sentence.
#include "fuzz.h"

#include "gguf/model_text.h"
#include "tensors/gguf_file.h"
#include "tokenizer/tokenizer.h"
#include "weights/hf_dir.h"
#include "weights/safetensors.h"

#include <string.h>
#include <unistd.h>

static void check_failure(rlhf_status st, const struct rlhf__error *err) {
    FUZZ_CHECK(st < 0 && err->code == st && err->text[0] && !strchr(err->text, '\n'));
}

static void read_all(const struct rlhf__tensor *t) {
    struct rlhf__error err = {0};
    const int is_float = rlhf__tensor_is_float(t->dtype);
    float *out = malloc(((size_t)t->count + 1) * sizeof *out);
    FUZZ_CHECK(out);
    FUZZ_CHECK((rlhf__tensor_read_f32(t, 0, t->count, out, &err) == RLHF_OK) == is_float);
    free(out);
    if (!rlhf__tensor_has_blocks(t)) return;
    const uint64_t row = (uint64_t)(t->shape[1] / rlhf__tensor_dtype_block(t->dtype)) *
                         rlhf__tensor_dtype_size(t->dtype);
    uint8_t *blocks = malloc((size_t)(row * (uint64_t)t->shape[0]));
    FUZZ_CHECK(blocks);
    FUZZ_CHECK(rlhf__tensor_read_blocks(t, 0, t->shape[0], blocks, &err) == RLHF_OK);
    free(blocks);
}

// Returns 1 if the file was accepted.
static int check_file(const char *path, size_t n_bytes) {
    struct rlhf__gguf_file *f = NULL;
    struct rlhf__error err = {0};
    size_t n = 0;
    const rlhf_status st = rlhf__gguf_open(path, &f, &err);
    if (st != RLHF_OK) {
        FUZZ_CHECK(!f);
        check_failure(st, &err);
        return 0;
    }
    const struct rlhf__tensor *t = rlhf__gguf_tensors(f, &n);
    for (size_t i = 0; i < n; i++) {
        FUZZ_CHECK(t[i].n_bytes <= n_bytes && t[i].ndim >= 1 && t[i].ndim <= 4);
        FUZZ_CHECK(rlhf__gguf_tensor_find(f, t[i].name) == &t[i]);
        if (t[i].count <= 1 << 20) read_all(&t[i]);
    }
    rlhf__gguf_close(f);
    return 1;
}

static void check_model(const char *path) {
    struct rlhf__weights *w = NULL;
    struct rlhf__error err = {0};
    json_t *config = NULL;
    rlhf_status st = rlhf__hf_config_read(path, &config, &err);
    if (st != RLHF_OK) check_failure(st, &err);
    FUZZ_CHECK((st == RLHF_OK) == (config != NULL));
    const int has_config = st == RLHF_OK;
    json_decref(config);
    st = rlhf__weights_open(path, &w, &err);
    if (st != RLHF_OK) check_failure(st, &err);
    FUZZ_CHECK(has_config || st != RLHF_OK);
    for (size_t i = 0; st == RLHF_OK && i < rlhf__weights_count(w); i++)
        if (rlhf__weights_at(w, i)->count <= 1 << 20) read_all(rlhf__weights_at(w, i));
    rlhf__weights_close(w);
}

static void check_text(const char *path) {
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json",
                                        "generation_config.json"};
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *v = NULL;
        const rlhf_status st = rlhf__model_json(path, names[i], &v, &err);
        if (st != RLHF_OK) check_failure(st, &err);
        FUZZ_CHECK(st == RLHF_OK ? !v || json_is_object(v) : !v);
        json_decref(v);
    }
    const rlhf_status st = rlhf__tokenizer_open(path, &tok, &err);
    if (st != RLHF_OK) check_failure(st, &err);
    FUZZ_CHECK((st == RLHF_OK) == (tok != NULL));
    rlhf__tokenizer_close(tok);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    char path[128];
    const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/rlhf-fuzz-%ld.gguf", tmp, (long)getpid());
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
    if (check_file(path, n)) {
        check_model(path);
        check_text(path);
    }
    unlink(path);
    return 0;
}
