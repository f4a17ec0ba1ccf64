// kernels.c: tests how a compute backend is opened, used and closed: describe(), open(), failing
// calls, close(). The project's own tests check what a backend's operations compute.
#include "check/cases.h"

#include "model/device_info.h"

#include <string.h>

enum { NO_CARD = 4000, BYTES = 1024 };

static const rlhf_kernels_ops *ops_of(const struct rlhf__check *c) {
    return &c->plugin->ops.kernels;
}

// ---- describe() ----

static void look_at_json(struct rlhf__check *c, uint32_t gpu, const char *json) {
    struct rlhf__device_info d;
    struct rlhf__error err;
    if (!json)
        rlhf__child_log_found(c->log, RLHF__CHECK_DESCRIBE, "describe() gave no text");
    else if (rlhf__device_info_read(json, &d, &err) < 0)
        rlhf__child_log_found(c->log, RLHF__CHECK_DESCRIBE, "describe() of device %u: %s", gpu,
                              err.text);
    else if (*d.missing && gpu == 0)
        rlhf__child_log_fact(c->log, "device %u cannot be used here: %s", gpu, d.missing);
    if (json) rlhf__device_info_finish(&d);
}

static int try_describe(struct rlhf__check *c, int32_t step) {
    static const uint32_t gpus[] = {0, NO_CARD};
    struct rlhf__probe t;
    struct rlhf__error err;
    const char *json = NULL;
    if (!ops_of(c)->describe || step > 1) return 0;
    rlhf__child_log_doing(c->log, "describe() of device %u", gpus[step]);
    if (rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK) {
        rlhf__probe_begin(&t, "describe()");
        const rlhf_status st = ops_of(c)->describe(t.self, gpus[step], &json);
        if (rlhf__probe_end(&t, st, &err) == RLHF_OK)
            look_at_json(c, gpus[step], json);
        else if (step == 0)
            rlhf__child_log_found(c->log, RLHF__CHECK_DESCRIBE, "%s", err.text);
    }
    rlhf__probe_finish(&t);
    return 1;
}

// ---- open() ----

static rlhf_status open_one(struct rlhf__probe *t, uint32_t gpu, rlhf_compute **out,
                            struct rlhf__error *err) {
    const rlhf_kernels_open how = {.size = sizeof how, .threads = 1, .gpu = gpu};
    *out = NULL;
    rlhf__probe_begin(t, "open()");
    return rlhf__probe_end(t, ops_of(t->check)->open(t->self, &how, out), err);
}

static void close_one(struct rlhf__probe *t, rlhf_compute *table) {
    rlhf__probe_begin(t, "close()");
    ops_of(t->check)->close(t->self, table);
    rlhf__probe_end(t, RLHF_OK, NULL);
}

// Checks that uploaded bytes come back unchanged, and that an allocation larger than the memory of
// any machine fails.
static void use(struct rlhf__probe *t, const rlhf_compute *k) {
    struct rlhf__child_log *log = t->check->log;
    unsigned char up[BYTES], down[BYTES] = {0};
    struct rlhf__error err;
    rlhf_dev at = NULL;
    for (size_t i = 0; i < sizeof up; i++)
        up[i] = (unsigned char)(7 * i);
    rlhf__probe_begin(t, "alloc()");
    rlhf_status st = k->alloc(k->ctx, sizeof up, &at);
    if (st == RLHF_OK) st = k->upload(k->ctx, at, up, sizeof up);
    if (st == RLHF_OK) st = k->download(k->ctx, down, at, sizeof down);
    if (rlhf__probe_end(t, st, &err) < 0)
        rlhf__child_log_found(log, RLHF__CHECK_KERNELS_OPEN, "%s", err.text);
    else if (memcmp(up, down, sizeof up) != 0)
        rlhf__child_log_found(log, RLHF__CHECK_KERNELS_OPEN,
                              "download() gives other bytes than upload() got");
    k->release(k->ctx, at);
    if (k->bytes_in_use(k->ctx) != 0)
        rlhf__child_log_found(log, RLHF__CHECK_KERNELS_OPEN,
                              "after release(), %llu bytes are in use",
                              (unsigned long long)k->bytes_in_use(k->ctx));
    rlhf__probe_begin(t, "alloc()");
    st = k->alloc(k->ctx, UINT64_MAX / 4, &at);
    if (rlhf__probe_end(t, st, &err) == RLHF_OK)
        rlhf__child_log_found(log, RLHF__CHECK_KERNELS_OPEN,
                              "alloc() of more bytes than there are succeeds");
    else if (!*rlhf__probe_words(t))
        rlhf__child_log_found(log, RLHF__CHECK_KERNELS_OPEN,
                              "alloc() of too many bytes names no size with host->fail");
}

