// worker_instance.c: see worker_instance.h.
#include "worker/worker_instance.h"

#include "base/hash.h"
#include "base/printable.h"
#include "worker/upcall_handles.h"
#include "worker/upcall_services.h"

#include <rlhf/service.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- a worker with the file open ----

// Send a request for which an instance is not needed yet.
static rlhf_status ask_first(const struct rlhf__stand_in *s, struct rlhf__asked *a,
                             struct rlhf__error *err) {
    char text[1024];
    if (rlhf__ask(a, 1, s->rules.timeout_s, "rewards.timeout_s") != RLHF_OK)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: opening it: %s", s->path,
                          a->worker->failed.text);
    if (a->status == RLHF_OK) return RLHF_OK;
    return rlhf__fail(err, a->status < 0 ? a->status : RLHF_E_INTERNAL, "%s",
                      rlhf__printable(a->why, text, sizeof text));
}

// Ask the worker which confinement is in force, before the worker runs any code of the plugin.
static rlhf_status ask_confine(struct rlhf__stand_in *s, struct rlhf__worker *w,
                               struct rlhf__error *err) {
    struct rlhf__ear ear = {.api = NULL};
    struct rlhf__asked a = {.ear = &ear, .worker = w};
    rlhf__wire_begin(&a.frame, RLHF__ASK_CONFINE);
    rlhf__wire_u64(&a.frame, s->rules.memory_mib);
    rlhf__wire_f64(&a.frame, s->rules.timeout_s);
    rlhf_status st = ask_first(s, &a, err);
    if (st == RLHF_OK) {
        const rlhf_str text = rlhf__wire_get_text(&a.result);
        free(s->confined);
        s->confined = a.result.bad ? NULL : strndup(text.ptr, (size_t)text.len);
        s->base.confined = s->confined;
        if (!s->confined) st = RLHF__NOMEM(err, "%s: out of memory", s->path);
    }
    rlhf__asked_finish(&a);
    return st;
}

static rlhf_status ask_open(const struct rlhf__stand_in *s, struct rlhf__worker *w,
                            struct rlhf__description *what, struct rlhf__error *err) {
    struct rlhf__ear ear = {.api = NULL};
    struct rlhf__asked a = {.ear = &ear, .worker = w};
    rlhf__wire_begin(&a.frame, RLHF__ASK_OPEN);
    rlhf__wire_puts(&a.frame, s->path);
    rlhf__wire_puts(&a.frame, s->id);
    rlhf__wire_puts(&a.frame, s->asker);
    rlhf__wire_u32(&a.frame, (uint32_t)s->kind);
    rlhf_status st = ask_first(s, &a, err);
    if (st == RLHF_OK && what) {
        st = rlhf__description_get(&a.result, what, err);
        if (st != RLHF_OK) st = rlhf__error_context(err, "%s", s->path);
    }
    rlhf__asked_finish(&a);
    return st;
}

rlhf_status rlhf__stand_in_worker(struct rlhf__stand_in *s, const char *writes,
                                  struct rlhf__worker **out, struct rlhf__description *what,
                                  struct rlhf__error *err) {
    struct rlhf__worker *w = NULL;
    *out = NULL;
    if (rlhf__worker_start(s->program, s->rules.network, writes, s->rules.memory_mib, &w, err) < 0)
        return rlhf__error_context(err, "%s", s->path);
    // The worker must hold each message in its memory, so messages cannot be larger than its
    // memory.
    if (s->rules.memory_mib) w->most = (s->rules.memory_mib + 1) << 20;
    rlhf_status st = ask_confine(s, w, err);
    if (st == RLHF_OK) st = ask_open(s, w, what, err);
    if (st == RLHF_OK)
        *out = w;
    else
        rlhf__worker_end(w);
    return st;
}

// ---- failing ----

// Fail the call for the reason `why`. Returns `code`.
rlhf_status rlhf__pool_fail(const struct rlhf__pool *t, rlhf_status code, const char *why) {
    return t->api->fail(t->api, code, why);
}

