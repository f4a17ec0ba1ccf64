// metrics.c: see metrics.h.
#include "report/metrics.h"

#include "base/json.h"
#include "report/events.h"
#include "report/jsonl.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct value {
    char *name;
    double value;
};

struct rlhf__metrics {
    struct rlhf__jsonl rows;
    struct rlhf__events events;
    int has_events;
    int bad;              // a value was lost: out of memory
    pthread_mutex_t lock; // of what follows
    struct value *value;  // sorted by name
    size_t n, cap;
};

static void forget(struct rlhf__metrics *m) {
    for (size_t i = 0; i < m->n; i++)
        free(m->value[i].name);
    m->n = 0;
}

void rlhf__metrics_close(struct rlhf__metrics *m) {
    if (!m) return;
    rlhf__jsonl_close(&m->rows);
    rlhf__events_close(&m->events);
    forget(m);
    free(m->value);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

rlhf_status rlhf__metrics_open(const struct rlhf__folder *run, int tensorboard, int64_t keep_phase,
                               struct rlhf__log *log, struct rlhf__metrics **out,
                               struct rlhf__error *err) {
    struct rlhf__metrics *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m) return RLHF__NOMEM(err, "%s: out of memory", run->path);
    pthread_mutex_init(&m->lock, NULL);
    m->has_events = tensorboard != 0;
    rlhf_status status = rlhf__jsonl_open(run, "metrics.jsonl", keep_phase, log, &m->rows, err);
    if (status == RLHF_OK && tensorboard)
        status = rlhf__events_open(run, "tensorboard", keep_phase, &m->events, err);
    if (status == RLHF_OK)
        *out = m;
    else
        rlhf__metrics_close(m);
    return status;
}

// Index of name, or where it belongs; *there says which.
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

static rlhf_status insert(struct rlhf__metrics *m, size_t at, const char *name, double v) {
    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 64;
        struct value *all = realloc(m->value, cap * sizeof *all);
        if (!all) return RLHF_E_NOMEM;
        m->value = all;
        m->cap = cap;
    }
    char *copy = strdup(name);
    if (!copy) return RLHF_E_NOMEM;
    memmove(m->value + at + 1, m->value + at, (m->n - at) * sizeof *m->value);
    m->value[at] = (struct value){copy, v};
    m->n++;
    return RLHF_OK;
}

rlhf_status rlhf__metrics_set(struct rlhf__metrics *m, const char *name, double value) {
    int there;
    rlhf_status status = RLHF_OK;
    pthread_mutex_lock(&m->lock);
    size_t at = place(m, name, &there);
    if (there)
        m->value[at].value = value;
    else
        status = insert(m, at, name, value);
    if (status < 0) m->bad = 1; // flush says so: callers rarely look
    pthread_mutex_unlock(&m->lock);
    return status;
}

void rlhf__metrics_sink(void *ctx, const char *name, double value) {
    (void)rlhf__metrics_set(ctx, name, value);
}

int rlhf__metrics_get(const struct rlhf__metrics *m, const char *name, double *out) {
    // The lock is not part of what a reader sees as the metrics' value.
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

static void write_row(const struct rlhf__metrics *m, int64_t phase, struct rlhf__buf *line) {
    char number[40];
    rlhf__buf_printf(line, "{\"phase\": %lld", (long long)phase);
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(m->value[i].name, "phase") == 0) continue; // the line has one
        rlhf__buf_puts(line, ", ");
        rlhf__json_write_string(line, m->value[i].name, strlen(m->value[i].name));
        rlhf__buf_printf(line, ": %s", rlhf__format_double(m->value[i].value, 0, number));
    }
    rlhf__buf_puts(line, "}\n");
}

rlhf_status rlhf__metrics_flush(struct rlhf__metrics *m, int64_t phase, struct rlhf__error *err) {
    struct rlhf__buf line = RLHF__BUF_INIT, summary = RLHF__BUF_INIT;
    pthread_mutex_lock(&m->lock);
    write_row(m, phase, &line);
    for (size_t i = 0; m->has_events && i < m->n; i++)
        if (isfinite(m->value[i].value))
            rlhf__events_scalar(&summary, m->value[i].name, m->value[i].value);
    if (m->bad) line.bad = 1;
    forget(m);
    pthread_mutex_unlock(&m->lock);
    rlhf_status status = rlhf__jsonl_append(&m->rows, &line, err);
    if (status == RLHF_OK && m->has_events)
        status = rlhf__events_write(&m->events, phase, &summary, err);
    rlhf__buf_free(&line);
    rlhf__buf_free(&summary);
    return status;
}

rlhf_status rlhf__metrics_text(struct rlhf__metrics *m, int64_t phase, const char *tag,
                               rlhf_str text, struct rlhf__error *err) {
    if (!m->has_events) return RLHF_OK;
    struct rlhf__buf summary = RLHF__BUF_INIT;
    rlhf__events_text(&summary, tag, text);
    rlhf_status status = rlhf__events_write(&m->events, phase, &summary, err);
    rlhf__buf_free(&summary);
    return status;
}

rlhf_status rlhf__metrics_sync(struct rlhf__metrics *m, struct rlhf__error *err) {
    RLHF_TRY(rlhf__jsonl_sync(&m->rows, err));
    return m->has_events ? rlhf__events_sync(&m->events, err) : RLHF_OK;
}
