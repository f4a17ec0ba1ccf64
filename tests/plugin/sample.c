// sample.c: a reward plugin for the host's tests. It has an option of every type, keeps state, and
// reports its inputs through score(): each response's score is `gain` times its length.
#include <rlhf/reward.h>

#include <string.h>

struct config {
    double gain;
    int64_t count;
    int32_t loud, mode;
    const char *label, *file;
};

struct self {
    const rlhf_host *host;
    const struct config *config;
    int64_t calls;
};

static const char *const modes[] = {"first", "second", NULL};
static const rlhf_opt opts[] = {
    RLHF_OPT_F64(struct config, gain, 1, -10, 10, "factor of every score"),
    RLHF_OPT_I64(struct config, count, 3, 1, 100, "a number of things"),
    RLHF_OPT_BOOL(struct config, loud, 0, "log every call"),
    RLHF_OPT_ENUM(struct config, mode, 0, modes, "fail: create() refuses \"second\""),
    RLHF_OPT_STR(struct config, label, "none", "a name"),
    RLHF_OPT_PATH(struct config, file, NULL, "a file"),
};

static rlhf_status create(const rlhf_host *host, const void *config, void **out) {
    const struct config *c = config;
    if (c->mode == 1) return host->fail(host, RLHF_E_INVALID, "the second mode is not for use");
    struct self *s = host->alloc(host, sizeof *s);
    if (!s) return RLHF_E_NOMEM;
    s->host = host;
    s->config = c;
    *out = s;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct self *s = self;
    if (s) s->host->free(s->host, s);
}

static rlhf_status save(void *self, const rlhf_ostream *out) {
    const struct self *s = self;
    return out->write(out, &s->calls, sizeof s->calls);
}

static rlhf_status load(void *self, const rlhf_istream *in, uint32_t version) {
    struct self *s = self;
    if (version != 2) return s->host->fail(s->host, RLHF_E_UNSUPPORTED, "state of another version");
    if (in->left(in) != sizeof s->calls)
        return rlhf_failf(s->host, RLHF_E_INVALID, "a state of %d bytes", (int)in->left(in));
    RLHF_TRY(in->read(in, &s->calls, sizeof s->calls));
    return in->left(in) == 0 ? RLHF_OK : s->host->fail(s->host, RLHF_E_INVALID, "bytes are left");
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct self *s = self;
    s->calls++;
    if (s->config->loud) rlhf_logf(s->host, RLHF_LOG_INFO, "call %d", (int)s->calls);
    for (uint32_t i = 0; i < in->n; i++) {
        rlhf_str r = in->response[i];
        if (r.len == 3 && memcmp(r.ptr, "bad", 3) == 0)
            return rlhf_failf(s->host, RLHF_E_NUMERIC, "row %u is bad", i);
        out->seq[i] = (float)(s->config->gain * (double)r.len);
    }
    rlhf_metric_last(s->host, "sample/calls", (double)s->calls);
    return RLHF_OK;
}

// "org.example.sample/1" does not need an instance, but "org.example.calls/1" does.
static const void *extension(void *self, const char *id) {
    static const int32_t one = 1;
    if (strcmp(id, "org.example.sample/1") == 0) return &one;
    return self && strcmp(id, "org.example.calls/1") == 0 ? &((struct self *)self)->calls : NULL;
}

#ifdef FUNCTION
#define FLAGS RLHF_REWARD_FUNCTION
#else
#define FLAGS 0
#endif
static const rlhf_reward_ops ops = {.size = sizeof ops, .flags = FLAGS, .score = score};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .state_version = 2,
    .id = "org.example.sample",
    .version = "1.2.3",
    .summary = "a sample for tests",
#ifdef STATED // texts that a terminal or a reader of JSON must be protected from
    .vendor = "a \"vendor\" \xe2\x80\xaeother",
    .url = "https://example.org/?a=1&b=<2>",
    .license = "Apache-2.0",
#else
    .vendor = "the tests",
#endif
    RLHF_OPTIONS(struct config, opts),
    .create = create,
    .destroy = destroy,
    .save = save,
    .load = load,
    .ops = &ops,
    .extension = extension,
};

RLHF_DEFINE_PLUGIN(plugin)
