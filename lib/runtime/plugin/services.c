// services.c: the functions of rlhf_host, and the life cycle of an instance; see services.h.
#include "plugin/services.h"

#include "base/printable.h"
#include "plugin/combine.h"
#include "plugin/instance.h"
#include "plugin/metric_names.h"
#include "plugin/search.h"

#include <rlhf/service.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_VERSION RLHF_SDK_VERSION

// Returns the host's struct that contains `api`, the table that a plugin passes back.
static struct rlhf__host *behind(const rlhf_host *api) {
    return (struct rlhf__host *)(uintptr_t)api;
}

static void host_log(const rlhf_host *api, int32_t level, const char *msg) {
    const struct rlhf__host *h = behind(api);
    const char *stem = h->instance.plugin->stem;
    if (!msg) msg = "";
    if (level >= RLHF_LOG_DEBUG && level <= RLHF_LOG_ERROR)
        rlhf__logf(h->services->log, level, "%s: %s", stem, msg);
    else
        rlhf__logf(h->services->log, RLHF_LOG_WARN,
                   "%s: %s (its level is %d; it must be from %d to %d, enum rlhf_log_level)", stem,
                   msg, level, RLHF_LOG_DEBUG, RLHF_LOG_ERROR);
}

static rlhf_status host_fail(const rlhf_host *api, rlhf_status code, const char *msg) {
    if (code >= 0) code = RLHF_E_INTERNAL;
    rlhf__note_put(&behind(api)->said, code, msg);
    return code;
}

static void *host_alloc(const rlhf_host *api, uint64_t bytes) {
    (void)api;
    if (bytes == 0 || bytes > SIZE_MAX - 64) return NULL;
    size_t whole = ((size_t)bytes + 63) / 64 * 64;
    void *p = aligned_alloc(64, whole);
    if (p) memset(p, 0, whole);
    return p;
}

static void host_free(const rlhf_host *api, void *p) {
    (void)api;
    free(p);
}

// Where a function is called that is allowed only during a call ([call]), or NULL if it is allowed.
// Kernels run inside calls of models, which the host does not record as calls of the kernels.
static const char *misplaced(struct rlhf__host *h, char *out, size_t cap) {
    if (h->instance.plugin->desc.kind == RLHF_KIND_KERNELS) return NULL;
    return rlhf__on_call_where(&h->on_call, out, cap);
}

// Warn, once for each name, that the host ignores a report. `inside`: the function that made it, or
// NULL if `why` says where it was made.
static void leave_out(struct rlhf__host *h, const char *inside, const char *name, const char *why) {
    char shown[72];
    if (!rlhf__metric_first(&h->left_out, name)) return;
    if (!name) name = "";
    rlhf__logf(h->services->log, RLHF_LOG_WARN, "%s%s%s: the metric \"%s%s\" is left out: %s",
               h->instance.plugin->stem, inside ? ", " : "", inside ? inside : "",
               rlhf__printable(name, shown, sizeof shown), strlen(name) < sizeof shown ? "" : "...",
               why);
}

// Returns 1 and the metric's full name if the plugin may make this report now; otherwise warns.
static int may_report(struct rlhf__host *h, const char *name, double weight, int32_t combine,
                      char full[RLHF__METRIC_NAME]) {
    char where[96], why[RLHF__METRIC_WHY];
    const char *fault = misplaced(h, where, sizeof where);
    if (fault) {
        leave_out(h, NULL, name, rlhf__metric_misplaced(fault, why));
        return 0;
    }
    const char *inside = atomic_load(&h->on_call.inside);
    if (inside) fault = rlhf__metric_not_in(inside);
    if (!fault) fault = rlhf__metric_name(h->owner, name, full);
    if (!fault) fault = rlhf__combine_fault(weight, combine);
    if (fault) leave_out(h, inside, name, fault);
    return !fault;
}

int rlhf__instance_may_report(const struct rlhf__instance *i, const char *name, double weight,
                              int32_t combine) {
    char full[RLHF__METRIC_NAME];
    return !i->host || may_report(behind(i->host), name, weight, combine, full);
}

const char *rlhf__instance_where(const struct rlhf__instance *i, char *out, size_t cap) {
    return i->host ? misplaced(behind(i->host), out, cap) : NULL;
}

