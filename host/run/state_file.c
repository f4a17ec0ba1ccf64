// state_file.c: see state_file.h.
#include "run/state_file.h"

#include "base/file.h"
#include "base/file_writer.h"
#include "model/parameters.h"
#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_FORMAT 1

// ---- run.json ----

json_t *rlhf__state_run(struct rlhf__run *t) {
    const struct rlhf__optim *o = t->optim;
    const struct rlhf__order *order = t->feed->ops->order(t->feed);
    json_t *v = json_pack("{s:i, s:s, s:I, s:I, s:{s:I, s:I, s:I}, s:{s:I, s:I}, s:o}", "format",
                          STATE_FORMAT, "algo", t->cast.algo->plugin->desc.id, "phase",
                          (json_int_t)t->count.phase, "episodes", (json_int_t)t->count.sequences,
                          "optim", "step", (json_int_t)o->step, "skipped", (json_int_t)o->skipped,
                          "skipped_in_a_row", (json_int_t)o->skipped_row, "data", "pass",
                          (json_int_t)order->pass, "pos", (json_int_t)order->pos, "early_stop",
                          rlhf__early_stop_save(&t->early_stop));
    if (v && t->critic_optim)
        json_object_set_new(v, "critic_optim",
                            json_pack("{s:I, s:I, s:I}", "step", (json_int_t)t->critic_optim->step,
                                      "skipped", (json_int_t)t->critic_optim->skipped,
                                      "skipped_in_a_row",
                                      (json_int_t)t->critic_optim->skipped_row));
    return v;
}

rlhf_status rlhf__state_write_run(const struct rlhf__run *t, json_t *run,
                                  const struct rlhf__folder *checkpoint, struct rlhf__error *err) {
    json_t *best = rlhf__best_save(&t->best, &t->config->checkpoint);
    if (best && json_object_set_new(run, "best", best) != 0)
        return RLHF__NOMEM(err, "out of memory for run.json");
    return rlhf__json_save_new(checkpoint, "state/run.json", json_incref(run), 0, err);
}

static rlhf_status take_run(struct rlhf__run *t, json_t *v, const char *path,
                            struct rlhf__error *err) {
    int format = 0;
    const char *algo = NULL;
    json_int_t phase = 0, episodes = 0, step = 0, skipped = 0, row = 0, pass = 0, pos = 0;
    json_t *early = NULL;
    json_error_t why;
    if (json_unpack_ex(v, &why, 0, "{s:i, s:s, s:I, s:I, s:{s:I, s:I, s:I}, s:{s:I, s:I}, s:o}",
                       "format", &format, "algo", &algo, "phase", &phase, "episodes", &episodes,
                       "optim", "step", &step, "skipped", &skipped, "skipped_in_a_row", &row,
                       "data", "pass", &pass, "pos", &pos, "early_stop", &early) != 0)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: %s", path, why.text);
    if (format != STATE_FORMAT)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: format is %d, this host reads %d", path, format,
                          STATE_FORMAT);
    if (strcmp(algo, t->cast.algo->plugin->desc.id) != 0)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the run was made by %s, not by %s", path, algo,
                          t->cast.algo->plugin->desc.id);
    if (phase < 0 || episodes < 0 || step < 0 || skipped < 0 || row < 0 || pass < 0)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: a counter is negative", path);
    t->count.phase = t->count.first_phase = phase;
    t->count.sequences = episodes;
    t->optim->step = step;
    t->optim->skipped = skipped;
    t->optim->skipped_row = row;
    const json_t *critic = json_object_get(v, "critic_optim");
    if (t->critic_optim && critic) {
        t->critic_optim->step = json_integer_value(json_object_get(critic, "step"));
        t->critic_optim->skipped = json_integer_value(json_object_get(critic, "skipped"));
        t->critic_optim->skipped_row =
            json_integer_value(json_object_get(critic, "skipped_in_a_row"));
    }
    rlhf_status st = rlhf__early_stop_load(&t->early_stop, early, err);
    if (st == RLHF_OK)
        st = rlhf__best_load(&t->best, &t->config->checkpoint, json_object_get(v, "best"), err);
    if (st != RLHF_OK) return rlhf__error_context(err, "%s", path);
    return rlhf__order_seek(t->feed->ops->order(t->feed), (uint64_t)pass, pos, err);
}

