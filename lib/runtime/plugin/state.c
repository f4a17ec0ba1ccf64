// state.c: a plugin's state as one block of bytes in a checkpoint.
//
// A block consists of "RLHFSTA0", u32 state_version, u32 length of id, id, u64 length, bytes, u32
// CRC-32C of everything before it. Integers are little-endian.
#include "plugin/instance.h"

#include "base/hash.h"
#include "plugin/growth.h"

#include <string.h>

static const char magic[8] = {'R', 'L', 'H', 'F', 'S', 'T', 'A', '0'};

struct stream {
    rlhf_ostream api; // first member: write() casts it back
    struct rlhf__buf *out;
};

static rlhf_status stream_write(const rlhf_ostream *api, const void *bytes, uint64_t n) {
    const struct stream *s = (const struct stream *)(const void *)api;
    if (n > SIZE_MAX / 2) return RLHF_E_NOMEM;
    rlhf__buf_put(s->out, bytes, (size_t)n);
    return s->out->bad ? RLHF_E_NOMEM : RLHF_OK;
}

rlhf_status rlhf__instance_save(const struct rlhf__instance *i, struct rlhf__buf *out,
                                struct rlhf__error *err) {
    const rlhf_plugin *d = &i->plugin->desc;
    if (d->state_version == 0) return RLHF_OK;
    struct rlhf__buf body = RLHF__BUF_INIT;
    struct stream stream = {{.write = stream_write}, &body};
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_ostream, &stream.api, i->plugin->abi_minor, &tails);
    struct rlhf__call call = rlhf__call_begin(i, "save()");
    rlhf_status st = rlhf__call_wrote(&call, &tails, d->save(i->self, &stream.api), err);
    if (st != RLHF_OK) {
        rlhf__buf_finish(&body);
        return st;
    }
    size_t start = out->len;
    rlhf__buf_put(out, magic, sizeof magic);
    rlhf__buf_u32le(out, d->state_version);
    rlhf__buf_u32le(out, (uint32_t)strlen(d->id));
    rlhf__buf_puts(out, d->id);
    rlhf__buf_u64le(out, body.len);
    rlhf__buf_put(out, body.data, body.len);
    if (body.bad) out->bad = 1;
    rlhf__buf_finish(&body);
    if (!out->bad) rlhf__buf_u32le(out, rlhf__crc32c(0, out->data + start, out->len - start));
    return rlhf__buf_ok(out, err);
}

// ---- reading ----------------------------------------------------------------------------------

struct saved {
    rlhf_istream api; // first member: read() casts it back
    const uint8_t **at;
    const uint8_t *end;
};

static rlhf_status saved_read(const rlhf_istream *api, void *bytes, uint64_t n) {
    const struct saved *s = (const struct saved *)(const void *)api;
    if (n > (uint64_t)(s->end - *s->at)) return RLHF_E_IO;
    if (n) memcpy(bytes, *s->at, (size_t)n);
    *s->at += n;
    return RLHF_OK;
}

static uint64_t saved_left(const rlhf_istream *api) {
    const struct saved *s = (const struct saved *)(const void *)api;
    return (uint64_t)(s->end - *s->at);
}

static uint64_t get_le(const uint8_t *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

// Check the block. Returns the error, or NULL after setting *body, *n and *version.
static const char *open_block(const uint8_t *p, size_t len, const char *id, const uint8_t **body,
                              size_t *n, uint32_t *version) {
    const size_t head = 16, tail = 4;
    if (len < head + 8 + tail || memcmp(p, magic, sizeof magic) != 0)
        return "is not a plugin state";
    if (get_le(p + len - tail, 4) != rlhf__crc32c(0, p, len - tail))
        return "is damaged (its CRC differs)";
    *version = (uint32_t)get_le(p + 8, 4);
    size_t id_len = (size_t)get_le(p + 12, 4);
    if (id_len > len - head - 8 - tail) return "is damaged";
    if (id_len != strlen(id) || memcmp(p + head, id, id_len) != 0) return "is another plugin's";
    *n = (size_t)get_le(p + head + id_len, 8);
    if (*n != len - head - 8 - tail - id_len) return "is damaged";
    *body = p + head + id_len + 8;
    return NULL;
}

rlhf_status rlhf__instance_load(const struct rlhf__instance *i, const void *bytes, size_t n,
                                struct rlhf__error *err) {
    const rlhf_plugin *d = &i->plugin->desc;
    const uint8_t *body = NULL;
    size_t body_len = 0;
    uint32_t version = 0;
    if (n == 0 && d->state_version == 0) return RLHF_OK;
    if (d->state_version == 0)
        return rlhf__fail(err, RLHF_E_INVALID, "there is a state, but %s keeps none",
                          rlhf__plugin_name(i->plugin));
    const char *why = open_block(bytes, n, d->id, &body, &body_len, &version);
    if (why)
        return rlhf__fail(err, RLHF_E_INVALID, "the stored state for %s %s",
                          rlhf__plugin_name(i->plugin), why);
    const uint8_t *at = body;
    struct saved saved = {{.read = saved_read, .left = saved_left}, &at, body + body_len};
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_istream, &saved.api, i->plugin->abi_minor, &tails);
    struct rlhf__call call = rlhf__call_begin(i, "load()");
    RLHF_TRY(rlhf__call_wrote(&call, &tails, d->load(i->self, &saved.api, version), err));
    if (at != saved.end)
        return rlhf__fail(err, RLHF_E_INVALID, "%s read only %zu of the %zu bytes of its state",
                          rlhf__plugin_name(i->plugin), (size_t)(at - body), body_len);
    return RLHF_OK;
}
