// episodes.c: see episodes.h.
#include "algos/episodes.h"

#include "batch/row_columns.h"
#include "learn/algo_call.h"
#include "learn/policy_view.h"

float *episodes_spread(const struct episodes *s, const float *from) {
    float *to = malloc(EPISODE_TOKENS * sizeof *to);
    assert_non_null(to);
    for (uint32_t t = 0; t < s->e.total; t++)
        to[t] = -2.5f;
    for (int32_t k = 0; k < s->b->total; k++)
        to[s->place[k]] = from[k];
    return to;
}

void episodes_init(struct episodes *s, struct batch *b, const int32_t *before, const int32_t *after,
                   int32_t leak) {
    int32_t total = b->total;
    memset(s, 0, sizeof *s);
    s->b = b;
    for (int32_t k = 0; k < b->total; k++)
        total += before[k];
    for (int32_t i = 0; i < b->n; i++)
        total += after[i];
    assert_true(total < EPISODE_TOKENS && total > b->total + 20);
    assert_int_equal(rlhf__rows_init(&s->e, (uint32_t)b->n, (uint32_t)total, NULL), RLHF_OK);
    assert_int_equal(rlhf__rows_add_turns(&s->e, NULL), RLHF_OK);
    for (int32_t i = 0, t = 0; i < b->n; i++) {
        int32_t turn = 0;
        s->e.prompt_len[i] = b->prompt_len[i];
        for (int32_t k = b->offset[i]; k < b->offset[i + 1]; k++) {
            t += before[k];
            turn += before[k] > 0;
            s->e.ids[t] = k;
            s->e.turn[t] = k < b->offset[i] + b->prompt_len[i] ? -1 : turn;
            s->place[k] = t++;
        }
        t += after[i];
        s->e.offset[i + 1] = t;
    }
    for (uint32_t t = 0; leak && t < s->e.total; t++)
        if (t > 0 && s->e.turn[t] < 0 && s->e.turn[t - 1] >= 0) {
            s->e.turn[t] = s->e.turn[t - 1];
            break;
        }
    s->logp = episodes_spread(s, b->logp);
    s->entropy = episodes_spread(s, b->entropy);
    s->kl = episodes_spread(s, b->kl);
    s->value = episodes_spread(s, b->value);
    s->d_logp = calloc(EPISODE_TOKENS, sizeof(float));
    s->d_entropy = calloc(EPISODE_TOKENS, sizeof(float));
    s->d_kl = calloc(EPISODE_TOKENS, sizeof(float));
    s->d_value = calloc(EPISODE_TOKENS, sizeof(float));
}

void episodes_finish(struct episodes *s) {
    float *all[] = {s->logp,   s->entropy,   s->kl,   s->value,
                    s->d_logp, s->d_entropy, s->d_kl, s->d_value};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        free(all[k]);
    rlhf__rows_finish(&s->e);
}

// ---- through the host ----

// An algorithm of the fixture, in the form in which the host calls it.
struct hosted {
    struct rlhf__plugin plugin;
    struct rlhf__instance instance;
};

static void host_it(struct hosted *h, const struct algo *a) {
    memset(h, 0, sizeof *h);
    h->plugin.ops.algo = *a->ops;
    h->instance = (struct rlhf__instance){.plugin = &h->plugin, .self = a->self};
}

rlhf_status episodes_advantages(struct algo *a, struct episodes *s) {
    const struct batch *b = s->b;
    struct hosted h;
    struct rlhf__error err = {0, ""};
    int64_t finished = 0;
    float *arrays[5] = {episodes_spread(s, b->token_reward), episodes_spread(s, b->old),
                        episodes_spread(s, b->ref), episodes_spread(s, b->value_old),
                        episodes_spread(s, b->old)};
    for (int32_t i = 0; i < b->n; i++)
        if (b->finished[i])
            finished += rlhf__rows_response_tokens(&s->e, (uint32_t)i, (uint32_t)i + 1);
    const int reference = (a->plan.flags & RLHF_PLAN_REFERENCE) && !(a->plan.heads & RLHF_HEAD_KL);
    const rlhf_rollout in = {.size = sizeof in,
                             .n = (uint32_t)b->n,
                             .total = s->e.total,
                             .max_new_tokens = (uint32_t)b->max_len,
                             .offset = s->e.offset,
                             .prompt_len = b->prompt_len,
                             .group = b->group,
                             .finished = b->finished,
                             .score = b->score,
                             .token_reward = arrays[0],
                             .logp_old = arrays[1],
                             .logp_sampled = arrays[4],
                             .logp_ref = reference ? arrays[2] : NULL,
                             .value_old = a->plan.heads & RLHF_HEAD_VALUE ? arrays[3] : NULL,
                             .batch_finished_tokens = finished,
                             .ids = s->e.ids,
                             .label = b->label};
    rlhf_advantages out = {.size = sizeof out};
    s->e.carry_tokens = a->plan.carry_tokens;
    s->e.carry_rows = a->plan.carry_rows;
    if (a->plan.carry_tokens && !s->e.carry_token)
        assert_int_equal(RLHF__ROWS_ADD(&s->e, carry_token, &err), RLHF_OK);
    if (a->plan.carry_rows && !s->e.carry_row)
        assert_int_equal(RLHF__ROWS_ADD(&s->e, carry_row, &err), RLHF_OK);
    rlhf__columns_to_results(&s->e, &out);
    host_it(&h, a);
    const rlhf_status st = rlhf__view_advantages(&h.instance, &s->e, &in, &out, &err);
    for (int k = 0; k < 5; k++)
        free(arrays[k]);
    return st;
}

