// rlhf/test.h: a host made of paper, so that a plugin can be unit-tested without rlhf-host.
//
// It records what a plugin logs, fails with and reports, counts allocations, can make the n-th of
// them fail, and offers the services a test gives it. No test framework is needed; with CMocka,
// assert on the recorded values after the plugin returned, never inside a callback (a failed assert
// jumps over the plugin's frames). Not for production code, and not thread-safe.
//
//   static struct rlhf_test_host host;            // large: static or malloc, not the stack
//   rlhf_test_init(&host, 1);
//   const rlhf_plugin *p = rlhf_test_open("./my.so", 0);
//   rlhf_test_config(p, &config); rlhf_test_set(p, &config, "cap", "3");
//   p->create(&host.table, &config, &self);
#ifndef RLHF_TEST_H
#define RLHF_TEST_H

#include "algo.h"
#include "model.h"
#include "option_check.h"
#include "plugin.h"
#include "reward.h"
#include "service.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#define RLHF_TEST_CAST(T, p) static_cast<T *>(p)
#else
#define RLHF_TEST_CAST(T, p) ((T *)(p))
#endif

enum {
    RLHF_TEST_LOGS = 64,
    RLHF_TEST_METRICS = 256,
    RLHF_TEST_SERVICES = 8,
    RLHF_TEST_TEXT = 1016
};

struct rlhf_test_log {
    int32_t level, reserved;
    char text[RLHF_TEST_TEXT];
};

struct rlhf_test_reading {
    double value;
    char name[120];
};

struct rlhf_test_service {
    const char *id;
    const void *table;
};

struct rlhf_test_host {
    rlhf_host table; // pass &host.table to the plugin
    uint64_t seed;
    // Allocations: alive now, asked for so far; the call number fail_at (1 = first) fails, and with
    // fail_on every later one too. 0 = none fails.
    int64_t live, allocs, fail_at;
    int32_t fail_on, cancel; // cancel: what cancelled() returns
    // The last failure and how many there were.
    int32_t fail_code, n_fails;
    char fail_text[RLHF_TEST_TEXT];
    uint32_t n_logs, n_metrics, n_services, reserved; // n_logs counts on when log[] is full
    struct rlhf_test_log log[RLHF_TEST_LOGS];
    struct rlhf_test_reading metric[RLHF_TEST_METRICS];
    struct rlhf_test_service service[RLHF_TEST_SERVICES];
    // Offered as RLHF_SVC_LIMITS; no limits until the test sets some.
    rlhf_limits limits;
};

// ---- the table's functions ----

// The recording host behind a table made by rlhf_test_init.
static inline struct rlhf_test_host *rlhf_test_host_of(const rlhf_host *h) {
    union {
        const rlhf_host *table;
        struct rlhf_test_host *host; // table is its first member
    } u;
    u.table = h;
    return u.host;
}

static inline void rlhf_test_do_log(const rlhf_host *h, int32_t level, const char *text) {
    struct rlhf_test_host *t = rlhf_test_host_of(h);
    if (t->n_logs < RLHF_TEST_LOGS) {
        t->log[t->n_logs].level = level;
        snprintf(t->log[t->n_logs].text, RLHF_TEST_TEXT, "%s", text);
    }
    t->n_logs++;
}

static inline rlhf_status rlhf_test_do_fail(const rlhf_host *h, rlhf_status code,
                                            const char *text) {
    struct rlhf_test_host *t = rlhf_test_host_of(h);
    t->fail_code = code;
    t->n_fails++;
    snprintf(t->fail_text, RLHF_TEST_TEXT, "%s", text);
    return code;
}

static inline void *rlhf_test_do_alloc(const rlhf_host *h, uint64_t bytes) {
    struct rlhf_test_host *t = rlhf_test_host_of(h);
    if (bytes == 0 || bytes > SIZE_MAX - 64) return NULL;
    t->allocs++;
    if (t->fail_at && (t->allocs == t->fail_at || (t->fail_on && t->allocs > t->fail_at)))
        return NULL;
    size_t rounded = ((size_t)bytes + 63) / 64 * 64;
    void *p = aligned_alloc(64, rounded);
    if (!p) return NULL;
    t->live++;
    return memset(p, 0, rounded);
}

static inline void rlhf_test_do_free(const rlhf_host *h, void *p) {
    if (p) rlhf_test_host_of(h)->live--;
    free(p);
}

