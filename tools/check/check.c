// check.c: the file under test, and the child processes that test it; see check.h.
#include "check/check.h"

#include "base/float_env.h"
#include "base/folder.h"
#include "base/printable.h"
#include "check/cases.h"
#include "check/guard.h"
#include "plugin/search.h"
#include "plugin/shared_object.h"
#include "supervise/child.h"
#include "supervise/confine.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SINK_FILE = 16 << 20 };
enum { MAX_ENDS = 6 }; // after so many crashes, the rest of a case is skipped

// One case of one plugin of the file.
struct work {
    const struct rlhf__check_request *request;
    struct rlhf__child_log *log;
    const struct rlhf__check_case *one;
    size_t plugin;      // number in the file
    int64_t file_bytes; // size up to which the steps may write files
    // 1: the file is loaded and the steps run confined as in a worker: they cannot write files or
    // use the network.
    int32_t walled;
    const char *scratch; // a temporary directory; the steps may write to "own" in it; NULL: none
};

static int same_text(const json_t *row, const char *key, const char *text) {
    const char *s = json_string_value(json_object_get(row, key));
    return s && strcmp(s, text) == 0;
}

static void add_found(struct rlhf__check_report *r, const char *plugin, int32_t rule,
                      const char *saw) {
    const struct rlhf__check_source from = rlhf__check_source(rule);
    size_t i;
    json_t *other;
    char header[64];
    json_array_foreach(r->found, i, other) {
        if (same_text(other, "rule", from.id) && same_text(other, "saw", saw)) return;
    }
    snprintf(header, sizeof header, "rlhf/%s", from.header);
    json_array_append_new(r->found, json_pack("{ss,so,ss,si,ss,so}", "rule", from.id, "plugin",
                                              rlhf__json_text(plugin), "header", header, "line",
                                              (int)from.line, "says", from.words, "saw",
                                              rlhf__json_text(saw)));
}

// Move the findings in the child's log to the report.
static void take_over(struct rlhf__check_report *r, const char *plugin, struct rlhf__child_log *b) {
    for (uint32_t i = 0; i < b->n_found; i++)
        add_found(r, plugin, b->found[i].rule, b->found[i].saw);
    for (uint32_t i = 0; i < b->n_facts; i++) {
        size_t k;
        json_t *other;
        int there = 0;
        json_array_foreach(r->facts, k, other) {
            const char *text = json_string_value(json_object_get(other, "text"));
            const char *whose = json_string_value(json_object_get(other, "plugin"));
            there |= text && whose && !strcmp(text, b->fact[i]) && !strcmp(whose, plugin);
        }
        if (!there)
            json_array_append_new(r->facts, json_pack("{so,so}", "plugin", rlhf__json_text(plugin),
                                                      "text", rlhf__json_text(b->fact[i])));
    }
    b->n_found = b->n_facts = 0;
}

// ---- in the child ----

// The host restores the floating-point environment after it has loaded an object, so this function
// loads the object itself.
static void load_once(const struct work *w) {
    rlhf__float_env_set(RLHF__FLOAT_ENV_STANDARD);
    void *object = dlopen(w->request->path, RTLD_NOW | RTLD_LOCAL); // never closed
    if (object) rlhf__probe_floats(w->log, "loading it");
}

static rlhf_status run_steps(void *arg, struct rlhf__buf *out) {
    const struct work *w = arg;
    struct rlhf__check c = {.log = w->log,
                            .dirs = w->request->dirs,
                            .options = w->request->options,
                            .rows = w->request->rows,
                            .seconds = w->request->seconds,
                            .walled = w->walled,
                            .scratch = w->scratch};
    char own[RLHF__PATH_CAP];
    rlhf__path_put(own, "%s/own", w->scratch ? w->scratch : "");
    struct rlhf__plugins *plugins = NULL;
    const struct rlhf__plugin **found = NULL;
    struct rlhf__error err;
    size_t n = 0;
    if (w->walled) rlhf__confine(0, 0, w->scratch ? own : NULL);
    load_once(w);
    rlhf_status st = rlhf__plugins_open(w->request->dirs, &plugins, &err);
    if (st == RLHF_OK) st = rlhf__plugin_open_file(plugins, w->request->path, &found, &n, &err);
    if (st == RLHF_OK && w->plugin >= n) st = rlhf__fail(&err, RLHF_E_INTERNAL, "it has changed");
    if (st == RLHF_OK) st = rlhf__check_services(&c, &err);
    if (st == RLHF_OK) {
        c.plugin = found[w->plugin];
        rlhf__guard_install(w->log);
        while (alarm((unsigned)c.seconds), w->one->step(&c, w->log->step))
            w->log->step++;
        w->log->done = 1;
        alarm(0);
        rlhf__check_services_finish(&c);
    } else {
        rlhf__buf_puts(out, err.text);
    }
    free(found);
    rlhf__plugins_close(plugins);
    return st;
}

