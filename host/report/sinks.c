// sinks.c: see sinks.h.
#include "report/sinks.h"

#include "base/clock.h"
#include "base/file.h"
#include "report/phase_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sink {
    struct rlhf__instance *instance;
    char section[32]; // "sink.0"; of the program's own sinks "log.csv"
    int32_t begun, failed;
    int32_t own;  // 1: it came with the program, and was not named
    int64_t from; // the first phase that it needs
    double slow;  // seconds of the slowest call that was logged
};

// A tracker may log in and start programs in begin(), and send what remains in end().
static const double slow_once = 10;

struct rlhf__sinks {
    struct sink *sink; // [n]
    size_t n;
    struct rlhf__log *log;
    struct rlhf__services *services;   // borrowed; its phase is named in messages
    struct rlhf__phase_reader *reader; // NULL before begin()
};

static rlhf_status open_one(const struct rlhf__config *c, size_t i,
                            const struct rlhf__plugin *plugin, struct rlhf__services *services,
                            struct sink *out, struct rlhf__error *err) {
    out->own = i >= c->n_sink;
    if (out->own)
        snprintf(out->section, sizeof out->section, "log.%.16s", plugin->stem);
    else
        snprintf(out->section, sizeof out->section, "sink.%zu", i);
    const struct rlhf__origin from = {"the config", out->section, NULL, 0, 0};
    return rlhf__instance_open(plugin, services, out->section, out->own ? NULL : c->sink[i].options,
                               &from, &out->instance, err);
}

rlhf_status rlhf__sinks_open(const struct rlhf__config *c, const struct rlhf__plugin *const *plugin,
                             struct rlhf__services *services, struct rlhf__log *log,
                             struct rlhf__sinks **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__sinks *s = calloc(1, sizeof *s);
    if (!s) return RLHF__NOMEM(err, "out of memory for sinks");
    s->log = log;
    s->services = services;
    s->sink = calloc(c->n_sink + RLHF__OWN_SINKS, sizeof *s->sink);
    rlhf_status st = s->sink ? RLHF_OK : RLHF__NOMEM(err, "out of memory for sinks");
    for (; st == RLHF_OK && plugin && plugin[s->n]; s->n++)
        st = open_one(c, s->n, plugin[s->n], services, &s->sink[s->n], err);
    if (st == RLHF_OK)
        *out = s;
    else
        rlhf__sinks_close(s);
    return st;
}

void rlhf__sinks_close(struct rlhf__sinks *s) {
    if (!s) return;
    for (size_t i = 0; i < s->n; i++)
        rlhf__instance_close(s->sink[i].instance);
    rlhf__phase_reader_close(s->reader);
    free(s->sink);
    free(s);
}

// ---- calls ----

static const rlhf_sink_ops *ops_of(const struct sink *k) { return &k->instance->plugin->ops.sink; }

static void fail(struct rlhf__sinks *s, struct sink *k, const char *why, const char *then) {
    if (!k->failed) rlhf__logf(s->log, RLHF_LOG_WARN, "%s failed: %s%s", k->section, why, then);
    k->failed = 1;
}

// Check how a call ended, and the structs that were lent to the sink. The first failure of a sink
// is logged, and the sink is then marked as failed.
static void see(struct rlhf__sinks *s, struct sink *k, const struct rlhf__call *call,
                struct rlhf__tails *tails, rlhf_status st) {
    struct rlhf__error err;
    if (rlhf__call_wrote(call, tails, st, &err) == RLHF_OK) return;
    const int at_end = strcmp(call->function, "end()") == 0;
    fail(s, k, err.text, at_end ? "" : "; the run goes on without it");
}

// The run waits for its sinks. Name a sink that took `most` seconds or more, and again when it
// takes twice as long.
static void see_time(const struct rlhf__sinks *s, struct sink *k, const char *function,
                     double seconds, double most) {
    if (seconds < most || seconds < 2 * k->slow) return;
    k->slow = seconds;
    rlhf__logf(s->log, RLHF_LOG_WARN, "%s (%s) is slow: the run waited %.0f s for its %s",
               k->section, k->instance->plugin->file, seconds, function);
}

// ---- begin ----

// Make the directory of sink k: sinks/NAME, or sinks/NAME-2 for the second sink of that name. Sets
// `path` to it. Returns 0 after a failure.
static int make_own_dir(struct rlhf__sinks *s, struct sink *k, const struct rlhf__folder *root,
                        const char *dir, char path[RLHF__PATH_CAP]) {
    const char *stem = k->instance->plugin->stem;
    char name[RLHF__PATH_CAP];
    struct rlhf__folder *own = NULL;
    struct rlhf__error err;
    int number = 1;
    if (k->own) {
        rlhf__path_put(path, "%s", dir);
        return 1;
    }
    for (const struct sink *other = s->sink; other < k; other++)
        number += strcmp(other->instance->plugin->stem, stem) == 0;
    if (number == 1)
        rlhf__path_put(name, "sinks/%s", stem);
    else
        rlhf__path_put(name, "sinks/%s-%d", stem, number);
    rlhf_status st = rlhf__folder_make_above(root, name, &err);
    if (st == RLHF_OK) st = rlhf__folder_make(root, name, NULL, &own, &err);
    rlhf__folder_close(own);
    rlhf__path_put(path, "%s/%s", dir, name);
    if (st != RLHF_OK) fail(s, k, err.text, "; the run goes on without it");
    return st == RLHF_OK;
}