// Log another failure of a call that has already failed.
static void tell_beside(const struct rlhf__pool *t, const char *why) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__buf_printf(&line, "in the same call: %s", why);
    t->api->log(t->api, RLHF_LOG_WARN, rlhf__buf_text(&line));
    rlhf__buf_finish(&line);
}

// Fail the call. If `first` is 0, the failure of another worker's part has already been reported,
// and this one is only logged.
rlhf_status rlhf__pool_fail_part(const struct rlhf__pool *t, rlhf_status code, const char *why,
                                 int first) {
    if (first) return rlhf__pool_fail(t, code, why);
    tell_beside(t, why);
    return code;
}

// Returns the plugin's status from the answer to a request. If the status is a failure, reports it.
// If the worker gave a reason, the report has this reason, otherwise the plugin's own message.
rlhf_status rlhf__pool_said(const struct rlhf__pool *t, const struct rlhf__asked *a, int first) {
    char text[RLHF__POOL_WHY];
    const struct rlhf__ear *e = a->ear;
    const int spoke = e->said[0] && rlhf__words_fit(e->said_code, a->status);
    const char *own = spoke ? e->said : rlhf__status_text(a->status);
    if (a->status == RLHF_OK) return RLHF_OK;
    if (a->status > RLHF_OK) { // a failure too, though RLHF_TRY() would not treat it as one
        if (*a->why)
            own = rlhf__printable(a->why, text, sizeof text);
        else if (!spoke)
            own = rlhf__no_status(a->status, text, sizeof text);
        return rlhf__pool_fail_part(t, RLHF_E_INTERNAL, own, first);
    }
    if (a->status == RLHF_E_NOMEM && t->s->rules.memory_mib) {
        snprintf(text, sizeof text, "%.1900s (rewards.memory_mib allows its worker %llu MiB)", own,
                 (unsigned long long)t->s->rules.memory_mib);
        // Not RLHF_E_NOMEM, which would mean that the host's memory ran out. Only the worker's
        // limit was reached, so some of the rows may still be scored.
        return rlhf__pool_fail_part(t, RLHF_E_INTERNAL, text, first);
    }
    if (*a->why) own = rlhf__printable(a->why, text, sizeof text);
    // If the plugin set no message, the message of the host service that failed is kept.
    if (first && !*a->why && !e->said[0]) return a->status;
    return rlhf__pool_fail_part(t, a->status, own, first);
}

// ---- workers ----

static void put_create(const struct rlhf__pool *t, struct rlhf__buf *frame) {
    const struct rlhf__services *services = rlhf__services_behind(t->api);
    const rlhf_limits *limits = t->api->service(t->api, RLHF_SVC_LIMITS);
    const rlhf_limits none = {0};
    if (!limits) limits = &none;
    rlhf__wire_begin(frame, RLHF__ASK_CREATE);
    rlhf__wire_u64(frame, services->seed);
    rlhf__wire_puts(frame, rlhf__owner_behind(t->api));
    rlhf__wire_u32(frame, rlhf__ear_services(t->api));
    rlhf__wire_u32(frame, (uint32_t)limits->retries);
    rlhf__wire_f64(frame, limits->timeout_s);
    rlhf__wire_u64(frame, limits->memory_bytes);
    rlhf__wire_text(frame, t->options.data, t->options.len);
}

rlhf_status rlhf__pool_ask(const struct rlhf__pool *t, struct rlhf__pool_worker *h,
                           struct rlhf__asked *a) {
    a->worker = h->worker;
    a->ear = &h->ear;
    rlhf__ear_begin(&h->ear);
    const rlhf_status st = rlhf__ask(a, 1, t->s->rules.timeout_s, RLHF__POOL_LIMIT);
    rlhf__ear_end(&h->ear);
    if (st != RLHF_OK) return rlhf__pool_fail(t, st, h->worker->failed.text);
    RLHF_TRY(rlhf__pool_said(t, a, 1));
    if (h == t->hand) rlhf__ear_report(&h->ear);
    return RLHF_OK;
}

