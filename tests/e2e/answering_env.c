// answering_env.c: an environment that counts the tokens of the policy. It replies with this
// number, and also gives it as the reward. On request it breaks a rule.
#include "support/plugin.h"

#include <rlhf/environment.h>

#include <math.h>
#include <stdio.h>

enum fault {
    NONE,
    SILENT,
    BAD_END,
    FAILED,
    STATUS,
    TOOL,
    PAY_NAN,
    SPECIAL,
    HUGE_REPLY,
    OTHER,
    QUIET,
    TOOLS,
    ONCE,
    BAD_VERDICT,
    BAD_FAILED,
    BAD_LATER,
    OPEN_VERDICT,
    END_AGAIN,
    METRIC_OF,
    LONG_MESSAGE,
    SHORT_MESSAGE,
    NO_TEXT,
    CHANGE_N,
    CHANGE_END,
    CHANGE_ROW,
    RESET_PAYS,
    NO_ROLE
};
static const char *const faults[] = {
    "none",       "silent",       "bad_end",       "failed",    "status",       "tool",
    "nan",        "special",      "huge",          "other",     "quiet",        "tools",
    "once",       "bad_verdict",  "bad_failed",    "bad_later", "open_verdict", "end_again",
    "metric_of",  "long_message", "short_message", "no_text",   "change_n",     "change_end",
    "change_row", "reset_pays",   "no_role",       NULL};

struct config {
    int64_t turns;
    int32_t fault, starts;
};

struct self {
    const rlhf_host *host;
    const struct config *config;
    int32_t failed_once;
};
TEST_INSTANCE(struct self)

struct state {
    int64_t bytes, luck;
    char *held;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, turns, 3, 1, 100, "turns after which it ends an episode"),
    RLHF_OPT_ENUM(struct config, fault, NONE, faults, "the rule that it breaks"),
    RLHF_OPT_BOOL(struct config, starts, 1, "reset() says something"),
};

static const char *tools(void *self) {
    const struct self *s = self;
    return s->config->fault == TOOLS ? "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]"
                                     : NULL;
}

static rlhf_status reset(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    const struct self *s = self;
    for (uint32_t i = 0; i < in->n; i++) {
        struct state *e = in->state[i];
        rlhf_rng dice = {in->seed[i], rlhf_rng_stream("luck"), 0};
        e->luck = (int64_t)rlhf_rng_below(&dice, 4);
        e->held = s->host->alloc(s->host, 16);
        if (s->config->fault == OTHER) e->luck = (int64_t)in->episode[i];
        if (s->config->fault == RESET_PAYS) out->reward[i] = 100;
        if (s->config->fault == NO_ROLE) RLHF_TRY(rlhf_sayf(out, i, 0, "no role"));
        if (s->config->starts)
            RLHF_TRY(rlhf_sayf(out, i, RLHF_ROLE_USER, "%lld?", (long long)e->luck));
    }
    return RLHF_OK;
}

static rlhf_status answer(const struct self *s, const rlhf_episode_out *out, uint32_t i,
                          const struct state *e) {
    static char many[4000];
    const int fault = s->config->fault;
    const rlhf_str all = {many, sizeof many};
    memset(many, 'y', sizeof many);
    if (fault == SILENT) return RLHF_OK;
    if (fault == HUGE_REPLY) return rlhf_say(out, i, RLHF_ROLE_USER, all);
    return rlhf_sayf(out, i, fault == TOOL ? RLHF_ROLE_TOOL : RLHF_ROLE_USER, "%s%lld.",
                     fault == SPECIAL ? "a<|endoftext|>b" : "", (long long)e->bytes);
}

// The first turn of all fails, and reports something that no other turn reports.
static void fail_once(struct self *s, const rlhf_episode_out *out) {
    if (s->failed_once) return;
    s->failed_once = 1;
    out->failed[0] = 1;
    out->metric(out, 0, "only_failed", 1, 1, RLHF_COMBINE_MEAN);
}

