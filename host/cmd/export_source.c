// export_source.c: see export_source.h.
#include "cmd/export_source.h"

#include "base/json.h"
#include "data/lines.h"
#include "model/adapter.h"
#include "weights/hf_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// An object, NULL where there is no such file.
static rlhf_status read_json(const char *dir, const char *name, json_t **out,
                             struct rlhf__error *err) {
    RLHF_TRY(rlhf__json_load_any(dir, name, out, err));
    if (!*out || json_is_object(*out)) return RLHF_OK;
    const char *kind = rlhf__json_kind(*out);
    json_decref(*out);
    *out = NULL;
    return rlhf__fail(err, RLHF_E_INVALID, "%s/%s: expected an object, found %s", dir, name, kind);
}

rlhf_status rlhf__export_source_json(const struct rlhf__export_source *s, const char *name,
                                     json_t **out, struct rlhf__error *err) {
    RLHF_TRY(read_json(s->dir, name, out, err));
    return *out || !s->base[0] ? RLHF_OK : read_json(s->base, name, out, err);
}

// ---- what a directory is ----

static rlhf_status is_run(const char *dir, int *run, struct rlhf__error *err) {
    json_t *config = NULL;
    RLHF_TRY(read_json(dir, "config.json", &config, err));
    *run = json_object_get(config, "run") != NULL && !json_object_get(config, "model_type");
    json_decref(config);
    return RLHF_OK;
}

// A checkpoint lies in RUN/checkpoints/NAME.
static rlhf_status find_run_above(struct rlhf__export_source *s, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP], above[RLHF__PATH_CAP];
    int run = 0;
    rlhf__path_put(path, "%s/state/run.json", s->dir);
    if (!rlhf__is_file(path)) return RLHF_OK;
    rlhf__path_put(path, "%s/../..", s->dir);
    if (rlhf__path_real(path, above)) RLHF_TRY(is_run(above, &run, err));
    if (!run) return RLHF_OK;
    snprintf(s->run, sizeof s->run, "%s", above);
    snprintf(s->checkpoint, sizeof s->checkpoint, "%.60s", rlhf__path_base(s->dir));
    return RLHF_OK;
}

// ---- a checkpoint of a run ----

static rlhf_status no_checkpoint(const char *given, const char *name, struct rlhf__error *err) {
    if (strcmp(name, "latest") == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: the run '%s' has no checkpoint: it ended before the first one "
                          "was written",
                          given);
    if (strcmp(name, "best") == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: the run '%s' keeps no best checkpoint (its checkpoint.best "
                          "names no metric); --checkpoint last is the newest",
                          given);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "export: the run '%s' has no checkpoint '%s'; --checkpoint is best, last or "
                      "a name in %s/checkpoints",
                      given, name, given);
}

static int has_checkpoint(const char *run, const char *name, char real[RLHF__PATH_CAP]) {
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/checkpoints/%s", run, name);
    return *name && !strchr(name, '/') && name[0] != '.' && rlhf__path_real(path, real) &&
           rlhf__is_dir(real);
}

static rlhf_status choose_checkpoint(struct rlhf__export_source *s, const char *given,
                                     const char *choice, struct rlhf__log *log,
                                     struct rlhf__error *err) {
    char best[RLHF__PATH_CAP];
    const int keeps_best = has_checkpoint(s->run, "best", best);
    const char *name = choice ? choice : keeps_best ? "best" : "latest";
    if (strcmp(name, "last") == 0) name = "latest";
    if (!has_checkpoint(s->run, name, s->dir)) return no_checkpoint(given, name, err);
    snprintf(s->checkpoint, sizeof s->checkpoint, "%.60s", rlhf__path_base(s->dir));
    s->is_best = keeps_best && strcmp(best, s->dir) == 0;
    if (s->is_best && !choice)
        rlhf__logf(log, RLHF_LOG_INFO,
                   "checkpoint %s of %s: its best; --checkpoint last takes the newest",
                   s->checkpoint, given);
    else
        rlhf__logf(log, RLHF_LOG_INFO, "checkpoint %s of %s", s->checkpoint, given);
    return RLHF_OK;
}

// ---- what the run left ----

