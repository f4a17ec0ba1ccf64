// probe.c: see probe.h.
#include "check/probe.h"

#include "base/clock.h"
#include "base/float_env.h"
#include "base/printable.h"
#include "check/fakes.h"
#include "check/guard.h"
#include "plugin/combine.h"
#include "plugin/metric_names.h"

#include <rlhf/service.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FENCE = 64 };        // guard bytes after an allocation
enum { MOST_METRICS = 64 }; // number of metrics whose `combine` is compared
#define MOST                                                                                       \
    ((uint64_t)1 << 30) // limit of one allocation: an option at its limit may ask for a
                        // huge one
static const char fence_byte = 0x5a;
static const double patience = 1; // seconds that a call may poll after a warning

struct block {
    struct block *next;
    char *at;
    size_t n; // size as requested
};

struct rlhf__probe_host {
    rlhf_host api; // first member: its functions cast back to this struct
    struct rlhf__probe *probe;
    pthread_mutex_t lock; // protects the members below
    struct block *block;
    int64_t allocs, fail_at;
    pthread_t caller;
    pid_t process;      // that made the instance
    const char *inside; // the running function, NULL: none
    int32_t said;       // fail() was called in this call
    int32_t starved;    // 1: one of its allocations was refused
    double warned;      // time of this call's warning; 0: none
    int32_t stopped;    // 1: the call waited and was stopped
    char words[512], missing[64], warning[200];
    struct rlhf__cut_tables cut;
    struct {
        char name[120];
        struct rlhf__combined all;
    } metric[MOST_METRICS]; // [n_metrics] reported metrics
    size_t n_metrics;
    rlhf__probe_reduce_fn *reduce; // NULL: one process
    void *reduce_ctx;
};

static struct rlhf__probe_host *behind(const rlhf_host *api) {
    return (struct rlhf__probe_host *)(uintptr_t)api;
}

static struct rlhf__child_log *board_of(const struct rlhf__probe_host *h) {
    return h->probe->check->log;
}

static void do_log(const rlhf_host *api, int32_t level, const char *msg) {
    struct rlhf__probe_host *h = behind(api);
    pthread_mutex_lock(&h->lock);
    if (level < RLHF_LOG_WARN || !msg) {
        h->warned = 0; // the call goes on
    } else if (h->inside) {
        h->warned = rlhf__seconds();
        snprintf(h->warning, sizeof h->warning, "%s", msg);
    }
    pthread_mutex_unlock(&h->lock);
}

static rlhf_status do_fail(const rlhf_host *api, rlhf_status code, const char *msg) {
    struct rlhf__probe_host *h = behind(api);
    if (code >= 0) code = RLHF_E_INTERNAL;
    pthread_mutex_lock(&h->lock);
    h->said = msg && *msg;
    snprintf(h->words, sizeof h->words, "%s", msg ? msg : "");
    pthread_mutex_unlock(&h->lock);
    return code;
}

static void *do_alloc(const rlhf_host *api, uint64_t bytes) {
    struct rlhf__probe_host *h = behind(api);
    if (bytes == 0 || bytes > MOST) return NULL;
    pthread_mutex_lock(&h->lock);
    const int64_t turn = ++h->allocs;
    void *p = NULL;
    struct block *b = turn == h->fail_at ? NULL : calloc(1, sizeof *b);
    h->starved |= turn == h->fail_at;
    if (b) p = aligned_alloc(64, ((size_t)bytes + FENCE + 63) / 64 * 64);
    if (p) {
        memset(p, 0, (size_t)bytes);
        memset((char *)p + bytes, fence_byte, FENCE);
        *b = (struct block){h->block, p, (size_t)bytes};
        h->block = b;
    } else {
        free(b);
    }
    pthread_mutex_unlock(&h->lock);
    return p;
}

static void look_at_fence(const struct rlhf__probe_host *h, const struct block *b) {
    for (size_t i = 0; i < FENCE; i++)
        if (b->at[b->n + i] != fence_byte) {
            rlhf__child_log_found(board_of(h), RLHF__CHECK_OVERRUN,
                                  "it wrote %zu bytes beyond the %zu that it asked host->alloc for",
                                  i + 1, b->n);
            return;
        }
}

