// tally.c: see tally.h.
#include "http/tally.h"

static int is_name(const char *name, size_t len) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "_./-";
    if (!len || len >= RLHF__TALLY_NAME) return 0;
    for (size_t i = 0; i < len; i++)
        if (!memchr(allowed, name[i], sizeof allowed - 1)) return 0;
    return 1;
}

static struct rlhf__tally_entry *find(const struct rlhf__tally *t, const char *name, size_t len) {
    for (uint32_t i = 0; i < t->n; i++)
        if (strlen(t->entry[i].name) == len && memcmp(t->entry[i].name, name, len) == 0)
            return &t->entry[i];
    return NULL;
}

rlhf_status rlhf__tally_add(struct rlhf__tally *t, const rlhf_host *host, const char *name,
                            size_t len, double value, uint64_t rows) {
    struct rlhf__tally_entry *e = find(t, name, len);
    if (!e && (!is_name(name, len) || t->n == RLHF__TALLY_NAMES)) {
        t->left_out = 1;
        return RLHF_OK;
    }
    if (!t->entry) t->entry = host->alloc(host, RLHF__TALLY_NAMES * sizeof *t->entry);
    if (!t->entry) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    if (!e) {
        e = &t->entry[t->n++];
        memset(e, 0, sizeof *e);
        memcpy(e->name, name, len);
    }
    e->sum += value;
    e->rows += rows;
    return RLHF_OK;
}

rlhf_status rlhf__tally_merge(struct rlhf__tally *t, const rlhf_host *host,
                              const struct rlhf__tally *other) {
    for (uint32_t i = 0; i < other->n; i++) {
        const struct rlhf__tally_entry *e = &other->entry[i];
        RLHF_TRY(rlhf__tally_add(t, host, e->name, strlen(e->name), e->sum, e->rows));
    }
    t->left_out |= other->left_out;
    return RLHF_OK;
}

void rlhf__tally_report(const struct rlhf__tally *t, const rlhf_host *host) {
    for (uint32_t i = 0; i < t->n; i++)
        host->metric(host, t->entry[i].name, t->entry[i].sum / (double)t->entry[i].rows);
}

void rlhf__tally_finish(struct rlhf__tally *t, const rlhf_host *host) {
    if (t->entry) host->free(host, t->entry);
    memset(t, 0, sizeof *t);
}