static inline void rlhf_test_do_metric(const rlhf_host *h, const char *name, double value) {
    struct rlhf_test_host *t = rlhf_test_host_of(h);
    uint32_t i = 0;
    while (i < t->n_metrics && strcmp(t->metric[i].name, name) != 0)
        i++;
    if (i == RLHF_TEST_METRICS) return;
    if (i == t->n_metrics) {
        snprintf(t->metric[i].name, sizeof t->metric[i].name, "%s", name);
        t->n_metrics++;
    }
    t->metric[i].value = value;
}

static inline void rlhf_test_do_rng(const rlhf_host *h, const char *stream, rlhf_rng *out) {
    out->seed = rlhf_test_host_of(h)->seed;
    out->stream = rlhf_rng_stream(stream);
    out->counter = 0;
}

static inline int32_t rlhf_test_do_cancelled(const rlhf_host *h) {
    return rlhf_test_host_of(h)->cancel;
}

static inline const void *rlhf_test_do_service(const rlhf_host *h, const char *id) {
    const struct rlhf_test_host *t = rlhf_test_host_of(h);
    for (uint32_t i = 0; i < t->n_services; i++)
        if (strcmp(t->service[i].id, id) == 0) return t->service[i].table;
    return strcmp(id, RLHF_SVC_LIMITS) == 0 ? &t->limits : NULL;
}

// One worker; a test of several puts its own function into the table.
static inline rlhf_status rlhf_test_do_reduce(const rlhf_host *h, double *sums, uint32_t n) {
    (void)h;
    (void)sums;
    (void)n;
    return RLHF_OK;
}

// ---- setting up and looking ----

// A fresh host: nothing recorded, no services, no failures planned.
static inline void rlhf_test_init(struct rlhf_test_host *t, uint64_t seed) {
    memset(t, 0, sizeof *t);
    t->table.size = (uint32_t)sizeof t->table;
    t->table.abi_minor = RLHF_ABI_MINOR;
    t->table.name = "rlhf-test";
    t->table.version = RLHF_SDK_VERSION;
    t->table.log = rlhf_test_do_log;
    t->table.fail = rlhf_test_do_fail;
    t->table.alloc = rlhf_test_do_alloc;
    t->table.free = rlhf_test_do_free;
    t->table.metric = rlhf_test_do_metric;
    t->table.rng = rlhf_test_do_rng;
    t->table.cancelled = rlhf_test_do_cancelled;
    t->table.service = rlhf_test_do_service;
    t->table.reduce = rlhf_test_do_reduce;
    t->limits.size = (uint32_t)sizeof t->limits;
    t->seed = seed;
}

// Offer a service; both pointers are borrowed. Returns 0 when there is no room.
static inline int rlhf_test_offer(struct rlhf_test_host *t, const char *id, const void *table) {
    if (t->n_services == RLHF_TEST_SERVICES) return 0;
    t->service[t->n_services].id = id;
    t->service[t->n_services].table = table;
    t->n_services++;
    return 1;
}

// Let the n-th allocation from now fail (1 = the next); on != 0: all later ones too. 0 = none.
static inline void rlhf_test_fail_alloc(struct rlhf_test_host *t, int64_t n, int32_t on) {
    t->allocs = 0;
    t->fail_at = n;
    t->fail_on = on;
}

// The latest value of a metric; 0 when it was never reported.
static inline int rlhf_test_metric(const struct rlhf_test_host *t, const char *name,
                                   double *value) {
    for (uint32_t i = 0; i < t->n_metrics; i++) {
        if (strcmp(t->metric[i].name, name) != 0) continue;
        *value = t->metric[i].value;
        return 1;
    }
    return 0;
}

// Whether a recorded log line contains text.
static inline int rlhf_test_logged(const struct rlhf_test_host *t, const char *text) {
    for (uint32_t i = 0; i < t->n_logs && i < RLHF_TEST_LOGS; i++)
        if (strstr(t->log[i].text, text)) return 1;
    return 0;
}

// ---- plugins and their options ----

