// resume.c: see resume.h.
#include "config/resume.h"

#include "base/file.h"
#include "config/config_json.h"
#include "config/layer.h"
#include "weights/links.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- what may change ----

static const char *const may_change[] = {"run.phases",
                                         "run.stop_after",
                                         "run.stop_on",
                                         "run.threads",
                                         "compute.backend",
                                         "compute.gpu",
                                         "compute.workspace_mib",
                                         "compute.recompute",
                                         "data.max_mib",
                                         "checkpoint.",
                                         "parallel.",
                                         "early_stop.",
                                         "log.",
                                         "rewards.on_failure",
                                         "rewards.retries",
                                         "rewards.isolate",
                                         "rewards.timeout_s",
                                         "rewards.memory_mib",
                                         "rewards.workers",
                                         "rewards.overlap",
                                         "rollout.threads",
                                         "sink.",
                                         "sink",
                                         NULL};

// Files for which a run stores a checksum. They may have moved when the run is resumed.
static const char *const may_move[] = {"data.path",   "data.eval_path", "prompts.path",
                                       "policy.path", "reference.path", "prompts.template",
                                       NULL};

rlhf_status rlhf__resume_load(const struct rlhf__config_request *req, struct rlhf__config *c,
                              struct rlhf__error *err) {
    if (req->config_file || req->preset)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--resume uses the run's own config.json; %s cannot be "
                          "given with it",
                          req->config_file ? "--config" : "--preset");
    if (!rlhf__is_dir(req->resume))
        return rlhf__fail(err, RLHF_E_INVALID, "--resume: there is no directory %s", req->resume);
    RLHF_TRY(rlhf__links_stay(req->resume, "the run directory", err));
    char *path = rlhf__path_join(req->resume, "config.json");
    const char *kept = path ? rlhf__strings_add(&c->strings, path) : NULL;
    free(path);
    if (!kept) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    if (!rlhf__is_file(kept))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--resume: %s is not a run directory (it has no "
                          "config.json)",
                          req->resume);
    struct rlhf__layer layer;
    rlhf_status st = rlhf__layer_load(kept, &layer, err);
    if (st == RLHF_OK && json_object_get(layer.json, "model_type"))
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "--resume: %s is not a run directory: its config.json is a model's (a "
                        "checkpoint's run is the directory above checkpoints/)",
                        req->resume);
    if (st == RLHF_OK) st = rlhf__layer_apply(&layer, NULL, c, err);
    c->run.stop_after = 0; // it limited only the earlier process
    if (req->algo_alone) {
        c->n_recorded = c->n_reward;
        rlhf__rewards_clear(c);
        rlhf__sinks_clear(c);
        rlhf__plugin_config_clear(&c->judge);
    }
    rlhf__layer_finish(&layer);
    return st;
}

