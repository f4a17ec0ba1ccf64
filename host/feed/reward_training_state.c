// reward_training_state.c: what training a reward model leaves in a checkpoint; see
// rlhf__reward_training_save.
#include "feed/reward_training.h"

#include "base/file.h"
#include "base/json.h"
#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"

#include <stdio.h>
#include <string.h>

static rlhf_status write_head(const struct rlhf__reward_head *h, const struct rlhf__folder *dir,
                              struct rlhf__error *err) {
    json_t *v = json_object();
    rlhf_status st = v ? rlhf__reward_head_write(h, v, err) : RLHF__NOMEM(err, "out of memory");
    if (st == RLHF_OK) return rlhf__json_save_new(dir, "state/reward_head.json", v, 0, err);
    json_decref(v);
    return st;
}

static rlhf_status write_samples(const struct rlhf__rows *e, const struct rlhf__folder *dir,
                                 struct rlhf__error *err) {
    const struct rlhf__tensor_spec specs[] = {
        {"ids", RLHF__TENSOR_I32, 1, {e->total}},
        {"offset", RLHF__TENSOR_I32, 1, {(int64_t)e->n + 1}},
        {"prompt_len", RLHF__TENSOR_I32, 1, {e->n}},
    };
    struct rlhf__weights_writer *w = NULL;
    rlhf_status st =
        rlhf__weights_create(dir, "state/samples.safetensors", specs, 3, NULL, 0, &w, err);
    if (st != RLHF_OK) return st;
    st = rlhf__weights_put_bytes(w, e->ids, e->total * sizeof *e->ids, err);
    if (st == RLHF_OK)
        st = rlhf__weights_put_bytes(w, e->offset, (e->n + (size_t)1) * sizeof *e->offset, err);
    if (st == RLHF_OK)
        st = rlhf__weights_put_bytes(w, e->prompt_len, e->n * sizeof *e->prompt_len, err);
    if (st == RLHF_OK) return rlhf__weights_commit(w, err);
    rlhf__weights_abort(w);
    return st;
}

rlhf_status rlhf__reward_training_save(const struct rlhf__reward_training *r,
                                       const struct rlhf__folder *checkpoint,
                                       struct rlhf__error *err) {
    rlhf_status st = write_head(&r->head, checkpoint, err);
    return st == RLHF_OK && r->samples.n > 0 ? write_samples(&r->samples, checkpoint, err) : st;
}

// A 1-D tensor of i32, or NULL.
static const struct rlhf__tensor *find_i32(const struct rlhf__weights *file, const char *name) {
    const struct rlhf__tensor *t = rlhf__weights_find(file, name);
    return t && t->dtype == RLHF__TENSOR_I32 && t->ndim == 1 && t->count < INT32_MAX ? t : NULL;
}

static int is_ragged(const struct rlhf__rows *e, int32_t n_vocab) {
    if (e->offset[0] != 0 || e->offset[e->n] != (int32_t)e->total) return 0;
    for (uint32_t i = 0; i < e->n; i++) {
        int64_t len = (int64_t)e->offset[i + 1] - e->offset[i];
        if (len < 1 || e->prompt_len[i] < 1 || e->prompt_len[i] > len) return 0;
    }
    for (uint32_t k = 0; k < e->total; k++)
        if (e->ids[k] < 0 || e->ids[k] >= n_vocab) return 0;
    return 1;
}

static rlhf_status read_samples(struct rlhf__reward_training *r, const char *path,
                                struct rlhf__error *err) {
    struct rlhf__weights *file = NULL;
    struct rlhf__rows *e = &r->samples;
    rlhf_status st = rlhf__weights_open(path, &file, err);
    if (st != RLHF_OK) return st;
    const struct rlhf__tensor *ids = find_i32(file, "ids"), *offset = find_i32(file, "offset"),
                              *prompt = find_i32(file, "prompt_len");
    int fits = ids && offset && prompt && prompt->count > 0 && offset->count == prompt->count + 1;
    if (fits) st = rlhf__rows_init(e, (uint32_t)prompt->count, (uint32_t)ids->count, err);
    if (fits && st == RLHF_OK) {
        st = rlhf__tensor_read_bytes(ids, e->ids, err);
        if (st == RLHF_OK) st = rlhf__tensor_read_bytes(offset, e->offset, err);
        if (st == RLHF_OK) st = rlhf__tensor_read_bytes(prompt, e->prompt_len, err);
        fits = st == RLHF_OK && is_ragged(e, r->model->info.n_vocab);
    }
    rlhf__weights_close(file);
    if (st != RLHF_OK || fits) return st;
    return rlhf__fail(err, RLHF_E_INVALID, "%s does not hold the samples of a run", path);
}

rlhf_status rlhf__reward_training_load(struct rlhf__reward_training *r, const char *dir,
                                       struct rlhf__error *err) {
    char path[4400], state[4300];
    json_t *v = NULL;
    int found = 0;
    rlhf__path_in(state, sizeof state, dir, "state");
    rlhf__path_in(path, sizeof path, state, "reward_head.json");
    rlhf_status st = rlhf__json_load(path, &v, err);
    if (st == RLHF_OK) st = rlhf__reward_head_read(v, path, &r->head, &found, err);
    json_decref(v);
    if (st == RLHF_OK && !found)
        st = rlhf__fail(err, RLHF_E_INVALID, "%s has no rlhf_reward", path);
    r->written = r->head;
    rlhf__path_in(path, sizeof path, state, "samples.safetensors");
    return st == RLHF_OK && rlhf__is_file(path) ? read_samples(r, path, err) : st;
}