static void do_free(const rlhf_host *api, void *p) {
    struct rlhf__probe_host *h = behind(api);
    struct block *found = NULL;
    if (!p) return;
    pthread_mutex_lock(&h->lock);
    for (struct block **at = &h->block; *at; at = &(*at)->next) {
        if ((*at)->at != p) continue;
        found = *at;
        *at = found->next;
        break;
    }
    pthread_mutex_unlock(&h->lock);
    if (!found) {
        rlhf__child_log_found(
            board_of(h), RLHF__CHECK_FREE,
            "%s: host->free got what host->alloc did not give, or gave back before",
            h->inside ? h->inside : "outside of a call");
        return;
    }
    look_at_fence(h, found);
    memset(p, 0xd5, found->n); // so that use after free reads garbage
    free(p);
    free(found);
}

// Returns 1 if the caller may use metric() and reduce(). Both are [call]: they are allowed only
// while a function of the plugin runs, on the thread that called the function.
static int in_call(const struct rlhf__probe_host *h, const char *what) {
    if (h->inside && pthread_equal(h->caller, pthread_self())) return 1;
    rlhf__child_log_found(board_of(h), RLHF__CHECK_THREAD, "host->%s was called %s", what,
                          h->inside ? "from another thread than the call's" : "outside of a call");
    return 0;
}

// Records a report of a metric. All reports of one name must be combined in the same way.
static int look_at_combine(struct rlhf__probe_host *h, const char *name, double value,
                           double weight, int32_t combine) {
    const char *fault = rlhf__combine_fault(weight, combine);
    size_t i = 0;
    if (fault) {
        rlhf__child_log_found(board_of(h), RLHF__CHECK_METRIC_WEIGHT, "%s reports \"%s\": %s",
                              h->inside, name, fault);
        return 0;
    }
    while (i < h->n_metrics && strcmp(h->metric[i].name, name) != 0)
        i++;
    if (i == h->n_metrics && i < MOST_METRICS) {
        snprintf(h->metric[i].name, sizeof h->metric[i].name, "%s", name);
        h->metric[h->n_metrics++].all = (struct rlhf__combined){0};
    }
    if (i < h->n_metrics && !rlhf__combine_add(&h->metric[i].all, value, weight, combine)) {
        rlhf__child_log_found(board_of(h), RLHF__CHECK_METRIC_COMBINE,
                              "\"%s\" is reported as \"%s\", and by %s as \"%s\"", name,
                              rlhf__combine_name(h->metric[i].all.combine), h->inside,
                              rlhf__combine_name(combine));
        return 0;
    }
    return 1;
}

static const char *owner_of(const struct rlhf__probe_host *h) {
    switch (h->probe->check->plugin->desc.kind) {
    case RLHF_KIND_ALGO:
        return "";
    case RLHF_KIND_REWARD:
        return "rewards/x";
    case RLHF_KIND_ENVIRONMENT:
        return "environment";
    default:
        return "models/x";
    }
}

int rlhf__probe_may_report(struct rlhf__probe *t, const char *name, double value, double weight,
                           int32_t combine) {
    struct rlhf__probe_host *h = t->host;
    const char *owner = owner_of(h);
    char full[RLHF__METRIC_NAME], shown[200];
    if (!in_call(h, "metric")) return 0;
    const char *early = rlhf__metric_not_in(h->inside);
    if (early && h->probe->check->plugin->desc.kind != RLHF_KIND_SINK) {
        rlhf__child_log_found(board_of(h), RLHF__CHECK_METRIC_PHASE, "%s reports \"%s\": %s",
                              h->inside, rlhf__printable(name ? name : "", shown, sizeof shown),
                              early);
        return 0;
    }
    const char *bad = rlhf__metric_name_fault(name), *fault = rlhf__metric_name(owner, name, full);
    if (!fault) return look_at_combine(h, name, value, weight, combine);
    rlhf__child_log_found(board_of(h), bad ? RLHF__CHECK_METRIC_TEXT : RLHF__CHECK_METRIC,
                          "%s reports \"%s\": %s", h->inside,
                          rlhf__printable(name ? name : "", shown, sizeof shown), fault);
    return 0;
}

static void do_metric(const rlhf_host *api, const char *name, double value, double weight,
                      int32_t combine) {
    rlhf__probe_may_report(behind(api)->probe, name, value, weight, combine);
}

static void do_rng(const rlhf_host *api, const char *stream, rlhf_rng *out) {
    (void)api;
    out->seed = 1;
    out->stream = rlhf_rng_stream(stream ? stream : "");
    out->counter = 0;
}