static void host_metric(const rlhf_host *api, const char *name, double value, double weight,
                        int32_t combine) {
    struct rlhf__host *h = behind(api);
    const struct rlhf__services *s = h->services;
    char full[RLHF__METRIC_NAME];
    if (h->instance.plugin->desc.kind == RLHF_KIND_SINK) return; // a sink only observes the run
    if (!may_report(h, name, weight, combine, full)) return;
    if (h->metric)
        h->metric(h->metric_ctx, full, value, weight, combine);
    else if (s->metric)
        s->metric(s->metric_ctx, full, value, weight, combine);
}

// The stream's name contains the instance, so that plugins cannot use streams of the host
// ("rollout", "minibatch", ...) or of other plugins.
void rlhf__instance_rng(const char *id, const char *owner, uint64_t seed, const char *stream,
                        rlhf_rng *out) {
    char full[1024];
    snprintf(full, sizeof full, "%s/%s/%s", id, owner, stream ? stream : "");
    out->seed = seed;
    out->stream = rlhf_rng_stream(full);
    out->counter = 0;
}

static void host_rng(const rlhf_host *api, const char *stream, rlhf_rng *out) {
    const struct rlhf__host *h = behind(api);
    rlhf__instance_rng(h->instance.plugin->desc.id, h->owner, h->services->seed, stream, out);
}

const struct rlhf__instance *rlhf__instance_behind(const rlhf_host *api) {
    return &behind(api)->instance;
}

struct rlhf__services *rlhf__services_behind(const rlhf_host *api) {
    return behind(api)->services;
}

const char *rlhf__owner_behind(const rlhf_host *api) { return behind(api)->owner; }

static int32_t host_cancelled(const rlhf_host *api) {
    const struct rlhf__services *s = behind(api)->services;
    return s->cancelled && *s->cancelled;
}

// Returns the index of an offered service, or -1.
static int place_of(const struct rlhf__services *s, const char *id) {
    for (size_t i = 0; i < s->n_offered; i++)
        if (strcmp(s->offered[i].id, id) == 0) return (int)i;
    return -1;
}

static const void *host_service(const rlhf_host *api, const char *id) {
    struct rlhf__host *h = behind(api);
    if (!id) return NULL;
    return rlhf__services_for(h->services, id, h->instance.plugin->abi_minor, &h->cut);
}

// Rules that make the running or the next call fail, even if the plugin ignores the status that it
// got from the host.
enum broken { BROKE_NONE = 0, REDUCE_IN_LOSS = 1, REDUCE_MISPLACED = 2, SERVICE_CLOSED = 3 };

static const char *broken_text(int broken) {
    if (broken == SERVICE_CLOSED)
        return "it called close() of a service in a function that is not [main], or on a thread of "
               "its own";
    return broken == REDUCE_IN_LOSS
               ? "it called reduce(), which is not allowed in loss(), because the workers do not "
                 "make the same calls of loss(); add up the sums in minibatch_end() or phase_end()"
               : "it called reduce() on a thread of its own or after a call had returned; reduce() "
                 "may be called only on the thread of a running call";
}

static rlhf_status break_rule(struct rlhf__host *h, int broken) {
    atomic_store(&h->broke, broken);
    return host_fail(&h->api, RLHF_E_INVALID, broken_text(broken));
}

// Adds up the algorithm's sums over all processes. Not every process calls the other plugins. The
// rules hold in a run of one process too, so that an algorithm that works there works everywhere.
static rlhf_status host_reduce(const rlhf_host *api, double *sums, uint32_t n) {
    struct rlhf__host *h = behind(api);
    const struct rlhf__services *s = h->services;
    struct rlhf__error err;
    char where[96];
    if (h->instance.plugin->desc.kind != RLHF_KIND_ALGO)
        return host_fail(api, RLHF_E_UNSUPPORTED, RLHF__REDUCE_FOR_ALGOS);
    if (misplaced(h, where, sizeof where)) return break_rule(h, REDUCE_MISPLACED);
    if (strcmp(atomic_load(&h->on_call.inside), "loss()") == 0)
        return break_rule(h, REDUCE_IN_LOSS);
    if (!s->reduce) return RLHF_OK;
    const rlhf_status st = s->reduce(s->reduce_ctx, sums, n, &err);
    return st == RLHF_OK ? st : api->fail(api, st, err.text);
}

// ---- services ---------------------------------------------------------------------------------