// Take what an environment declares. Later workers do not change this.
static rlhf_status take_declared(struct rlhf__pool *t, struct rlhf__wire *in) {
    const uint32_t has = rlhf__wire_get_u32(in);
    const rlhf_str tools = rlhf__wire_get_text(in);
    t->places = 0;
    rlhf__buf_clear(&t->vacant);
    rlhf__buf_clear(&t->closed);
    if (t->starts++) return RLHF_OK;
    if (in->bad || !has) return RLHF_OK;
    t->tools = strndup(tools.ptr, (size_t)tools.len);
    return t->tools ? RLHF_OK : RLHF_E_NOMEM;
}

static rlhf_status create_in(struct rlhf__pool *t, struct rlhf__pool_worker *h) {
    struct rlhf__asked a = {.done = 0};
    put_create(t, &a.frame);
    a.may_be_left = 1;
    rlhf_status st = rlhf__pool_ask(t, h, &a);
    if (st == RLHF_OK && t->s->kind == RLHF_KIND_ENVIRONMENT) st = take_declared(t, &a.result);
    rlhf__asked_finish(&a);
    return st;
}

static rlhf_status load_in(const struct rlhf__pool *t, struct rlhf__pool_worker *h) {
    struct rlhf__asked a = {.done = 0};
    char why[128];
    rlhf__wire_begin(&a.frame, RLHF__ASK_LOAD);
    rlhf__wire_u32(&a.frame, t->state_version);
    rlhf__wire_text(&a.frame, t->state.data, t->state.len);
    rlhf_status st = rlhf__pool_ask(t, h, &a);
    const uint64_t read = st == RLHF_OK ? rlhf__wire_get_u64(&a.result) : 0;
    if (st == RLHF_OK && read != t->state.len) {
        snprintf(why, sizeof why, "it read only %llu of the %zu bytes of its state",
                 (unsigned long long)read, t->state.len);
        st = rlhf__pool_fail(t, RLHF_E_INVALID, why);
    }
    rlhf__asked_finish(&a);
    return st;
}

static void put_down(struct rlhf__pool_worker *h) {
    rlhf__worker_end(h->worker);
    h->worker = NULL;
}

// Check that the plugin's file is unchanged, because a worker with another file could not continue
// the run.
static rlhf_status check_file(const struct rlhf__pool *t, struct rlhf__error *err) {
    char now[65];
    RLHF_TRY(rlhf__sha256_file(t->s->path, now, err));
    if (strcmp(now, t->s->sha256) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s is not the file that it was", t->s->path);
}

// Log the confinement at the start, and again if a later worker's confinement differs.
static void say_confined(struct rlhf__pool *t) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    if (t->s->kind == RLHF_KIND_SINK && !t->writes) return; // begin() starts another one
    if (t->confined.len && strcmp(rlhf__buf_text(&t->confined), t->s->confined) == 0) return;
    rlhf__buf_clear(&t->confined);
    rlhf__buf_puts(&t->confined, t->s->confined);
    rlhf__buf_printf(&line, "runs in %s: %s", t->n > 1 ? "worker processes" : "a worker process",
                     t->s->confined);
    t->api->log(t->api, RLHF_LOG_INFO, rlhf__buf_text(&line));
    rlhf__buf_finish(&line);
}

