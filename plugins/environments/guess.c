// guess.c: a game in which the model must find a number. After each try, the model reads "higher"
// or "lower". The number of tries is limited by episodes.turns, not by this plugin.
#include <rlhf/environment.h>

struct config {
    int64_t most;
};

struct game {
    int64_t secret;
};

static rlhf_status reset(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    const struct config *c = self; // without create(), self is the config
    for (uint32_t i = 0; i < in->n; i++) {
        struct game *g = in->state[i];
        rlhf_rng dice = {in->seed[i], rlhf_rng_stream("guess"), 0};
        g->secret = 1 + (int64_t)rlhf_rng_below(&dice, (uint64_t)c->most);
        RLHF_TRY(rlhf_sayf(out, i, RLHF_ROLE_USER, "1 to %lld?", (long long)c->most));
    }
    return RLHF_OK;
}

// Returns the number at the end of a turn, or 0 if there is none.
static int64_t number(rlhf_str s) {
    int64_t n = 0, place = 1;
    for (uint64_t i = s.len; i > 0 && place < 1000000; place *= 10) {
        const char c = s.ptr[--i];
        if (c < '0' || c > '9') break;
        n += place * (c - '0');
    }
    return n;
}

static rlhf_status step(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    (void)self;
    for (uint32_t i = 0; i < in->n; i++) {
        const struct game *g = in->state[i];
        const int64_t tried = number(in->text[i]);
        if (tried == g->secret) {
            out->reward[i] = 1;
            out->verdict[i] = RLHF_VERDICT_RIGHT;
            out->end[i] = RLHF_EPISODE_DONE;
        } else {
            RLHF_TRY(rlhf_sayf(out, i, RLHF_ROLE_USER, tried < g->secret ? "higher" : "lower"));
        }
    }
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_I64(struct config, most, 63, 1, 999999, "the largest number"),
};
static const rlhf_environment_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_ENVIRONMENT_PAYS | RLHF_ENVIRONMENT_TASKS | RLHF_ENVIRONMENT_FUNCTION,
    .state_size = sizeof(struct game),
    .reset = reset,
    .step = step,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ENVIRONMENT,
    .id = "org.rlhf-host.guess",
    .version = RLHF_SDK_VERSION,
    .summary = "find a number, told higher or lower after each try",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct config, options),
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
