// instance.c: see instance.h.
#include "worker/instance.h"

#include "base/hash.h"
#include "base/printable.h"
#include "worker/batch.h"

#include <rlhf/service.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One of the workers of an instance.
struct hand {
    struct rlhf__worker *worker; // NULL: none, to be started
    struct rlhf__ear ear;
};

struct instance {
    struct rlhf__stand_in *s;
    const rlhf_host *api;
    struct rlhf__buf options;      // as JSON
    struct rlhf__buf confined;     // what was last said to be in force
    struct hand *hand;             // [n]
    uint32_t n, state_version;     // of state
    struct rlhf__buf state;        // after the last good batch, or as it was loaded
    int32_t has_state, lost_state; // lost: it could not be saved after that
    uint32_t asked;                // services, in create(): RLHF__HAS_*
    uint32_t reserved;
    int64_t ended_at; // as rlhf__outside says
    pthread_t home;   // that created it
};

#define LIMIT "rewards.timeout_s"

// ---- failing ----

// The call fails for the reason `why`; returns code.
static rlhf_status fail(const struct instance *t, rlhf_status code, const char *why) {
    return t->api->fail(t->api, code, why);
}

enum { WHY = 2044 };

// Beside a failure of the same call, which is what the call failed with.
static void tell_beside(const struct instance *t, const char *why) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__buf_printf(&line, "in the same call: %s", why);
    t->api->log(t->api, RLHF_LOG_WARN, rlhf__buf_text(&line));
    rlhf__buf_free(&line);
}

// The call fails; first 0: another worker's part of it has, and has been told.
static rlhf_status fail_part(const struct instance *t, rlhf_status code, const char *why,
                             int first) {
    if (first) return fail(t, code, why);
    tell_beside(t, why);
    return code;
}

// What an answered request says of the plugin: its status, and why, in its worker's words or its
// own.
static rlhf_status said(const struct instance *t, const struct rlhf__asked *a, int first) {
    char text[WHY];
    const char *own = a->ear->said[0] ? a->ear->said : rlhf__status_text(a->status);
    if (a->status == RLHF_OK) return RLHF_OK;
    if (a->status > RLHF_OK) { // a failure here too, which RLHF_TRY() would not take for one
        if (*a->why)
            own = rlhf__printable(a->why, text, sizeof text);
        else if (!a->ear->said[0])
            own = rlhf__no_status(a->status, text, sizeof text);
        return fail_part(t, RLHF_E_INTERNAL, own, first);
    }
    if (a->status == RLHF_E_NOMEM && t->s->rules.memory_mib) {
        snprintf(text, sizeof text, "%.1900s (rewards.memory_mib allows its worker %llu MiB)", own,
                 (unsigned long long)t->s->rules.memory_mib);
        // Its limit, not the host's: others of its rows may fit.
        return fail_part(t, RLHF_E_INTERNAL, text, first);
    }
    if (*a->why) own = rlhf__printable(a->why, text, sizeof text);
    // Without words it passes on what a service of the host's said.
    if (first && !*a->why && !a->ear->said[0]) return a->status;
    return fail_part(t, a->status, own, first);
}

// ---- workers ----