// ---- in the parent ----

static void add_end(struct rlhf__check_report *r, const char *plugin,
                    const struct rlhf__child_log *b, const struct rlhf__child_end *end,
                    const struct work *w) {
    char saw[900];
    int32_t rule = RLHF__CHECK_ENDS;
    if (b->fault_rule) {
        rule = b->fault_rule - 1;
        snprintf(saw, sizeof saw, "in %s, %s", b->doing, b->fault);
    } else if (end->signal == SIGALRM) {
        rule = RLHF__CHECK_HANG;
        snprintf(saw, sizeof saw, "%s did not end within %d seconds", b->doing,
                 w->request->seconds);
    } else if (end->signal) {
        rule = w->one->crash;
        snprintf(saw, sizeof saw, "%s ended the process by signal %d (%s)", b->doing, end->signal,
                 strsignal(end->signal));
    } else {
        snprintf(saw, sizeof saw, "%s ended the process with status %d", b->doing, end->status);
    }
    add_found(r, plugin, rule, saw);
}

static void add_left(struct rlhf__check_report *r, const char *plugin, const char *function,
                     const char *what) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text, "%s was not called again: what is left of \"%s\" was not tried",
                     function, what);
    json_array_append_new(r->facts, json_pack("{so,so}", "plugin", rlhf__json_text(plugin), "text",
                                              rlhf__json_text(rlhf__buf_text(&text))));
    rlhf__buf_finish(&text);
}

// Called after a step has hung. Returns 1 if the other steps of its case must be skipped, because
// they would call the same function.
static int after_hang(struct work *w, const char *id, struct rlhf__check_report *r) {
    struct rlhf__child_log *b = w->log;
    char function[sizeof b->inside];
    memcpy(function, b->inside, sizeof function);
    if (w->one->other_options ? !function[0] : !rlhf__child_log_hangs(b)) return 0;
    add_left(r, id, function, w->one->name);
    return 1;
}

static rlhf_status run_case(struct work *w, const char *id, struct rlhf__check_report *r,
                            struct rlhf__error *err) {
    const struct rlhf__child_limits limits = {.what = w->request->path,
                                              .seconds = w->request->seconds,
                                              .confined = 1,
                                              .file_bytes = w->file_bytes};
    struct rlhf__child_log *b = w->log;
    b->step = 0;
    for (int ends = 0; ends < MAX_ENDS; ends++) {
        struct rlhf__buf text = RLHF__BUF_INIT;
        struct rlhf__child_end end;
        b->done = b->fault_rule = b->left = 0;
        b->inside[0] = 0;
        snprintf(b->doing, sizeof b->doing, "loading it");
        const rlhf_status st = rlhf__child_ask(&limits, run_steps, w, &text, &end, err);
        rlhf__buf_finish(&text);
        take_over(r, id, b);
        if (end.answered && st < 0) return st;
        if (b->done) break;
        if (b->left) {
            add_left(r, id, b->inside, w->one->name);
            break;
        }
        add_end(r, id, b, &end, w);
        b->step++;
        if (end.signal == SIGALRM && !b->fault_rule && after_hang(w, id, r)) break;
    }
    r->steps += b->step;
    return RLHF_OK;
}

static int has_crashed(const struct rlhf__check_report *r, const char *id) {
    const char *crash = rlhf__check_source(RLHF__CHECK_CRASH).id;
    size_t i;
    json_t *f;
    json_array_foreach(r->found, i, f) {
        if (same_text(f, "plugin", id) && same_text(f, "rule", crash)) return 1;
    }
    return 0;
}