// The first function of a kind's table that must be there and is not, NULL when none is missing.
static inline const char *rlhf_test_missing(const rlhf_plugin *p) {
    rlhf_algo_ops a;
    rlhf_reward_ops r;
    rlhf_model_ops m;
    const uint32_t head = 2 * (uint32_t)sizeof(uint32_t);
    if (p->kind == RLHF_KIND_ALGO) {
        if (rlhf_copy_in(&a, (uint32_t)sizeof a, p->ops, head) < 0) return "a sound ops table";
        return !a.plan ? "plan()" : !a.loss ? "loss()" : NULL;
    }
    if (p->kind == RLHF_KIND_REWARD) {
        if (rlhf_copy_in(&r, (uint32_t)sizeof r, p->ops, head) < 0) return "a sound ops table";
        return !r.score ? "score()" : NULL;
    }
    if (rlhf_copy_in(&m, (uint32_t)sizeof m, p->ops, head) < 0) return "a sound ops table";
    return !m.open      ? "open()"
           : !m.info    ? "info()"
           : !m.param   ? "param()"
           : !m.refresh ? "refresh()"
           : !m.forward ? "forward()"
                        : NULL;
}

// Why rlhf-host would refuse the plugin, into out[cap]; 0 and "" when it would not. The checks of
// options are the host's own; of a file, `rlhf-host plugin check` tries more.
static inline int rlhf_test_refused(const rlhf_plugin *p, char *out, size_t cap) {
    rlhf_plugin d;
    rlhf_opt o;
    out[0] = 0;
    if (!p || rlhf_copy_in(&d, (uint32_t)sizeof d, p, RLHF_SIZE_TO(rlhf_plugin, flags)) < 0)
        return snprintf(out, cap, "its descriptor is missing, too short or newer than the SDK");
    if (!d.id || !*d.id ||
        strspn(d.id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                     "0123456789._-") != strlen(d.id))
        return snprintf(out, cap,
                        "its id is missing or has characters other than letters, digits, "
                        "'.', '_' and '-'");
    if (d.kind < RLHF_KIND_ALGO || d.kind > RLHF_KIND_MODEL)
        return snprintf(out, cap, "it is of kind %u", (unsigned)d.kind);
    if (d.host_minor_min > RLHF_ABI_MINOR)
        return snprintf(out, cap, "it needs a newer host, 0.%u", (unsigned)d.host_minor_min);
    if (d.flags) return snprintf(out, cap, "its descriptor sets flags, of which there are none");
    for (uint32_t i = 0; rlhf_opt_at(d.opts, d.n_opts, d.opt_stride, i, &o); i++) {
        const char *why = o.key && *o.key ? rlhf_opt_fault(&o, d.config_size) : "has no key";
        if (why) return snprintf(out, cap, "its option \"%s\" %s", o.key ? o.key : "", why);
    }
    if (d.state_version && (!d.save || !d.load))
        return snprintf(out, cap, "it has a state_version but no save() and load()");
    if (!d.ops) return snprintf(out, cap, "it has no ops table");
    const char *missing = rlhf_test_missing(&d);
    return missing ? snprintf(out, cap, "it lacks %s", missing) : 0;
}

// Load a .so and return its plugin number i, or NULL with the reason on stderr: what rlhf-host
// would refuse is refused. Never unloaded.
static inline const rlhf_plugin *rlhf_test_open(const char *path, uint32_t i) {
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
        fprintf(stderr, "%s: built for ABI %u.%u, %u plugins\n", path, (unsigned)bundle->abi_major,
                (unsigned)bundle->abi_minor, (unsigned)bundle->n_plugins);
        return NULL;
    }
    char why[256];
    if (rlhf_test_refused(bundle->plugins[i], why, sizeof why)) {
        fprintf(stderr, "%s: %s\n", path, why);
        return NULL;
    }
    return bundle->plugins[i];
}

// Option number i of a plugin; 0 past the last.
static inline int rlhf_test_opt(const rlhf_plugin *p, uint32_t i, rlhf_opt *out) {
    return rlhf_opt_at(p->opts, p->n_opts, p->opt_stride, i, out);
}

static inline void rlhf_test_do_put(void *config, const rlhf_opt *o, int64_t i, double f,
                                    const char *s) {
    char *to = RLHF_TEST_CAST(char, config) + o->offset;
    int32_t small = (int32_t)i;
    if (o->type == RLHF_T_BOOL || o->type == RLHF_T_ENUM) memcpy(to, &small, sizeof small);
    if (o->type == RLHF_T_I64) memcpy(to, &i, sizeof i);
    if (o->type == RLHF_T_F64) memcpy(to, &f, sizeof f);
    if (o->type == RLHF_T_STR || o->type == RLHF_T_PATH) memcpy(to, &s, sizeof s);
}