static int ends_in(const char *path, const char *end) {
    size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

static int is_of_reward(const char *path) {
    return strncmp(path, "reward.", 7) == 0 || strncmp(path, "judge.", 6) == 0 ||
           strncmp(path, "environment.", 12) == 0;
}

static int allowed(const char *path) {
    for (size_t i = 0; may_change[i]; i++) {
        size_t n = strlen(may_change[i]);
        int prefix = may_change[i][n - 1] == '.';
        if (prefix ? strncmp(path, may_change[i], n) == 0 : strcmp(path, may_change[i]) == 0)
            return 1;
    }
    return is_of_reward(path) && (ends_in(path, ".isolate") || ends_in(path, ".network"));
}

#define MAY_LIE_ELSEWHERE                                                                          \
    "plugins, the files of code that rewards name, rows, prompts and the models of policy.path, "  \
    "reference.path and models.*"

// Returns 1 if the setting `path` names a file or directory that does not exist.
static int is_missing(const char *path, const json_t *is) {
    char real[RLHF__PATH_CAP];
    for (size_t i = 0; may_move[i]; i++)
        if (strcmp(path, may_move[i]) == 0 && ends_in(path, "path"))
            return json_string_length(is) > 0 && !rlhf__path_real(json_string_value(is), real);
    return 0;
}

// Reject a changed value of the setting `path`. The message lists the settings that may change.
static rlhf_status changed(const struct rlhf__config_request *req, const char *path,
                           const json_t *was, const json_t *is, struct rlhf__error *err) {
    struct rlhf__buf a = RLHF__BUF_INIT, b = RLHF__BUF_INIT;
    if (json_is_string(was) && json_string_length(was) > 0 && is_missing(path, is))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--resume: %s: '%s' does not exist; name where that of the run lies now, "
                          "which was '%s'",
                          path, json_string_value(is), json_string_value(was));
    if (was) rlhf__json_write(&a, was, 0);
    if (is) rlhf__json_write(&b, is, 0);
    const char *old = a.len ? rlhf__buf_text(&a) : "nothing";
    const char *new = b.len ? rlhf__buf_text(&b) : "nothing";
    if (req->recompute)
        rlhf__fail(
            err, RLHF_E_INVALID,
            "--resume: %s cannot change from %.100s to %.100s: phases are recomputed with "
            "the settings of the run; --set can only say where these lie now: " MAY_LIE_ELSEWHERE,
            path, old, new);
    else
        rlhf__fail(
            err, RLHF_E_INVALID,
            "--resume: %s cannot change from %.100s to %.100s in a run that "
            "goes on (what can: run.phases, run.stop_after, run.stop_on, run.threads, "
            "compute.backend, compute.gpu, compute.workspace_mib, compute.recompute, "
            "data.max_mib, checkpoint.*, parallel.*, early_stop.*, log.*, rewards.on_failure, "
            "rewards.retries, rewards.isolate, rewards.timeout_s, rewards.memory_mib, "
            "rewards.workers, rewards.overlap, rollout.threads, sink.*, and, with the same "
            "contents, where " MAY_LIE_ELSEWHERE
            " lie); start a new run with --policy '%s/checkpoints/latest' instead",
            path, old, new, req->resume);
    rlhf__buf_finish(&a);
    rlhf__buf_finish(&b);
    return RLHF_E_INVALID;
}

// Returns 1 if both values name the same plugin, one by its file name and the other by its path.
static int same_plugin(const char *path, const json_t *was, const json_t *is) {
    if (!ends_in(path, ".plugin") || !json_is_string(was) || !json_is_string(is)) return 0;
    char a[256], b[256];
    rlhf__plugin_stem(json_string_value(was), a, sizeof a);
    rlhf__plugin_stem(json_string_value(is), b, sizeof b);
    return strcmp(a, b) == 0;
}

// Returns 1 if the paths `given` (relative or absolute) and `stored` (absolute) are those of the
// same file. Also returns 1 if the setting `path` is one whose file may have moved. The content at
// `given` will then be compared with the stored checksum.
static int same_place(const char *path, const json_t *stored, const json_t *given) {
    char real[RLHF__PATH_CAP];
    const int of_plugin = is_of_reward(path);
    const int named = strncmp(path, "models.", 7) == 0;
    if (!of_plugin && !named && !ends_in(path, "path") && !ends_in(path, ".model")) return 0;
    if (!json_is_string(stored) || !json_is_string(given)) return 0;
    if (!rlhf__path_real(json_string_value(given), real)) return 0;
    if (named) return 1; // the model's weights will be compared
    for (size_t i = 0; may_move[i] && json_string_length(stored) > 0; i++)
        if (strcmp(path, may_move[i]) == 0) return 1;
    // This function does not know whether a reward's option is the path of a file or any other
    // text. setup/setup_inputs.c, which knows the plugin's options, later rejects a text that has
    // changed.
    const int is_option = of_plugin && !ends_in(path, ".plugin") && !ends_in(path, ".name");
    if (is_option && *json_string_value(stored) == '/' && rlhf__is_file(real)) return 1;
    return !strcmp(real, json_string_value(stored));
}

// Reject a value that differs, unless the setting may change or both values mean the same.
static rlhf_status check_leaf(void *arg, const char *path, const json_t *was, const json_t *is,
                              struct rlhf__error *err) {
    const struct rlhf__config_request *const *req = arg;
    if (allowed(path) || strcmp(path, "run.dir") == 0) return RLHF_OK;
    if (json_is_number(was) && json_is_number(is) &&
        json_number_value(was) == json_number_value(is))
        return RLHF_OK;
    if (was && is &&
        (json_equal(was, is) || same_plugin(path, was, is) || same_place(path, was, is)))
        return RLHF_OK;
    return changed(*req, path, was, is, err);
}