rlhf_status rlhf__state_read_run(struct rlhf__run *t, const char *dir, struct rlhf__error *err) {
    char path[4300];
    snprintf(path, sizeof path, "%s/run.json", dir);
    json_t *v = NULL;
    rlhf_status st = rlhf__json_load(path, &v, err);
    if (st == RLHF_OK) st = take_run(t, v, path, err);
    json_decref(v);
    return st;
}

// ---- optimizer.safetensors ----

#define NAME_BYTES 320

static rlhf_status optim_specs(const struct rlhf__optim *o, struct rlhf__tensor_spec **specs,
                               char **names, size_t *n, struct rlhf__error *err) {
    *n = 0;
    *specs = calloc(2u * o->n + 1, sizeof **specs);
    *names = calloc(2u * o->n + 1, NAME_BYTES);
    if (!*specs || !*names)
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the optimiser's state");
    rlhf_dev dev;
    const rlhf_param *p;
    while (rlhf__optim_tensor(o, (uint32_t)*n, *names + *n * NAME_BYTES, NAME_BYTES, &dev, &p) ==
           RLHF_OK) {
        struct rlhf__tensor_spec *s = &(*specs)[*n];
        s->name = *names + *n * NAME_BYTES;
        s->dtype = RLHF__TENSOR_F32;
        s->ndim = p->ndim;
        memcpy(s->shape, p->shape, sizeof p->shape);
        ++*n;
    }
    return RLHF_OK;
}

// Move one tensor of the optimiser's state: to the writer, or (w NULL) from the tensor `from`.
static rlhf_status move_tensor(const struct rlhf__optim *o, uint32_t i,
                               struct rlhf__weights_writer *w, const struct rlhf__tensor *from,
                               struct rlhf__error *err) {
    const rlhf_compute *c = o->compute;
    char name[NAME_BYTES];
    rlhf_dev dev;
    const rlhf_param *p;
    rlhf__optim_tensor(o, i, name, sizeof name, &dev, &p);
    size_t count = (size_t)rlhf__param_count(p);
    float *host = malloc(count * sizeof *host + 1);
    if (!host) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %s", name);
    rlhf_status st;
    if (w) {
        st = c->download(c->ctx, host, dev, count * sizeof *host);
        if (st != RLHF_OK) rlhf__compute_fail(c, st, name, err);
        if (st == RLHF_OK) st = rlhf__weights_put_f32(w, host, count, err);
    } else if (from->dtype != RLHF__TENSOR_F32 || (size_t)from->count != count) {
        st = rlhf__fail(err, RLHF_E_INVALID, "%s: tensor %s does not fit the model", from->file,
                        name);
    } else {
        st = rlhf__tensor_read_f32(from, host, err);
        if (st == RLHF_OK) {
            st = c->upload(c->ctx, dev, host, count * sizeof *host);
            if (st != RLHF_OK) rlhf__compute_fail(c, st, name, err);
        }
    }
    free(host);
    return st;
}

rlhf_status rlhf__state_write_optim(const struct rlhf__optim *o,
                                    const struct rlhf__folder *checkpoint, const char *name,
                                    struct rlhf__error *err) {
    struct rlhf__tensor_spec *specs = NULL;
    char *names = NULL;
    size_t n = 0;
    struct rlhf__weights_writer *w = NULL;
    rlhf_status st = optim_specs(o, &specs, &names, &n, err);
    if (st == RLHF_OK) st = rlhf__weights_create(checkpoint, name, specs, n, NULL, 0, &w, err);
    free(specs);
    free(names);
    if (st != RLHF_OK) return st;
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++)
        st = move_tensor(o, i, w, NULL, err);
    if (st == RLHF_OK) return rlhf__weights_commit(w, err);
    rlhf__weights_abort(w);
    return st;
}

