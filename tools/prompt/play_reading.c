// play_reading.c: see play_reading.h.
#include "prompt/play_reading.h"

#include "episode/playing.h"
#include "prompt/typed_tokenizer.h"
#include "tokenizer/bridge.h"

#include <string.h>

enum { LONGEST = 1 << 24 }; // tokens of a prompt

static rlhf_status open_prompt(struct rlhf__play_reading *r, const struct rlhf__play_policy *p,
                               struct rlhf__error *err) {
    const struct rlhf__prompt_opts o = {.paths = &p->prompts,
                                        .n_paths = 1,
                                        .setting = "--prompts",
                                        .max_tokens = LONGEST,
                                        .skip = p->row,
                                        .limit = 1,
                                        .loading = p->loading};
    if (!p->prompts) return rlhf__playing_no_prompts(r->tok, &r->prompts, err);
    return rlhf__prompts_open(&o, r->tok, &r->prompts, err);
}

// Warn that the policy does not see the tools. A run with tools would refuse this policy; `play`
// continues without their list.
static void warn_hidden(const struct rlhf__play_policy *p, const struct rlhf__chat *chat) {
    rlhf__logf(p->env->log, RLHF_LOG_WARN,
               "play: %s has tools, but %s%s has no place for them, so they are not shown to the "
               "policy; runs refuse this unless prompts.template names another chat template or "
               "episodes.tools=hidden is set",
               p->environment->plugin->file, chat ? "the chat template " : "a text prompt",
               chat ? rlhf__chat_known(chat) : "");
}

rlhf_status rlhf__play_reading_open(struct rlhf__play_reading *r, const struct rlhf__play_policy *p,
                                    struct rlhf__error *err) {
    struct rlhf__episodes_config c = {.tools = RLHF__TOOLS_HIDDEN};
    if (!p->dir) return rlhf__episode_tools_open(p->environment, &c, NULL, &r->tools, err);
    RLHF_TRY(rlhf__typed_tokenizer(p->env, "--policy", p->dir, p->chat, &r->tok, err));
    RLHF_TRY(open_prompt(r, p, err));
    const char *template = rlhf__chat_known(rlhf__tokenizer_chat(r->tok));
    const int templated = template && strcmp(template, "plain") != 0;
    const int64_t chats = rlhf__prompts_chats(r->prompts);
    r->limits = (struct rlhf__episode_limits){
        .turns = (int32_t)p->turns, .turn = LONGEST, .reply = LONGEST, .tokens = INT32_MAX};
    r->by = (struct rlhf__speaking){
        .tok = r->tok,
        .prompts = r->prompts,
        .alone = !p->prompts,
        .chat = templated && (!p->prompts || chats > 0),
        .bos = rlhf__tokenizer_has_bos(r->tok) ? rlhf__tokenizer_info(r->tok)->bos : -1,
        .tools = &r->tools};
    const struct rlhf__chat *chat = r->by.chat ? rlhf__tokenizer_chat(r->tok) : NULL;
    if (chat && rlhf__chat_lists_tools(chat)) c.tools = RLHF__TOOLS_TEMPLATE;
    RLHF_TRY(rlhf__episode_tools_open(p->environment, &c, chat, &r->tools, err));
    if (r->tools.list && !r->tools.listed) warn_hidden(p, chat);
    return chat ? rlhf__bridge_check(r->tok, r->tools.list && !r->tools.marked, err) : RLHF_OK;
}

void rlhf__play_reading_finish(struct rlhf__play_reading *r) {
    rlhf__episode_tools_finish(&r->tools);
    rlhf__prompts_close(r->prompts);
    rlhf__tokenizer_close(r->tok);
}

rlhf_status rlhf__play_read(struct rlhf__play_reading *r, struct rlhf__episode *e,
                            struct rlhf__error *err) {
    if (!r->tok) return RLHF_OK;
    e->closed = 1; // a turn that a person types counts as one with its end token
    if (e->turns == 0) return rlhf__speak_prompt(&r->by, &r->limits, e, 0, err);
    return rlhf__speak_reply(&r->by, &r->limits, e, err);
}