// Start a worker and create the instance in it, with the state after the last good batch.
static rlhf_status start(struct rlhf__pool *t, struct rlhf__pool_worker *h) {
    struct rlhf__error err = {0, ""};
    struct rlhf__handle before[RLHF__HANDLES];
    rlhf_status st = RLHF_OK;
    if (!t->writes) { // the spare worker may write nowhere
        h->worker = t->s->spare;
        t->s->spare = NULL;
    }
    if (!h->worker) st = check_file(t, &err);
    if (!h->worker && st == RLHF_OK)
        st = rlhf__stand_in_worker(t->s, t->writes, &h->worker, NULL, &err);
    if (st != RLHF_OK) return rlhf__pool_fail(t, st, err.text);
    // Close the earlier worker's objects only after this worker has opened its own, so that shared
    // models stay loaded.
    memcpy(before, h->ear.handle, sizeof before);
    memset(h->ear.handle, 0, sizeof h->ear.handle);
    const char *outer = rlhf__host_enter(t->api, "create()");
    st = create_in(t, h);
    rlhf__handles_close(t->api, before);
    rlhf__host_leave(t->api, outer);
    if (st == RLHF_OK && t->lost_state)
        st = rlhf__pool_fail(t, RLHF_E_INTERNAL,
                             "its worker cannot be started again: it could not save its "
                             "state after the last batch");
    outer = rlhf__host_enter(t->api, "load()");
    if (st == RLHF_OK && t->has_state) st = load_in(t, h);
    rlhf__host_leave(t->api, outer);
    if (st == RLHF_OK)
        say_confined(t);
    else
        put_down(h);
    return st;
}

rlhf_status rlhf__pool_ready(struct rlhf__pool *t, struct rlhf__pool_worker *h) {
    if (h->worker && !h->worker->failed.code) return RLHF_OK;
    const int again = h->worker != NULL;
    if (again) t->api->log(t->api, RLHF_LOG_WARN, "its worker is started again");
    put_down(h);
    return start(t, h);
}

// ---- life ----

static void destroy(struct rlhf__pool *t) {
    for (uint32_t i = 0; t->hand && i < t->n; i++) {
        put_down(&t->hand[i]);
        rlhf__handles_close(t->api, t->hand[i].ear.handle);
        rlhf__ear_finish(&t->hand[i].ear);
    }
    free(t->hand);
    rlhf__buf_finish(&t->options);
    rlhf__buf_finish(&t->confined);
    rlhf__buf_finish(&t->state);
    rlhf__buf_finish(&t->vacant);
    rlhf__buf_finish(&t->closed);
    free(t->writes);
    free(t->tools);
    free(t);
}

void rlhf__pool_stop(const struct rlhf__pool *t, struct rlhf__pool_worker *h) {
    struct rlhf__asked a = {.done = 0};
    if (h->worker && !h->worker->failed.code) {
        rlhf__wire_begin(&a.frame, RLHF__ASK_DESTROY);
        rlhf__pool_ask(t, h, &a);
        if (h->worker->failed.code) t->api->log(t->api, RLHF_LOG_WARN, h->worker->failed.text);
        rlhf__asked_finish(&a);
    }
    put_down(h);
}

void rlhf__stand_in_destroy(void *self) {
    struct rlhf__pool *t = self;
    if (!t) return;
    for (uint32_t i = 0; i < t->n; i++)
        rlhf__pool_stop(t, &t->hand[i]);
    destroy(t);
}

static rlhf_status put_options(struct rlhf__pool *t, const struct rlhf__plugin *p,
                               const void *config) {
    struct rlhf__error err;
    json_t *options = json_object();
    rlhf_status st = options ? rlhf__opts_to_json(&p->table, config, options, &err)
                             : rlhf__fail(&err, RLHF_E_NOMEM, "out of memory");
    if (st == RLHF_OK) rlhf__json_write(&t->options, options, 0);
    if (st == RLHF_OK) st = rlhf__buf_ok(&t->options, &err);
    json_decref(options);
    return st == RLHF_OK ? st : rlhf__pool_fail(t, st, err.text);
}

rlhf_status rlhf__stand_in_create(const rlhf_host *api, const void *config, void **self) {
    const struct rlhf__plugin *p = rlhf__instance_behind(api)->plugin;
    struct rlhf__pool *t = calloc(1, sizeof *t);
    if (!t) return RLHF_E_NOMEM;
    t->s = (struct rlhf__stand_in *)p->outside;
    t->api = api;
    t->ended_at = -1;
    t->n = t->s->rules.workers;
    t->hand = calloc(t->n, sizeof *t->hand);
    rlhf_status st = t->hand ? put_options(t, p, config) : RLHF_E_NOMEM;
    if (st == RLHF_OK && t->n > 1 && p->desc.state_version)
        st = rlhf__pool_fail(t, RLHF_E_INVALID,
                             "it keeps a state, which several workers would each have a "
                             "part of; it needs rewards.workers=1");
    for (uint32_t i = 0; st == RLHF_OK && i < t->n; i++) {
        t->hand[i].ear.api = api;
        st = start(t, &t->hand[i]);
    }
    if (st != RLHF_OK) {
        destroy(t);
        return st == RLHF_E_INTERNAL ? RLHF_E_INVALID : st;
    }
    *self = t;
    return RLHF_OK;
}

