// load.c: opens plugin files and keeps the list of open ones; see load.h.
#include "plugin/load.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/running.h"
#include "plugin/descriptor.h"
#include "plugin/growth.h"
#include "plugin/search.h"
#include "plugin/shared_object.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rlhf__plugins {
    const struct rlhf__dirs *dirs;
    struct rlhf__plugin **item; // allocated separately, because callers keep pointers
    size_t n, cap;
    int unsummed; // rlhf__plugins_leave_sums
};

rlhf_status rlhf__plugins_open(const struct rlhf__dirs *dirs, struct rlhf__plugins **out,
                               struct rlhf__error *err) {
    *out = calloc(1, sizeof **out);
    if (!*out) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    (*out)->dirs = dirs;
    return RLHF_OK;
}

void rlhf__plugins_leave_sums(struct rlhf__plugins *p) { p->unsummed = 1; }

static void plugin_free(struct rlhf__plugin *p) {
    if (!p) return;
    if (p->outside) p->outside->destroy(p->outside);
    rlhf__plugin_finish(p);
    free(p);
}

void rlhf__plugins_close(struct rlhf__plugins *p) {
    if (!p) return;
    for (size_t i = 0; i < p->n; i++)
        plugin_free(p->item[i]);
    free(p->item);
    free(p);
}

size_t rlhf__plugins_list(const struct rlhf__plugins *p, const struct rlhf__plugin *const **out) {
    *out = (const struct rlhf__plugin *const *)p->item;
    return p->n;
}

// ---- one file ---------------------------------------------------------------------------------

int rlhf__plugin_abi(void *object) {
    for (int major = 0; major <= 9; major++) {
        char name[32];
        snprintf(name, sizeof name, "rlhf_plugin_v%d", major);
        if (dlsym(object, name)) return major;
    }
    return -1;
}

// Set *out to the entry function of an opened file. If the file lacks an entry function, the error
// says which ABI the file was built for.
static rlhf_status find_entry(void *dl, const char *path, rlhf_entry_fn *out,
                              struct rlhf__error *err) {
    void *symbol = dlsym(dl, RLHF_ENTRY_SYMBOL);
    memcpy(out, &symbol, sizeof *out); // ISO C forbids a cast to a function pointer
    if (symbol) return RLHF_OK;
    const int major = rlhf__plugin_abi(dl);
    if (major >= 0)
        return rlhf__fail(
            err, RLHF_E_UNSUPPORTED,
            "%s: built for plugin contract %d, this rlhf-host speaks %d.%d; rebuild it "
            "with SDK " RLHF_SDK_VERSION,
            path, major, RLHF_ABI_MAJOR, RLHF_ABI_MINOR);
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s: not a plugin, or built for another contract (it does "
                      "not export %s)",
                      path, RLHF_ENTRY_SYMBOL);
}

static rlhf_status open_entry(const char *path, rlhf_entry_fn *out, struct rlhf__error *err) {
    void *dl = NULL;
    RLHF_TRY(rlhf__shared_object_open(path, &dl, err));
    return find_entry(dl, path, out, err); // never closed, see load.h
}

static rlhf_status check_duplicate(const struct rlhf__plugins *p, const char *id, const char *path,
                                   struct rlhf__error *err) {
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->item[i]->desc.id, id) == 0 && strcmp(p->item[i]->path, path) != 0)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "the plugin id \"%s\" is in two files, %s and %s; "
                              "use one of them",
                              id, p->item[i]->path, path);
    return RLHF_OK;
}

static rlhf_status add(struct rlhf__plugins *p, const char *path, const char sha256[65],
                       const rlhf_plugin *src, uint32_t abi_minor, struct rlhf__error *err) {
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 8;
        struct rlhf__plugin **item = realloc(p->item, cap * sizeof(struct rlhf__plugin *));
        if (!item) return rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", path);
        p->item = item;
        p->cap = cap;
    }
    struct rlhf__plugin *one = calloc(1, sizeof *one);
    if (!one) return rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", path);
    one->abi_minor = abi_minor;
    rlhf_status st = rlhf__plugin_init(one, path, sha256, src, err);
    if (st == RLHF_OK) st = check_duplicate(p, one->desc.id, path, err);
    if (st < 0) {
        plugin_free(one);
        return st;
    }
    p->item[p->n++] = one;
    return RLHF_OK;
}

static const rlhf_bundle *call_entry(rlhf_entry_fn entry, const char *path) {
    struct rlhf__running before = rlhf__running_begin("plugin", path, RLHF_ENTRY_SYMBOL "()");
    const rlhf_bundle *bundle = entry();
    rlhf__running_end(&before);
    return bundle;
}

static int is_open(const struct rlhf__plugin *q, const char *path) {
    return !q->outside && strcmp(q->path, path) == 0;
}

