// plugin.c: loads a plugin file and sets its options. See rlhf/test.h.
#include <rlhf/environment.h>
#include <rlhf/options_check.h>
#include <rlhf/plugin_check.h>
#include <rlhf/test.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

// Returns NULL if the ops table of the plugin's kind is valid, otherwise what is wrong with it.
static const char *ops_fault(const rlhf_plugin *p) {
    static const char unsound[] = "has an ops table that is too short or newer than the SDK";
    static const char other[] = "has an ops table of another version of the compute contract";
    rlhf_algo_ops a;
    rlhf_reward_ops r;
    rlhf_model_ops m;
    rlhf_kernels_ops k;
    rlhf_sink_ops s;
    rlhf_environment_ops e;
    const uint32_t min = rlhf_ops_first_size(p->kind);
    uint32_t size;
#define READ(own) (rlhf_copy_in(&(own), (uint32_t)sizeof(own), p->ops, min) < 0)
#define IS_OTHER(own)                                                                              \
    ((own).compute_major != RLHF_COMPUTE_MAJOR || (own).compute_minor != RLHF_COMPUTE_MINOR)
    memcpy(&size, p->ops, sizeof size);
    if (size % sizeof(void *)) return "has an ops table whose size is not a multiple of 8";
    switch (p->kind) {
    case RLHF_KIND_ALGO:
        return READ(a) ? unsound : rlhf_algo_ops_fault(&a);
    case RLHF_KIND_REWARD:
        return READ(r) ? unsound : rlhf_reward_ops_fault(&r);
    case RLHF_KIND_MODEL:
        if (READ(m)) return unsound;
        return IS_OTHER(m) ? other : rlhf_model_ops_fault(&m);
    case RLHF_KIND_KERNELS:
        if (READ(k)) return unsound;
        return IS_OTHER(k) ? other : rlhf_kernels_ops_fault(&k);
    case RLHF_KIND_ENVIRONMENT:
        return READ(e) ? unsound : rlhf_environment_ops_fault(&e);
    default:
        return READ(s) ? unsound : rlhf_sink_ops_fault(&s);
    }
#undef READ
#undef IS_OTHER
}

int rlhf_test_refused(const rlhf_plugin *p, char *out, size_t cap) {
    rlhf_plugin d;
    out[0] = 0;
    if (!p || rlhf_copy_in(&d, (uint32_t)sizeof d, p, RLHF_SIZE_TO(rlhf_plugin, extension)) < 0)
        return snprintf(out, cap, "its descriptor is missing, too short or newer than the SDK");
    if (!rlhf_plugin_id_is_valid(d.id))
        return snprintf(out, cap,
                        "its id must be reverse DNS such as \"org.example.period\": two or more "
                        "parts with dots between them, of letters, digits, '_' and '-', in all at "
                        "most 127 characters");
    if (!d.version || !d.summary)
        return snprintf(out, cap, "its %s is NULL; it must be a text",
                        d.version ? "summary" : "version");
    char why[256];
    if (rlhf_plugin_texts_refused(&d, why, sizeof why)) return snprintf(out, cap, "it has %s", why);
    if (d.kind < RLHF_KIND_ALGO || d.kind > RLHF_KIND_SINK)
        return snprintf(out, cap, "it is of kind %u", (unsigned)d.kind);
    const uint32_t oldest = rlhf_plugin_oldest_host(&d, RLHF_ABI_MINOR);
    if (oldest > RLHF_ABI_MINOR)
        return snprintf(out, cap, "it needs a newer host, %d.%u", RLHF_ABI_MAJOR, (unsigned)oldest);
    if (d.flags) return snprintf(out, cap, "its descriptor sets flags, but none are defined");
    const int bad = rlhf_plugin_opts_refused(&d, out, cap);
    if (bad) return bad;
    const char *fault = rlhf_plugin_fault(&d);
    if (fault) return snprintf(out, cap, "it %s", fault);
    if (!d.ops) return snprintf(out, cap, "it has no ops table");
    fault = ops_fault(&d);
    if (fault) return snprintf(out, cap, "it %s", fault);
    if (rlhf_ops_unknown_flags(&d))
        return snprintf(out, cap, "its ops table sets flags 0x%x, which the SDK does not define",
                        (unsigned)rlhf_ops_unknown_flags(&d));
    return 0;
}

// Returns the index of another plugin of the bundle with the id of plugin i, or -1.
static int64_t twin_of(const rlhf_bundle *bundle, uint32_t i) {
    for (uint32_t k = 0; k < bundle->n_plugins; k++) {
        const rlhf_plugin *p = bundle->plugins[k];
        if (k != i && p && p->id && strcmp(p->id, bundle->plugins[i]->id) == 0) return k;
    }
    return -1;
}