// Ignores the status.
static void say_badly(const rlhf_episode_out *out, int fault) {
    struct {
        rlhf_message message;
        uint64_t later[2];
    } m = {.message = {sizeof m.message, RLHF_ROLE_USER, {"a", 1}}};
    if (fault == LONG_MESSAGE) m.message.size = sizeof m;
    if (fault == LONG_MESSAGE) m.later[1] = 1;
    if (fault == SHORT_MESSAGE) m.message.size = 4;
    if (fault == NO_TEXT) m.message.text.ptr = NULL;
    out->say(out, 0, &m.message);
}

static rlhf_status step(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    struct self *s = self;
    const int fault = s->config->fault;
    if (fault == STATUS) return s->host->fail(s->host, RLHF_E_IO, "the game's server is away");
    for (uint32_t i = 0; i < in->n; i++) {
        struct state *e = in->state[i];
        e->bytes += (int64_t)in->text[i].len;
        out->metric(out, i, "bytes", (double)e->bytes, 1, RLHF_COMBINE_MEAN);
        out->failed[i] = fault == FAILED;
        if (fault != QUIET)
            out->reward[i] = fault == PAY_NAN ? NAN : (float)((e->bytes + e->luck) % 3);
        if (fault == BAD_END) out->end[i] = RLHF_EPISODE_TURNS;
        if (in->turn[i] < s->config->turns)
            RLHF_TRY(answer(s, out, i, e));
        else if (fault != BAD_END)
            out->end[i] = RLHF_EPISODE_DONE;
        out->verdict[i] = out->end[i] ? RLHF_VERDICT_RIGHT : RLHF_VERDICT_NONE;
        if (fault == BAD_VERDICT) out->verdict[i] = RLHF_VERDICT_WRONG + 1;
        if (fault == BAD_FAILED) out->failed[i] = 255;
        if (fault == BAD_LATER) out->later[i] = 2;
        if (fault == OPEN_VERDICT) out->verdict[i] = RLHF_VERDICT_RIGHT;
        if (fault == METRIC_OF) out->metric(out, in->n, "bytes", 1, 1, RLHF_COMBINE_MEAN);
    }
    if (fault == ONCE) fail_once(s, out);
    if (fault == CHANGE_N) ((rlhf_episode_in *)(uintptr_t)in)->n = 1000000;
    if (fault == CHANGE_END) ((rlhf_episode_out *)(uintptr_t)out)->end = NULL;
    if (fault >= LONG_MESSAGE && fault <= NO_TEXT) say_badly(out, fault);
    return RLHF_OK;
}

static rlhf_status check_row(void *self, const rlhf_row_in *in) {
    const struct self *s = self;
    if (s->config->fault == CHANGE_ROW) ((rlhf_row_in *)(uintptr_t)in)->held_out ^= 1;
    return RLHF_OK;
}

static rlhf_status finish(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    const struct self *s = self;
    if (s->config->fault == END_AGAIN) out->end[0] = RLHF_EPISODE_DONE;
    for (uint32_t i = 0; i < in->n; i++)
        out->metric(out, i, "ended", in->end[i], 1, RLHF_COMBINE_MEAN);
    return RLHF_OK;
}

static void close_states(void *self, const rlhf_episode_close *in) {
    const struct self *s = self;
    for (uint32_t i = 0; i < in->n; i++)
        s->host->free(s->host, ((struct state *)in->state[i])->held);
}

static const rlhf_environment_ops ops = {.size = sizeof ops,
                                         .flags = RLHF_ENVIRONMENT_PAYS | RLHF_ENVIRONMENT_TASKS |
                                                  RLHF_ENVIRONMENT_FUNCTION,
                                         .state_size = sizeof(struct state),
                                         .tools = tools,
                                         .reset = reset,
                                         .step = step,
                                         .check_row = check_row,
                                         .finish = finish,
                                         .close = close_states};
TEST_PLUGIN(RLHF_KIND_ENVIRONMENT, "answering", .summary = "counts bytes", TEST_OPTIONS(opts),
            .create = create, .destroy = destroy)