static const char *lacks(const rlhf_compute *k) {
    return !RLHF_COMPUTE_HAS(k, name)           ? "name"
           : !RLHF_COMPUTE_HAS(k, detail)       ? "detail"
           : !RLHF_COMPUTE_HAS(k, alloc)        ? "alloc()"
           : !RLHF_COMPUTE_HAS(k, release)      ? "release()"
           : !RLHF_COMPUTE_HAS(k, bytes_in_use) ? "bytes_in_use()"
           : !RLHF_COMPUTE_HAS(k, upload)       ? "upload()"
           : !RLHF_COMPUTE_HAS(k, download)     ? "download()"
           : !RLHF_COMPUTE_HAS(k, copy)         ? "copy()"
           : !RLHF_COMPUTE_HAS(k, zero)         ? "zero()"
           : !RLHF_COMPUTE_HAS(k, convert)      ? "convert()"
           : !RLHF_COMPUTE_HAS(k, sync)         ? "sync()"
                                                : NULL;
}

// Opens two tables, and closes the first before using the second.
static int try_open(struct rlhf__check *c, int32_t step) {
    struct rlhf__probe t;
    struct rlhf__error err;
    rlhf_compute *one = NULL, *two = NULL;
    if (step > 0) return 0;
    rlhf__child_log_doing(c->log, "open(), twice, and close()");
    if (rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK) {
        if (open_one(&t, 0, &one, &err) < 0) {
            rlhf__child_log_fact(c->log, "its tables were not tried: %s", err.text);
        } else if (!one || lacks(one)) {
            rlhf__child_log_found(c->log, RLHF__CHECK_KERNELS_OPEN, "its table has no %s",
                                  one ? lacks(one) : "member: open() gave none");
        } else {
            use(&t, one);
            if (open_one(&t, 0, &two, &err) < 0)
                rlhf__child_log_found(c->log, RLHF__CHECK_KERNELS_OPEN, "a second time, %s",
                                      err.text);
        }
        close_one(&t, one);
        if (two) use(&t, two);
        if (two) close_one(&t, two);
        close_one(&t, NULL);
    }
    rlhf__probe_finish(&t);
    return 1;
}

static int try_no_card(struct rlhf__check *c, int32_t step) {
    struct rlhf__probe t;
    struct rlhf__error err;
    rlhf_compute *table = NULL;
    if (step > 0) return 0;
    rlhf__child_log_doing(c->log, "open() of card %d", NO_CARD);
    if (rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK &&
        open_one(&t, NO_CARD, &table, &err) == RLHF_OK) {
        rlhf__child_log_found(c->log, RLHF__CHECK_KERNELS_OPEN,
                              "%s succeeds, but there is no such card", c->log->doing);
        close_one(&t, table);
    }
    rlhf__probe_finish(&t);
    return 1;
}

const struct rlhf__check_case rlhf__kernels_cases[] = {
    {"describe", RLHF__CHECK_CRASH, 0, 0, try_describe},
    {"open", RLHF__CHECK_CRASH, 0, 0, try_open},
    {"no card", RLHF__CHECK_CRASH, 0, 0, try_no_card},
    {NULL, 0, 0, 0, NULL},
};
