// environment.cc: a small environment in C++20: a game. The policy guesses a number, and the game
// answers each guess with "higher" or "lower".
//
// The host is written in C, so no exception may leave a function. Nothing here throws. Things to
// change: the option struct and its table, the state of a game, reset(), step(), and the id.
#include <rlhf/environment.h>

namespace {

// Filled by the host from the table below before reset() is called.
struct config {
    int64_t most;
};

// The state of one episode. It is zero at first, and the host owns it, so no constructor runs.
struct game {
    int64_t secret;
};

// The messages and rewards of an environment may depend only on its options and on this episode's
// seed, data row and turns. So random numbers are drawn from in->seed.
rlhf_status reset(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    const auto *c =
        static_cast<const config *>(self); // without create() the instance is the config
    for (uint32_t i = 0; i < in->n; i++) {
        auto *g = static_cast<game *>(in->state[i]);
        rlhf_rng dice = {in->seed[i], rlhf_rng_stream("secret"), 0};
        g->secret = 1 + static_cast<int64_t>(rlhf_rng_below(&dice, static_cast<uint64_t>(c->most)));
        RLHF_TRY(rlhf_sayf(out, i, RLHF_ROLE_USER, "1 to %lld?", static_cast<long long>(c->most)));
    }
    return RLHF_OK;
}

// Returns the number that a turn consists of, or 0. A text may contain any bytes.
int64_t number(const rlhf_str &text) {
    int64_t n = 0;
    for (uint64_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || n > 1000000) return 0;
        n = 10 * n + (text.ptr[i] - '0');
    }
    return n;
}

// Answers a turn of the policy in each of these episodes.
rlhf_status step(void *, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    for (uint32_t i = 0; i < in->n; i++) {
        const auto *g = static_cast<const game *>(in->state[i]);
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

const rlhf_opt options[] = {
    RLHF_OPT_I64(config, most, 63, 1, 999999, "the largest number"),
};
const rlhf_environment_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_ENVIRONMENT_PAYS | RLHF_ENVIRONMENT_TASKS, // needs neither rewards nor prompts
    .state_size = sizeof(game),
    .reset = reset,
    .step = step,
};
const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ENVIRONMENT,
    .id = "org.example.my_environment", // reverse DNS; must be unique
    .version = "1.0.0",
    .summary = "find a number, told higher or lower",
    RLHF_OPTIONS(config, options),
    .ops = &ops,
};

} // namespace

RLHF_DEFINE_PLUGIN(plugin)
