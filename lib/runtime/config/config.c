// config.c: the order of the layers; see config.h.
#include "config/config.h"

#include "base/file.h"
#include "config/layer.h"
#include "config/resume.h"
#include "option/aliases.h"
#include "option/nearest.h"
#include "plugin/load.h"
#include "plugin/trust.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rlhf__config_finish(struct rlhf__config *c) {
    rlhf__plugin_config_clear(&c->algo);
    rlhf__plugin_config_clear(&c->judge);
    rlhf__plugin_config_clear(&c->environment);
    rlhf__rewards_clear(c);
    rlhf__sinks_clear(c);
    free(c->reward);
    free(c->sink);
    json_decref(c->given);
    json_decref(c->unused);
    rlhf__strings_finish(&c->strings);
    memset(c, 0, sizeof *c);
}

static rlhf_status built_in(struct rlhf__config *c, struct rlhf__error *err) {
    size_t n;
    const struct rlhf__section *s = rlhf__sections(&n);
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < n; i++)
        RLHF_TRY(rlhf__opts_defaults(&s[i].table, (char *)c + s[i].offset, &c->strings, err));
    c->environment.weight = 1;
    c->algo.options = json_object();
    c->algo.origin = json_object();
    c->given = json_object();
    c->unused = json_object();
    if (!c->algo.options || !c->algo.origin || !c->given || !c->unused)
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    return RLHF_OK;
}

// ---- which files ------------------------------------------------------------------------------

static rlhf_status no_preset(const char *dir, const char *name, struct rlhf__error *err) {
    struct rlhf__nearest near = {name, NULL, 0};
    char best[256] = "", all[1024] = "", hint[300];
    struct dirent **entry = NULL; // sorted by name
    int found = scandir(dir, &entry, NULL, alphasort);
    for (int i = 0; i < found; free(entry[i++])) {
        char stem[256];
        const char *file = entry[i]->d_name;
        size_t n = strlen(file);
        if (n < 6 || strcmp(file + n - 5, ".json") != 0) continue;
        snprintf(stem, sizeof stem, "%.*s", (int)(n - 5), file);
        near.best = *best ? best : NULL;
        rlhf__nearest_offer(&near, stem);
        if (near.best == stem) memcpy(best, stem, sizeof best);
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", stem);
    }
    near.best = *best ? best : NULL;
    free(entry);
    return rlhf__fail(err, RLHF_E_INVALID, "--preset: no preset \"%s\"%s; there %s %s", name,
                      rlhf__nearest_hint(&near, hint, sizeof hint), *all ? "are:" : "are none in",
                      *all ? all : dir);
}

static rlhf_status load_preset(const struct rlhf__config_request *req, const char *name,
                               struct rlhf__strings *strings, struct rlhf__layer *out,
                               struct rlhf__error *err) {
    char dir[RLHF__PATH_CAP], path[RLHF__PATH_CAP];
    rlhf__path_put(dir, "%s/configs/presets", req->dirs->share);
    rlhf__path_put(path, "%s/%s.json", dir, name);
    if (strchr(name, '/') || strlen(name) > 200 || !rlhf__is_file(path))
        return no_preset(dir, name, err);
    const char *kept = rlhf__strings_add(strings, path);
    if (!kept) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    return rlhf__layer_load(kept, out, err);
}

// Returns the value of the last assignment to `path`, or NULL.
static const char *assigned(const struct rlhf__config_request *req, const char *path) {
    size_t n = strlen(path);
    for (size_t i = req->n_set; i-- > 0;)
        if (strncmp(req->set[i], path, n) == 0 && req->set[i][n] == '=') return req->set[i] + n + 1;
    return NULL;
}

static const char *member(const struct rlhf__layer *l, const char *section, const char *key) {
    return json_string_value(json_object_get(json_object_get(l->json, section), key));
}

enum { ALGO_FILE, PRESET, SETTINGS, USER_FILE, N_FILES };

