// run_dir.c: see run_dir.h.
#include "train/run_dir.h"

#include "base/file.h"
#include "model/compute.h"
#include "train/reward_round.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static int exists(const char *path) {
    struct stat s;
    return lstat(path, &s) == 0;
}

rlhf_status rlhf__run_dir_choose(const struct rlhf__run_request *req, char out[4096],
                                 struct rlhf__error *err) {
    const char *wanted = req->config->run.dir;
    if (wanted[0]) {
        if (strlen(wanted) >= 4000)
            return rlhf__fail(err, RLHF_E_INVALID, "run.dir is longer than 4,000 bytes");
        snprintf(out, 4096, "%s", wanted);
        if (!exists(out)) return RLHF_OK;
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the run directory '%s' exists already; choose another run.dir, or go on "
                          "with that run by --resume '%s'",
                          out, out);
    }
    char date[32];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(date, sizeof date, "%Y%m%d", &local);
    for (int n = 1; n < 100000; n++) {
        snprintf(out, 4096, "runs/%s-%s-%d", req->algo->stem, date, n);
        if (!exists(out)) return RLHF_OK;
    }
    return rlhf__fail(err, RLHF_E_INVALID, "runs/%s-%s-* is full; give run.dir", req->algo->stem,
                      date);
}

static json_t *plugin_json(const struct rlhf__plugin *p, const char *role) {
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "role", role, "id", p->desc.id, "version",
                     p->desc.version ? p->desc.version : "", "path", p->path, "sha256", p->sha256);
}

static json_t *manifest_json(const struct rlhf__trainer *t) {
    const rlhf_compute *c = t->session.compute->table;
    json_t *plugins = json_array();
    json_array_append_new(plugins, plugin_json(t->req->algo, "algorithm"));
    for (size_t i = 0; t->rewards && i < t->config->n_reward; i++)
        json_array_append_new(plugins, plugin_json(t->req->rewards[i], "reward"));
    if (t->req->judge) json_array_append_new(plugins, plugin_json(t->req->judge, "judge"));
    if (t->iteration.round)
        json_array_append_new(
            plugins, plugin_json(t->iteration.round->loss->plugin, "loss of the reward model"));
    json_array_append_new(plugins, plugin_json(t->policy->instance->plugin, "model"));
    return json_pack("{s:s, s:{s:s, s:s, s:s, s:s}, s:{s:s, s:I}, s:o}", "version",
                     RLHF_SDK_VERSION, "compute", "backend", c->name, "detail", c->detail, "dtype",
                     t->session.models.dtype == RLHF_BF16 ? "bf16" : "f32", "path",
                     t->session.compute->path, "policy", "path", t->policy->dir, "parameters",
                     (json_int_t)t->policy->info.n_params, "plugins", plugins);
}

static rlhf_status write_json(const char *path, json_t *v, struct rlhf__error *err) {
    if (!v) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for '%s'", path);
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__json_write(&text, v, 2);
    rlhf__buf_putc(&text, '\n');
    json_decref(v);
    rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK) st = rlhf__file_write(path, text.data, text.len, err);
    rlhf__buf_free(&text);
    return st;
}

rlhf_status rlhf__run_dir_make(const struct rlhf__trainer *t, struct rlhf__error *err) {
    char path[4200];
    rlhf_status st = rlhf__make_dirs(t->dir, err);
    json_t *config = NULL;
    if (st == RLHF_OK) st = rlhf__config_to_json(t->config, &config, err);
    if (st != RLHF_OK) return st;
    snprintf(path, sizeof path, "%s/config.json", t->dir);
    st = write_json(path, config, err);
    snprintf(path, sizeof path, "%s/manifest.json", t->dir);
    return st == RLHF_OK ? write_json(path, manifest_json(t), err) : st;
}
