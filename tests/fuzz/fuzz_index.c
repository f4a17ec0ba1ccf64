// fuzz_index.c: uses any bytes as the index of a sharded checkpoint whose two shards are valid. If
// the index is accepted, all tensors are in files of its folder and can be read.
#include "fuzz.h"

#include "base/file.h"
#include "base/json.h"
#include "weights/safetensors.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *dir, const char *name, const void *data, size_t n) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static void write_shard(const char *dir, const char *name, const char *header, size_t n_data) {
    uint8_t bytes[512] = {0};
    const size_t n = strlen(header);
    bytes[0] = (uint8_t)n; // little-endian, below 256
    memcpy(bytes + 8, header, n);
    write_file(dir, name, bytes, 8 + n + n_data);
}

static const char *const files[] = {"a.safetensors", "b.safetensors",
                                    "model.safetensors.index.json"};

static void check_tensor(const char *dir, const struct rlhf__tensor *t) {
    const size_t n = strlen(dir);
    struct rlhf__error err = {0};
    float out[4];
    FUZZ_CHECK(!strncmp(t->file, dir, n) && t->file[n] == '/' && !strchr(t->file + n + 1, '/'));
    FUZZ_CHECK(rlhf__tensor_read_f32(t, 0, t->count, out, &err) == RLHF_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    char dir[128], path[256];
    const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(dir, sizeof dir, "%s/rlhf-fuzz-index-%ld", tmp, (long)getpid());
    FUZZ_CHECK(mkdir(dir, 0700) == 0);
    write_shard(dir, files[0],
                "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                "\"y\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[8,10]}}",
                10);
    write_shard(dir, files[1], "{\"z\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,6]}}",
                6);
    write_file(dir, files[2], data, n);
    struct rlhf__weights *w = NULL;
    struct rlhf__error err = {0};
    const rlhf_status st = rlhf__weights_open(dir, &w, &err);
    snprintf(path, sizeof path, "%s/%s", dir, files[2]);
    json_t *index = NULL;
    if (st == RLHF_OK) FUZZ_CHECK(rlhf__json_load(path, &index, &err) == RLHF_OK);
    if (st == RLHF_OK) {
        FUZZ_CHECK(json_is_object(json_object_get(index, "weight_map")));
        for (size_t i = 0; i < rlhf__weights_count(w); i++)
            check_tensor(dir, rlhf__weights_at(w, i));
    } else {
        FUZZ_CHECK(!w && err.text[0] && err.code == st);
    }
    json_decref(index);
    rlhf__weights_close(w);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
    return 0;
}