// Load the config files that a new run reads. `stem` receives the algorithm's name without ".so",
// or "" if no algorithm is given.
static rlhf_status load_files(const struct rlhf__config_request *req, struct rlhf__config *c,
                              struct rlhf__layer file[N_FILES], char *stem, size_t cap,
                              struct rlhf__error *err) {
    if (req->config_file) RLHF_TRY(rlhf__layer_load(req->config_file, &file[USER_FILE], err));
    file[USER_FILE].users = 1;
    file[SETTINGS].source = req->settings_from;
    file[SETTINGS].json = json_incref(req->settings);
    const char *preset = assigned(req, "run.preset");
    if (!preset) preset = req->preset;
    if (!preset) preset = member(&file[USER_FILE], "run", "preset");
    if (preset && *preset) {
        RLHF_TRY(load_preset(req, preset, &c->strings, &file[PRESET], err));
        c->run.preset = rlhf__strings_add(&c->strings, preset);
    }
    const char *algo = assigned(req, "algo.plugin");
    if (!algo) algo = req->algo;
    if (!algo) algo = member(&file[USER_FILE], "algo", "plugin");
    if (!algo) algo = member(&file[PRESET], "algo", "plugin");
    if (!algo) algo = req->default_algo;
    *stem = '\0';
    if (!algo) return RLHF_OK;
    rlhf__plugin_stem(algo, stem, cap);
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/configs/%s.json", req->dirs->share, stem);
    if (!rlhf__is_file(path)) return RLHF_OK;
    const char *kept = rlhf__strings_add(&c->strings, path);
    if (!kept) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    return rlhf__layer_load(kept, &file[ALGO_FILE], err);
}

// ---- flags ------------------------------------------------------------------------------------

// --reward flags replace the list from the files. On resuming they must name the same plugins.
static rlhf_status apply_rewards(const struct rlhf__config_request *req, struct rlhf__config *c,
                                 struct rlhf__error *err) {
    const char *flag = req->reward_flag ? req->reward_flag : "--reward";
    int keep = req->resume && req->n_reward == c->n_reward;
    if (!keep) rlhf__rewards_clear(c);
    for (size_t i = 0; i < req->n_reward; i++) {
        struct rlhf__plugin_config *p = keep ? &c->reward[i] : rlhf__reward_add(c);
        if (!p) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
        p->flag = flag;
        RLHF_TRY(rlhf__spec_apply(req->reward[i], flag, p, c, err));
    }
    return RLHF_OK;
}

static int same_stem(const char *a, const char *b) {
    char x[256], y[256];
    rlhf__plugin_stem(a, x, sizeof x);
    rlhf__plugin_stem(b, y, sizeof y);
    return strcmp(x, y) == 0;
}

// --sink flags replace the config's list of sinks. On resuming, a sink keeps its options if the
// flags name the same plugins in the same order.
static rlhf_status apply_sinks(const struct rlhf__config_request *req, struct rlhf__config *c,
                               struct rlhf__error *err) {
    int keep = req->resume && req->n_sink == c->n_sink;
    for (size_t i = 0; keep && i < c->n_sink; i++)
        keep = c->sink[i].plugin && same_stem(c->sink[i].plugin, req->sink[i]);
    if (!keep) rlhf__sinks_clear(c);
    if (req->n_sink == 1 && strcmp(req->sink[0], "none") == 0) return RLHF_OK;
    for (size_t i = 0; i < req->n_sink; i++) {
        if (!keep && !rlhf__sink_add(c)) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
        RLHF_TRY(rlhf__spec_apply(req->sink[i], "--sink", &c->sink[i], c, err));
    }
    return RLHF_OK;
}

static rlhf_status apply_flags(const struct rlhf__config_request *req, struct rlhf__config *c,
                               struct rlhf__error *err) {
    if (req->algo) RLHF_TRY(rlhf__spec_apply(req->algo, "--algo", &c->algo, c, err));
    if (req->n_reward) RLHF_TRY(apply_rewards(req, c, err));
    if (req->n_sink) RLHF_TRY(apply_sinks(req, c, err));
    if (req->judge) RLHF_TRY(rlhf__spec_apply(req->judge, "--judge", &c->judge, c, err));
    if (req->environment)
        RLHF_TRY(rlhf__spec_apply(req->environment, "--env", &c->environment, c, err));
    for (size_t i = 0; i < req->n_set; i++) {
        const char *flag = req->set_flag ? req->set_flag[i] : "--set";
        RLHF_TRY(rlhf__layer_set(flag, req->set[i], c, err));
    }
    if (c->algo.plugin || !req->default_algo) return RLHF_OK;
    c->algo.from = RLHF__NAME_LOOKED_UP;
    c->algo.plugin = strdup(req->default_algo);
    return c->algo.plugin ? RLHF_OK : rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
}