// Fill config (p->config_size bytes) with the defaults of p's options.
static inline void rlhf_test_config(const rlhf_plugin *p, void *config) {
    memset(config, 0, p->config_size);
    rlhf_opt o;
    for (uint32_t i = 0; rlhf_test_opt(p, i, &o); i++)
        rlhf_test_do_put(config, &o, o.i_def, o.f_def, o.s_def);
}

// Set one option from text ("true", "3", "0.5", a choice, any string, which is borrowed). 0 when
// the key or value is refused; ranges are checked as the host does.
static inline int rlhf_test_set(const rlhf_plugin *p, void *config, const char *key,
                                const char *value) {
    rlhf_opt found;
    const rlhf_opt *o = &found;
    uint32_t at = 0;
    while (rlhf_test_opt(p, at, &found) && strcmp(found.key, key) != 0)
        at++;
    if (!rlhf_test_opt(p, at, &found)) return 0;
    char *end = NULL;
    int64_t whole = 0;
    double real = 0;
    if (o->type == RLHF_T_BOOL) {
        whole = strcmp(value, "true") == 0;
        if (!whole && strcmp(value, "false") != 0) return 0;
    } else if (o->type == RLHF_T_ENUM) {
        while (o->choices[whole] && strcmp(o->choices[whole], value) != 0)
            whole++;
        if (!o->choices[whole]) return 0;
    } else if (o->type == RLHF_T_I64) {
        whole = strtoll(value, &end, 10);
        if (end == value || *end || whole < o->i_min || whole > o->i_max) return 0;
    } else if (o->type == RLHF_T_F64) {
        real = strtod(value, &end);
        if (end == value || *end || !(real >= o->f_min && real <= o->f_max)) return 0;
        if ((o->flags & RLHF_OPT_MIN_OPEN) && real <= o->f_min) return 0;
        if ((o->flags & RLHF_OPT_MAX_OPEN) && real >= o->f_max) return 0;
    }
    rlhf_test_do_put(config, o, whole, real, value);
    return 1;
}

// ---- saved state ----

// A byte buffer that is both ends of save() and load(): pass &s.out, then &s.in.
struct rlhf_test_stream {
    rlhf_ostream out; // must stay the first member
    rlhf_istream in;
    uint64_t len, at, limit; // written, read so far; write fails with RLHF_E_IO beyond limit
    uint8_t bytes[4096];
};

static inline rlhf_status rlhf_test_do_write(const rlhf_ostream *o, const void *bytes, uint64_t n) {
    union {
        const rlhf_ostream *out;
        struct rlhf_test_stream *stream;
    } u;
    u.out = o;
    struct rlhf_test_stream *s = u.stream;
    if (n > s->limit - s->len) return RLHF_E_IO;
    memcpy(s->bytes + s->len, bytes, (size_t)n);
    s->len += n;
    return RLHF_OK;
}

static inline rlhf_status rlhf_test_do_read(const rlhf_istream *i, void *bytes, uint64_t n) {
    union {
        const rlhf_istream *in;
        const char *byte;
        struct rlhf_test_stream *stream;
    } u;
    u.in = i;
    u.byte -= offsetof(struct rlhf_test_stream, in);
    struct rlhf_test_stream *s = u.stream;
    if (n > s->len - s->at) return RLHF_E_IO;
    memcpy(bytes, s->bytes + s->at, (size_t)n);
    s->at += n;
    return RLHF_OK;
}

// An empty stream.
static inline void rlhf_test_stream_init(struct rlhf_test_stream *s) {
    memset(s, 0, sizeof *s);
    s->out.size = (uint32_t)sizeof s->out;
    s->out.write = rlhf_test_do_write;
    s->in.size = (uint32_t)sizeof s->in;
    s->in.read = rlhf_test_do_read;
    s->limit = sizeof s->bytes;
}

// ---- a fake "rlhf.classifier/0" ----