rlhf_status rlhf__services_offer(struct rlhf__services *s, const char *id, enum rlhf__struct which,
                                 const void *table, struct rlhf__error *err) {
    if (rlhf__services_find(s, id))
        return rlhf__fail(err, RLHF_E_INTERNAL, "the service %s is offered twice", id);
    if (s->n_offered == RLHF__MAX_SERVICES)
        return rlhf__fail(err, RLHF_E_INTERNAL, "no room for the service %s: there are %d already",
                          id, RLHF__MAX_SERVICES);
    s->offered[s->n_offered++] = (struct rlhf__service){id, table, which};
    return RLHF_OK;
}

const void *rlhf__services_find(const struct rlhf__services *s, const char *id) {
    const int at = place_of(s, id);
    return at < 0 ? NULL : s->offered[at].table;
}

const void *rlhf__services_for(const struct rlhf__services *s, const char *id, uint32_t minor,
                               struct rlhf__cut_tables *cut) {
    const int at = place_of(s, id);
    if (at < 0) return NULL;
    const struct rlhf__service *one = &s->offered[at];
    const uint32_t all = rlhf__struct_size(one->which, RLHF_ABI_MINOR);
    void *copy = atomic_load(&cut->at[at]), *none = NULL;
    if (copy || rlhf__struct_size(one->which, minor) == all) return copy ? copy : one->table;
    copy = malloc(all);
    if (!copy) return NULL;
    memcpy(copy, one->table, all);
    rlhf__struct_pass(one->which, copy, minor);
    if (atomic_compare_exchange_strong(&cut->at[at], &none, copy)) return copy;
    free(copy); // another thread was first
    return none;
}

void rlhf__cut_tables_finish(struct rlhf__cut_tables *cut) {
    for (int at = 0; at < RLHF__MAX_SERVICES; at++)
        free(atomic_load(&cut->at[at]));
}

// Returns 1 for a reward that may be called while the run's models compute (rewards.overlap).
static int is_external(const struct rlhf__host *h) {
    const struct rlhf__plugin *p = h->instance.plugin;
    return p->desc.kind == RLHF_KIND_REWARD && (p->ops.reward.flags & RLHF_REWARD_EXTERNAL) != 0;
}

// Returns 1 if this function of a plugin is [main].
static int is_main(const char *function) {
    static const char *const all[] = {"create()", "destroy()", "plan()",  "check_row()",
                                      "save()",   "load()",    "tools()", "why_unused()",
                                      "begin()",  "phase()",   "end()"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(function, all[i]) == 0) return 1;
    return 0;
}

rlhf_status rlhf__service_may(const rlhf_host *caller, enum rlhf__service_act act) {
    struct rlhf__host *h = behind(caller);
    char text[256] = "";
    const char *inside = atomic_load(&h->on_call.inside);
    if (act <= RLHF__SERVICE_OPENS_MODEL && is_external(h))
        return caller->fail(caller, RLHF_E_UNSUPPORTED,
                            "a reward with RLHF_REWARD_EXTERNAL cannot use models, because it may "
                            "score while the run's models compute (rewards.overlap); leave out the "
                            "flag");
    if (h->instance.plugin->desc.kind == RLHF_KIND_KERNELS) return RLHF_OK;
    if (!rlhf__on_call_service(&h->on_call, text, sizeof text) &&
        (act == RLHF__SERVICE_OPENS_MODEL || act == RLHF__SERVICE_CLOSES) && inside &&
        !is_main(inside))
        snprintf(text, sizeof text,
                 "it called open() of a service in %s; objects are opened and closed in functions "
                 "that are [main], such as create()",
                 inside);
    if (!*text) return RLHF_OK;
    if (act == RLHF__SERVICE_CLOSES) return break_rule(h, SERVICE_CLOSED);
    return caller->fail(caller, RLHF_E_INVALID, text);
}

const char *rlhf__host_enter(const rlhf_host *api, const char *function) {
    return rlhf__on_call_begin(&behind(api)->on_call, function);
}

void rlhf__host_leave(const rlhf_host *api, const char *outer) {
    rlhf__on_call_end(&behind(api)->on_call, outer);
}

rlhf_status rlhf__service_failed(const rlhf_host *caller, const struct rlhf__error *err) {
    return caller->fail(caller, err->code, err->text);
}

// ---- instances --------------------------------------------------------------------------------

