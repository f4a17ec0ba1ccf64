// reward_view.c: see reward_view.h.
#include "sample/reward_view.h"

#include <stdlib.h>

void rlhf__reward_view_finish(struct rlhf__reward_view *v) {
    free(v->texts);
    free(v->prompt_len);
    free(v->logp);
    *v = (struct rlhf__reward_view){0};
}

// Copy the log-probs of each row's last turn to the array `to`, and fill the row's earlier elements
// with 0. Returns `to`, or NULL if logp is NULL.
static const float *last_turns(const struct rlhf__reward_view *v, const struct rlhf__reward_rows *r,
                               const float *logp, float *to) {
    for (uint32_t i = 0; logp && i < r->n; i++)
        for (int32_t t = r->offset[i]; t < r->offset[i + 1]; t++)
            to[t] = t < r->offset[i] + v->prompt_len[i] ? 0 : logp[t];
    return logp ? to : NULL;
}

static rlhf_status see_last_turns(struct rlhf__reward_view *v, const struct rlhf__reward_rows *r,
                                  struct rlhf__error *err) {
    const size_t total = (size_t)r->offset[r->n];
    v->prompt_len = calloc((size_t)r->n + 1, sizeof *v->prompt_len);
    v->logp = calloc(2 * total + 1, sizeof *v->logp);
    if (!v->prompt_len || !v->logp) return RLHF__NOMEM(err, "out of memory scoring %u rows", r->n);
    for (uint32_t i = 0; i < r->n; i++) {
        v->texts[i] = (rlhf_str){r->texts[i]->before, r->texts[i]->before_len};
        v->prompt_len[i] = r->texts[i]->last;
    }
    v->in.prompt = v->texts;
    v->in.prompt_len = v->prompt_len;
    v->in.logp_sampled = last_turns(v, r, v->in.logp_sampled, v->logp);
    v->in.logp_ref = last_turns(v, r, v->in.logp_ref, v->logp + total);
    return RLHF_OK;
}

static void see_rows(struct rlhf__reward_view *v, const struct rlhf__reward_rows *r) {
    rlhf_str *messages = v->texts + r->n;
    for (uint32_t i = 0; i < r->n; i++) {
        v->texts[i] = (rlhf_str){r->texts[i]->after, r->texts[i]->after_len};
        messages[i] = (rlhf_str){r->texts[i]->messages, r->texts[i]->messages_len};
    }
    v->in.response = v->texts;
    v->in.messages = messages;
    v->in.turn = r->turn;
    v->in.end = r->end;
}

rlhf_status rlhf__reward_view_init(struct rlhf__reward_view *v, const struct rlhf__reward_rows *r,
                                   uint32_t flags, int64_t phase, struct rlhf__error *err) {
    v->in =
        (rlhf_reward_in){.n = r->n,
                         .phase = phase,
                         .prompt = r->prompt,
                         .response = r->response,
                         .meta = r->meta,
                         .ids = r->ids,
                         .offset = r->offset,
                         .prompt_len = r->prompt_len,
                         .finished = r->finished,
                         .group = r->group,
                         .source = r->source,
                         .logp_sampled = flags & RLHF_REWARD_LOGP_SAMPLED ? r->logp_sampled : NULL,
                         .logp_ref = flags & RLHF_REWARD_LOGP_REF ? r->logp_ref : NULL};
    if (!r->turn) return RLHF_OK;
    v->texts = calloc(2 * (size_t)r->n + 1, sizeof *v->texts);
    if (!v->texts) return RLHF__NOMEM(err, "out of memory scoring %u rows", r->n);
    if (!(flags & RLHF_REWARD_TURNS)) return see_last_turns(v, r, err);
    see_rows(v, r);
    return RLHF_OK;
}

void rlhf__reward_view_keep(const struct rlhf__reward_view *v, const struct rlhf__reward_rows *r,
                            float *token) {
    for (uint32_t i = 0; r->turn && i < r->n; i++)
        for (int32_t t = r->offset[i]; t < r->offset[i + 1]; t++)
            if (t < r->offset[i] + v->in.prompt_len[i] || r->turn[t] < 0) token[t] = 0;
}