static rlhf_status run_cases(struct work *w, const char *id, const struct rlhf__check_case *list,
                             struct rlhf__check_report *r, struct rlhf__error *err) {
    for (; list->name; list++) {
        const size_t before = json_array_size(r->found);
        w->one = list;
        // Skip this case, because a function that crashed with enough memory would also crash with
        // too little.
        if (list->crash == RLHF__CHECK_MEMORY && has_crashed(r, id)) {
            add_left(r, id, "what ended the process", list->name);
            continue;
        }
        RLHF_TRY(run_case(w, id, r, err));
        if (list->first && json_array_size(r->found) > before) break;
    }
    return RLHF_OK;
}

// ---- the symbols of an opened object, from its dynamic section ----

// These functions run only in a child process, because the object may have damaged the section.

struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash, *hash; // NULL: missing
};

static const ElfW(Dyn) * dynamic_of(void *object) {
    struct link_map *map = NULL;
    return dlinfo(object, RTLD_DI_LINKMAP, &map) == 0 ? map->l_ld : NULL;
}

// glibc has relocated the addresses in the dynamic section.
static struct tables tables_of(const ElfW(Dyn) * d) {
    struct tables t = {NULL, NULL, NULL, NULL};
    for (; d && d->d_tag != DT_NULL; d++) {
        const void *at = (const void *)(uintptr_t)d->d_un.d_ptr;
        if (d->d_tag == DT_SYMTAB) t.symbols = at;
        if (d->d_tag == DT_STRTAB) t.strings = at;
        if (d->d_tag == DT_GNU_HASH) t.gnu_hash = at;
        if (d->d_tag == DT_HASH) t.hash = at;
    }
    return t;
}

// Returns the number of symbols. The GNU hash table does not contain this number, but its last
// symbol is at the end of the chain of the highest bucket.
static uint32_t count_by_gnu_hash(const uint32_t *h) {
    const uint32_t n_buckets = h[0], first = h[1], bloom_words = h[2];
    const uint32_t *bucket = h + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof *h);
    const uint32_t *chain = bucket + n_buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n_buckets; i++)
        if (bucket[i] > last) last = bucket[i];
    if (last < first) return first;
    while (!(chain[last - first] & 1))
        last++;
    return last + 1;
}

// Calls `visit` with the name of each symbol that an opened object exports.
static void visit_exports(void *object, void (*visit)(void *arg, const char *name), void *arg) {
    const struct tables t = tables_of(dynamic_of(object));
    const uint32_t n = t.hash ? t.hash[1] : t.gnu_hash ? count_by_gnu_hash(t.gnu_hash) : 0;
    for (uint32_t i = 1; t.symbols && t.strings && i < n; i++) {
        const ElfW(Sym) *s = &t.symbols[i];
        const int bind = ELF64_ST_BIND(s->st_info), seen = ELF64_ST_VISIBILITY(s->st_other);
        if (s->st_shndx == SHN_UNDEF || bind == STB_LOCAL || seen == STV_HIDDEN ||
            seen == STV_INTERNAL || ELF64_ST_TYPE(s->st_info) == STT_SECTION)
            continue;
        visit(arg, t.strings + s->st_name);
    }
}

// Calls `visit` with the name of each shared object that an opened object needs.
static void visit_needs(void *object, void (*visit)(void *arg, const char *name), void *arg) {
    const ElfW(Dyn) *d = dynamic_of(object);
    const struct tables t = tables_of(d);
    for (; d && t.strings && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_NEEDED) visit(arg, t.strings + d->d_un.d_val);
}

// ---- the file ----

// The plugin's option table decides whether the author's options are valid.
static rlhf_status take_options(const struct rlhf__plugin *p, const json_t *options,
                                struct rlhf__error *err) {
    const struct rlhf__origin from = {.source = "--set", .section = ""};
    struct rlhf__strings strings = {0};
    void *config = NULL;
    const rlhf_status st =
        rlhf__opts_new(&p->table, p->desc.config_size, options, &from, &strings, &config, err);
    free(config);
    rlhf__strings_finish(&strings);
    return st;
}