rlhf_status rlhf__state_read_optim(struct rlhf__optim *o, const char *path,
                                   struct rlhf__error *err) {
    char name[NAME_BYTES];
    struct rlhf__weights *file = NULL;
    rlhf_status st = rlhf__weights_open(path, &file, err);
    rlhf_dev dev;
    const rlhf_param *p;
    for (uint32_t i = 0; st == RLHF_OK; i++) {
        if (rlhf__optim_tensor(o, i, name, sizeof name, &dev, &p) != RLHF_OK) break;
        const struct rlhf__tensor *from = rlhf__weights_find(file, name);
        st = from
                 ? move_tensor(o, i, NULL, from, err)
                 : rlhf__fail(err, RLHF_E_INVALID,
                              "%s has no tensor %s: optim.kind must stay what it was when a run is "
                              "resumed",
                              path, name);
    }
    rlhf__weights_close(file);
    return st;
}

// ---- plugins ----

// Plugin instance i of the run (0 = the algorithm, then the rewards, then the judge) and its file;
// NULL past the end.
static const struct rlhf__instance *plugin_at(const struct rlhf__run *t, size_t i, const char *dir,
                                              char path[4300]) {
    if (i == 0) {
        snprintf(path, 4300, "%s/algo.bin", dir);
        return t->cast.algo;
    }
    if (!t->cast.rewards || i > t->config->n_reward + 1) return NULL;
    if (i == t->config->n_reward + 1) {
        snprintf(path, 4300, "%s/judge.bin", dir);
        return t->cast.judge;
    }
    snprintf(path, 4300, "%s/reward_%zu.bin", dir, i - 1);
    return t->cast.rewards[i - 1];
}

rlhf_status rlhf__state_save_plugins(const struct rlhf__run *t, struct rlhf__buf **out, size_t *n,
                                     struct rlhf__error *err) {
    char name[4300];
    const struct rlhf__instance *p;
    *n = 0;
    *out = calloc(t->config->n_reward + 2, sizeof **out);
    if (!*out) return RLHF__NOMEM(err, "out of memory for the state of plugins");
    while ((p = plugin_at(t, *n, "state", name)) != NULL) {
        struct rlhf__buf *bytes = &(*out)[(*n)++];
        rlhf_status st = rlhf__instance_save(p, bytes, err);
        if (st == RLHF_OK) st = rlhf__buf_ok(bytes, err);
        if (st != RLHF_OK) return st;
    }
    return RLHF_OK;
}

void rlhf__state_plugins_finish(struct rlhf__buf *saved, size_t n) {
    for (size_t i = 0; saved && i < n; i++)
        rlhf__buf_free(&saved[i]);
    free(saved);
}

rlhf_status rlhf__state_write_plugins(const struct rlhf__run *t, const struct rlhf__buf *saved,
                                      const struct rlhf__folder *checkpoint,
                                      struct rlhf__error *err) {
    char name[4300];
    for (size_t i = 0; plugin_at(t, i, "state", name) != NULL; i++) {
        if (saved[i].len == 0) continue;
        rlhf_status st = rlhf__file_write(checkpoint, name, saved[i].data, saved[i].len, err);
        if (st != RLHF_OK) return st;
    }
    return RLHF_OK;
}

rlhf_status rlhf__state_read_plugins(struct rlhf__run *t, const char *dir,
                                     struct rlhf__error *err) {
    char path[4300];
    const struct rlhf__instance *p;
    for (size_t i = 0; (p = plugin_at(t, i, dir, path)) != NULL; i++) {
        struct rlhf__buf bytes = RLHF__BUF_INIT;
        rlhf_status st = RLHF_OK;
        if (rlhf__is_file(path)) st = rlhf__file_read(path, (uint64_t)1 << 30, &bytes, err);
        if (st == RLHF_OK) st = rlhf__instance_load(p, bytes.data, bytes.len, err);
        rlhf__buf_free(&bytes);
        if (st != RLHF_OK) return st;
    }
    return RLHF_OK;
}
