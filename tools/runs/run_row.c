// run_row.c: see run_row.h.
#include "runs/run_row.h"

#include "base/json.h"
#include "base/printable.h"
#include "config/command_text.h"
#include "history/run_lines.h"
#include "keep/run_lock.h"
#include "runs/tree_size.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define LATEST "checkpoints/latest"
enum { PATHS_MAX = 64, DEPTH_MAX = 12, REASON_MAX = 500 };

void rlhf__run_row_finish(struct rlhf__run_row *r) {
    free(r->path);
    free(r->name);
    free(r->reason);
    free(r->version);
    json_decref(r->trouble);
    json_decref(r->paths);
    *r = (struct rlhf__run_row){0};
}

const char *rlhf__run_state_name(int32_t state) {
    static const char *const names[] = {"running", "done", "stopped", "failed", "died", "empty"};
    return state >= 0 && state < (int32_t)(sizeof names / sizeof *names) ? names[state] : "";
}

int rlhf__run_row_resumes(const struct rlhf__run_row *r) {
    return r->checkpoint > 0 && (r->state == RLHF__RUN_STOPPED || r->state == RLHF__RUN_FAILED ||
                                 r->state == RLHF__RUN_DIED);
}

void rlhf__run_row_put_resume(const struct rlhf__run_row *r, struct rlhf__buf *out) {
    rlhf__command_begin(out, "");
    rlhf__command_flag(out, "--resume", r->path);
}

void rlhf__run_row_put_goes_on(const struct rlhf__run_row *r, struct rlhf__buf *out) {
    rlhf__buf_printf(out, "goes on after phase %lld", (long long)r->checkpoint);
    if (r->names_code) rlhf__buf_puts(out, "; it first asks you to name its code again");
}

// ---- the two ends of a file ----

