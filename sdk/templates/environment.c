// environment.c: a small environment, a game. The policy guesses a number, and the game answers
// each guess with "higher" or "lower".
//
// Things to change: the option struct and its table, the state of a game, reset(), step(), and the
// id.
#include <rlhf/environment.h>

// Filled by the host from the table below before reset() is called.
struct config {
    int64_t most;
};

// The state of one episode. It is zero at first, and the host owns it.
struct game {
    int64_t secret;
};

// In an episode, an environment's messages and rewards may depend only on its options and on the
// episode's seed, data row and turns. So random numbers are drawn from in->seed.
static rlhf_status reset(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    const struct config *c = self; // without create() the instance is the config
    for (uint32_t i = 0; i < in->n; i++) {
        struct game *g = in->state[i];
        rlhf_rng dice = {in->seed[i], rlhf_rng_stream("secret"), 0};
        g->secret = 1 + (int64_t)rlhf_rng_below(&dice, (uint64_t)c->most);
        RLHF_TRY(rlhf_sayf(out, i, RLHF_ROLE_USER, "1 to %lld?", (long long)c->most));
    }
    return RLHF_OK;
}

// Returns the number that the text consists of, or 0 if it is not a number. A text may contain any
// bytes.
static int64_t number(rlhf_str text) {
    int64_t n = 0;
    for (uint64_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || n > 1000000) return 0;
        n = 10 * n + (text.ptr[i] - '0');
    }
    return n;
}

// Answers a turn of the policy in each of these episodes.
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
    // gives rewards and sets the task itself; the same turns always get the same answers
    .flags = RLHF_ENVIRONMENT_PAYS | RLHF_ENVIRONMENT_TASKS | RLHF_ENVIRONMENT_FUNCTION,
    .state_size = sizeof(struct game),
    .reset = reset,
    .step = step,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ENVIRONMENT,
    .id = "org.example.my_environment", // reverse DNS; must be unique
    .version = "1.0.0",
    .summary = "find a number, told higher or lower",
    RLHF_OPTIONS(struct config, options),
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
