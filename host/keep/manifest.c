// manifest.c: see manifest.h.
#include "keep/manifest.h"

#include "base/file.h"
#include "keep/inputs.h"

#include <stdlib.h>
#include <string.h>

// The role of model plugins other than the policy's. They are matched by id, all other plugins by
// position.
#define FURTHER_MODEL "further model"

// Returns 0, or -1 if out of memory.
static int add(json_t *plugins, const struct rlhf__plugin *p, const char *role) {
    const char *worker = p->outside ? p->outside->confined : NULL;
    return json_array_append_new(plugins,
                                 json_pack("{s:s, s:s, s:s, s:s, s:s, s:s*}", "role", role, "id",
                                           p->desc.id, "version", p->desc.version, "path", p->path,
                                           "sha256", p->sha256, "worker", worker));
}

// Returns all plugins in use, in a fixed order, as a new reference. Returns NULL if out of memory.
static json_t *plugins_json(const struct rlhf__manifest *m) {
    const struct rlhf__plugin *policy = m->policy->instance->plugin;
    const struct rlhf__plugin *const *all;
    size_t n = rlhf__plugins_list(m->plugins, &all);
    json_t *plugins = json_array();
    int bad = add(plugins, m->algo, "algorithm");
    for (size_t i = 0; i < m->n_rewards; i++)
        bad |= add(plugins, m->rewards[i], "reward");
    if (m->judge) bad |= add(plugins, m->judge, "judge");
    if (m->environment) bad |= add(plugins, m->environment, "environment");
    bad |= add(plugins, policy, "model");
    for (size_t i = 0; i < n; i++)
        if (all[i]->desc.kind == RLHF_KIND_MODEL && all[i] != policy)
            bad |= add(plugins, all[i], FURTHER_MODEL);
    if (!bad) return plugins;
    json_decref(plugins);
    return NULL;
}

// Returns the sinks as a new reference. Returns NULL if there are no sinks, or if out of memory.
static json_t *sinks_json(const struct rlhf__manifest *m) {
    json_t *sinks = m->n_sinks ? json_array() : NULL;
    int bad = 0;
    for (size_t i = 0; i < m->n_sinks; i++)
        bad |= add(sinks, m->sinks[i], "sink");
    if (!bad) return sinks;
    json_decref(sinks);
    return NULL;
}

static int is_exact(const struct rlhf__compute *c) {
    return (c->table->flags & RLHF_COMPUTE_ROW_EXACT) != 0;
}

// Returns all options of the backend as a new reference, or NULL if the backend has no options.
static json_t *kernels_options(const struct rlhf__compute *c) {
    const struct rlhf__kernels *k = &c->kernels;
    struct rlhf__error unread;
    json_t *all = k->plugin->table.n > 0 ? json_object() : NULL;
    if (all) rlhf__opts_to_json(&k->plugin->table, k->instance->config, all, &unread);
    return all;
}

// Returns JSON with the number of processes and the collectives that connect them and their GPUs (a
// new reference). Returns NULL if there is no collective.
static json_t *processes_json(const struct rlhf__collective *c,
                              const struct rlhf__collective *device) {
    if (!c) return NULL;
    json_t *gpus = device ? json_pack("{s:s, s:s, s:s, s:s}", "collective", device->read.name,
                                      "detail", device->read.detail ? device->read.detail : "",
                                      "path", device->path, "sha256", device->sha256)
                          : NULL;
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:o*}", "ranks", (int)c->team.ranks, "collective",
                     c->read.name, "detail", c->read.detail ? c->read.detail : "", "path", c->path,
                     "sha256", c->sha256, "gpus", gpus);
}

json_t *rlhf__manifest_json(const struct rlhf__manifest *m) {
    const struct rlhf__compute *c = m->compute;
    const char *dtype = m->policy->env->dtype == RLHF_BF16 ? "bf16" : "f32";
    const char *arithmetic = rlhf__compute_arithmetic(c, m->policy->env->dtype);
    return json_pack(
        "{s:s, s:{s:s, s:s, s:s, s:s*, s:s, s:s, s:o*, s:b}, s:{s:s, s:I}, s:o, s:o*, s:o*, s:O}",
        "version", RLHF_SDK_VERSION, "compute", "backend", c->table->name, "detail",
        c->table->detail, "dtype", dtype, "arithmetic", arithmetic[0] ? arithmetic : NULL, "path",
        c->path, "sha256", c->sha256, "options", kernels_options(c), "row_exact", is_exact(c),
        "policy", "path", m->policy->dir, "parameters", (json_int_t)m->policy->info.n_params,
        "plugins", plugins_json(m), "sinks", sinks_json(m), "processes",
        processes_json(m->collective, m->device), "inputs", m->inputs);
}

// ---- what changed -----------------------------------------------------------------------------

