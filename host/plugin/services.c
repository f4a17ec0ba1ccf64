// services.c: the functions behind rlhf_host, and the life of an instance; see services.h.
#include "plugin/services.h"

#include "plugin/instance.h"

#include <stdlib.h>
#include <string.h>

#define HOST_VERSION RLHF_SDK_VERSION

// The host side of a table that a plugin hands back.
static struct rlhf__host *behind(const rlhf_host *api) {
    return (struct rlhf__host *)(uintptr_t)api;
}

static void host_log(const rlhf_host *api, int32_t level, const char *msg) {
    const struct rlhf__host *h = behind(api);
    rlhf__logf(h->services->log, level, "%s: %s", h->instance.plugin->stem, msg ? msg : "");
}

// The note of this thread, else a free one, else the oldest. Under the lock.
static struct rlhf__fail_note *note_of(struct rlhf__host *h, int take) {
    struct rlhf__fail_note *oldest = &h->note[0];
    pthread_t self = pthread_self();
    for (size_t i = 0; i < RLHF__FAIL_SLOTS; i++) {
        struct rlhf__fail_note *n = &h->note[i];
        if (n->age && pthread_equal(n->thread, self)) return n;
        if (n->age < oldest->age) oldest = n;
    }
    return take ? oldest : NULL;
}

static rlhf_status host_fail(const rlhf_host *api, rlhf_status code, const char *msg) {
    struct rlhf__host *h = behind(api);
    pthread_mutex_lock(&h->lock);
    struct rlhf__fail_note *n = note_of(h, 1);
    n->thread = pthread_self();
    n->age = ++h->clock;
    size_t len = msg ? strnlen(msg, sizeof n->text - 1) : 0;
    if (len) memcpy(n->text, msg, len);
    n->text[len] = '\0';
    pthread_mutex_unlock(&h->lock);
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

static void host_metric(const rlhf_host *api, const char *name, double value) {
    const struct rlhf__services *s = behind(api)->services;
    if (s->metric && name) s->metric(s->metric_ctx, name, value);
}

static void host_rng(const rlhf_host *api, const char *stream, rlhf_rng *out) {
    out->seed = behind(api)->services->seed;
    out->stream = rlhf_rng_stream(stream ? stream : "");
    out->counter = 0;
}

static int32_t host_cancelled(const rlhf_host *api) {
    const struct rlhf__services *s = behind(api)->services;
    return s->cancelled && *s->cancelled;
}

static const void *host_service(const rlhf_host *api, const char *id) {
    const struct rlhf__services *s = behind(api)->services;
    return s->service && id ? s->service(s->service_ctx, id) : NULL;
}

// ---- instances --------------------------------------------------------------------------------

static void fill_api(rlhf_host *api) {
    api->size = sizeof *api;
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
}

static void host_destroy(struct rlhf__host *h) {
    pthread_mutex_destroy(&h->lock);
    free(h->instance.config);
    rlhf__strings_free(&h->strings);
    free(h);
}

rlhf_status rlhf__instance_create(const struct rlhf__plugin *plugin,
                                  struct rlhf__services *services, const json_t *options,
                                  const struct rlhf__origin *from, struct rlhf__instance **out,
                                  struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__host *h = calloc(1, sizeof *h);
    if (!h) return rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", plugin->desc.id);
    struct rlhf__instance *i = &h->instance;
    pthread_mutex_init(&h->lock, NULL);
    fill_api(&h->api);
    h->services = services;
    i->plugin = plugin;
    i->host = &h->api;
    rlhf_status status = rlhf__opts_new(&plugin->table, plugin->desc.config_size, options, from,
                                        &h->strings, &i->config, err);
    if (status == RLHF_OK) {
        i->self = i->config;
        if (plugin->desc.create) {
            i->self = NULL;
            struct rlhf__call call = rlhf__call_begin(i, "create()");
            status = plugin->desc.create(&h->api, i->config, &i->self);
            status = rlhf__call_end(&call, status, err);
        }
    }
    if (status < 0) {
        host_destroy(h);
        return status;
    }
    *out = i;
    return RLHF_OK;
}

void rlhf__instance_destroy(struct rlhf__instance *i) {
    if (!i) return;
    // Without create(), self is the config and there is nothing of the plugin's to free.
    if (i->plugin->desc.create && i->plugin->desc.destroy) {
        struct rlhf__call call = rlhf__call_begin(i, "destroy()");
        i->plugin->desc.destroy(i->self);
        rlhf__call_end(&call, RLHF_OK, NULL);
    }
    host_destroy(behind(i->host));
}

rlhf_status rlhf__plugin_call_failed(const struct rlhf__instance *i, const char *function,
                                     rlhf_status status, struct rlhf__error *err) {
    struct rlhf__host *h = behind(i->host);
    char text[1024] = "", phase[48] = "", odd[64] = "";
    if (status > RLHF_OK) snprintf(odd, sizeof odd, "it returned %d, which is no status", status);
    if (status > RLHF_OK || status < RLHF_E_INTERNAL) status = RLHF_E_INTERNAL;
    pthread_mutex_lock(&h->lock);
    struct rlhf__fail_note *n = note_of(h, 0);
    if (n) {
        memcpy(text, n->text, sizeof text);
        n->age = 0; // said once
    }
    pthread_mutex_unlock(&h->lock);
    char service[sizeof text] = "";
    if (h->services->service_failure)
        h->services->service_failure(h->services->service_ctx, service, sizeof service);
    if (!*text) memcpy(text, service, sizeof text);
    if (h->services->phase >= 0)
        snprintf(phase, sizeof phase, ", phase %lld", (long long)h->services->phase);
    return rlhf__fail(err, status, "%s %s, %s%s: %s",
                      rlhf__kind_name((int32_t)i->plugin->desc.kind), i->plugin->desc.id, function,
                      phase,
                      *text  ? text
                      : *odd ? odd
                             : rlhf__status_text(status));
}

struct rlhf__call rlhf__call_begin(const struct rlhf__instance *i, const char *function) {
    return (struct rlhf__call){i, function,
                               rlhf__running_begin(rlhf__kind_name((int32_t)i->plugin->desc.kind),
                                                   i->plugin->desc.id, function)};
}

rlhf_status rlhf__call_end(const struct rlhf__call *call, rlhf_status status,
                           struct rlhf__error *err) {
    rlhf__running_end(&call->before);
    return status == RLHF_OK
               ? RLHF_OK
               : rlhf__plugin_call_failed(call->instance, call->function, status, err);
}