static rlhf_status check_rewards(struct rlhf__config *c, struct rlhf__error *err) {
    if (!(c->environment.weight >= -1e9 && c->environment.weight <= 1e9))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "environment.weight must be a number from -1e9 to 1e9, found %g",
                          c->environment.weight);
    for (size_t i = 0; i < c->n_reward; i++)
        if (!(c->reward[i].weight >= -1e9 && c->reward[i].weight <= 1e9))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "reward.%zu.weight must be a number from -1e9 to "
                              "1e9, found %g",
                              i, c->reward[i].weight);
    return RLHF_OK;
}

// Reject settings of a new run that contradict each other. The stored settings of a resumed run are
// not checked again.
static rlhf_status check_settings(const struct rlhf__config *c, struct rlhf__error *err) {
    const struct rlhf__response_config *r = &c->response;
    if (r->period_min > r->period_max)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "response.period_min is %lld and response.period_max %lld: the first "
                          "token of the window cannot come after its last",
                          (long long)r->period_min, (long long)r->period_max);
    if (c->prompts.text[0] && c->prompts.path[0])
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "prompts.text and prompts.path (%.200s) are both given; leave one of them "
            "empty, e.g. --set prompts.path=",
            c->prompts.path);
    return RLHF_OK;
}

// Check checkpoint.best. Also called for a resumed run, where checkpoint.* may change.
static rlhf_status check_best(const struct rlhf__config *c, struct rlhf__error *err) {
    if (strncmp(c->checkpoint.best, "eval/", 5) != 0 || c->data.eval_path[0]) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "checkpoint.best is %.200s, which is measured on data.eval_path, and none is "
                      "given",
                      c->checkpoint.best);
}

// Reject checkpoint.every=0 on resuming a run that keeps its best checkpoint, because the run would
// silently stop keeping a best checkpoint. (For a new run, setup/effect_rules.c rejects such
// settings.)
static rlhf_status check_best_stays(const struct rlhf__config *stored, const struct rlhf__config *c,
                                    struct rlhf__error *err) {
    if (!c->checkpoint.best[0] || c->checkpoint.every != 0 || stored->checkpoint.every == 0)
        return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "checkpoint.every is 0, so the best checkpoint by checkpoint.best=%.200s, which "
        "this run keeps, would no longer be kept; set checkpoint.every to 1 or more, "
        "or also --set checkpoint.best=",
        c->checkpoint.best);
}

// Apply the stored settings of a run, then the settings given on resuming.
static rlhf_status go_on(const struct rlhf__config_request *req, struct rlhf__config *out,
                         struct rlhf__error *err) {
    struct rlhf__config stored = {0};
    int plain = req->n_set == 0 && req->n_reward == 0 && req->n_sink == 0 && !req->algo &&
                !req->judge && !req->environment;
    rlhf_status st = rlhf__resume_load(req, out, err);
    if (st == RLHF_OK) st = apply_flags(req, out, err);
    if (st == RLHF_OK && !plain) st = built_in(&stored, err);
    if (st == RLHF_OK && !plain) st = rlhf__resume_load(req, &stored, err);
    if (st == RLHF_OK) st = rlhf__resume_check(req, plain ? NULL : &stored, out, err);
    if (st == RLHF_OK) st = rlhf__resume_trust(req, out, err);
    out->algo.stored = out->judge.stored = out->environment.stored = !req->trust_run;
    for (size_t i = 0; i < out->n_reward; i++)
        out->reward[i].stored = !req->trust_run;
    for (size_t i = 0; i < out->n_sink; i++)
        out->sink[i].stored = !req->trust_run;
    if (st == RLHF_OK) st = check_rewards(out, err);
    if (st == RLHF_OK) st = check_best(out, err);
    if (st == RLHF_OK && !plain) st = check_best_stays(&stored, out, err);
    rlhf__config_finish(&stored);
    return st;
}