// If a function logs a warning and then polls for cancellation, it waits for something, such as a
// service that does not answer. Nobody will start that service here, so the host cancels the call.
static int32_t do_cancelled(const rlhf_host *api) {
    struct rlhf__probe_host *h = behind(api);
    pthread_mutex_lock(&h->lock);
    if (h->warned && rlhf__seconds() - h->warned > patience) h->stopped = 1;
    const int32_t stopped = h->stopped;
    pthread_mutex_unlock(&h->lock);
    return stopped;
}

static const void *do_service(const rlhf_host *api, const char *id) {
    struct rlhf__probe_host *h = behind(api);
    if (id && strcmp(id, RLHF_SVC_LIMITS) == 0)
        rlhf__child_log_fact(board_of(h),
                             "it has work done outside the process (it asks for %s): what "
                             "is done there is not looked into, but the time counts",
                             id);
    const struct rlhf__check *c = h->probe->check;
    const void *table =
        id ? rlhf__services_for(&c->services, id, c->plugin->abi_minor, &h->cut) : NULL;
    if (!table && id) snprintf(h->missing, sizeof h->missing, "%s", id);
    return table;
}

static rlhf_status do_reduce(const rlhf_host *api, double *sums, uint32_t n) {
    struct rlhf__probe_host *h = behind(api);
    const int algo = h->probe->check->plugin->desc.kind == RLHF_KIND_ALGO;
    const int called = in_call(h, "reduce");
    if (called && !algo)
        rlhf__child_log_found(board_of(h), RLHF__CHECK_REDUCE,
                              "%s called host->reduce, which is only for algorithms", h->inside);
    if (!algo) return RLHF_E_UNSUPPORTED;
    if (called && strcmp(h->inside, "loss()") == 0)
        rlhf__child_log_found(board_of(h), RLHF__CHECK_REDUCE, "loss() called host->reduce");
    else if (h->reduce)
        h->reduce(h->reduce_ctx, sums, n);
    return RLHF_OK;
}

// ---- calls ----

void rlhf__probe_begin(struct rlhf__probe *t, const char *function) {
    struct rlhf__probe_host *h = t->host;
    h->said = 0;
    h->words[0] = 0;
    h->warned = 0;
    h->stopped = 0;
    h->caller = pthread_self();
    h->inside = function;
    rlhf__child_log_inside(t->check->log, function);
    rlhf__float_env_set(RLHF__FLOAT_ENV_STANDARD);
}

void rlhf__probe_floats(struct rlhf__child_log *log, const char *what) {
    const char *odd = rlhf__float_env_odd(rlhf__float_env_get());
    if (!odd) return;
    rlhf__float_env_set(RLHF__FLOAT_ENV_STANDARD);
    rlhf__child_log_found(log, RLHF__CHECK_FLOATS,
                          "%s changes the floating-point environment: %s (an object that gcc links "
                          "with -ffast-math or -Ofast does so when it is loaded)",
                          what, odd);
}

rlhf_status rlhf__probe_end(struct rlhf__probe *t, rlhf_status st, struct rlhf__error *err) {
    struct rlhf__probe_host *h = t->host;
    const char *function = h->inside;
    if (getpid() != h->process) { // a worker that comes back twice is ended
        rlhf__child_log_found(t->check->log, RLHF__CHECK_ENDS,
                              "%s returned a second time, in a process that it had forked",
                              function);
        _exit(0);
    }
    h->inside = NULL;
    rlhf__probe_floats(t->check->log, function);
    if (h->stopped) {
        rlhf__child_log_fact(t->check->log, "%s waits: %s", function, h->warning);
        rlhf__child_log_hangs(t->check->log);
    }
    rlhf__child_log_inside(t->check->log, NULL);
    if (st == RLHF_OK) return st;
    if (!h->said && t->kernels && rlhf__instance_said(t->kernels, h->words, sizeof h->words) != st)
        h->words[0] = 0; // those words are about an earlier failure
    if (st > RLHF_OK || st < RLHF_E_INTERNAL) {
        rlhf__child_log_found(t->check->log, RLHF__CHECK_STATUS,
                              "%s returned %d, which is not a valid status", function, st);
        st = RLHF_E_INTERNAL;
    } else if (!h->words[0] && st != RLHF_E_NOMEM && st != RLHF_E_CANCELLED) {
        rlhf__child_log_found(t->check->log, RLHF__CHECK_WORDS,
                              "%s failed (%s) and said nothing with host->fail", function,
                              rlhf__status_text(st));
    }
    return rlhf__fail(err, st, "%s: %s", function, h->words[0] ? h->words : rlhf__status_text(st));
}