// The plugins from `before` on are those of one file.
static rlhf_status check_twice(const struct rlhf__plugins *p, size_t before,
                               struct rlhf__error *err) {
    for (size_t i = before; i < p->n; i++)
        for (size_t k = before; k < i; k++)
            if (strcmp(p->item[i]->desc.id, p->item[k]->desc.id) == 0)
                return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                                  "%s: its bundle lists the id \"%s\" twice, as plugins %zu and "
                                  "%zu; each plugin must have an id of its own",
                                  p->item[i]->path, p->item[i]->desc.id, k - before, i - before);
    return RLHF_OK;
}

// Add all plugins of the file, or none of them if one is invalid.
static rlhf_status open_path(struct rlhf__plugins *p, const char *path, int trusted,
                             struct rlhf__error *err) {
    for (size_t i = 0; i < p->n; i++)
        if (is_open(p->item[i], path)) return RLHF_OK;
    rlhf_entry_fn entry = NULL;
    rlhf_bundle bundle;
    char sha256[65] = "";
    if (!trusted) RLHF_TRY(rlhf__trust_code(path, p->dirs, err));
    if (!p->unsummed) RLHF_TRY(rlhf__sha256_file(path, sha256, err));
    RLHF_TRY(open_entry(path, &entry, err));
    if (!entry) return RLHF_E_INTERNAL; // cannot happen: open_entry would have failed
    RLHF_TRY(rlhf__bundle_check(path, call_entry(entry, path), &bundle, err));
    size_t before = p->n;
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; i < bundle.n_plugins && st == RLHF_OK; i++)
        st = add(p, path, sha256, bundle.plugins[i], bundle.abi_minor, err);
    if (st == RLHF_OK) st = check_twice(p, before, err);
    while (st < 0 && p->n > before)
        plugin_free(p->item[--p->n]);
    return st;
}

// ---- choosing ---------------------------------------------------------------------------------

static const char *with_article(int32_t kind) {
    return kind == RLHF_KIND_ALGO          ? "an algorithm"
           : kind == RLHF_KIND_REWARD      ? "a reward"
           : kind == RLHF_KIND_KERNELS     ? "a compute backend"
           : kind == RLHF_KIND_SINK        ? "a sink"
           : kind == RLHF_KIND_ENVIRONMENT ? "an environment"
                                           : "a model";
}

static rlhf_status choose(const struct rlhf__plugins *p, const char *path, const char *id,
                          int32_t kind, const char *asker, const struct rlhf__plugin **out,
                          struct rlhf__error *err) {
    const struct rlhf__plugin *found = NULL, *other = NULL;
    for (size_t i = 0; i < p->n; i++) {
        const struct rlhf__plugin *q = p->item[i];
        if (!is_open(q, path) || (id && strcmp(q->desc.id, id) != 0)) continue;
        if ((int32_t)q->desc.kind != kind) {
            other = q;
        } else if (found) {
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: %s holds several plugins of that kind; name "
                              "one as %s#%s or %s#%s",
                              asker, path, q->file, found->desc.id, q->file, q->desc.id);
        } else {
            found = q;
        }
    }
    *out = found;
    if (found) return RLHF_OK;
    if (other)
        return rlhf__fail(err, RLHF_E_INVALID, "%s is %s, but %s needs %s (%s)", other->file,
                          with_article((int32_t)other->desc.kind), asker, with_article(kind), path);
    return rlhf__fail(err, RLHF_E_INVALID, "%s: %s holds no plugin with the id \"%s\"", asker, path,
                      id ? id : "");
}

rlhf_status rlhf__plugins_find(const struct rlhf__plugins *p, const char *name, int32_t kind,
                               int32_t from, const char *asker, char **path, char **id,
                               struct rlhf__error *err) {
    char file[1024];
    *path = *id = NULL;
    if (strlen(name) >= sizeof file)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the plugin's name is too long", asker);
    snprintf(file, sizeof file, "%s", name);
    size_t n = rlhf__plugin_name_len(name, from);
    file[n] = '\0';
    RLHF_TRY(rlhf__plugin_find(p->dirs, file, kind, from, asker, path, err));
    if (!name[n]) return RLHF_OK;
    *id = strdup(name + n + 1);
    if (*id) return RLHF_OK;
    free(*path);
    *path = NULL;
    return RLHF__NOMEM(err, "%s: out of memory", asker);
}

rlhf_status rlhf__plugin_open(struct rlhf__plugins *p, const char *name, int32_t kind, int32_t from,
                              const char *asker, const struct rlhf__plugin **out,
                              struct rlhf__error *err) {
    char *path, *id;
    *out = NULL;
    RLHF_TRY(rlhf__plugins_find(p, name, kind, from, asker, &path, &id, err));
    rlhf_status st = open_path(p, path, 0, err);
    if (st == RLHF_OK) st = choose(p, path, id, kind, asker, out, err);
    free(path);
    free(id);
    return st;
}

rlhf_status rlhf__plugin_open_trusted(struct rlhf__plugins *p, const char *path, const char *id,
                                      int32_t kind, const char *asker,
                                      const struct rlhf__plugin **out, struct rlhf__error *err) {
    *out = NULL;
    RLHF_TRY(open_path(p, path, 1, err));
    return choose(p, path, *id ? id : NULL, kind, asker, out, err);
}