static void fill_api(rlhf_host *api, uint32_t minor) {
    RLHF__PASS(rlhf_host, api, minor);
    api->abi_minor = RLHF_ABI_MINOR;
    api->name = "rlhf-host";
    api->version = HOST_VERSION;
    api->log = host_log;
    api->fail = host_fail;
    api->alloc = host_alloc;
    api->free = host_free;
    api->metric = host_metric;
    api->rng = host_rng;
    api->cancelled = host_cancelled;
    api->service = host_service;
    api->reduce = host_reduce;
}

static void host_destroy(struct rlhf__host *h) {
    rlhf__cut_tables_finish(&h->cut);
    rlhf__note_finish(&h->said);
    free(h->instance.config);
    rlhf__strings_finish(&h->strings);
    free(h);
}

rlhf_status rlhf__instance_open(const struct rlhf__plugin *plugin, struct rlhf__services *services,
                                const char *owner, const json_t *options,
                                const struct rlhf__origin *from, struct rlhf__instance **out,
                                struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__host *h = calloc(1, sizeof *h);
    if (!h) return rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", rlhf__plugin_name(plugin));
    struct rlhf__instance *i = &h->instance;
    rlhf__note_init(&h->said);
    fill_api(&h->api, plugin->abi_minor);
    h->services = services;
    snprintf(h->owner, sizeof h->owner, "%s", owner);
    i->plugin = plugin;
    i->host = &h->api;
    rlhf_status st = rlhf__opts_new(&plugin->table, plugin->desc.config_size, options, from,
                                    &h->strings, &i->config, err);
    if (st == RLHF_OK) {
        i->self = i->config;
        if (plugin->desc.create) {
            i->self = NULL;
            struct rlhf__call call = rlhf__call_begin(i, "create()");
            st = plugin->desc.create(&h->api, i->config, &i->self);
            st = rlhf__call_end(&call, st, err);
        }
    }
    if (st < 0) {
        host_destroy(h);
        return st;
    }
    *out = i;
    return RLHF_OK;
}

void rlhf__instance_close(struct rlhf__instance *i) {
    if (!i) return;
    // Without create(), `self` is the config, and there is nothing for the plugin to free.
    if (i->plugin->desc.create && i->plugin->desc.destroy) {
        struct rlhf__call call = rlhf__call_begin(i, "destroy()");
        i->plugin->desc.destroy(i->self);
        rlhf__call_end(&call, RLHF_OK, NULL);
    }
    host_destroy(behind(i->host));
}

void rlhf__instance_metrics_to(const struct rlhf__instance *i, rlhf__metric_fn *metric, void *ctx) {
    if (!i->host) return;
    struct rlhf__host *h = behind(i->host);
    h->metric = metric;
    h->metric_ctx = ctx;
}

rlhf_status rlhf__instance_said(const struct rlhf__instance *i, char *out, size_t cap) {
    return rlhf__note_since(&behind(i->host)->said, 0, out, cap);
}

// ---- calls ------------------------------------------------------------------------------------

struct rlhf__call rlhf__call_begin(const struct rlhf__instance *i, const char *function) {
    struct rlhf__call c = {.instance = i, .function = function};
    const char *kind = rlhf__kind_name((int32_t)i->plugin->desc.kind);
    c.before = rlhf__running_begin(kind, rlhf__plugin_name(i->plugin), function);
    if (!i->host) return c;
    struct rlhf__host *h = behind(i->host);
    c.outer = rlhf__on_call_begin(&h->on_call, function);
    c.said = rlhf__note_mark(&h->said);
    const struct rlhf__instance *kernels = h->services->kernels;
    if (kernels) c.kernels_said = rlhf__note_mark(&behind(kernels->host)->said);
    return c;
}

const char *rlhf__no_status(rlhf_status status, char *out, size_t cap) {
    snprintf(out, cap, "it returned %d, which is not a valid status", status);
    return out;
}

int rlhf__words_fit(rlhf_status said, rlhf_status status) {
    return said == status || (status != RLHF_E_NOMEM && status != RLHF_E_CANCELLED);
}

// Writes the message of the plugin or of a service, or else the kernels' message. Returns 1 if it
// found a message.
static int message_of(const struct rlhf__call *call, rlhf_status status, char *out, size_t cap) {
    struct rlhf__host *h = behind(call->instance->host);
    const struct rlhf__instance *kernels = h->services->kernels;
    if (!rlhf__words_fit(rlhf__note_since(&h->said, call->said, out, cap), status)) *out = '\0';
    if (!*out && kernels &&
        rlhf__note_since(&behind(kernels->host)->said, call->kernels_said, out, cap) != status)
        *out = '\0'; // the plugin handled that failure
    return *out != '\0';
}