// logit(context, text, label) is the test's. open() hands out this one object and records its path;
// open_status < 0 makes open() fail, logits_status < 0 makes logits() fail.
struct rlhf_test_classifier {
    rlhf_classifier_service table; // offer &c.table as RLHF_SVC_CLASSIFIER
    const char *const *labels;     // [n_labels]
    float (*logit)(const void *context, rlhf_str text, int32_t label);
    const void *context;
    const char *path; // the last path given to open, borrowed
    int32_t n_labels, open_count, open_status, logits_status;
    uint64_t n_texts; // scored so far
};

static inline rlhf_status rlhf_test_do_clf_open(void *host, const char *path,
                                                rlhf_classifier **out) {
    struct rlhf_test_classifier *c = RLHF_TEST_CAST(struct rlhf_test_classifier, host);
    void *same = c;
    c->path = path;
    if (c->open_status < 0) return c->open_status;
    c->open_count++;
    *out = RLHF_TEST_CAST(rlhf_classifier, same);
    return RLHF_OK;
}

static inline void rlhf_test_do_clf_close(void *host, rlhf_classifier *model) {
    if (model) RLHF_TEST_CAST(struct rlhf_test_classifier, host)->open_count--;
}

static inline int32_t rlhf_test_do_clf_n_labels(void *host, const rlhf_classifier *model) {
    (void)model;
    const struct rlhf_test_classifier *c = RLHF_TEST_CAST(struct rlhf_test_classifier, host);
    return c->n_labels;
}

static inline const char *rlhf_test_do_clf_label(void *host, const rlhf_classifier *model,
                                                 int32_t i) {
    const struct rlhf_test_classifier *c = RLHF_TEST_CAST(struct rlhf_test_classifier, host);
    (void)model;
    return i >= 0 && i < c->n_labels ? c->labels[i] : NULL;
}

static inline rlhf_status rlhf_test_do_clf_logits(void *host, rlhf_classifier *model, uint32_t n,
                                                  const rlhf_str *texts, float *logits) {
    struct rlhf_test_classifier *c = RLHF_TEST_CAST(struct rlhf_test_classifier, host);
    (void)model;
    if (c->logits_status < 0) return c->logits_status;
    for (uint32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < c->n_labels; k++)
            logits[i * (uint32_t)c->n_labels + (uint32_t)k] = c->logit(c->context, texts[i], k);
    c->n_texts += n;
    return RLHF_OK;
}

// A classifier with the given label names; fill in logit (and context) afterwards.
static inline void rlhf_test_classifier_init(struct rlhf_test_classifier *c,
                                             const char *const *labels, int32_t n_labels) {
    memset(c, 0, sizeof *c);
    c->table.size = (uint32_t)sizeof c->table;
    c->table.host = c;
    c->table.open = rlhf_test_do_clf_open;
    c->table.close = rlhf_test_do_clf_close;
    c->table.n_labels = rlhf_test_do_clf_n_labels;
    c->table.label = rlhf_test_do_clf_label;
    c->table.logits = rlhf_test_do_clf_logits;
    c->labels = labels;
    c->n_labels = n_labels;
}

// ---- a fake "rlhf.tokenizer/0" ----

// A byte is a token, whatever the path. open_status < 0 makes open() fail.
struct rlhf_test_tokenizer {
    rlhf_tokenizer_service table; // offer &t.table as RLHF_SVC_TOKENIZER
    const char *path;             // the last path given to open, borrowed
    int32_t open_count, open_status;
};

static inline rlhf_status rlhf_test_do_tok_open(void *host, const char *path,
                                                rlhf_tokenizer **out) {
    struct rlhf_test_tokenizer *t = RLHF_TEST_CAST(struct rlhf_test_tokenizer, host);
    t->path = path;
    if (t->open_status < 0) return t->open_status;
    t->open_count++;
    *out = RLHF_TEST_CAST(rlhf_tokenizer, host);
    return RLHF_OK;
}

static inline void rlhf_test_do_tok_close(void *host, rlhf_tokenizer *model) {
    if (model) RLHF_TEST_CAST(struct rlhf_test_tokenizer, host)->open_count--;
}

static inline int32_t rlhf_test_do_tok_n_vocab(void *host, const rlhf_tokenizer *model) {
    (void)host;
    (void)model;
    return 256;
}

static inline rlhf_status rlhf_test_do_tok_encode(void *host, const rlhf_tokenizer *model,
                                                  rlhf_str text, int32_t *ids, uint32_t cap,
                                                  uint32_t *n) {
    (void)host;
    (void)model;
    *n = (uint32_t)text.len;
    for (uint32_t i = 0; i < *n && i < cap; i++)
        ids[i] = (unsigned char)text.ptr[i];
    return RLHF_OK;
}