rlhf_status rlhf__plugins_trust(const struct rlhf__plugins *p, const char *path,
                                struct rlhf__error *err) {
    return rlhf__trust_code(path, p->dirs, err);
}

const char *rlhf__plugins_program(const struct rlhf__plugins *p) { return p->dirs->program; }

int rlhf__plugins_shipped(const struct rlhf__plugins *p, const char *path) {
    return rlhf__plugin_is_shipped(p->dirs, path);
}

rlhf_status rlhf__plugins_add_outside(struct rlhf__plugins *p, const char *path,
                                      const char sha256[65], const rlhf_plugin *src,
                                      struct rlhf__outside *outside,
                                      const struct rlhf__plugin **out, struct rlhf__error *err) {
    *out = NULL;
    RLHF_TRY(add(p, path, sha256, src, RLHF_ABI_MINOR, err));
    p->item[p->n - 1]->outside = outside;
    *out = p->item[p->n - 1];
    return RLHF_OK;
}

static struct rlhf__running begin(const struct rlhf__plugin *p, const char *function) {
    return rlhf__running_begin(rlhf__kind_name((int32_t)p->desc.kind), rlhf__plugin_name(p),
                               function);
}

const char *rlhf__plugin_why_unused(const struct rlhf__plugin *p, const void *config,
                                    const char *key) {
    if (p->outside && p->outside->why_unused) return p->outside->why_unused(p, config, key);
    if (!p->desc.why_unused) return NULL;
    struct rlhf__running before = begin(p, "why_unused()");
    rlhf_option_in in = {.config = config, .key = key};
    RLHF__PASS(rlhf_option_in, &in, p->abi_minor);
    const char *why = p->desc.why_unused(&in);
    rlhf__running_end(&before);
    return why;
}

const char *rlhf__plugin_name(const struct rlhf__plugin *p) {
    return p->file ? p->file : p->desc.id;
}

const void *rlhf__plugin_extension(const struct rlhf__plugin *p, void *self, const char *id) {
    if (p->outside && p->outside->extension) return p->outside->extension(p, self, id);
    if (!p->desc.extension) return NULL;
    struct rlhf__running before = begin(p, "extension()");
    const void *table = p->desc.extension(self, id);
    rlhf__running_end(&before);
    return table;
}

rlhf_status rlhf__plugin_open_file(struct rlhf__plugins *p, const char *path,
                                   const struct rlhf__plugin ***out, size_t *n,
                                   struct rlhf__error *err) {
    *out = NULL;
    *n = 0;
    char absolute[RLHF__PATH_CAP];
    if (!rlhf__path_real(path, absolute))
        return rlhf__fail(err, RLHF_E_INVALID, "there is no plugin file %s", path);
    rlhf_status st = open_path(p, absolute, 0, err);
    const struct rlhf__plugin **found = NULL;
    if (st == RLHF_OK) {
        found = calloc(p->n ? p->n : 1, sizeof(const struct rlhf__plugin *));
        if (!found) st = rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    }
    for (size_t i = 0; found && i < p->n; i++)
        if (is_open(p->item[i], absolute)) found[(*n)++] = p->item[i];
    *out = found;
    return st;
}

// ---- names ------------------------------------------------------------------------------------

struct stems {
    const char *name;
    struct rlhf__buf *out;
    int32_t kind;
    int there;
};

// Returns 1 if the list "a, b" contains this word.
static int listed(const char *list, const char *word, size_t n) {
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += n)
        if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ',')) return 1;
    return 0;
}

static rlhf_status add_stem(void *arg, int32_t kind, const char *path) {
    struct stems *s = arg;
    const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    char stem[256];
    size_t n = strlen(file);
    if (kind != s->kind || n < 4 || n - 3 >= sizeof stem) return RLHF_OK;
    n -= 3; // ".so"
    memcpy(stem, file, n);
    stem[n] = '\0';
    if (strcmp(stem, s->name) == 0) s->there = 1;
    // A directory of RLHF_PLUGIN_PATH may contain plugins of any kind. The kind is known without
    // opening the file only if the directory has the name of a kind's folder, such as "models".
    const char *dir = rlhf__kind_dir(kind);
    size_t k = strlen(dir), before = (size_t)(file - path);
    int sorted = before > k + 1 && !strncmp(file - k - 1, dir, k) && file[-(ptrdiff_t)k - 2] == '/';
    if (sorted && !listed(rlhf__buf_text(s->out), stem, n))
        rlhf__buf_printf(s->out, "%s%s", s->out->len ? ", " : "", stem);
    return RLHF_OK;
}

rlhf_status rlhf__plugin_stems(const struct rlhf__plugins *p, int32_t kind, const char *name,
                               struct rlhf__buf *out, int *there) {
    struct stems s = {name, out, kind, 0};
    rlhf_status st = rlhf__plugin_each_file(p->dirs, add_stem, &s);
    *there = s.there;
    return st == RLHF_OK && out->bad ? RLHF_E_NOMEM : st;
}
