// shards.c: see shards.h. Tensors keep their order over the files.
#include "weights/shards.h"

#include "base/json.h"
#include "weights/rounded_file.h"
#include "weights/rounding.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t bytes_of(const struct rlhf__shards *s, const struct rlhf__tensor *t) {
    return (uint64_t)t->count * rlhf__tensor_dtype_size(rlhf__rounded_dtype(t, s->dtype));
}

// end[k] = where file k ends in the list of tensors; returns how many files there are.
static size_t divide(const struct rlhf__shards *s, size_t *end) {
    size_t n = 0;
    uint64_t used = 0;
    for (size_t i = 0; i < s->n; i++) {
        const uint64_t bytes = bytes_of(s, s->tensor[i]);
        if (used > 0 && (bytes > s->limit || used > s->limit - bytes)) {
            end[n++] = i;
            used = 0;
        }
        used += bytes;
    }
    end[n++] = s->n;
    return n;
}

static void shard_name(size_t k, size_t n, char out[64]) {
    if (n == 1)
        snprintf(out, 64, "model.safetensors");
    else
        snprintf(out, 64, "model-%05zu-of-%05zu.safetensors", k + 1, n);
}

static rlhf_status write_index(const struct rlhf__shards *s, const struct rlhf__folder *dir,
                               const size_t *end, const struct rlhf__shards_done *done,
                               struct rlhf__error *err) {
    json_t *map = json_object();
    char name[64];
    for (size_t k = 0, i = 0; k < done->n_files; k++)
        for (shard_name(k, done->n_files, name); i < end[k]; i++)
            json_object_set_new(map, s->tensor[i]->name, json_string(name));
    return rlhf__json_save_new(dir, "model.safetensors.index.json",
                               json_pack("{s:{s:I, s:I}, s:o}", "metadata", "total_parameters",
                                         (json_int_t)done->n_parameters, "total_size",
                                         (json_int_t)done->n_bytes, "weight_map", map),
                               2, err);
}

rlhf_status rlhf__shards_write(const struct rlhf__shards *s, const struct rlhf__folder *dir,
                               struct rlhf__shards_done *done, struct rlhf__error *err) {
    for (size_t i = 0; i < s->n; i++) // whole numbers are copied, these would have to be rounded
        if (s->tensor[i]->dtype == RLHF__TENSOR_F64)
            RLHF_TRY(rlhf__tensor_check_float(s->tensor[i], err));
    size_t *end = malloc((s->n + 1) * sizeof *end);
    char name[64];
    rlhf_status st = RLHF_OK;
    *done = (struct rlhf__shards_done){0};
    if (!end) return RLHF__NOMEM(err, "out of memory for the list of weight files");
    done->n_files = divide(s, end);
    for (size_t i = 0; i < s->n; i++) {
        done->n_bytes += bytes_of(s, s->tensor[i]);
        done->n_parameters += rlhf__tensor_is_float(s->tensor[i]->dtype) ? s->tensor[i]->count : 0;
    }
    for (size_t k = 0; st == RLHF_OK && k < done->n_files; k++) {
        shard_name(k, done->n_files, name);
        const size_t begin = k ? end[k - 1] : 0;
        const struct rlhf__rounded_file file = {.tensor = s->tensor + begin,
                                                .n = end[k] - begin,
                                                .dtype = s->dtype,
                                                .cancelled = s->cancelled};
        st = rlhf__rounded_write(&file, dir, name, err);
    }
    if (st == RLHF_OK && done->n_files > 1) st = write_index(s, dir, end, done, err);
    free(end);
    return st;
}
