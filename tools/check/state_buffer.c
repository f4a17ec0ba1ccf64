// state_buffer.c: see state_buffer.h.
#include "check/state_buffer.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STATE = 1 << 24 };

static rlhf_status stream_write(const rlhf_ostream *out, const void *bytes, uint64_t n) {
    struct rlhf__state_buffer *s = (struct rlhf__state_buffer *)(uintptr_t)out;
    if (n > s->limit - s->len) {
        s->refused = 1;
        return s->full;
    }
    if (n) memcpy(s->bytes + s->len, bytes, n);
    s->len += n;
    return RLHF_OK;
}

static struct rlhf__state_buffer *behind(const rlhf_istream *in) {
    return (struct rlhf__state_buffer *)(void *)((char *)(uintptr_t)in -
                                                 offsetof(struct rlhf__state_buffer, in));
}

static uint64_t stream_left(const rlhf_istream *in) {
    const struct rlhf__state_buffer *s = behind(in);
    return s->len - s->at;
}

static rlhf_status stream_read(const rlhf_istream *in, void *bytes, uint64_t n) {
    struct rlhf__state_buffer *s = behind(in);
    if (n > s->len - s->at) return RLHF_E_IO;
    if (n) memcpy(bytes, s->bytes + s->at, n);
    s->at += n;
    return RLHF_OK;
}

int rlhf__state_buffer_init(struct rlhf__state_buffer *s) {
    *s = (struct rlhf__state_buffer){.out = {sizeof s->out, 0, stream_write},
                                     .in = {sizeof s->in, 0, stream_read, stream_left},
                                     .limit = MAX_STATE,
                                     .full = RLHF_E_IO};
    s->bytes = malloc(MAX_STATE);
    return s->bytes != NULL;
}

void rlhf__state_buffer_finish(struct rlhf__state_buffer *s) {
    free(s->bytes);
    *s = (struct rlhf__state_buffer){0};
}

rlhf_status rlhf__state_buffer_save(struct rlhf__probe *t, struct rlhf__state_buffer *s,
                                    struct rlhf__error *err) {
    const rlhf_plugin *d = &t->check->plugin->desc;
    rlhf__child_log_doing(t->check->log, "save()");
    rlhf__probe_begin(t, "save()");
    rlhf_status st = d->save(t->self, &s->out);
    if (s->refused) { // the host's message
        rlhf__probe_end(t, RLHF_OK, NULL);
        return st;
    }
    return rlhf__probe_end(t, st, err);
}

rlhf_status rlhf__state_buffer_load(struct rlhf__probe *t, struct rlhf__state_buffer *s,
                                    uint32_t version, struct rlhf__error *err) {
    const rlhf_plugin *d = &t->check->plugin->desc;
    rlhf__child_log_doing(t->check->log, "load() of %llu bytes, version %u",
                          (unsigned long long)s->len, version);
    rlhf__probe_begin(t, "load()");
    const rlhf_status st = d->load(t->self, &s->in, version);
    if (st == RLHF_E_IO && s->at <= s->len) { // returned by read() and passed on
        rlhf__probe_end(t, RLHF_OK, NULL);
        return rlhf__fail(err, st, "load() of fewer bytes");
    }
    return rlhf__probe_end(t, st, err);
}