static void put_create(const struct instance *t, struct rlhf__buf *frame) {
    const struct rlhf__services *services = rlhf__services_behind(t->api);
    const rlhf_limits *limits = t->api->service(t->api, RLHF_SVC_LIMITS);
    const rlhf_limits none = {.size = sizeof none};
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

// One request to one worker that is there.
static rlhf_status ask(const struct instance *t, struct hand *h, struct rlhf__asked *a) {
    a->worker = h->worker;
    a->ear = &h->ear;
    rlhf__ear_begin(&h->ear);
    const rlhf_status st = rlhf__ask(a, 1, t->s->rules.timeout_s, LIMIT);
    rlhf__ear_end(&h->ear);
    return st == RLHF_OK ? said(t, a, 1) : fail(t, st, h->worker->failed.text);
}

static rlhf_status create_in(struct instance *t, struct hand *h) {
    struct rlhf__asked a = {.done = 0};
    put_create(t, &a.frame);
    a.may_be_left = 1;
    const rlhf_status st = ask(t, h, &a);
    if (st == RLHF_OK) t->asked |= rlhf__wire_get_u32(&a.result);
    rlhf__asked_finish(&a);
    return st;
}

static rlhf_status load_in(const struct instance *t, struct hand *h) {
    struct rlhf__asked a = {.done = 0};
    char why[128];
    rlhf__wire_begin(&a.frame, RLHF__ASK_LOAD);
    rlhf__wire_u32(&a.frame, t->state_version);
    rlhf__wire_text(&a.frame, t->state.data, t->state.len);
    rlhf_status st = ask(t, h, &a);
    const uint64_t read = st == RLHF_OK ? rlhf__wire_get_u64(&a.result) : 0;
    if (st == RLHF_OK && read != t->state.len) {
        snprintf(why, sizeof why, "it read only %llu of the %zu bytes of its state",
                 (unsigned long long)read, t->state.len);
        st = fail(t, RLHF_E_INVALID, why);
    }
    rlhf__asked_finish(&a);
    return st;
}

static void put_down(struct hand *h) {
    rlhf__worker_end(h->worker);
    h->worker = NULL;
}

// A file that is not what it was would not go on with what was begun.
static rlhf_status check_file(const struct instance *t, struct rlhf__error *err) {
    char now[65];
    RLHF_TRY(rlhf__sha256_file(t->s->path, now, err));
    if (strcmp(now, t->s->sha256) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s is not the file that it was", t->s->path);
}

// At the start, and when a later worker has other means.
static void say_confined(struct instance *t) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    if (t->confined.len && strcmp(rlhf__buf_text(&t->confined), t->s->confined) == 0) return;
    rlhf__buf_clear(&t->confined);
    rlhf__buf_puts(&t->confined, t->s->confined);
    rlhf__buf_printf(&line, "runs in %s: %s", t->n > 1 ? "worker processes" : "a worker process",
                     t->s->confined);
    t->api->log(t->api, RLHF_LOG_INFO, rlhf__buf_text(&line));
    rlhf__buf_free(&line);
}

// A worker with the instance in it, as it was after its last good batch.
static rlhf_status start(struct instance *t, struct hand *h) {
    struct rlhf__error err = {0, ""};
    struct rlhf__handle before[RLHF__HANDLES];
    rlhf_status st = RLHF_OK;
    h->worker = t->s->spare;
    t->s->spare = NULL;
    if (!h->worker) st = check_file(t, &err);
    if (!h->worker && st == RLHF_OK) st = rlhf__stand_in_worker(t->s, &h->worker, NULL, &err);
    if (st != RLHF_OK) return fail(t, st, err.text);
    // What the one before had open is closed when this one has it: models stay where they are.
    memcpy(before, h->ear.handle, sizeof before);
    memset(h->ear.handle, 0, sizeof h->ear.handle);
    st = create_in(t, h);
    rlhf__handles_close(t->api, before);
    if (st == RLHF_OK && t->lost_state)
        st = fail(t, RLHF_E_INTERNAL,
                  "its worker cannot be started again: it could not save its "
                  "state after the last batch");
    if (st == RLHF_OK && t->has_state) st = load_in(t, h);
    if (st == RLHF_OK)
        say_confined(t);
    else
        put_down(h);
    return st;
}

static rlhf_status be_there(struct instance *t, struct hand *h) {
    if (h->worker && !h->worker->failed.code) return RLHF_OK;
    const int again = h->worker != NULL;
    if (again) t->api->log(t->api, RLHF_LOG_WARN, "its worker is started again");
    put_down(h);
    return start(t, h);
}

// ---- life ----

static void destroy(struct instance *t) {
    for (uint32_t i = 0; t->hand && i < t->n; i++) {
        put_down(&t->hand[i]);
        rlhf__handles_close(t->api, t->hand[i].ear.handle);
    }
    free(t->hand);
    rlhf__buf_free(&t->options);
    rlhf__buf_free(&t->confined);
    rlhf__buf_free(&t->state);
    free(t);
}

void rlhf__stand_in_destroy(void *self) {
    struct instance *t = self;
    if (!t) return;
    for (uint32_t i = 0; i < t->n; i++) {
        struct rlhf__asked a = {.done = 0};
        if (!t->hand[i].worker || t->hand[i].worker->failed.code) continue;
        rlhf__wire_begin(&a.frame, RLHF__ASK_DESTROY);
        ask(t, &t->hand[i], &a);
        if (t->hand[i].worker->failed.code)
            t->api->log(t->api, RLHF_LOG_WARN, t->hand[i].worker->failed.text);
        rlhf__asked_finish(&a);
    }
    destroy(t);
}

static rlhf_status put_options(struct instance *t, const struct rlhf__plugin *p,
                               const void *config) {
    struct rlhf__error err;
    json_t *options = json_object();
    rlhf_status st = options ? rlhf__opts_to_json(&p->table, config, options, &err)
                             : rlhf__fail(&err, RLHF_E_NOMEM, "out of memory");
    if (st == RLHF_OK) rlhf__json_write(&t->options, options, 0);
    if (st == RLHF_OK) st = rlhf__buf_ok(&t->options, &err);
    json_decref(options);
    return st == RLHF_OK ? st : fail(t, st, err.text);
}

rlhf_status rlhf__stand_in_create(const rlhf_host *api, const void *config, void **self) {
    const struct rlhf__plugin *p = rlhf__instance_behind(api)->plugin;
    struct instance *t = calloc(1, sizeof *t);
    if (!t) return RLHF_E_NOMEM;
    t->s = (struct rlhf__stand_in *)p->outside;
    t->api = api;
    t->ended_at = -1;
    t->home = pthread_self();
    t->n = t->s->rules.workers;
    t->hand = calloc(t->n, sizeof *t->hand);
    rlhf_status st = t->hand ? put_options(t, p, config) : RLHF_E_NOMEM;
    if (st == RLHF_OK && t->n > 1 && p->desc.state_version)
        st = fail(t, RLHF_E_INVALID,
                  "it keeps a state, which several workers would each have a "
                  "part of; it needs rewards.workers=1");
    for (uint32_t i = 0; st == RLHF_OK && i < t->n; i++) {
        t->hand[i].ear.api = api;
        t->hand[i].ear.parts = t->n > 1;
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
    struct instance *t = self;
    struct rlhf__asked a = {.done = 0};
    RLHF_TRY(be_there(t, &t->hand[0]));
    rlhf__wire_begin(&a.frame, RLHF__ASK_SAVE);
    a.most = RLHF__WIRE_MAX;
    rlhf_status st = ask(t, &t->hand[0], &a);
    const rlhf_str bytes = st == RLHF_OK ? rlhf__wire_get_text(&a.result) : (rlhf_str){NULL, 0};
    if (st == RLHF_OK) st = out->write(out, bytes.ptr, bytes.len);
    rlhf__asked_finish(&a);
    return st;
}

// All that is left of it: an istream does not say how much that is.
static rlhf_status read_all(const rlhf_istream *in, struct rlhf__buf *out) {
    for (size_t step = 65536; step > 0;) {
        void *to = rlhf__buf_grow(out, step);
        if (!to) return RLHF_E_NOMEM;
        if (in->read(in, to, step) == RLHF_OK) continue;
        out->len -= step;
        step /= 2;
    }
    return RLHF_OK;
}

rlhf_status rlhf__stand_in_load(void *self, const rlhf_istream *in, uint32_t state_version) {
    struct instance *t = self;
    rlhf__buf_clear(&t->state);
    t->has_state = t->lost_state = 0;
    RLHF_TRY(read_all(in, &t->state));
    t->state_version = state_version;
    RLHF_TRY(be_there(t, &t->hand[0]));
    const rlhf_status st = load_in(t, &t->hand[0]);
    t->has_state = st == RLHF_OK;
    return st;
}

// What a good batch left: it is where a worker that is started again goes on.
static rlhf_status keep_state(struct instance *t, struct rlhf__wire *result) {
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

rlhf_status rlhf__stand_in_check_row(void *self, rlhf_str row) {
    struct instance *t = self;
    struct rlhf__asked a = {.done = 0};
    RLHF_TRY(be_there(t, &t->hand[0]));
    rlhf__wire_begin(&a.frame, RLHF__ASK_CHECK_ROW);
    rlhf__wire_text(&a.frame, row.ptr, row.len);
    a.may_be_left = 1;
    const rlhf_status st = ask(t, &t->hand[0], &a);
    rlhf__asked_finish(&a);
    return st;
}

// Rows [from, to) of a batch, for one worker.
struct part {
    uint32_t from, to;
    struct rlhf__out_places places;
};

// At most t->n parts of about as many rows, none of which cuts a group. Returns how many.
static uint32_t cut(const struct instance *t, const rlhf_reward_in *in, struct part *part) {
    uint32_t n = 0;
    for (uint32_t i = 0, at = 0; i < t->n && at < in->n; i++) {
        uint32_t to = (uint32_t)((uint64_t)in->n * (i + 1) / t->n);
        if (to <= at) continue;
        while (to < in->n && in->group[to] == in->group[to - 1])
            to++;
        part[n++] = (struct part){.from = at, .to = to};
        at = to;
    }
    return n;
}

static uint64_t tokens_of(const rlhf_reward_in *in, const struct part *p) {
    return (uint64_t)(in->offset[p->to] - in->offset[p->from]);
}

// The batch into the files in memory, and the request.
static rlhf_status put_part(const struct instance *t, struct rlhf__worker *w,
                            const rlhf_reward_in *in, const rlhf_reward_out *out, struct part *p,
                            struct rlhf__buf *frame) {
    struct rlhf__error err;
    const uint64_t bytes = rlhf__batch_bytes(in, p->from, p->to);
    const uint32_t unwritten = RLHF__UNWRITTEN;
    rlhf__out_places(p->to - p->from, tokens_of(in, p), out->token != NULL, &p->places);
    const rlhf_status st = rlhf__worker_room(w, bytes, p->places.block[RLHF__OUTS], &err);
    if (st != RLHF_OK) return fail(t, st, err.text);
    rlhf__batch_put(in, p->from, p->to, out->token != NULL, w->input);
    for (int i = 0; i < RLHF__OUTS; i++)
        memset(w->output + p->places.at[i], 0, (size_t)p->places.bytes[i]);
    for (uint32_t i = 0; i < p->to - p->from; i++)
        memcpy(w->output + p->places.at[RLHF__OUT_SEQ] + 4 * (size_t)i, &unwritten, 4);
    rlhf__wire_begin(frame, RLHF__ASK_SCORE);
    rlhf__wire_u64(frame, bytes);
    return RLHF_OK;
}

static uint32_t word_at(const char *at) {
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

// What the worker wrote. What it did not is the caller's.
static void take_part(const struct rlhf__worker *w, const rlhf_reward_in *in, const struct part *p,
                      const rlhf_reward_out *out) {
    const uint32_t n = p->to - p->from;
    const char *seq = w->output + p->places.at[RLHF__OUT_SEQ];
    for (uint32_t i = 0; i < n; i++)
        if (word_at(seq + 4 * (size_t)i) != RLHF__UNWRITTEN)
            memcpy(&out->seq[p->from + i], seq + 4 * (size_t)i, sizeof *out->seq);
    if (out->token)
        memcpy(out->token + in->offset[p->from], w->output + p->places.at[RLHF__OUT_TOKEN],
               (size_t)p->places.bytes[RLHF__OUT_TOKEN]);
    memcpy(out->verdict + p->from, w->output + p->places.at[RLHF__OUT_VERDICT], n);
    memcpy(out->failed + p->from, w->output + p->places.at[RLHF__OUT_FAILED], n);
}

// The first row that has no result: the one at work, for a reward that goes row by row.
static uint32_t row_at_work(const struct rlhf__worker *w, const struct part *p) {
    uint32_t i = 0;
    const char *seq = w->output + p->places.at[RLHF__OUT_SEQ];
    while (i < p->to - p->from && word_at(seq + 4 * (size_t)i) != RLHF__UNWRITTEN)
        i++;
    return p->from + i;
}

// `first`: of the parts of this call; the others can only be told beside it.
static rlhf_status part_failed(struct instance *t, const struct rlhf__worker *w,
                               const struct part *p, int first) {
    const uint32_t row = row_at_work(w, p);
    char why[WHY];
    if (w->failed.code == RLHF_E_CANCELLED) return fail(t, RLHF_E_CANCELLED, w->failed.text);
    if (row < p->to)
        snprintf(why, sizeof why, "%.1900s at row %u", w->failed.text, row);
    else
        snprintf(why, sizeof why, "%.1900s after its last row", w->failed.text);
    if (first) t->ended_at = row;
    return fail_part(t, RLHF_E_INTERNAL, why, first);
}

static rlhf_status refuse_metric(const struct instance *t, const struct rlhf__ear *e, int first) {
    char why[256];
    if (!e->metric[0]) return RLHF_OK;
    snprintf(
        why, sizeof why,
        "it reports the metric \"%s\", which of a part of a batch is not that of the batch; it "
        "needs rewards.workers=1",
        e->metric);
    return fail_part(t, RLHF_E_INVALID, why, first);
}

// What became of one part; `before`: of those before it.
static rlhf_status end_part(struct instance *t, struct rlhf__asked *a, const rlhf_reward_in *in,
                            const struct part *p, const rlhf_reward_out *out, rlhf_status before) {
    rlhf__ear_end(a->ear);
    const int first = before == RLHF_OK;
    if (a->worker->failed.code) return part_failed(t, a->worker, p, first);
    RLHF_TRY(said(t, a, first));
    RLHF_TRY(refuse_metric(t, a->ear, first));
    take_part(a->worker, in, p, out);
    return keep_state(t, &a->result);
}

int64_t rlhf__stand_in_ended_at(void *self) { return ((const struct instance *)self)->ended_at; }

int rlhf__stand_in_asked(void *self, const char *service) {
    return (((const struct instance *)self)->asked & rlhf__ear_service(service)) != 0;
}

rlhf_status rlhf__stand_in_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct instance *t = self;
    struct part part[RLHF__MOST_WORKERS];
    struct rlhf__asked asked[RLHF__MOST_WORKERS] = {{.done = 0}};
    const uint32_t n = cut(t, in, part);
    const int beside = !pthread_equal(t->home, pthread_self());
    rlhf_status st = RLHF_OK, one;
    t->ended_at = -1;
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        struct hand *h = &t->hand[i];
        st = be_there(t, h);
        if (st != RLHF_OK) break;
        asked[i].worker = h->worker;
        asked[i].ear = &h->ear;
        asked[i].may_be_left = 1;
        if (t->s->what.desc.state_version) asked[i].most = RLHF__WIRE_MAX;
        rlhf__ear_begin(&h->ear);
        h->ear.beside = beside;
        st = put_part(t, h->worker, in, out, &part[i], &asked[i].frame);
    }
    if (st == RLHF_OK) {
        rlhf__ask(asked, n, t->s->rules.timeout_s, LIMIT);
        for (uint32_t i = 0; i < n; i++) {
            one = end_part(t, &asked[i], in, &part[i], out, st);
            if (st == RLHF_OK) st = one;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        rlhf__asked_finish(&asked[i]);
    return st;
}
