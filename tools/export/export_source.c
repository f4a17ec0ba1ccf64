// export_source.c: see export_source.h.
#include "export/export_source.h"

#include "base/json.h"
#include "data/lines.h"
#include "gguf/model_text.h"
#include "model/adapter.h"
#include "weights/hf_dir.h"
#include "weights/run_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

rlhf_status rlhf__export_source_json(const struct rlhf__export_source *s, const char *name,
                                     json_t **out, struct rlhf__error *err) {
    RLHF_TRY(rlhf__model_json(s->dir, name, out, err));
    return *out || !s->base[0] ? RLHF_OK : rlhf__model_json(s->base, name, out, err);
}

// ---- the kind of a directory ----

static rlhf_status find_run_above(struct rlhf__export_source *s, struct rlhf__error *err) {
    RLHF_TRY(rlhf__run_above(s->dir, s->run, err));
    if (s->run[0]) snprintf(s->checkpoint, sizeof s->checkpoint, "%.60s", rlhf__path_base(s->dir));
    return RLHF_OK;
}

// ---- a checkpoint of a run ----

static rlhf_status choose_checkpoint(struct rlhf__export_source *s, const char *given,
                                     const char *choice, struct rlhf__log *log,
                                     struct rlhf__error *err) {
    struct rlhf__run_checkpoint found = {.is_best = 0};
    RLHF_TRY(rlhf__run_checkpoint_find("export", given, s->run, choice, "--checkpoint last", log,
                                       &found, err));
    memcpy(s->dir, found.dir, sizeof s->dir);
    s->is_best = found.is_best;
    snprintf(s->checkpoint, sizeof s->checkpoint, "%.60s", rlhf__path_base(s->dir));
    return RLHF_OK;
}

// ---- files of the run ----

// The line of metrics.jsonl for that phase, or the last such line if there are several.
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
    RLHF_TRY(rlhf__json_load_any(s->run, "config.json", &s->settings, err));
    RLHF_TRY(rlhf__json_load_any(s->run, "manifest.json", &s->manifest, err));
    RLHF_TRY(rlhf__export_source_json(s, "state/run.json", &s->state, err));
    const json_t *phase = json_object_get(s->state, "phase");
    if (json_is_integer(phase)) s->metrics = read_metrics(s->run, json_integer_value(phase));
    return RLHF_OK;
}

// ---- runs and model directories ----

// Find the PEFT directory, which is in the run or which the user named. Then read the configs of
// the model and the adapter.
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
    s->log = log;
    if (!rlhf__path_real(given, s->dir))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: '%s' does not exist; give a run's directory or a model's",
                          given);
    if (rlhf__run_is(s->dir, &run, err) != RLHF_OK) return rlhf__error_context(err, "export");
    if (adapter && run)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: --adapter goes on a model's directory; '%s' is a run", given);
    if (run) {
        memcpy(s->run, s->dir, sizeof s->run);
        RLHF_TRY(choose_checkpoint(s, given, choice, log, err));
    } else if (choice) {
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: --checkpoint has no effect here: '%s' is not a run", given);
    } else if (!adapter && find_run_above(s, err) != RLHF_OK) {
        return rlhf__error_context(err, "export");
    }
    char real[RLHF__PATH_CAP];
    s->held = 1 + rlhf__folder_hold(s->dir, real); // so that a run does not prune it
    if (find_adapter(s, adapter, err) != RLHF_OK || (s->run[0] && read_run(s, err) != RLHF_OK))
        return rlhf__error_context(err, "export");
    return RLHF_OK;
}

void rlhf__export_source_finish(struct rlhf__export_source *s) {
    if (s->held > 0) close(s->held - 1);
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