static void begin(struct rlhf__sinks *s, struct sink *k, const struct rlhf__folder *root,
                  rlhf_sink_run run) {
    char own[RLHF__PATH_CAP];
    const uint32_t minor = k->instance->plugin->abi_minor;
    struct rlhf__filled filled;
    rlhf_sink_answer *answer = RLHF__FILLED(rlhf_sink_answer, &filled, minor), known = {0};
    struct rlhf__error err;
    if (!make_own_dir(s, k, root, run.dir, own)) return;
    run.own_dir = own;
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_sink_run, &run, minor, &tails);
    k->begun = 1;
    const double start = rlhf__seconds();
    const struct rlhf__call call = rlhf__call_begin(k->instance, "begin()");
    see(s, k, &call, &tails, ops_of(k)->begin(k->instance->self, &run, answer));
    see_time(s, k, "begin()", rlhf__seconds() - start, slow_once);
    if (k->failed) return;
    rlhf_status st = rlhf__filled_end(&filled, &known, &err);
    if (st == RLHF_OK && known.from_phase < 0)
        st = rlhf__fail(&err, RLHF_E_UNSUPPORTED,
                        "it answers with the from_phase %lld; it must be 0 or more",
                        (long long)known.from_phase);
    if (st < 0) rlhf__error_context(&err, "%s, begin()", k->instance->plugin->file);
    if (st < 0) fail(s, k, err.text, "; the run goes on without it");
    k->from = known.from_phase;
}

void rlhf__sinks_begin(struct rlhf__sinks *s, struct rlhf__folder *root, const rlhf_sink_run *run) {
    struct rlhf__error err;
    for (size_t i = 0; i < s->n; i++)
        begin(s, &s->sink[i], root, *run);
    if (!s->n || rlhf__phase_reader_open(root, &s->reader, &err) == RLHF_OK) return;
    for (size_t i = 0; i < s->n; i++)
        fail(s, &s->sink[i], err.text, "; the run goes on without it");
}

// ---- phases ----

// Returns the first phase that a sink still needs.
static int64_t first_needed(const struct rlhf__sinks *s) {
    int64_t from = INT64_MAX;
    for (size_t i = 0; i < s->n; i++)
        if (!s->sink[i].failed && s->sink[i].from < from) from = s->sink[i].from;
    return from;
}

// A sink is slow if it takes at least a second and a tenth of the time of the phase, which `took`
// seconds.
static void report(struct rlhf__sinks *s, const rlhf_sink_phase *p, double took) {
    const double most = took > 10 ? took / 10 : 1;
    s->services->phase = p->phases_done;
    for (size_t i = 0; i < s->n; i++) {
        struct sink *k = &s->sink[i];
        if (k->failed || p->phases_done < k->from) continue;
        const uint32_t minor = k->instance->plugin->abi_minor;
        rlhf_sink_phase passed = *p;
        struct rlhf__tails tails = {.n = 0};
        RLHF__LEND(rlhf_sink_phase, &passed, minor, &tails);
        rlhf__spreads_lend(p, minor, &tails);
        const double start = rlhf__seconds();
        const struct rlhf__call call = rlhf__call_begin(k->instance, "phase()");
        see(s, k, &call, &tails, ops_of(k)->phase(k->instance->self, &passed));
        see_time(s, k, "phase()", rlhf__seconds() - start, most);
        k->from = p->phases_done + 1;
    }
    s->services->phase = -1;
}

void rlhf__sinks_report(struct rlhf__sinks *s, int64_t last, const char *checkpoint, int best) {
    const rlhf_sink_phase *p = NULL;
    int32_t more = 0;
    for (int64_t from; s && s->reader && (from = first_needed(s)) <= last;) {
        const double before = rlhf__phase_reader_elapsed(s->reader);
        more = rlhf__phase_reader_next(s->reader, from, last, &p);
        if (more <= 0) break;
        rlhf_sink_phase now = *p;
        if (now.phases_done == last) {
            now.checkpoint = checkpoint;
            now.flags = checkpoint && best ? RLHF_SINK_PHASE_BEST : 0;
        }
        report(s, &now, now.elapsed - before);
    }
    for (size_t i = 0; more < 0 && i < s->n; i++)
        fail(s, &s->sink[i], "out of memory", "; the run goes on without it");
}

// ---- end ----

void rlhf__sinks_end(struct rlhf__sinks *s, const rlhf_sink_end *end) {
    for (size_t i = 0; i < s->n; i++) {
        struct sink *k = &s->sink[i];
        if (!k->begun || !ops_of(k)->end) continue;
        rlhf_sink_end passed = *end;
        struct rlhf__tails tails = {.n = 0};
        RLHF__LEND(rlhf_sink_end, &passed, k->instance->plugin->abi_minor, &tails);
        const double start = rlhf__seconds();
        const struct rlhf__call call = rlhf__call_begin(k->instance, "end()");
        see(s, k, &call, &tails, ops_of(k)->end(k->instance->self, &passed));
        see_time(s, k, "end()", rlhf__seconds() - start, slow_once);
    }
}