rlhf_status rlhf__check_services(struct rlhf__check *c, struct rlhf__error *err) {
    c->services.phase = -1;
    RLHF_TRY(rlhf__services_offer(&c->services, RLHF_SVC_ROW, RLHF__STRUCT_rlhf_row_service,
                                  rlhf__row_service(), err));
    return rlhf__check_fakes_open(&c->services, c->dirs, &c->fakes, err);
}

void rlhf__check_services_finish(struct rlhf__check *c) { rlhf__check_fakes_close(c->fakes); }

static void fill_api(rlhf_host *api, uint32_t minor) {
    RLHF__PASS(rlhf_host, api, minor);
    api->abi_minor = RLHF_ABI_MINOR;
    api->name = "rlhf-host";
    api->version = RLHF_SDK_VERSION;
    api->log = do_log;
    api->fail = do_fail;
    api->alloc = do_alloc;
    api->free = do_free;
    api->metric = do_metric;
    api->rng = do_rng;
    api->cancelled = do_cancelled;
    api->service = do_service;
    api->reduce = do_reduce;
}

rlhf_status rlhf__probe_init(struct rlhf__check *c, const json_t *options, int64_t fail_at,
                             struct rlhf__probe *t, struct rlhf__error *err) {
    const rlhf_plugin *d = &c->plugin->desc;
    const struct rlhf__origin from = {.source = "--set", .section = ""};
    *t = (struct rlhf__probe){.check = c};
    t->host = calloc(1, sizeof *t->host);
    if (!t->host) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    fill_api(&t->host->api, c->plugin->abi_minor);
    pthread_mutex_init(&t->host->lock, NULL);
    t->host->probe = t;
    t->host->fail_at = fail_at;
    t->host->process = getpid();
    rlhf__check_fakes_begin(c->fakes);
    RLHF_TRY(rlhf__opts_new(&c->plugin->table, d->config_size, options ? options : c->options,
                            &from, &t->strings, &t->config, err));
    if (!d->create) {
        t->self = t->config;
        return RLHF_OK;
    }
    rlhf__probe_begin(t, "create()");
    const rlhf_status st = rlhf__probe_end(t, d->create(&t->host->api, t->config, &t->self), err);
    if (st < 0) t->self = NULL;
    return st;
}

void rlhf__probe_finish(struct rlhf__probe *t) {
    const rlhf_plugin *d = &t->check->plugin->desc;
    struct rlhf__probe_host *h = t->host;
    size_t kept = 0, bytes = 0;
    if (!h) return;
    const int made = t->self != NULL;
    if (d->create && d->destroy && made) {
        rlhf__probe_begin(t, "destroy()");
        d->destroy(t->self);
        rlhf__probe_end(t, RLHF_OK, NULL);
    }
    while (h->block) {
        struct block *b = h->block;
        h->block = b->next;
        look_at_fence(h, b);
        kept++;
        bytes += b->n;
        free(b->at);
        free(b);
    }
    if (kept)
        rlhf__child_log_found(t->check->log, RLHF__CHECK_LEAK,
                              "after %s, %zu allocation%s of %zu bytes in all %s not given back",
                              !made        ? "a create() that failed"
                              : d->destroy ? "destroy()"
                                           : "the instance's end (it has no destroy())",
                              kept, kept == 1 ? "" : "s", bytes, kept == 1 ? "was" : "were");
    const int32_t left = rlhf__check_fakes_end(t->check->fakes);
    if (left)
        rlhf__child_log_found(t->check->log, RLHF__CHECK_LEAK,
                              "after %s, %d models of services were not closed",
                              made ? "destroy()" : "a create() that failed", left);
    free(t->config);
    rlhf__strings_finish(&t->strings);
    rlhf__cut_tables_finish(&h->cut);
    pthread_mutex_destroy(&h->lock);
    free(h);
    t->host = NULL;
}

int64_t rlhf__probe_allocs(const struct rlhf__probe *t) { return t->host->allocs; }

