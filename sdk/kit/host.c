// host.c: the fake host: records calls, and answers queries about them. See rlhf/test.h.
#include <rlhf/test.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- the table's functions ----

// Returns the recording host that contains the table h. rlhf_test_init made both.
static struct rlhf_test_host *host_of(const rlhf_host *h) {
    union {
        const rlhf_host *table;
        struct rlhf_test_host *host; // valid because table is its first member
    } u;
    u.table = h;
    return u.host;
}

static void do_log(const rlhf_host *h, int32_t level, const char *text) {
    struct rlhf_test_host *t = host_of(h);
    if (t->n_logs < RLHF_TEST_LOGS) {
        t->log[t->n_logs].level = level;
        snprintf(t->log[t->n_logs].text, RLHF_TEST_TEXT, "%s", text);
    }
    t->n_logs++;
}

static rlhf_status do_fail(const rlhf_host *h, rlhf_status code, const char *text) {
    struct rlhf_test_host *t = host_of(h);
    if (code >= 0) code = RLHF_E_INTERNAL;
    t->fail_code = code;
    t->n_fails++;
    snprintf(t->fail_text, RLHF_TEST_TEXT, "%s", text);
    return code;
}

static void *do_alloc(const rlhf_host *h, uint64_t bytes) {
    struct rlhf_test_host *t = host_of(h);
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

static void do_free(const rlhf_host *h, void *p) {
    if (p) host_of(h)->live--;
    free(p);
}

// Adds a report to a metric's reading, combining the values as the host does. A reading of NaN
// stays NaN.
static void combine(struct rlhf_test_reading *m, double value, double weight) {
    const int first = m->n++ == 0;
    m->weight = first ? weight : m->weight + weight;
    m->sum = first ? weight * value : m->sum + weight * value;
    switch (m->combine) {
    case RLHF_COMBINE_MEAN:
        m->value = first ? value : m->sum / m->weight;
        break;
    case RLHF_COMBINE_SUM:
        m->value = m->sum;
        break;
    case RLHF_COMBINE_MAX:
        m->value = first || !(isnan(m->value) || m->value > value) ? value : m->value;
        break;
    case RLHF_COMBINE_MIN:
        m->value = first || !(isnan(m->value) || m->value < value) ? value : m->value;
        break;
    default:
        m->value = value;
    }
}

static void wrong_metric(struct rlhf_test_host *t, const char *name, const char *why) {
    t->n_bad++;
    fprintf(stderr, "metric \"%s\" %s\n", name, why);
}

static void do_metric(const rlhf_host *h, const char *name, double value, double weight,
                      int32_t how) {
    struct rlhf_test_host *t = host_of(h);
    uint32_t i = 0;
    while (i < t->n_metrics && strcmp(t->metric[i].name, name) != 0)
        i++;
    struct rlhf_test_reading *m = &t->metric[i];
    if (how < RLHF_COMBINE_MEAN || how > RLHF_COMBINE_MIN) {
        wrong_metric(t, name, "is combined in no way that there is");
        return;
    }
    const int ignored = how != RLHF_COMBINE_MEAN && how != RLHF_COMBINE_SUM;
    const int weighs = ignored || (isfinite(weight) && weight >= 0);
    if (!weighs) wrong_metric(t, name, "has a weight that is not a finite number of 0 or more");
    if (how == RLHF_COMBINE_MEAN && !(weight > 0)) return; // such a report does not count
    if (!weighs || i == RLHF_TEST_METRICS) return;
    if (i == t->n_metrics) {
        *m = (struct rlhf_test_reading){.combine = how};
        snprintf(m->name, sizeof m->name, "%s", name);
        t->n_metrics++;
    }
    if (m->combine == how)
        combine(m, value, weight);
    else
        wrong_metric(t, name, "is combined in two ways");
}

static void do_rng(const rlhf_host *h, const char *stream, rlhf_rng *out) {
    out->seed = host_of(h)->seed;
    out->stream = rlhf_rng_stream(stream);
    out->counter = 0;
}

static int32_t do_cancelled(const rlhf_host *h) { return host_of(h)->cancel; }

static const void *do_service(const rlhf_host *h, const char *id) {
    const struct rlhf_test_host *t = host_of(h);
    for (uint32_t i = 0; i < t->n_services; i++)
        if (strcmp(t->service[i].id, id) == 0) return t->service[i].table;
    return strcmp(id, RLHF_SVC_LIMITS) == 0 ? &t->limits : NULL;
}

// The host's reduce() adds the sums of all processes. A test has only one process, so the sums stay
// as they are. A test that simulates several processes replaces this function in host.table.
static rlhf_status do_reduce(const rlhf_host *h, double *sums, uint32_t n) {
    (void)h;
    (void)sums;
    (void)n;
    return RLHF_OK;
}

// ---- setup and queries ----

void rlhf_test_init(struct rlhf_test_host *t, uint64_t seed) {
    memset(t, 0, sizeof *t);
    t->table.size = (uint32_t)sizeof t->table;
    t->table.abi_minor = RLHF_ABI_MINOR;
    t->table.name = "rlhf-test";
    t->table.version = RLHF_SDK_VERSION;
    t->table.log = do_log;
    t->table.fail = do_fail;
    t->table.alloc = do_alloc;
    t->table.free = do_free;
    t->table.metric = do_metric;
    t->table.rng = do_rng;
    t->table.cancelled = do_cancelled;
    t->table.service = do_service;
    t->table.reduce = do_reduce;
    rlhf_test_limits_init(&t->limits);
    t->seed = seed;
}

int rlhf_test_offer(struct rlhf_test_host *t, const char *id, const void *table) {
    if (t->n_services == RLHF_TEST_SERVICES) return 0;
    t->service[t->n_services].id = id;
    t->service[t->n_services].table = table;
    t->n_services++;
    return 1;
}

void rlhf_test_limits_init(rlhf_limits *l) {
    memset(l, 0, sizeof *l);
    l->size = (uint32_t)sizeof *l;
}

void rlhf_test_fail_alloc(struct rlhf_test_host *t, int64_t n, int32_t on) {
    t->allocs = 0;
    t->fail_at = n;
    t->fail_on = on;
}

int rlhf_test_metric(const struct rlhf_test_host *t, const char *name, double *value) {
    for (uint32_t i = 0; i < t->n_metrics; i++) {
        const struct rlhf_test_reading *m = &t->metric[i];
        if (strcmp(m->name, name) != 0) continue;
        if (m->combine == RLHF_COMBINE_MEAN && m->weight == 0) return 0;
        *value = m->value;
        return 1;
    }
    return 0;
}

void rlhf_test_phase(struct rlhf_test_host *t) { t->n_metrics = 0; }

const char *rlhf_test_failure(const struct rlhf_test_host *t) { return t->fail_text; }

int rlhf_test_logged(const struct rlhf_test_host *t, const char *text) {
    for (uint32_t i = 0; i < t->n_logs && i < RLHF_TEST_LOGS; i++)
        if (strstr(t->log[i].text, text)) return 1;
    return 0;
}

// ---- checks ----

int rlhf_test_check(struct rlhf_test_host *t, int holds, const char *file, int line,
                    const char *what) {
    t->n_checks++;
    if (holds) return 1;
    t->n_bad++;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    return 0;
}

int rlhf_test_near(struct rlhf_test_host *t, double got, double want, double tolerance,
                   const char *file, int line, const char *what) {
    t->n_checks++;
    if (fabs(got - want) <= tolerance) return 1; // false for NaN
    t->n_bad++;
    fprintf(stderr, "%s:%d: %s is %.9g, expected %.9g within %.3g\n", file, line, what, got, want,
            tolerance);
    return 0;
}

int rlhf_test_end(struct rlhf_test_host *t) {
    if (t->live != 0) {
        t->n_bad++;
        fprintf(stderr, "the plugin did not free %lld of its allocations\n", (long long)t->live);
    }
    printf("%u checks, %u failed\n", (unsigned)t->n_checks, (unsigned)t->n_bad);
    return t->n_bad > 0 || t->n_checks == 0;
}

// ---- failure injection ----

static int64_t broken(const char *what, int64_t n, int32_t on) {
    fprintf(stderr, "allocation %lld failing%s: %s\n", (long long)n, on ? ", and all after it" : "",
            what);
    return -1;
}

int64_t rlhf_test_alloc_sweep(struct rlhf_test_host *t,
                              rlhf_status (*scenario)(struct rlhf_test_host *t, void *arg),
                              void *arg) {
    const int64_t before = t->live;
    for (int64_t n = 1;; n++)
        for (int32_t on = 0; on < 2; on++) {
            const int32_t fails = t->n_fails;
            rlhf_test_fail_alloc(t, n, on);
            rlhf_status st = scenario(t, arg);
            const int64_t made = t->allocs;
            rlhf_test_fail_alloc(t, 0, 0);
            if (t->live != before) return broken("not all memory was freed", n, on);
            if (made < n)
                return st < 0 ? broken("it fails although no allocation failed", n, on) : made;
            if (st != RLHF_E_NOMEM) return broken("the status is not RLHF_E_NOMEM", n, on);
            if (t->n_fails == fails) return broken("no message was given to host->fail", n, on);
        }
}