// ---- state ----

rlhf_status rlhf__stand_in_save(void *self, const rlhf_ostream *out) {
    struct rlhf__pool *t = self;
    struct rlhf__asked a = {.done = 0};
    RLHF_TRY(rlhf__pool_ready(t, &t->hand[0]));
    rlhf__wire_begin(&a.frame, RLHF__ASK_SAVE);
    a.most = RLHF__WIRE_MAX;
    rlhf_status st = rlhf__pool_ask(t, &t->hand[0], &a);
    const rlhf_str bytes = st == RLHF_OK ? rlhf__wire_get_text(&a.result) : (rlhf_str){NULL, 0};
    if (st == RLHF_OK) st = out->write(out, bytes.ptr, bytes.len);
    rlhf__asked_finish(&a);
    return st;
}

static rlhf_status read_all(const rlhf_istream *in, struct rlhf__buf *out) {
    const uint64_t left = in->left(in);
    if (left > RLHF__WIRE_MAX) return RLHF_E_NOMEM;
    void *to = rlhf__buf_grow(out, (size_t)left);
    if (!to) return left ? RLHF_E_NOMEM : RLHF_OK;
    return in->read(in, to, left);
}

rlhf_status rlhf__stand_in_load(void *self, const rlhf_istream *in, uint32_t state_version) {
    struct rlhf__pool *t = self;
    rlhf__buf_clear(&t->state);
    t->has_state = t->lost_state = 0;
    RLHF_TRY(read_all(in, &t->state));
    t->state_version = state_version;
    RLHF_TRY(rlhf__pool_ready(t, &t->hand[0]));
    const rlhf_status st = load_in(t, &t->hand[0]);
    t->has_state = st == RLHF_OK;
    return st;
}

// Keep the state after a successful batch; a restarted worker continues from it.
rlhf_status rlhf__pool_keep_state(struct rlhf__pool *t, struct rlhf__wire *result) {
    const uint32_t kept = rlhf__wire_get_u32(result);
    const rlhf_str bytes = rlhf__wire_get_text(result);
    if (t->s->what.desc.state_version == 0) return RLHF_OK;
    rlhf__buf_clear(&t->state);
    rlhf__buf_put(&t->state, bytes.ptr, (size_t)bytes.len);
    t->state_version = t->s->what.desc.state_version;
    t->has_state = kept == 1 && !result->bad && !t->state.bad;
    t->lost_state = !t->has_state;
    return RLHF_OK;
}

// ---- rows ----

rlhf_status rlhf__stand_in_check_row(void *self, const rlhf_row_in *in) {
    struct rlhf__pool *t = self;
    struct rlhf__asked a = {.done = 0};
    RLHF_TRY(rlhf__pool_ready(t, &t->hand[0]));
    rlhf__wire_begin(&a.frame, RLHF__ASK_CHECK_ROW);
    rlhf__wire_u32(&a.frame, (uint32_t)in->held_out);
    rlhf__wire_u64(&a.frame, (uint64_t)in->index);
    rlhf__wire_text(&a.frame, in->meta.ptr, in->meta.len);
    rlhf__wire_text(&a.frame, in->prompt.ptr, in->prompt.len);
    a.may_be_left = 1;
    const rlhf_status st = rlhf__pool_ask(t, &t->hand[0], &a);
    rlhf__asked_finish(&a);
    return st;
}

int64_t rlhf__stand_in_ended_at(void *self) { return ((const struct rlhf__pool *)self)->ended_at; }
