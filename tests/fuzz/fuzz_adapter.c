// fuzz_adapter.c: a PEFT directory of any bytes: adapter_config.json and, after the first NUL,
// adapter_model.safetensors (a valid file if there is no NUL). If a directory is accepted, every
// layer that it names has an A and a B of the same rank. If the directory is written again, reading
// the result gives the same adapter.
#include "fuzz.h"

#include "base/file.h"
#include "weights/peft.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *dir, const char *name, const void *data, size_t n) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

#define L "base_model.model.h.0.attn.c_attn.lora_"
static void write_good(const char *dir) {
    static const char header[] =
        "{\"" L "A.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
        "\"" L "B.weight\":{\"dtype\":\"F32\",\"shape\":[4,2],\"data_offsets\":[24,56]}}";
    uint8_t bytes[512] = {0};
    const size_t n = sizeof header - 1;
    bytes[0] = (uint8_t)n; // little-endian, below 256
    FUZZ_CHECK(n < 256);
    memcpy(bytes + 8, header, n);
    write_file(dir, RLHF__PEFT_WEIGHTS, bytes, 8 + n + 56);
}

static void check_pairs(const char *dir, const struct rlhf__peft *p) {
    struct rlhf__weights *w = NULL;
    struct rlhf__error err = {0};
    char path[256], name[1024];
    snprintf(path, sizeof path, "%s/" RLHF__PEFT_WEIGHTS, dir);
    FUZZ_CHECK(rlhf__weights_open(path, &w, &err) == RLHF_OK);
    for (uint32_t i = 0; i < p->n_targets; i++)
        for (int b = 0; b < 2; b++) {
            snprintf(name, sizeof name, RLHF__PEFT_PREFIX "%s.lora_%c.weight", p->target[i],
                     "AB"[b]);
            const struct rlhf__tensor *t = rlhf__weights_find(w, name);
            FUZZ_CHECK(t && t->ndim == 2 && t->shape[b] == p->rank);
        }
    rlhf__weights_close(w);
}

static void check_again(const char *dir, const struct rlhf__peft *p) {
    const char *const leaf[] = {"c_attn"}, *const saved[] = {"score"};
    struct rlhf__peft_written w = {.base = p->base ? p->base : "base",
                                   .leaf = leaf,
                                   .n_leaf = 1,
                                   .saved = saved,
                                   .n_saved = p->scores ? 1 : 0};
    struct rlhf__peft again = {0};
    struct rlhf__folder *to = NULL;
    struct rlhf__error err = {0};
    FUZZ_CHECK(rlhf__folder_open(NULL, dir, &to, &err) == RLHF_OK);
    FUZZ_CHECK(rlhf__peft_write(p, &w, to, &err) == RLHF_OK);
    rlhf__folder_close(to);
    FUZZ_CHECK(rlhf__peft_read(dir, &again, &err) == RLHF_OK);
    FUZZ_CHECK(again.rank == p->rank && again.n_targets == p->n_targets);
    FUZZ_CHECK(rlhf__peft_scale(&again) == rlhf__peft_scale(p) && again.scores == p->scores);
    rlhf__peft_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char *const files[] = {RLHF__PEFT_CONFIG, RLHF__PEFT_WEIGHTS};
    char dir[128], path[256];
    const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(dir, sizeof dir, "%s/rlhf-fuzz-adapter-%ld", tmp, (long)getpid());
    FUZZ_CHECK(mkdir(dir, 0700) == 0);
    const uint8_t *end = n ? memchr(data, 0, n) : NULL;
    const size_t config = end ? (size_t)(end - data) : n;
    write_file(dir, RLHF__PEFT_CONFIG, data, config);
    if (end)
        write_file(dir, RLHF__PEFT_WEIGHTS, end + 1, n - config - 1);
    else
        write_good(dir);
    struct rlhf__peft p = {0};
    struct rlhf__error err = {0};
    const rlhf_status st = rlhf__peft_read(dir, &p, &err);
    if (st == RLHF_OK) {
        FUZZ_CHECK(p.rank >= 1 && p.n_targets >= 1 && isfinite(rlhf__peft_scale(&p)));
        check_pairs(dir, &p);
        check_again(dir, &p);
    } else {
        FUZZ_CHECK(err.text[0] && err.code == st);
    }
    rlhf__peft_finish(&p);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
    return 0;
}
