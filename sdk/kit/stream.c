// stream.c: streams in memory for save() and load(). See rlhf/test.h.
#include <rlhf/test.h>

static rlhf_status do_write(const rlhf_ostream *o, const void *bytes, uint64_t n) {
    union {
        const rlhf_ostream *out;
        struct rlhf_test_stream *stream; // valid because out is its first member
    } u;
    u.out = o;
    struct rlhf_test_stream *s = u.stream;
    if (n > s->limit - s->len) return RLHF_E_IO;
    memcpy(s->bytes + s->len, bytes, (size_t)n);
    s->len += n;
    return RLHF_OK;
}

static struct rlhf_test_stream *of_source(const rlhf_istream *i) {
    union {
        const rlhf_istream *in;
        const char *byte;
        struct rlhf_test_stream *stream;
    } u;
    u.in = i;
    u.byte -= offsetof(struct rlhf_test_stream, in);
    return u.stream;
}

static rlhf_status do_read(const rlhf_istream *i, void *bytes, uint64_t n) {
    struct rlhf_test_stream *s = of_source(i);
    if (n > s->len - s->at) return RLHF_E_IO;
    memcpy(bytes, s->bytes + s->at, (size_t)n);
    s->at += n;
    return RLHF_OK;
}

static uint64_t do_left(const rlhf_istream *i) {
    const struct rlhf_test_stream *s = of_source(i);
    return s->len - s->at;
}

void rlhf_test_stream_init(struct rlhf_test_stream *s) {
    memset(s, 0, sizeof *s);
    s->out.size = (uint32_t)sizeof s->out;
    s->out.write = do_write;
    s->in.size = (uint32_t)sizeof s->in;
    s->in.read = do_read;
    s->in.left = do_left;
    s->limit = sizeof s->bytes;
}