static inline rlhf_status rlhf_test_do_tok_decode(void *host, const rlhf_tokenizer *model,
                                                  const int32_t *ids, uint32_t n, char *utf8,
                                                  uint64_t cap, uint64_t *len) {
    (void)host;
    (void)model;
    *len = n;
    for (uint32_t i = 0; i < n && i < cap; i++)
        utf8[i] = (char)(ids[i] & 255);
    return RLHF_OK;
}

static inline void rlhf_test_tokenizer_init(struct rlhf_test_tokenizer *t) {
    memset(t, 0, sizeof *t);
    t->table.size = (uint32_t)sizeof t->table;
    t->table.host = t;
    t->table.open = rlhf_test_do_tok_open;
    t->table.close = rlhf_test_do_tok_close;
    t->table.n_vocab = rlhf_test_do_tok_n_vocab;
    t->table.encode = rlhf_test_do_tok_encode;
    t->table.decode = rlhf_test_do_tok_decode;
}

// ---- a fake "rlhf.reward_model/0" ----

// A token's reward is token(context, id). open_status < 0 makes open() fail, score_status < 0
// score().
struct rlhf_test_reward_model {
    rlhf_reward_model_service table; // offer &m.table as RLHF_SVC_REWARD_MODEL
    float (*token)(const void *context, int32_t id);
    const void *context;
    const char *path; // the last path given to open, borrowed
    int32_t open_count, open_status, score_status, reserved;
    uint64_t n_rows; // scored so far
};

static inline rlhf_status rlhf_test_do_rm_open(void *host, const char *path,
                                               rlhf_reward_model **out) {
    struct rlhf_test_reward_model *m = RLHF_TEST_CAST(struct rlhf_test_reward_model, host);
    m->path = path;
    if (m->open_status < 0) return m->open_status;
    m->open_count++;
    *out = RLHF_TEST_CAST(rlhf_reward_model, host);
    return RLHF_OK;
}

static inline void rlhf_test_do_rm_close(void *host, rlhf_reward_model *model) {
    if (model) RLHF_TEST_CAST(struct rlhf_test_reward_model, host)->open_count--;
}

// The mean over a row's response tokens, or the last one's with RLHF_POOL_LAST (3); a row without
// response tokens has its last prompt token's.
static inline rlhf_status rlhf_test_do_rm_score(void *host, rlhf_reward_model *model, uint32_t n,
                                                const int32_t *ids, const int32_t *offset,
                                                const int32_t *prompt_len, int32_t pooling,
                                                float *seq, float *token) {
    struct rlhf_test_reward_model *m = RLHF_TEST_CAST(struct rlhf_test_reward_model, host);
    (void)model;
    if (m->score_status < 0) return m->score_status;
    for (uint32_t i = 0; i < n; i++) {
        const int32_t end = offset[i + 1];
        int32_t at = offset[i] + prompt_len[i];
        double sum = 0, last = 0;
        for (int32_t t = offset[i]; token && t < at; t++)
            token[t] = 0;
        if (at >= end) at = end - 1;
        const int32_t count = end - at;
        for (; at < end; at++) {
            last = (double)m->token(m->context, ids[at]);
            sum += last;
            if (token && at >= offset[i] + prompt_len[i]) token[at] = (float)last;
        }
        seq[i] = (float)(pooling == 3 ? last : sum / count);
    }
    m->n_rows += n;
    return RLHF_OK;
}

// Fill in token (and context) afterwards.
static inline void rlhf_test_reward_model_init(struct rlhf_test_reward_model *m) {
    memset(m, 0, sizeof *m);
    m->table.size = (uint32_t)sizeof m->table;
    m->table.host = m;
    m->table.open = rlhf_test_do_rm_open;
    m->table.close = rlhf_test_do_rm_close;
    m->table.score = rlhf_test_do_rm_score;
}

// ---- a fake "rlhf.row/0" ----

// Every row has these values, whatever its text says: no JSON is read. A path that is not listed is
// absent.
struct rlhf_test_row_value {
    const char *path;
    int32_t type, reserved; // enum rlhf_row_type
    const char *string;
    double number; // of a number; a boolean; the length of a list
};