const char *rlhf__call_why(const struct rlhf__call *call, rlhf_status status, char *out,
                           size_t cap) {
    if (message_of(call, status, out, cap)) return out;
    if (status > RLHF_OK) return rlhf__no_status(status, out, cap);
    snprintf(out, cap, "%s", rlhf__status_text(status));
    return out;
}

// In these functions, plugins check the user's options or data. Their messages are clear without
// the function's name.
static int checks_inputs(const char *function) {
    return strcmp(function, "create()") == 0 || strcmp(function, "open()") == 0 ||
           strcmp(function, "check_row()") == 0;
}

const char *rlhf__confined_hint(const struct rlhf__plugin *p) {
    const char *confined = p->outside ? p->outside->confined : NULL;
    if (!confined || strstr(confined, "network=true")) return "";
    return RLHF__CONFINED_HINT;
}

int rlhf__is_refusal(const char *why) {
    static const char *const signs[] = {"Permission denied", "Operation not permitted",
                                        "Network is unreachable", "Name or service not known",
                                        "Temporary failure in name resolution"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strstr(why, signs[i])) return 1;
    return 0;
}

static rlhf_status call_failed(const struct rlhf__call *call, rlhf_status status,
                               struct rlhf__error *err) {
    const struct rlhf__instance *i = call->instance;
    const struct rlhf__services *services = behind(i->host)->services;
    char why[sizeof err->text], phase[48] = "";
    const int is_clear = message_of(call, status, why, sizeof why) && checks_inputs(call->function);
    rlhf__call_why(call, status, why, sizeof why);
    if (services->phase >= 0)
        snprintf(phase, sizeof phase, ", phase %lld", (long long)services->phase);
    if (status > RLHF_OK || status < RLHF_E_INTERNAL) status = RLHF_E_INTERNAL;
    return rlhf__fail(err, status, "%s %s%s%s%s: %s%s",
                      rlhf__kind_name((int32_t)i->plugin->desc.kind), rlhf__plugin_name(i->plugin),
                      is_clear ? "" : ", ", is_clear ? "" : call->function, phase, why,
                      rlhf__is_refusal(why) ? rlhf__confined_hint(i->plugin) : "");
}

rlhf_status rlhf__call_end(const struct rlhf__call *call, rlhf_status status,
                           struct rlhf__error *err) {
    rlhf__running_end(&call->before);
    if (call->instance->host) {
        struct rlhf__host *h = behind(call->instance->host);
        rlhf__on_call_end(&h->on_call, call->outer);
        const int broken = atomic_exchange(&h->broke, BROKE_NONE);
        if (broken) status = host_fail(&h->api, RLHF_E_INVALID, broken_text(broken));
    }
    return status == RLHF_OK ? RLHF_OK : call_failed(call, status, err);
}

rlhf_status rlhf__call_fault(const struct rlhf__call *call, const char *why) {
    const rlhf_host *host = call->instance->host;
    return host ? host_fail(host, RLHF_E_INTERNAL, why) : RLHF_E_INTERNAL;
}

rlhf_status rlhf__call_kept(const struct rlhf__call *call, struct rlhf__tails *tails,
                            rlhf_status status) {
    char why[192];
    return rlhf__tails_end(tails, why, sizeof why) ? rlhf__call_fault(call, why) : status;
}

rlhf_status rlhf__call_wrote(const struct rlhf__call *call, struct rlhf__tails *tails,
                             rlhf_status status, struct rlhf__error *err) {
    return rlhf__call_end(call, rlhf__call_kept(call, tails, status), err);
}

rlhf_status rlhf__call_context(const struct rlhf__call *call, struct rlhf__error *err) {
    const struct rlhf__plugin *plugin = call->instance->plugin;
    return rlhf__error_context(err, "%s %s, %s", rlhf__kind_name((int32_t)plugin->desc.kind),
                               rlhf__plugin_name(plugin), call->function);
}

rlhf_status rlhf__call_end_filled(const struct rlhf__call *call, rlhf_status status,
                                  const struct rlhf__filled *filled, void *out,
                                  struct rlhf__error *err) {
    RLHF_TRY(rlhf__call_end(call, status, err));
    if (rlhf__filled_end(filled, out, err) == RLHF_OK) return RLHF_OK;
    return rlhf__call_context(call, err);
}