// Returns the stored counterpart of plugin i of `now`, or NULL. Only stored plugins with the same
// role are considered. Among these, a model plugin other than the policy's is found by its id, and
// any other plugin by its position.
static const json_t *counterpart(const json_t *now, size_t i, const json_t *stored) {
    const json_t *p = json_array_get(now, i), *q;
    const char *role = rlhf__json_text_in(p, "role");
    int by_id = strcmp(role, FURTHER_MODEL) == 0;
    size_t place = 0, k;
    for (size_t j = 0; j < i; j++)
        place += strcmp(rlhf__json_text_in(json_array_get(now, j), "role"), role) == 0;
    json_array_foreach(stored, k, q) {
        if (strcmp(rlhf__json_text_in(q, "role"), role) != 0) continue;
        if (by_id ? strcmp(rlhf__json_text_in(q, "id"), rlhf__json_text_in(p, "id")) == 0
                  : place-- == 0)
            return q;
    }
    return NULL;
}

// If fields differ, append "ROLE PATH (FIELD x is now y, ...)" to the list. If nothing is stored
// about the item, `was` is NULL, and nothing is appended.
static void compare(struct rlhf__buf *list, const char *role, const json_t *was, const json_t *is) {
    static const char *const fields[] = {"id", "version", "sha256"};
    size_t start = list->len;
    for (size_t i = 0; was && i < 3; i++) {
        const char *a = rlhf__json_text_in(was, fields[i]), *b = rlhf__json_text_in(is, fields[i]);
        if (!*a || strcmp(a, b) == 0) continue; // empty: not stored
        if (list->len == start)
            rlhf__buf_printf(list, "%s%s %s (", start ? ", " : "", role,
                             rlhf__json_text_in(is, "path"));
        else
            rlhf__buf_puts(list, ", ");
        const int most = i == 2 ? 12 : 255; // the beginning of a checksum is enough
        rlhf__buf_printf(list, "%s %.*s is now %.*s", fields[i], most, a, most, b);
    }
    if (list->len > start) rlhf__buf_putc(list, ')');
}

// Returns 1 if the run used another backend before.
static int moved(const json_t *stored, const json_t *now) {
    const char *was = rlhf__json_text_in(json_object_get(stored, "compute"), "backend");
    return was[0] &&
           strcmp(was, rlhf__json_text_in(json_object_get(now, "compute"), "backend")) != 0;
}

// Returns 1 if the backend is the same but its options differ.
static int set_otherwise(const json_t *stored, const json_t *now) {
    const json_t *was = json_object_get(json_object_get(stored, "compute"), "options");
    const json_t *is = json_object_get(json_object_get(now, "compute"), "options");
    return was && is && !moved(stored, now) && !json_equal(was, is);
}

// Returns the length of the part of a backend's description before the ';'. The part after it is
// what the backend learned while computing.
static int fixed_part(const char *detail) { return (int)strcspn(detail, ";"); }

// Returns 1 if the run uses the same backend as before, but with another GPU or another library.
// Always returns 0 for a CPU backend, because its description may differ only in the number of
// threads, which does not affect results.
static int equipped_otherwise(const struct rlhf__manifest *m, const json_t *stored,
                              const json_t *now) {
    const char *was = rlhf__json_text_in(json_object_get(stored, "compute"), "detail");
    const char *is = rlhf__json_text_in(json_object_get(now, "compute"), "detail");
    const int n = fixed_part(was);
    if (m->compute->table->device == RLHF_DEVICE_CPU || !was[0] || moved(stored, now)) return 0;
    return fixed_part(is) != n || strncmp(was, is, (size_t)n) != 0;
}

// Report a backend that does not promise exact rows, if the run's backend has promised them until
// now.
static void compare_exact(struct rlhf__buf *list, const json_t *stored, const json_t *now) {
    const json_t *was = json_object_get(json_object_get(stored, "compute"), "row_exact");
    const json_t *is = json_object_get(now, "compute");
    if (json_is_false(was) || !json_is_false(json_object_get(is, "row_exact"))) return;
    rlhf__buf_printf(list, "%scompute backend %s (its rows are not exact, those of %s were)",
                     list->len ? ", " : "", rlhf__json_text_in(is, "path"),
                     rlhf__json_text_in(json_object_get(stored, "compute"), "backend"));
}

static rlhf_status compare_all(const json_t *stored, const json_t *now, struct rlhf__buf *list,
                               struct rlhf__error *err) {
    const json_t *before = json_object_get(stored, "plugins");
    const json_t *plugins = json_object_get(now, "plugins"), *p;
    size_t i;
    // A change of backend is not listed, because the user asked for it. rlhf__manifest_moved warns
    // about it.
    if (!moved(stored, now))
        compare(list, "compute backend", json_object_get(stored, "compute"),
                json_object_get(now, "compute"));
    compare_exact(list, stored, now);
    json_array_foreach(plugins, i, p)
        compare(list, rlhf__json_text_in(p, "role"), counterpart(plugins, i, before), p);
    return rlhf__buf_ok(list, err);
}