static double number_of(const json_t *row, const char *key) {
    const json_t *v = json_object_get(row, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

// Phase 0 comes before the first phase and has only metrics of held-out rows.
static void skip_phase_0(struct rlhf__run_files *run, json_t **first) {
    struct rlhf__run_lines l;
    json_t *const said = run->trouble; // `runs show` reads the whole file and reports this
    if (rlhf__run_row_phase(*first) != 0) return;
    run->trouble = json_array();
    if (rlhf__run_lines_open(run, "metrics.jsonl", &l, NULL) == RLHF_OK) {
        while (rlhf__run_row_phase(*first) == 0 && rlhf__run_lines_next(&l))
            if (l.phase > 0 && rlhf__run_lines_row(&l)) {
                json_decref(*first);
                *first = json_incref(rlhf__run_lines_row(&l));
            }
        rlhf__run_lines_close(&l);
    }
    json_decref(run->trouble);
    run->trouble = said;
}

static rlhf_status measure(const json_t *first, const json_t *last, struct rlhf__run_row *out,
                           struct rlhf__error *err) {
    struct rlhf__series_set set = {0};
    rlhf_status st = rlhf__series_set_row(&set, first, 1, err);
    if (st == RLHF_OK) st = rlhf__series_set_row(&set, last, 2, err);
    out->headline = rlhf__headline_of(&set);
    if (st == RLHF_OK && out->headline.metric) {
        const struct rlhf__series *s = rlhf__series_of(&set, out->headline.metric);
        out->first = s->value[0];
        out->last = s->value[s->n - 1];
    }
    rlhf__series_set_finish(&set);
    return st;
}

static rlhf_status read_metrics(struct rlhf__run_files *run, struct rlhf__run_row *out,
                                struct rlhf__error *err) {
    json_t *first, *last;
    rlhf_status st = RLHF_OK;
    rlhf__run_lines_ends(run, "metrics.jsonl", &first, &last);
    if (first && last) {
        skip_phase_0(run, &first);
        out->phase = rlhf__run_row_phase(last);
        out->kl = number_of(last, "objective/kl");
        out->seconds = number_of(last, "time/from_scratch");
        out->left = number_of(last, "time/training");
        if (out->phase > 0) st = measure(first, last, out, err);
    }
    json_decref(first);
    json_decref(last);
    return st;
}

// ---- the state ----

// Returns the state of a run whose lock is free.
static int32_t state_of(const struct rlhf__run_row *r, const json_t *event) {
    const char *status = rlhf__json_text_in(event, "status");
    const int ended = strcmp(rlhf__json_text_in(event, "event"), "end") == 0;
    if (ended && strcmp(status, "failed") == 0) return RLHF__RUN_FAILED;
    if (r->phase <= 0) return RLHF__RUN_EMPTY;
    if (ended && strcmp(status, "done") == 0) return RLHF__RUN_DONE;
    if (r->wanted > 0 && r->phase >= r->wanted) return RLHF__RUN_DONE;
    if (ended) return RLHF__RUN_STOPPED;
    return RLHF__RUN_DIED;
}

static int64_t phases_of(double x) {
    return x > 0 && x < (double)RLHF__RUN_PHASE_MAX ? (int64_t)x : 0;
}

static rlhf_status read_events(struct rlhf__run_files *run, int held, struct rlhf__run_row *out,
                               struct rlhf__error *err) {
    json_t *first, *last;
    struct stat s;
    rlhf__run_lines_ends(run, "events.jsonl", &first, &last);
    if (out->wanted == 0) out->wanted = phases_of(number_of(first, "phases"));
    out->state = held ? RLHF__RUN_RUNNING : state_of(out, last);
    out->started = number_of(first, "time");
    if (!(out->started > 0) && fstatat(run->root->fd, "config.json", &s, AT_SYMLINK_NOFOLLOW) == 0)
        out->started = (double)s.st_mtim.tv_sec;
    const int ended = !held && strcmp(rlhf__json_text_in(last, "event"), "end") == 0;
    const char *reason = ended ? rlhf__json_text_in(last, "reason") : "";
    const size_t n = strlen(reason);
    out->reason = strndup(reason, n > REASON_MAX ? rlhf__utf8_floor(reason, REASON_MAX) : n);
    json_decref(first);
    json_decref(last);
    return out->reason ? RLHF_OK : RLHF__NOMEM(err, "out of memory");
}

// ---- the rest ----

static int64_t latest_checkpoint(const struct rlhf__folder *run) {
    char target[64];
    if (!rlhf__folder_target(run, LATEST, target, sizeof target) ||
        !rlhf__folder_has(run, LATEST "/state/run.json"))
        return 0;
    const char *name = rlhf__path_base(target);
    return *name && !name[strspn(name, "0123456789")] ? strtoll(name, NULL, 10) : 0;
}

// Collect all strings in v that name a checkpoint of a run. Returns 0 if some had to be left out,
// because there are too many or they are nested too deeply.
static int collect(const json_t *v, json_t *out, int depth) {
    const char *key;
    json_t *member;
    int all = 1;
    if (json_is_string(v)) {
        if (!strstr(json_string_value(v), "/checkpoints/")) return 1;
        if (json_array_size(out) >= PATHS_MAX) return 0;
        json_array_append(out, (json_t *)(uintptr_t)v);
    }
    if (depth > DEPTH_MAX) return json_object_size(v) + json_array_size(v) == 0;
    json_object_foreach((json_t *)(uintptr_t)v, key, member) all &= collect(member, out, depth + 1);
    for (size_t i = 0; i < json_array_size(v); i++)
        all &= collect(json_array_get(v, i), out, depth + 1);
    return all;
}

// ---- code ----

static int is_path(const json_t *name) {
    return json_is_string(name) && strchr(json_string_value(name), '/') != NULL;
}

// Returns 1 for a plugin that is named by a path, may use the network, or runs code that one of
// `options` names. Does not check other options, because their meaning is unknown until the plugin
// is opened.
static int has_code(const json_t *plugin) {
    static const char *const options[] = {"command", "file", "url"};
    int found = is_path(json_object_get(plugin, "plugin")) ||
                json_is_true(json_object_get(plugin, "network"));
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        found |= *rlhf__json_text_in(plugin, options[i]) != '\0';
    return found;
}

// Returns 1 if --resume asks the user to name code or services again
// (lib/runtime/config/resume_trust.c).
static int names_code(const json_t *config) {
    static const char *const lists[] = {"reward", "sink"};
    int found = has_code(json_object_get(config, "judge")) ||
                is_path(json_object_get(json_object_get(config, "algo"), "plugin")) ||
                is_path(json_object_get(json_object_get(config, "compute"), "backend"));
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        const json_t *list = json_object_get(config, lists[k]);
        for (size_t i = 0; i < json_array_size(list); i++)
            found |= has_code(json_array_get(list, i));
    }
    return found;
}

static rlhf_status read_files(struct rlhf__run_files *f, struct rlhf__run_row *out,
                              struct rlhf__error *err) {
    struct stat s;
    if (fstat(f->root->fd, &s) == 0) {
        out->device = (uint64_t)s.st_dev;
        out->inode = (uint64_t)s.st_ino;
    }
    // Check the lock first, because if it is free, the files that are read afterwards no longer
    // change.
    const int held = rlhf__run_lock_probe(f->root, NULL) != RLHF_OK;
    out->wanted = phases_of(rlhf__run_files_number(f, "run.phases", 0));
    out->checkpoint = latest_checkpoint(f->root);
    out->names_code = names_code(f->config);
    RLHF_TRY(read_metrics(f, out, err));
    RLHF_TRY(read_events(f, held, out, err));
    if (out->state == RLHF__RUN_DONE && out->wanted < out->phase) out->wanted = out->phase;
    const double to_do = (double)(out->wanted - out->phase);
    out->left = held && to_do > 0 ? out->left * to_do : NAN;
    out->bytes = rlhf__tree_bytes(f->root, ".");
    out->version = strdup(rlhf__json_text_in(f->manifest, "version"));
    out->paths = json_array();
    out->paths_left_out = !collect(f->config, out->paths, 0);
    out->paths_left_out |= !collect(f->manifest, out->paths, 0);
    if (json_object_size(f->config) == 0 && json_object_size(f->manifest) == 0) {
        json_decref(out->paths);
        out->paths = NULL;
    }
    out->trouble = json_incref(f->trouble);
    return out->version ? RLHF_OK : RLHF__NOMEM(err, "out of memory");
}

rlhf_status rlhf__run_row_read(const char *path, const char *name, struct rlhf__run_row *out,
                               struct rlhf__error *err) {
    struct rlhf__run_files f;
    *out = (struct rlhf__run_row){.first = NAN,
                                  .last = NAN,
                                  .kl = NAN,
                                  .seconds = NAN,
                                  .left = NAN,
                                  .started = NAN,
                                  .path = strdup(path),
                                  .name = strdup(name)};
    rlhf_status st = rlhf__run_files_open(path, &f, err);
    if (st == RLHF_OK && (!out->path || !out->name)) st = RLHF__NOMEM(err, "out of memory");
    if (st == RLHF_OK) st = read_files(&f, out, err);
    rlhf__run_files_close(&f);
    return st;
}