struct rlhf_test_rows {
    rlhf_row_service table; // offer &r.table as RLHF_SVC_ROW
    const struct rlhf_test_row_value *values;
    uint32_t n_values;
    int32_t open_count;
};

static inline rlhf_status rlhf_test_do_row_open(void *host, rlhf_str json, rlhf_row **out) {
    struct rlhf_test_rows *r = RLHF_TEST_CAST(struct rlhf_test_rows, host);
    if (json.len == 0) return RLHF_E_INVALID; // as of the host: there is no row
    r->open_count++;
    *out = RLHF_TEST_CAST(rlhf_row, host);
    return RLHF_OK;
}

static inline void rlhf_test_do_row_close(void *host, rlhf_row *row) {
    if (row) RLHF_TEST_CAST(struct rlhf_test_rows, host)->open_count--;
}

// The value at path, of that type (0: any), or NULL.
static inline const struct rlhf_test_row_value *rlhf_test_row_at(void *host, const char *path,
                                                                 int32_t type) {
    const struct rlhf_test_rows *r = RLHF_TEST_CAST(struct rlhf_test_rows, host);
    for (uint32_t i = 0; i < r->n_values; i++)
        if (strcmp(r->values[i].path, path) == 0 && (!type || r->values[i].type == type))
            return &r->values[i];
    return NULL;
}

static inline int32_t rlhf_test_do_row_type(void *host, const rlhf_row *row, const char *path) {
    const struct rlhf_test_row_value *v = rlhf_test_row_at(host, path, 0);
    (void)row;
    return v ? v->type : (int32_t)RLHF_ROW_ABSENT;
}

static inline rlhf_status rlhf_test_do_row_string(void *host, const rlhf_row *row, const char *path,
                                                  rlhf_str *out) {
    const struct rlhf_test_row_value *v = rlhf_test_row_at(host, path, RLHF_ROW_STRING);
    (void)row;
    if (!v) return RLHF_E_INVALID;
    out->ptr = v->string;
    out->len = strlen(v->string);
    return RLHF_OK;
}

static inline rlhf_status rlhf_test_do_row_number(void *host, const rlhf_row *row, const char *path,
                                                  double *out) {
    const struct rlhf_test_row_value *v = rlhf_test_row_at(host, path, RLHF_ROW_NUMBER);
    (void)row;
    if (!v) return RLHF_E_INVALID;
    *out = v->number;
    return RLHF_OK;
}

static inline rlhf_status rlhf_test_do_row_boolean(void *host, const rlhf_row *row,
                                                   const char *path, int32_t *out) {
    const struct rlhf_test_row_value *v = rlhf_test_row_at(host, path, RLHF_ROW_BOOL);
    (void)row;
    if (!v) return RLHF_E_INVALID;
    *out = v->number != 0;
    return RLHF_OK;
}

static inline rlhf_status rlhf_test_do_row_length(void *host, const rlhf_row *row, const char *path,
                                                  uint64_t *out) {
    const struct rlhf_test_row_value *v = rlhf_test_row_at(host, path, RLHF_ROW_LIST);
    (void)row;
    if (!v) return RLHF_E_INVALID;
    *out = (uint64_t)v->number;
    return RLHF_OK;
}

// values are borrowed.
static inline void rlhf_test_rows_init(struct rlhf_test_rows *r,
                                       const struct rlhf_test_row_value *values,
                                       uint32_t n_values) {
    memset(r, 0, sizeof *r);
    r->table.size = (uint32_t)sizeof r->table;
    r->table.host = r;
    r->table.open = rlhf_test_do_row_open;
    r->table.close = rlhf_test_do_row_close;
    r->table.type = rlhf_test_do_row_type;
    r->table.string = rlhf_test_do_row_string;
    r->table.number = rlhf_test_do_row_number;
    r->table.boolean = rlhf_test_do_row_boolean;
    r->table.length = rlhf_test_do_row_length;
    r->values = values;
    r->n_values = n_values;
}

// ---- "rlhf.limits/0" ----

// No limits: offer l as RLHF_SVC_LIMITS, and set what a test wants.
static inline void rlhf_test_limits_init(rlhf_limits *l) {
    memset(l, 0, sizeof *l);
    l->size = (uint32_t)sizeof *l;
}

#endif