// Read the stored manifest. If the manifest is missing or cannot be read, sets `*stored` to NULL
// and puts the reason into `err`.
static rlhf_status read_stored(const struct rlhf__folder *run, json_t **stored,
                               struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    *stored = NULL;
    rlhf_status st = rlhf__folder_read(run, "manifest.json", (uint64_t)64 << 20, &text, err);
    if (st == RLHF_OK)
        st = rlhf__json_parse("manifest.json", rlhf__buf_text(&text), text.len, stored, err);
    rlhf__buf_finish(&text);
    if (st != RLHF_OK) return st;
    if (json_is_array(json_object_get(*stored, "plugins"))) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s/manifest.json has no list \"plugins\"", run->path);
}

// Get the stored manifest, the current manifest, and a list of the code that differs between them.
// The caller releases all three.
static rlhf_status look(const struct rlhf__manifest *m, const struct rlhf__folder *run,
                        json_t **stored, json_t **now, struct rlhf__buf *list,
                        struct rlhf__error *err) {
    *stored = NULL;
    *now = rlhf__manifest_json(m);
    if (!*now) return RLHF__NOMEM(err, "out of memory for manifest.json");
    RLHF_TRY(read_stored(run, stored, err));
    return compare_all(*stored, *now, list, err);
}

rlhf_status rlhf__manifest_check(const struct rlhf__manifest *m, const struct rlhf__folder *run,
                                 const char *name, struct rlhf__error *err) {
    struct rlhf__buf list = RLHF__BUF_INIT;
    json_t *stored, *now;
    rlhf_status st = look(m, run, &stored, &now, &list, err);
    if (st == RLHF_E_INVALID)
        rlhf__error_context(err, "--resume: what made the run is not known (--allow-changed-"
                                 "plugins goes on anyway)");
    else if (st == RLHF_OK && list.len)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "--resume: what made the run '%s' has changed: %s; restore it, "
                        "or continue with the new code by --allow-changed-plugins",
                        name, rlhf__buf_text(&list));
    json_decref(stored);
    json_decref(now);
    rlhf__buf_finish(&list);
    return st;
}

rlhf_status rlhf__manifest_check_inputs(const struct rlhf__manifest *m,
                                        const struct rlhf__folder *run, const char *name,
                                        struct rlhf__error *err) {
    struct rlhf__buf list = RLHF__BUF_INIT;
    struct rlhf__error unread;
    json_t *stored;
    const int read = read_stored(run, &stored, &unread) == RLHF_OK;
    const json_t *inputs = json_object_get(stored, "inputs");
    rlhf__inputs_compare(inputs, m->inputs, &list);
    rlhf_status st = rlhf__buf_ok(&list, err);
    if (st == RLHF_OK && list.len && !json_is_array(inputs))
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "--resume: what the run '%s' read is not known (%s): it would read %s now; "
                        "--allow-changed-inputs goes on with these files",
                        name, read ? "its manifest.json has no list \"inputs\"" : unread.text,
                        rlhf__buf_text(&list));
    else if (st == RLHF_OK && list.len)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "--resume: what the run '%s' reads has changed: %s; restore it, "
                        "or continue with the current files by --allow-changed-inputs",
                        name, rlhf__buf_text(&list));
    json_decref(stored);
    rlhf__buf_finish(&list);
    return st;
}

void rlhf__manifest_changed_code(const char *dir, struct rlhf__buf *out) {
    struct rlhf__error unread;
    json_t *stored = NULL, *now = json_array();
    char *path = rlhf__path_join(dir, "manifest.json");
    size_t i;
    json_t *in;
    if (path && now && rlhf__is_file(path) && rlhf__json_load(path, &stored, &unread) == RLHF_OK) {
        const json_t *before = json_object_get(stored, "inputs");
        json_array_foreach(before, i, in) {
            const char *setting = json_string_value(json_object_get(in, "setting"));
            const char *file = json_string_value(json_object_get(in, "path"));
            const int code = setting && (strncmp(setting, "reward.", 7) == 0 ||
                                         strncmp(setting, "judge.", 6) == 0);
            if (code && file && rlhf__is_file(file))
                rlhf__inputs_add_file(now, setting, file, &unread);
        }
        rlhf__inputs_compare(before, now, out);
    }
    free(path);
    json_decref(stored);
    json_decref(now);
}

