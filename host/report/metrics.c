// metrics.c: see metrics.h.
#include "report/metrics.h"

#include "base/decimal.h"
#include "base/json.h"
#include "plugin/combine.h"
#include "report/jsonl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct metric {
    char *name;
    double value;
    struct rlhf__combined reported; // values from plugins; n == 0: the host set the value
};

struct rlhf__metrics {
    struct rlhf__jsonl file;
    int writes;           // 1: the file is open
    int bad;              // a value was lost: out of memory
    int warned;           // 1: has warned about a name that is combined in two ways
    pthread_mutex_t lock; // protects the members below
    struct metric *value; // sorted by name
    size_t n, cap;
    struct rlhf__log *log;
};

static void forget(struct rlhf__metrics *m) {
    for (size_t i = 0; i < m->n; i++)
        free(m->value[i].name);
    m->n = 0;
}

void rlhf__metrics_close(struct rlhf__metrics *m) {
    if (!m) return;
    if (m->writes) rlhf__jsonl_close(&m->file);
    forget(m);
    free(m->value);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

rlhf_status rlhf__metrics_open(const struct rlhf__folder *run, int64_t keep_phase,
                               struct rlhf__log *log, struct rlhf__metrics **out,
                               struct rlhf__error *err) {
    struct rlhf__metrics *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m) return RLHF__NOMEM(err, "out of memory for metrics");
    pthread_mutex_init(&m->lock, NULL);
    m->log = log;
    rlhf_status st = RLHF_OK;
    if (run) st = rlhf__jsonl_open(run, "metrics.jsonl", keep_phase, log, &m->file, err);
    m->writes = run && st == RLHF_OK;
    if (st == RLHF_OK)
        *out = m;
    else
        rlhf__metrics_close(m);
    return st;
}