static void add_export(void *arg, const char *name) {
    // Symbols that linkers and sanitizers add.
    static const char *const fine[] = {RLHF_ENTRY_SYMBOL, "_init", "_fini", "_edata", "_end"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        if (strcmp(name, fine[i]) == 0) return;
    if (strncmp(name, "__", 2) != 0) json_array_append_new(arg, rlhf__json_text(name));
}

static void add_need(void *arg, const char *name) {
    json_array_append_new(arg, rlhf__json_text(name));
}

static void add_plugin(json_t *rows, const struct rlhf__plugin *p) {
    json_array_append_new(rows, json_pack("{ss,si}", "id", p->desc.id, "kind", (int)p->desc.kind));
}

static rlhf_status open_file(const struct work *w, struct rlhf__plugins *plugins, json_t *rows,
                             struct rlhf__error *err) {
    const struct rlhf__plugin **found = NULL;
    size_t n = 0;
    rlhf_status st = rlhf__plugin_open_file(plugins, w->request->path, &found, &n, err);
    for (size_t i = 0; st == RLHF_OK && i < n; i++) {
        add_plugin(rows, found[i]);
        st = take_options(found[i], w->request->options, err);
    }
    free(found);
    return st;
}

// In a child: list the plugins of the opened file, its exported symbols, and the objects that it
// needs.
static rlhf_status describe(void *arg, struct rlhf__buf *out) {
    const struct work *w = arg;
    struct rlhf__plugins *plugins = NULL;
    struct rlhf__error err;
    void *object = NULL;
    json_t *rows = json_array(), *exports = json_array(), *needs = json_array();
    if (w->walled) rlhf__confine(0, 0, NULL);
    rlhf_status st = rlhf__trust_code(w->request->path, w->request->dirs, &err);
    if (st == RLHF_OK) st = rlhf__shared_object_open(w->request->path, &object, &err);
    if (st == RLHF_OK) {
        visit_exports(object, add_export, exports);
        visit_needs(object, add_need, needs);
        st = rlhf__plugins_open(w->request->dirs, &plugins, &err);
    }
    if (st == RLHF_OK) st = open_file(w, plugins, rows, &err);
    json_t *all = json_pack("{so,so,so}", "plugins", rows, "exports", exports, "needs", needs);
    if (st == RLHF_OK)
        rlhf__json_write(out, all, 0);
    else
        rlhf__buf_puts(out, err.text);
    json_decref(all);
    rlhf__plugins_close(plugins);
    return st;
}

static void check_symbols(struct rlhf__check_report *r, const json_t *exports,
                          const json_t *needs) {
    char saw[400], shown[300];
    struct rlhf__buf text = RLHF__BUF_INIT;
    size_t i;
    json_t *name;
    json_array_foreach(exports, i, name) {
        snprintf(saw, sizeof saw, "it exports %s in addition to the entry",
                 rlhf__printable(json_string_value(name), shown, sizeof shown));
        add_found(r, "", RLHF__CHECK_EXPORTS, saw);
    }
    json_array_foreach(needs, i, name) { rlhf__buf_printf(&text, " %s", json_string_value(name)); }
    rlhf__buf_puts(&text, text.len ? "" : " no library");
    json_array_append_new(r->facts, json_pack("{ss,so}", "plugin", "", "text",
                                              json_sprintf("it needs%s", rlhf__buf_text(&text))));
    rlhf__buf_finish(&text);
}

// A sink may write to its own directory of the run.
static rlhf_status check_sink(struct work *w, const char *id, struct rlhf__check_report *r,
                              struct rlhf__error *err) {
    const char *temporary = getenv("TMPDIR");
    char dir[RLHF__PATH_CAP], own[RLHF__PATH_CAP];
    struct rlhf__error none;
    rlhf__path_put(dir, "%s/rlhf-check-XXXXXX",
                   temporary && *temporary == '/' ? temporary : "/tmp");
    if (!mkdtemp(dir)) return rlhf__fail(err, RLHF_E_IO, "cannot make the directory %s", dir);
    rlhf__path_put(own, "%s/own", dir);
    rlhf_status st = RLHF_OK;
    if (mkdir(own, 0700) != 0) st = rlhf__fail(err, RLHF_E_IO, "cannot make the directory %s", own);
    w->scratch = dir;
    w->file_bytes = SINK_FILE;
    if (st == RLHF_OK) st = run_cases(w, id, rlhf__sink_cases, r, err);
    w->file_bytes = 0;
    w->scratch = NULL;
    rlhf__folder_remove(NULL, dir, &none);
    return st;
}

static rlhf_status check_plugin(struct work *w, const json_t *row, struct rlhf__check_report *r,
                                struct rlhf__error *err) {
    const char *id = json_string_value(json_object_get(row, "id"));
    const json_int_t kind = json_integer_value(json_object_get(row, "kind"));
    json_array_append(r->plugins, json_object_get(row, "id"));
    memset(w->log->hung, 0, sizeof w->log->hung);
    w->log->refused = 0;
    // rewards.isolate=third_party, the default
    w->walled =
        (kind == RLHF_KIND_REWARD || kind == RLHF_KIND_ENVIRONMENT || kind == RLHF_KIND_SINK) &&
        !rlhf__plugin_is_shipped(w->request->dirs, w->request->path);
    RLHF_TRY(run_cases(w, id, rlhf__life_cases, r, err));
    if (kind == RLHF_KIND_REWARD) return run_cases(w, id, rlhf__reward_cases, r, err);
    if (kind == RLHF_KIND_ALGO) return run_cases(w, id, rlhf__algo_cases, r, err);
    if (kind == RLHF_KIND_KERNELS) return run_cases(w, id, rlhf__kernels_cases, r, err);
    if (kind == RLHF_KIND_SINK) return check_sink(w, id, r, err);
    if (kind == RLHF_KIND_ENVIRONMENT) return run_cases(w, id, rlhf__environment_cases, r, err);
    return run_cases(w, id, rlhf__model_cases, r, err);
}

static rlhf_status check_all(struct work *w, struct rlhf__check_report *r,
                             struct rlhf__error *err) {
    const struct rlhf__check_request *q = w->request;
    const struct rlhf__child_limits limits = {
        .what = q->path, .seconds = q->seconds, .confined = 1};
    struct rlhf__buf text = RLHF__BUF_INIT;
    json_t *opened = NULL;
    w->walled = !rlhf__plugin_is_shipped(q->dirs, q->path); // its kind is not known yet
    rlhf_status st = rlhf__child_ask(&limits, describe, w, &text, NULL, err);
    if (st == RLHF_OK)
        st = rlhf__json_parse(q->path, rlhf__buf_text(&text), text.len, &opened, err);
    const json_t *plugins = json_object_get(opened, "plugins");
    if (st == RLHF_OK && json_array_size(plugins) == 0) // the file's own code wrote the answer
        st = rlhf__fail(err, RLHF_E_INTERNAL, "%s: its answer is not what was asked", q->path);
    if (st == RLHF_OK)
        check_symbols(r, json_object_get(opened, "exports"), json_object_get(opened, "needs"));
    for (w->plugin = 0; st == RLHF_OK && w->plugin < json_array_size(plugins); w->plugin++)
        st = check_plugin(w, json_array_get(plugins, w->plugin), r, err);
    json_decref(opened);
    rlhf__buf_finish(&text);
    return st;
}

rlhf_status rlhf__check_file(const struct rlhf__check_request *request,
                             struct rlhf__check_report *out, struct rlhf__error *err) {
    *out = (struct rlhf__check_report){json_array(), json_array(), json_array(), 0};
    struct work w = {.request = request, .log = rlhf__child_log_open()};
    if (!w.log || !out->plugins || !out->found || !out->facts) {
        rlhf__child_log_close(w.log);
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    }
    const rlhf_status st = check_all(&w, out, err);
    rlhf__child_log_close(w.log);
    return st;
}

void rlhf__check_report_finish(struct rlhf__check_report *r) {
    json_decref(r->plugins);
    json_decref(r->found);
    json_decref(r->facts);
    *r = (struct rlhf__check_report){0};
}