static void warn_of_options(const json_t *was, const json_t *is, struct rlhf__log *log) {
    struct rlhf__buf a = RLHF__BUF_INIT, b = RLHF__BUF_INIT;
    rlhf__json_write(&a, json_object_get(was, "options"), 0);
    rlhf__json_write(&b, json_object_get(is, "options"), 0);
    rlhf__logf(log, RLHF_LOG_WARN,
               "the run was computed by the backend %s with the options %s and goes on with %s: "
               "the bits may differ",
               rlhf__json_text_in(is, "backend"), rlhf__buf_text(&a), rlhf__buf_text(&b));
    rlhf__buf_finish(&a);
    rlhf__buf_finish(&b);
}

void rlhf__manifest_moved(const struct rlhf__manifest *m, const struct rlhf__folder *run,
                          struct rlhf__log *log) {
    struct rlhf__error unread;
    json_t *stored = NULL, *now = rlhf__manifest_json(m);
    const rlhf_status st = now ? read_stored(run, &stored, &unread) : RLHF_E_NOMEM;
    const json_t *was = json_object_get(stored, "compute"), *is = json_object_get(now, "compute");
    if (st == RLHF_OK && moved(stored, now))
        rlhf__logf(log, RLHF_LOG_WARN,
                   "the run was computed by the backend %s in %s and goes on with %s in %s: each "
                   "gives the same bits every time, but not those of the other",
                   rlhf__json_text_in(was, "backend"), rlhf__json_text_in(was, "dtype"),
                   rlhf__json_text_in(is, "backend"), rlhf__json_text_in(is, "dtype"));
    else if (st == RLHF_OK && equipped_otherwise(m, stored, now))
        rlhf__logf(
            log, RLHF_LOG_WARN,
            "the run was computed by %s with %.*s and goes on with %.*s: each gives the same "
            "bits every time, but perhaps not those of the other",
            rlhf__json_text_in(is, "backend"), fixed_part(rlhf__json_text_in(was, "detail")),
            rlhf__json_text_in(was, "detail"), fixed_part(rlhf__json_text_in(is, "detail")),
            rlhf__json_text_in(is, "detail"));
    if (st == RLHF_OK && set_otherwise(stored, now)) warn_of_options(was, is, log);
    json_decref(stored);
    json_decref(now);
}

// ---- the file ---------------------------------------------------------------------------------

static int other_sinks(const json_t *stored, const json_t *now) {
    const json_t *was = json_object_get(stored, "sinks"), *is = json_object_get(now, "sinks");
    return was != is && !json_equal(was, is);
}

// Add the member "earlier" to `now`: the stored list of earlier manifests. If code or inputs have
// changed, the stored manifest is appended to that list.
static rlhf_status keep_earlier(json_t *now, const json_t *stored, int changed,
                                struct rlhf__error *err) {
    json_t *before = json_object_get(stored, "earlier");
    json_t *all = json_is_array(before) ? json_copy(before) : json_array();
    int bad = 0;
    if (changed)
        bad = json_array_append_new(all, json_pack("{s:O, s:O, s:O*, s:O*}", "compute",
                                                   json_object_get(stored, "compute"), "plugins",
                                                   json_object_get(stored, "plugins"), "sinks",
                                                   json_object_get(stored, "sinks"), "inputs",
                                                   json_object_get(stored, "inputs"))) != 0;
    if (json_array_size(all) > 0) bad |= json_object_set(now, "earlier", all) != 0;
    json_decref(all);
    return bad ? RLHF__NOMEM(err, "out of memory for manifest.json") : RLHF_OK;
}

rlhf_status rlhf__manifest_write(const struct rlhf__manifest *m, const struct rlhf__folder *run,
                                 int resumed, struct rlhf__error *err) {
    struct rlhf__buf list = RLHF__BUF_INIT;
    struct rlhf__error unread;
    json_t *stored = NULL, *now = NULL;
    rlhf_status st = RLHF_OK;
    if (!resumed) {
        st = rlhf__json_save_new(run, "manifest.json", rlhf__manifest_json(m), 2, err);
    } else {
        rlhf_status seen = look(m, run, &stored, &now, &list, &unread);
        const json_t *inputs = json_object_get(stored, "inputs");
        if (seen == RLHF_OK) rlhf__inputs_compare(inputs, m->inputs, &list);
        const int changed = list.len > 0 || moved(stored, now) || set_otherwise(stored, now) ||
                            equipped_otherwise(m, stored, now) || other_sinks(stored, now);
        if (seen == RLHF_OK) st = keep_earlier(now, stored, changed, err);
        // Equal inputs may have other paths now.
        if (st == RLHF_OK && (seen != RLHF_OK || changed || !json_equal(inputs, m->inputs)))
            st = rlhf__json_save_new(run, "manifest.json", json_incref(now), 2, err);
    }
    json_decref(stored);
    json_decref(now);
    rlhf__buf_finish(&list);
    return st;
}