// The line of metrics.jsonl of that phase, the last one where there are several.
static json_t *read_metrics(const char *run, int64_t phase) {
    char path[RLHF__PATH_CAP], begins[64];
    struct rlhf__lines *lines = NULL;
    json_t *found = NULL;
    rlhf_str line;
    int64_t number;
    int more = 1;
    rlhf__path_put(path, "%s/metrics.jsonl", run);
    const int n = snprintf(begins, sizeof begins, "{\"phase\": %lld,", (long long)phase);
    if (!rlhf__is_file(path) || rlhf__lines_open(path, NULL, &lines, NULL) != RLHF_OK) return NULL;
    while (rlhf__lines_next(lines, &line, &number, &more, NULL) == RLHF_OK && more) {
        if ((size_t)line.len < (size_t)n || memcmp(line.ptr, begins, (size_t)n) != 0) continue;
        json_decref(found);
        found = rlhf__json_decode(line.ptr, (size_t)line.len, 0, NULL);
    }
    rlhf__lines_close(lines);
    return found;
}

static rlhf_status read_run(struct rlhf__export_source *s, struct rlhf__error *err) {
    RLHF_TRY(read_json(s->run, "config.json", &s->settings, err));
    RLHF_TRY(read_json(s->run, "manifest.json", &s->manifest, err));
    RLHF_TRY(rlhf__export_source_json(s, "state/run.json", &s->state, err));
    const json_t *phase = json_object_get(s->state, "phase");
    if (json_is_integer(phase)) s->metrics = read_metrics(s->run, json_integer_value(phase));
    return RLHF_OK;
}

// ---- both ----

// A PEFT directory that was given, or that lies in the run, and the config of the two.
static rlhf_status find_adapter(struct rlhf__export_source *s, const char *adapter,
                                struct rlhf__error *err) {
    const struct rlhf__model_adapter with = {.dir = adapter};
    RLHF_TRY(rlhf__adapter_find(s->dir, &with, &s->peft, s->base, err));
    if (!s->peft.dir) s->base[0] = '\0';
    if (s->peft.dir) snprintf(s->dir, sizeof s->dir, "%s", s->peft.dir);
    return rlhf__adapter_config(s->peft.dir ? s->base : s->dir, &s->peft, &s->config, err);
}

const char *rlhf__export_source_text(const struct rlhf__export_source *s) {
    return s->peft.dir && !rlhf__adapter_has_text(s->dir) ? s->base : s->dir;
}

rlhf_status rlhf__export_source_open(struct rlhf__export_source *s, const char *given,
                                     const char *adapter, const char *choice, struct rlhf__log *log,
                                     struct rlhf__error *err) {
    int run = 0;
    if (!rlhf__path_real(given, s->dir))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: '%s' does not exist; give a run's directory or a model's",
                          given);
    if (is_run(s->dir, &run, err) != RLHF_OK) return rlhf__error_context(err, "export");
    if (adapter && run)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: --adapter goes on a model's directory; '%s' is a run", given);
    if (run) {
        memcpy(s->run, s->dir, sizeof s->run);
        RLHF_TRY(choose_checkpoint(s, given, choice, log, err));
    } else if (choice) {
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: --checkpoint has no effect here: '%s' is no run", given);
    } else if (!adapter && find_run_above(s, err) != RLHF_OK) {
        return rlhf__error_context(err, "export");
    }
    if (find_adapter(s, adapter, err) != RLHF_OK || (s->run[0] && read_run(s, err) != RLHF_OK))
        return rlhf__error_context(err, "export");
    return RLHF_OK;
}

void rlhf__export_source_finish(struct rlhf__export_source *s) {
    rlhf__peft_finish(&s->peft);
    json_decref(s->config);
    json_decref(s->settings);
    json_decref(s->manifest);
    json_decref(s->state);
    json_decref(s->metrics);
    memset(s, 0, sizeof *s);
}

static int below(const char *path, const char *dir) {
    const size_t n = strlen(dir);
    return n > 0 && strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

int rlhf__export_source_holds(const struct rlhf__export_source *s, const char *path) {
    return below(path, s->run) || below(path, s->dir) || below(path, s->base);
}

int rlhf__export_source_writes(const struct rlhf__export_source *s) {
    const char *name =
        json_string_value(json_array_get(json_object_get(s->config, "architectures"), 0));
    return name && (strstr(name, "LMHeadModel") || strstr(name, "ForCausalLM"));
}