// The run directory may have been moved. So check only a run.dir that the user has given now.
static rlhf_status same_dir(const struct rlhf__config_request *req, struct rlhf__error *err) {
    for (size_t i = 0; i < req->n_set; i++) {
        if (strncmp(req->set[i], "run.dir=", 8) != 0) continue;
        char a[RLHF__PATH_CAP], b[RLHF__PATH_CAP];
        if (!rlhf__path_real(req->set[i] + 8, a) || !rlhf__path_real(req->resume, b) ||
            strcmp(a, b) != 0)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "--resume %s goes on in that directory, but "
                              "run.dir is %s",
                              req->resume, req->set[i] + 8);
    }
    return RLHF_OK;
}

// Returns the text at "section.key", or NULL.
static const char *text_at(const json_t *config, const char *path) {
    char section[32];
    const char *dot = strchr(path, '.');
    snprintf(section, sizeof section, "%.*s", (int)(dot - path), path);
    return json_string_value(json_object_get(json_object_get(config, section), dot + 1));
}

static rlhf_status mark(json_t *from, const char *was, const char *is, struct rlhf__error *err) {
    char real[RLHF__PATH_CAP];
    if (!from || !was || !is || (rlhf__path_real(is, real) && strcmp(real, was) == 0))
        return RLHF_OK;
    return json_object_set_new(from, "moved", json_true()) == 0 ? RLHF_OK
                                                                : RLHF__NOMEM(err, "out of memory");
}

// If the value of a plugin option differs from the stored value, mark the option as "moved". Only
// paths of files can differ here, because all other differences have been rejected.
static rlhf_status mark_options(const json_t *was, const json_t *is, struct rlhf__plugin_config *p,
                                struct rlhf__error *err) {
    const char *key;
    json_t *from;
    json_object_foreach(p->origin, key, from) {
        const char *old = json_string_value(json_object_get(was, key));
        const char *new = json_string_value(json_object_get(is, key));
        if (old && new &&strcmp(old, new) != 0) RLHF_TRY(mark(from, old, new, err));
    }
    return RLHF_OK;
}

static rlhf_status mark_moved(const json_t *was, const json_t *is, struct rlhf__config *c,
                              struct rlhf__error *err) {
    for (size_t i = 0; may_move[i]; i++)
        RLHF_TRY(mark(json_object_get(c->given, may_move[i]), text_at(was, may_move[i]),
                      text_at(is, may_move[i]), err));
    for (uint32_t i = 0; i < c->models.n; i++) {
        char path[64];
        snprintf(path, sizeof path, "models.%s", c->models.of[i].name);
        RLHF_TRY(mark(json_object_get(c->given, path), text_at(was, path), text_at(is, path), err));
    }
    for (size_t i = 0; i < c->n_reward; i++)
        RLHF_TRY(mark_options(json_array_get(json_object_get(was, "reward"), i),
                              json_array_get(json_object_get(is, "reward"), i), &c->reward[i],
                              err));
    RLHF_TRY(mark_options(json_object_get(was, "environment"), json_object_get(is, "environment"),
                          &c->environment, err));
    return mark_options(json_object_get(was, "judge"), json_object_get(is, "judge"), &c->judge,
                        err);
}

static rlhf_status compare_all(const struct rlhf__config_request *req,
                               const struct rlhf__config *stored, struct rlhf__config *c,
                               struct rlhf__error *err) {
    json_t *was = NULL, *is = NULL;
    rlhf_status st = rlhf__config_to_json(stored, &was, err);
    if (st == RLHF_OK) st = rlhf__config_to_json(c, &is, err);
    if (st == RLHF_OK) st = rlhf__config_leaves("", was, is, check_leaf, &req, err);
    if (st == RLHF_OK) st = same_dir(req, err);
    if (st == RLHF_OK) st = mark_moved(was, is, c, err);
    json_decref(was);
    json_decref(is);
    return st;
}

rlhf_status rlhf__resume_check(const struct rlhf__config_request *req,
                               const struct rlhf__config *stored, struct rlhf__config *c,
                               struct rlhf__error *err) {
    if (stored) RLHF_TRY(compare_all(req, stored, c, err));
    c->run.dir = rlhf__strings_add(&c->strings, req->resume);
    return c->run.dir ? RLHF_OK : rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
}
