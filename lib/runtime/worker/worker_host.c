// worker_host.c: see worker_host.h.
#include "worker/worker_host.h"

#include "base/printable.h"
#include "worker/upcall_services.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rlhf__worker_host *behind(const rlhf_host *api) {
    return (struct rlhf__worker_host *)(uintptr_t)api;
}

// Send the frame. If the host cannot be reached, exit, because the host no longer waits for this
// process.
static void send_frame(struct rlhf__worker_host *t) {
    rlhf__wire_end(&t->frame);
    if (rlhf__wire_send(t->calls, &t->frame) != 0) _exit(1);
}

rlhf_status rlhf__table_call(struct rlhf__worker_host *t, struct rlhf__wire *in) {
    send_frame(t);
    if (rlhf__wire_receive(t->calls, &t->frame, in) != 0) _exit(1);
    return (rlhf_status)rlhf__wire_get_u32(in);
}

static void put_words(struct rlhf__worker_host *t, const char *text) {
    rlhf__wire_text(&t->frame, text, text ? strnlen(text, RLHF__LONGEST_TEXT) : 0);
}

static void say(struct rlhf__worker_host *t, uint32_t kind, int32_t number, const char *text) {
    pthread_mutex_lock(&t->lock);
    rlhf__wire_begin(&t->frame, kind);
    rlhf__wire_u32(&t->frame, (uint32_t)number);
    put_words(t, text);
    send_frame(t);
    pthread_mutex_unlock(&t->lock);
}

static void table_log(const rlhf_host *api, int32_t level, const char *msg) {
    say(behind(api), RLHF__CALL_LOG, level, msg);
}

static rlhf_status table_fail(const rlhf_host *api, rlhf_status code, const char *msg) {
    if (code >= 0) code = RLHF_E_INTERNAL;
    say(behind(api), RLHF__CALL_FAIL, code, msg);
    return code;
}

static void *table_alloc(const rlhf_host *api, uint64_t bytes) {
    (void)api;
    if (bytes == 0 || bytes > SIZE_MAX - 64) return NULL;
    const size_t whole = ((size_t)bytes + 63) / 64 * 64;
    void *p = aligned_alloc(64, whole);
    if (p) memset(p, 0, whole);
    return p;
}

static void table_free(const rlhf_host *api, void *p) {
    (void)api;
    free(p);
}

// The host would not know on which thread a metric was reported.
int rlhf__table_may_report(struct rlhf__worker_host *t, const char *name) {
    char line[512], shown[72], why[RLHF__METRIC_WHY], where[96];
    if (!rlhf__on_call_where(&t->on_call, where, sizeof where)) return 1;
    if (!rlhf__metric_first(&t->left_out, name)) return 0;
    snprintf(line, sizeof line, "the metric \"%s\" is left out: %s",
             rlhf__printable(name ? name : "", shown, sizeof shown),
             rlhf__metric_misplaced(where, why));
    say(t, RLHF__CALL_LOG, RLHF_LOG_WARN, line);
    return 0;
}

static void table_metric(const rlhf_host *api, const char *name, double value, double weight,
                         int32_t combine) {
    struct rlhf__worker_host *t = behind(api);
    if (!rlhf__table_may_report(t, name)) return;
    if (!name) name = "";
    pthread_mutex_lock(&t->lock);
    rlhf__wire_begin(&t->frame, RLHF__CALL_METRIC);
    put_words(t, name);
    rlhf__wire_f64(&t->frame, value);
    rlhf__wire_f64(&t->frame, weight);
    rlhf__wire_u32(&t->frame, (uint32_t)combine);
    send_frame(t);
    pthread_mutex_unlock(&t->lock);
}

static void table_rng(const rlhf_host *api, const char *stream, rlhf_rng *out) {
    const struct rlhf__worker_host *t = behind(api);
    rlhf__instance_rng(t->id, t->owner, t->seed, stream, out);
}

static int32_t table_cancelled(const rlhf_host *api) {
    return atomic_load(&behind(api)->note->cancelled) != 0;
}

static const void *table_service(const rlhf_host *api, const char *id) {
    const struct rlhf__worker_host *t = behind(api);
    const struct {
        const char *id;
        uint32_t bit;
        const void *table;
    } all[] = {{RLHF_SVC_CLASSIFIER, RLHF__HAS_CLASSIFIER, &t->classifier},
               {RLHF_SVC_TOKENIZER, RLHF__HAS_TOKENIZER, &t->tokenizer},
               {RLHF_SVC_REWARD_MODEL, RLHF__HAS_MODEL, &t->model},
               {RLHF_SVC_LANGUAGE_MODEL, RLHF__HAS_LANGUAGE, &t->language},
               {RLHF_SVC_ROW, RLHF__HAS_ROW, &t->row},
               {RLHF_SVC_LIMITS, RLHF__HAS_LIMITS, &t->limits}};
    for (size_t i = 0; id && i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].id, id) == 0) return t->services & all[i].bit ? all[i].table : NULL;
    return NULL;
}

static rlhf_status table_reduce(const rlhf_host *api, double *sums, uint32_t n) {
    (void)sums;
    (void)n;
    return table_fail(api, RLHF_E_UNSUPPORTED, RLHF__REDUCE_FOR_ALGOS);
}

void rlhf__table_init(struct rlhf__worker_host *t, int calls, const struct rlhf__batch_note *note) {
    memset(t, 0, sizeof *t);
    t->api = (rlhf_host){.abi_minor = RLHF_ABI_MINOR,
                         .name = "rlhf-host",
                         .version = RLHF_SDK_VERSION,
                         .log = table_log,
                         .fail = table_fail,
                         .alloc = table_alloc,
                         .free = table_free,
                         .metric = table_metric,
                         .rng = table_rng,
                         .cancelled = table_cancelled,
                         .service = table_service,
                         .reduce = table_reduce};
    t->calls = calls;
    t->note = note;
    pthread_mutex_init(&t->lock, NULL);
    t->row = *rlhf__row_service();
}

void rlhf__table_for(struct rlhf__worker_host *t, uint32_t minor) {
    RLHF__PASS(rlhf_host, &t->api, minor);
    RLHF__PASS(rlhf_classifier_service, &t->classifier, minor);
    RLHF__PASS(rlhf_tokenizer_service, &t->tokenizer, minor);
    RLHF__PASS(rlhf_reward_model_service, &t->model, minor);
    RLHF__PASS(rlhf_language_model_service, &t->language, minor);
    RLHF__PASS(rlhf_row_service, &t->row, minor);
    RLHF__PASS(rlhf_limits, &t->limits, minor);
}
