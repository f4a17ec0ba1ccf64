// limits.c: see limits.h.
#include "episode/limits.h"

#include <stdio.h>

#define MOST_DRAWN 65535 // limit of the counters (sample/decode.h)

static rlhf_status no_room(const struct rlhf__config *c, const struct rlhf__episode_prompt *p,
                           int64_t tokens, struct rlhf__error *err) {
    const int prompts = p->tokens > p->tools + 1, limited = c->episodes.tokens > 0;
    char tools[64] = "";
    if (p->tools) snprintf(tools, sizeof tools, ", of which %d list the tools", p->tools);
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "the longest prompt has %d token%s%s, and a row may have at most %lld (%s), which "
        "leaves no room for a turn; give %s%s%s",
        p->tokens, p->tokens == 1 ? "" : "s", tools, (long long)tokens,
        limited ? "episodes.tokens" : "the model's context",
        prompts ? "shorter prompts (prompts.max_tokens) or " : "",
        p->tools ? "fewer tools or " : "",
        limited ? "a higher episodes.tokens" : "a policy with a longer context");
}

static rlhf_status check(const struct rlhf__config *c, int64_t n_ctx,
                         const struct rlhf__episode_prompt *p, int64_t tokens,
                         struct rlhf__error *err) {
    const int64_t turns = c->episodes.turns, turn = c->sampling.max_new_tokens;
    if (tokens > n_ctx)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "episodes.tokens is %lld, but the model's context has %lld tokens",
                          (long long)tokens, (long long)n_ctx);
    if (p->tokens >= tokens) return no_room(c, p, tokens, err);
    if (turns * turn > MOST_DRAWN && tokens > MOST_DRAWN)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "episodes.turns is %lld and sampling.max_new_tokens %lld, so that a row "
                          "could draw more than %d tokens; lower one of them or episodes.tokens",
                          (long long)turns, (long long)turn, MOST_DRAWN);
    return RLHF_OK;
}

rlhf_status rlhf__episode_limits(const struct rlhf__config *c, int32_t n_ctx,
                                 const struct rlhf__episode_prompt *p,
                                 struct rlhf__episode_limits *out, struct rlhf__error *err) {
    const struct rlhf__episodes_config *e = &c->episodes;
    const int64_t turn = c->sampling.max_new_tokens, reply = e->reply_tokens;
    int64_t tokens = p->tokens + reply + e->turns * (turn + reply);
    if (e->tokens > 0 || tokens > n_ctx) tokens = e->tokens > 0 ? e->tokens : n_ctx;
    RLHF_TRY(check(c, n_ctx, p, tokens, err));
    *out = (struct rlhf__episode_limits){.turns = (int32_t)e->turns,
                                         .turn = (int32_t)turn,
                                         .reply = (int32_t)reply,
                                         .tokens = (int32_t)tokens};
    return RLHF_OK;
}