rlhf_status rlhf__config_load(const struct rlhf__config_request *req, struct rlhf__config *out,
                              struct rlhf__error *err) {
    struct rlhf__layer file[N_FILES];
    char stem[256] = "";
    memset(file, 0, sizeof file);
    rlhf_status st = built_in(out, err);
    if (st == RLHF_OK && req->resume) return go_on(req, out, err);
    if (st == RLHF_OK) st = load_files(req, out, file, stem, sizeof stem, err);
    for (int i = 0; i < N_FILES && st == RLHF_OK; i++)
        if (file[i].json) st = rlhf__layer_apply(&file[i], stem, out, err);
    if (st == RLHF_OK && req->preset) {
        out->run.preset = rlhf__strings_add(&out->strings, req->preset);
        if (!out->run.preset) st = rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    }
    if (st == RLHF_OK) st = apply_flags(req, out, err);
    if (st == RLHF_OK) st = check_rewards(out, err);
    if (st == RLHF_OK) st = check_settings(out, err);
    if (st == RLHF_OK) st = check_best(out, err);
    for (int i = 0; i < N_FILES; i++)
        rlhf__layer_finish(&file[i]);
    return st;
}

// ---- a --set without a section ----

struct search {
    struct rlhf__nearest near;
    char best[160];         // "section.key" of near.best
    struct rlhf__buf exact; // all settings that have exactly this key
};

static void offer(struct search *s, const char *section, const struct rlhf__opt_table *t) {
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        if (strcmp(o.key, s->near.wanted) == 0)
            rlhf__buf_printf(&s->exact, "%s\"%s.%s\"", s->exact.len ? " or " : "", section, o.key);
        const char *before = s->near.best;
        rlhf__nearest_offer(&s->near, o.key);
        if (s->near.best != before) snprintf(s->best, sizeof s->best, "%s.%s", section, o.key);
    }
}

// Look for the typed key, or a similar one, among the options of the algorithm that `c` names. Does
// nothing if the algorithm's plugin cannot be opened, or if `c` names no algorithm because the
// stored config of a resumed run has not been read yet.
static void offer_algo(struct search *s, const struct rlhf__config_request *req,
                       const struct rlhf__config *c) {
    struct rlhf__plugins *plugins = NULL;
    const struct rlhf__plugin *algo = NULL;
    struct rlhf__error err;
    if (req->resume && rlhf__resume_trust(req, c, &err) < 0) return;
    if (!c->algo.plugin || rlhf__plugins_open(req->dirs, &plugins, &err) < 0) return;
    if (rlhf__plugin_open(plugins, c->algo.plugin, RLHF_KIND_ALGO, c->algo.from, "--algo", &algo,
                          &err) >= 0)
        offer(s, "algo", &algo->table);
    rlhf__plugins_close(plugins);
}

void rlhf__config_hint(const struct rlhf__config_request *req, const struct rlhf__config *c,
                       struct rlhf__error *err) {
    char key[64] = "";
    size_t n;
    for (size_t i = 0; i < req->n_set && !*key; i++) {
        size_t len = strcspn(req->set[i], ".=");
        if (req->set[i][len] == '=' && len > 0 && len < sizeof key)
            snprintf(key, sizeof key, "%.*s", (int)len, req->set[i]);
    }
    if (!*key || !strstr(err->text, "is not of the form")) return;
    struct search s = {.near = {key, NULL, 0}, .exact = RLHF__BUF_INIT};
    const struct rlhf__section *section = rlhf__sections(&n);
    for (size_t i = 0; i < n; i++)
        offer(&s, section[i].name, &section[i].table);
    offer_algo(&s, req, c);
    size_t at = strlen(err->text), room = sizeof err->text - at;
    struct rlhf__buf theirs = RLHF__BUF_INIT;
    if (!s.exact.len && rlhf__alias_hint(key, 0, &theirs))
        snprintf(err->text + at, room, "%s", rlhf__buf_text(&theirs));
    else if (s.exact.len)
        snprintf(err->text + at, room, " (did you mean %s?)", rlhf__buf_text(&s.exact));
    else if (*s.best)
        snprintf(err->text + at, room, " (did you mean \"%s\"?)", s.best);
    rlhf__buf_finish(&s.exact);
    rlhf__buf_finish(&theirs);
}