const rlhf_plugin *rlhf_test_open(const char *path, uint32_t i) {
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    union {
        void *data;
        rlhf_entry_fn entry;
    } u;
    if (!so) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    u.data = dlsym(so, RLHF_ENTRY_SYMBOL);
    if (!u.data) {
        fprintf(stderr, "%s: no %s\n", path, RLHF_ENTRY_SYMBOL);
        return NULL;
    }
    const rlhf_bundle *bundle = u.entry();
    if (!bundle || bundle->abi_major != RLHF_ABI_MAJOR || bundle->abi_minor != RLHF_ABI_MINOR ||
        i >= bundle->n_plugins) {
        if (!bundle) fprintf(stderr, "%s: %s() returned nothing\n", path, RLHF_ENTRY_SYMBOL);
        if (!bundle) return NULL;
        fprintf(stderr, "%s: built for plugin contract %u.%u, %u plugins\n", path,
                (unsigned)bundle->abi_major, (unsigned)bundle->abi_minor,
                (unsigned)bundle->n_plugins);
        return NULL;
    }
    char why[256];
    if (rlhf_plugin_text_refused("built_with", bundle->built_with, RLHF_PLUGIN_VERSION_MAX, why,
                                 sizeof why)) {
        fprintf(stderr, "%s: its bundle has %s\n", path, why);
        return NULL;
    }
    if (rlhf_test_refused(bundle->plugins[i], why, sizeof why)) {
        fprintf(stderr, "%s: %s\n", path, why);
        return NULL;
    }
    if (twin_of(bundle, i) >= 0) {
        fprintf(stderr, "%s: plugins %u and %u have the same id, \"%s\"\n", path, (unsigned)i,
                (unsigned)twin_of(bundle, i), bundle->plugins[i]->id);
        return NULL;
    }
    return bundle->plugins[i];
}

int rlhf_test_opt(const rlhf_plugin *p, uint32_t i, rlhf_opt *out) {
    return rlhf_opt_at(p->opts, p->n_opts, p->opt_stride, i, out);
}

// Stores a list, or the empty list if `items` is NULL.
static void put_list(void *config, const rlhf_opt *o, const char *const *items) {
    static const char *const empty[] = {NULL};
    if (!items) items = empty;
    memcpy((char *)config + o->offset, &items, sizeof items);
}

static void put(void *config, const rlhf_opt *o, int64_t i, double f, const char *s) {
    char *to = (char *)config + o->offset;
    int32_t small = (int32_t)i;
    if (o->type == RLHF_T_BOOL || o->type == RLHF_T_ENUM) memcpy(to, &small, sizeof small);
    if (o->type == RLHF_T_I64) memcpy(to, &i, sizeof i);
    if (o->type == RLHF_T_F64) memcpy(to, &f, sizeof f);
    if (o->type == RLHF_T_STR || o->type == RLHF_T_PATH) memcpy(to, &s, sizeof s);
    if (o->type == RLHF_T_LIST) put_list(config, o, o->l_def);
    // the default of a list of numbers is empty, and the config is zeroed
}

void rlhf_test_config(const rlhf_plugin *p, void *config) {
    memset(config, 0, p->config_size);
    rlhf_opt o;
    for (uint32_t i = 0; rlhf_test_opt(p, i, &o); i++)
        put(config, &o, o.i_def, o.f_def, o.s_def);
}

// Parses `text` as a value of the option. Returns 0 if the text is invalid.
static int value_of(const rlhf_opt *o, const char *text, int64_t *whole, double *real) {
    char *end = NULL;
    *whole = 0;
    *real = 0;
    switch (o->type) {
    case RLHF_T_BOOL:
        *whole = strcmp(text, "true") == 0;
        return *whole || strcmp(text, "false") == 0;
    case RLHF_T_ENUM:
        while (o->choices[*whole] && strcmp(o->choices[*whole], text) != 0)
            ++*whole;
        return o->choices[*whole] != NULL;
    case RLHF_T_I64:
        *whole = strtoll(text, &end, 10);
        return end != text && !*end && *whole >= o->i_min && *whole <= o->i_max;
    case RLHF_T_F64:
        *real = strtod(text, &end);
        if (end == text || *end || !(*real >= o->f_min && *real <= o->f_max)) return 0;
        if ((o->flags & RLHF_OPT_MIN_OPEN) && *real <= o->f_min) return 0;
        return !((o->flags & RLHF_OPT_MAX_OPEN) && *real >= o->f_max);
    default:
        return 1;
    }
}

// Finds the option `key` and copies it to *o. If `list` is 1, the option must be a list; otherwise
// it must not be a list. If the option does not exist, returns 0 with the reason on stderr.
static int find(const rlhf_plugin *p, const char *key, int list, rlhf_opt *o) {
    uint32_t at = 0;
    while (rlhf_test_opt(p, at, o) && strcmp(o->key, key) != 0)
        at++;
    if (!rlhf_test_opt(p, at, o)) {
        fprintf(stderr, "%s has no option \"%s\"\n", p->id, key);
        return 0;
    }
    if (list == (o->type == RLHF_T_LIST)) return 1;
    fprintf(stderr, "option \"%s\" of %s is %s: use %s\n", key, p->id,
            list ? "not a list" : "a list", list ? "rlhf_test_set" : "rlhf_test_set_list");
    return 0;
}

int rlhf_test_set(const rlhf_plugin *p, void *config, const char *key, const char *value) {
    rlhf_opt o;
    int64_t whole;
    double real;
    if (!find(p, key, 0, &o)) return 0;
    if (!value_of(&o, value, &whole, &real)) {
        fprintf(stderr, "option \"%s\" of %s cannot be \"%s\"\n", key, p->id, value);
        return 0;
    }
    put(config, &o, whole, real, value);
    return 1;
}

int rlhf_test_set_list(const rlhf_plugin *p, void *config, const char *key,
                       const char *const *items) {
    rlhf_opt o;
    if (!find(p, key, 1, &o)) return 0;
    for (uint32_t i = 0; o.choices && items[i]; i++) {
        uint32_t k = 0;
        while (o.choices[k] && strcmp(o.choices[k], items[i]) != 0)
            k++;
        if (o.choices[k]) continue;
        fprintf(stderr, "option \"%s\" of %s cannot have \"%s\"\n", key, p->id, items[i]);
        return 0;
    }
    put_list(config, &o, items);
    return 1;
}