void rlhf__probe_fail_alloc(struct rlhf__probe *t, int64_t n) {
    t->host->fail_at = n ? t->host->allocs + n : 0;
}

int rlhf__probe_starved(const struct rlhf__probe *t) { return t->host->starved; }

void rlhf__probe_reduce_to(struct rlhf__probe *t, rlhf__probe_reduce_fn *reduce, void *ctx) {
    t->host->reduce = reduce;
    t->host->reduce_ctx = ctx;
}

const char *rlhf__probe_metric(const struct rlhf__probe *t, size_t i, double *value) {
    if (i >= t->host->n_metrics) return NULL;
    *value = t->host->metric[i].all.value;
    return t->host->metric[i].name;
}

const char *rlhf__probe_words(const struct rlhf__probe *t) { return t->host->words; }

const char *rlhf__probe_missing(const struct rlhf__probe *t) { return t->host->missing; }

// ---- state ----

enum { MAX_STATE = 1 << 24 };

static rlhf_status stream_write(const rlhf_ostream *out, const void *bytes, uint64_t n) {
    struct rlhf__state_buffer *s = (struct rlhf__state_buffer *)(uintptr_t)out;
    if (n > s->limit - s->len) {
        s->refused = 1;
        return s->full;
    }
    if (n) memcpy(s->bytes + s->len, bytes, n);
    s->len += n;
    return RLHF_OK;
}

static struct rlhf__state_buffer *buffer_of(const rlhf_istream *in) {
    return (struct rlhf__state_buffer *)(void *)((char *)(uintptr_t)in -
                                                 offsetof(struct rlhf__state_buffer, in));
}

static uint64_t stream_left(const rlhf_istream *in) {
    const struct rlhf__state_buffer *s = buffer_of(in);
    return s->len - s->at;
}

static rlhf_status stream_read(const rlhf_istream *in, void *bytes, uint64_t n) {
    struct rlhf__state_buffer *s = buffer_of(in);
    if (n > s->len - s->at) return RLHF_E_IO;
    if (n) memcpy(bytes, s->bytes + s->at, n);
    s->at += n;
    return RLHF_OK;
}

int rlhf__state_buffer_init(struct rlhf__state_buffer *s) {
    *s = (struct rlhf__state_buffer){.out = {.write = stream_write},
                                     .in = {.read = stream_read, .left = stream_left},
                                     .limit = MAX_STATE,
                                     .full = RLHF_E_IO};
    s->bytes = malloc(MAX_STATE);
    return s->bytes != NULL;
}

void rlhf__state_buffer_finish(struct rlhf__state_buffer *s) {
    free(s->bytes);
    *s = (struct rlhf__state_buffer){0};
}

rlhf_status rlhf__state_buffer_save(struct rlhf__probe *t, struct rlhf__state_buffer *s,
                                    struct rlhf__error *err) {
    const rlhf_plugin *d = &t->check->plugin->desc;
    rlhf__child_log_doing(t->check->log, "save()");
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_ostream, &s->out, t->check->plugin->abi_minor, &tails);
    rlhf__probe_begin(t, "save()");
    rlhf_status st = d->save(t->self, &s->out);
    rlhf__guard_kept(&tails, t->check->log);
    if (s->refused) { // the host's write() has failed, which is not the plugin's fault
        rlhf__probe_end(t, RLHF_OK, NULL);
        return st;
    }
    return rlhf__probe_end(t, st, err);
}

rlhf_status rlhf__state_buffer_load(struct rlhf__probe *t, struct rlhf__state_buffer *s,
                                    uint32_t version, struct rlhf__error *err) {
    const rlhf_plugin *d = &t->check->plugin->desc;
    rlhf__child_log_doing(t->check->log, "load() of %llu bytes, version %u",
                          (unsigned long long)s->len, version);
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_istream, &s->in, t->check->plugin->abi_minor, &tails);
    rlhf__probe_begin(t, "load()");
    const rlhf_status st = d->load(t->self, &s->in, version);
    rlhf__guard_kept(&tails, t->check->log);
    if (st == RLHF_E_IO && s->at <= s->len) { // returned by read() and passed on
        rlhf__probe_end(t, RLHF_OK, NULL);
        return rlhf__fail(err, st, "load() of fewer bytes");
    }
    return rlhf__probe_end(t, st, err);
}