// Returns the index of the metric `name`, or the index at which to insert it. Sets `*there` to 1 if
// the metric exists, and to 0 otherwise.
static size_t place(const struct rlhf__metrics *m, const char *name, int *there) {
    size_t lo = 0, hi = m->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (strcmp(m->value[mid].name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *there = lo < m->n && strcmp(m->value[lo].name, name) == 0;
    return lo;
}

static rlhf_status insert(struct rlhf__metrics *m, size_t at, const char *name) {
    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 64;
        struct metric *all = realloc(m->value, cap * sizeof *all);
        if (!all) return RLHF_E_NOMEM;
        m->value = all;
        m->cap = cap;
    }
    char *copy = strdup(name);
    if (!copy) return RLHF_E_NOMEM;
    memmove(m->value + at + 1, m->value + at, (m->n - at) * sizeof *m->value);
    m->value[at] = (struct metric){.name = copy};
    m->n++;
    return RLHF_OK;
}

static void warn_mixed(struct rlhf__metrics *m, const struct metric *one, int32_t combine) {
    if (m->warned) return;
    m->warned = 1;
    rlhf__logf(m->log, RLHF_LOG_WARN,
               "the metric \"%.300s\" is reported as \"%s\" and as \"%s\" in one phase; the first "
               "counts",
               one->name, rlhf__combine_name(one->reported.combine), rlhf__combine_name(combine));
}

// Set a value. The caller holds the lock. If `report` is NULL, the value comes from the host
// itself.
static rlhf_status put(struct rlhf__metrics *m, const char *name, double value,
                       const struct rlhf__combined *report) {
    int there;
    if (report && report->n == 0) return RLHF_OK;
    const size_t at = place(m, name, &there);
    if (!there) RLHF_TRY(insert(m, at, name));
    struct metric *one = &m->value[at];
    if (!report)
        one->reported = (struct rlhf__combined){0};
    else if (!rlhf__combine_merge(&one->reported, report))
        warn_mixed(m, one, report->combine);
    one->value = report ? one->reported.value : value;
    return RLHF_OK;
}

static rlhf_status put_locked(struct rlhf__metrics *m, const char *name, double value,
                              const struct rlhf__combined *report) {
    if (strcmp(name, "phase") == 0) return RLHF_OK;
    pthread_mutex_lock(&m->lock);
    const rlhf_status st = put(m, name, value, report);
    if (st < 0) m->bad = 1; // flush reports it, because callers rarely check
    pthread_mutex_unlock(&m->lock);
    return st;
}

rlhf_status rlhf__metrics_set(struct rlhf__metrics *m, const char *name, double value) {
    return put_locked(m, name, value, NULL);
}

rlhf_status rlhf__metrics_report(struct rlhf__metrics *m, const char *name, double value,
                                 double weight, int32_t combine) {
    struct rlhf__combined one = {0};
    rlhf__combine_add(&one, value, weight, combine);
    return put_locked(m, name, 0, &one);
}

void rlhf__metrics_reported(void *ctx, const char *name, double value, double weight,
                            int32_t combine) {
    (void)rlhf__metrics_report(ctx, name, value, weight, combine);
}

void rlhf__metrics_put(void *ctx, const char *name, double value) {
    (void)rlhf__metrics_set(ctx, name, value);
}

static const char *full_name(const struct rlhf__metrics_under *to, const char *name,
                             char out[512]) {
    return snprintf(out, 512, "%s%s", to->prefix, name) < 512 ? out : name;
}

void rlhf__metrics_under_put(void *ctx, const char *name, double value) {
    const struct rlhf__metrics_under *to = ctx;
    char full[512];
    (void)rlhf__metrics_set(to->metrics, full_name(to, name, full), value);
}

void rlhf__metrics_under_reported(void *ctx, const char *name, double value, double weight,
                                  int32_t combine) {
    const struct rlhf__metrics_under *to = ctx;
    char full[512];
    (void)rlhf__metrics_report(to->metrics, full_name(to, name, full), value, weight, combine);
}

int rlhf__metrics_get(const struct rlhf__metrics *m, const char *name, double *out) {
    // Locking does not change the state that callers see, so m can be const.
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&m->lock;
    int there;
    pthread_mutex_lock(lock);
    size_t at = place(m, name, &there);
    if (there) *out = m->value[at].value;
    pthread_mutex_unlock(lock);
    return there;
}

void rlhf__metrics_names(const struct rlhf__metrics *m, void (*visit)(void *arg, const char *name),
                         void *arg) {
    for (size_t i = 0; i < m->n; i++)
        visit(arg, m->value[i].name);
}

// Values that are not finite are null.
static rlhf_status write_row(struct rlhf__metrics *m, int64_t phase, struct rlhf__error *err) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    char number[40];
    rlhf__buf_printf(&line, "{\"phase\": %lld", (long long)phase);
    for (size_t i = 0; i < m->n; i++) {
        rlhf__buf_puts(&line, ", ");
        rlhf__json_write_string(&line, m->value[i].name, strlen(m->value[i].name));
        rlhf__buf_puts(&line, ": ");
        rlhf__buf_puts(&line, rlhf__format_double(m->value[i].value, 0, number));
    }
    rlhf__buf_puts(&line, "}\n");
    const rlhf_status st = rlhf__jsonl_append(&m->file, &line, err);
    rlhf__buf_finish(&line);
    return st;
}

rlhf_status rlhf__metrics_flush(struct rlhf__metrics *m, int64_t phase, struct rlhf__error *err) {
    pthread_mutex_lock(&m->lock);
    rlhf_status st =
        m->bad ? RLHF__NOMEM(err, "out of memory for the numbers of a phase") : RLHF_OK;
    if (st == RLHF_OK && m->writes) st = write_row(m, phase, err);
    forget(m);
    pthread_mutex_unlock(&m->lock);
    return st;
}

rlhf_status rlhf__metrics_sync(struct rlhf__metrics *m, struct rlhf__error *err) {
    return m->writes ? rlhf__jsonl_sync(&m->file, err) : RLHF_OK;
}