static double part_loss(struct algo *a, struct episodes *s, int32_t from, int32_t to) {
    const struct batch *b = s->b;
    const int32_t base = s->e.offset[from];
    const uint32_t heads = a->plan.heads;
    int32_t offset[MAX_ROWS + 1];
    int64_t tokens = 0;
    struct hosted h;
    struct rlhf__error err = {0, ""};
    for (int32_t i = from; i <= to; i++)
        offset[i - from] = s->e.offset[i] - base;
    for (uint32_t i = 0; i < s->e.n; i++)
        if (s->e.use[i] != RLHF_USE_EXCLUDED) tokens += rlhf__rows_loss_tokens(&s->e, i, i + 1);
    const size_t row = (size_t)(from * b->n_labels);
    rlhf_head_values x = {.size = sizeof x,
                          .logp = heads & RLHF_HEAD_LOGP ? s->logp + base : NULL,
                          .entropy = heads & RLHF_HEAD_ENTROPY ? s->entropy + base : NULL,
                          .kl = heads & RLHF_HEAD_KL ? s->kl + base : NULL,
                          .value = heads & RLHF_HEAD_VALUE ? s->value + base : NULL,
                          .score = heads & RLHF_HEAD_SCORE ? b->class_score + row : NULL};
    rlhf_head_gradients d = {.size = sizeof d,
                             .logp = x.logp ? s->d_logp + base : NULL,
                             .entropy = x.entropy ? s->d_entropy + base : NULL,
                             .kl = x.kl ? s->d_kl + base : NULL,
                             .value = x.value ? s->d_value + base : NULL,
                             .score = x.score ? s->d_class_score + row : NULL};
    float *old = episodes_spread(s, b->old), *ref = episodes_spread(s, b->ref),
          *value_old = episodes_spread(s, b->value_old);
    const int reference = (a->plan.flags & RLHF_PLAN_REFERENCE) && !x.kl;
    rlhf_loss_in in = {.size = sizeof in,
                       .n = (uint32_t)(to - from),
                       .total = (uint32_t)offset[to - from],
                       .batch_sequences = b->n,
                       .batch_tokens = tokens,
                       .max_new_tokens = (uint32_t)b->max_len,
                       .offset = offset,
                       .prompt_len = b->prompt_len + from,
                       .group = b->group + from,
                       .heads = &x,
                       .logp_old = old + base,
                       .logp_ref = reference ? ref + base : NULL,
                       .value_old = x.value ? value_old + base : NULL,
                       .advantage = s->e.token[RLHF__ADVANTAGE] + base,
                       .returns = s->e.token[RLHF__RETURNS] + base,
                       .label = b->label + from,
                       .n_labels = (uint32_t)b->n_labels,
                       .minibatches = (uint32_t)b->minibatches,
                       .ids = s->e.ids + base};
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &d};
    if (s->e.carry_row) in.carry_row = s->e.carry_row + (uint32_t)from * s->e.carry_rows;
    if (s->e.carry_token) in.carry_token = s->e.carry_token + (uint32_t)base * s->e.carry_tokens;
    host_it(&h, a);
    const struct rlhf__objective o = rlhf__algo_objective(&h.instance);
    if (rlhf__view_loss(&o, &s->e, (uint32_t)from, (uint32_t)to, &in, &out, &err) != RLHF_OK)
        fail_msg("%s", err.text);
    free(old);
    free(ref);
    free(value_old);
    return out.loss;
}

double episodes_loss(struct algo *a, struct episodes *s, int32_t from, int32_t to) {
    double sum = 0;
    for (int32_t i = from, end; i < to; i = end + 1) {
        for (end = i; end < to && s->e.use[end] != RLHF_USE_EXCLUDED;)
            end++;
        if (end > i) sum += part_loss(a, s, i, end);
    }
    return sum;
}

int episodes_given(const struct episodes *s, const float *full) {
    int bad = 0;
    uint8_t own[EPISODE_TOKENS] = {0};
    for (int32_t k = 0; k < s->b->total; k++)
        own[s->place[k]] = 1;
    for (uint32_t t = 0; t < s->e.total; t++)
        bad += !own[t] && full[t] != 0;
    return bad;
}
