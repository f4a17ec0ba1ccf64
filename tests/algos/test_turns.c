// test_turns.c: gives rows of several turns to algorithms that do not know about turns. The results
// must equal, to the bit, those for rows from which the environment's tokens were removed by hand.
#include "algos/fixture.h"

#include "learn/plan.h"
#include "learn/policy_view.h"

#include <math.h>

enum { FULL = 4 * MAX_TOKENS, ROWS = 16 };

// `e` holds rows that contain tokens of an environment. `b` holds the same rows without these
// tokens.
struct episodes {
    const struct batch *b;
    struct rlhf__rows e;
    int32_t place[MAX_TOKENS]; // of b's tokens in e
    // [e.total]: one number per token. It is -2.5 at the environment's tokens, so a result changes
    // if an algorithm reads them.
    float *logp, *entropy, *kl, *value, *d_logp, *d_entropy, *d_kl, *d_value;
    float d_class_score[MAX_ROWS * 8];
};

static float *spread(const struct episodes *s, const float *from) {
    float *to = malloc(FULL * sizeof *to);
    assert_non_null(to);
    for (uint32_t t = 0; t < s->e.total; t++)
        to[t] = -2.5f;
    for (int32_t k = 0; k < s->b->total; k++)
        to[s->place[k]] = from[k];
    return to;
}

// Inserts up to 6 given tokens before some tokens of the policy, but not before the first one of a
// row, and 2 after the last token of some rows. If `leak` is 1, marks one given token as the
// policy's.
static void episodes_init(struct episodes *s, const struct batch *b, int32_t leak) {
    rlhf_rng r = {7, rlhf_rng_stream("episodes"), 0};
    int32_t given[MAX_TOKENS + 1] = {0}, total = b->total;
    memset(s, 0, sizeof *s);
    s->b = b;
    for (int32_t i = 0; i < b->n; i++)
        for (int32_t k = b->offset[i] + b->prompt_len[i] + 1; k < b->offset[i + 1]; k++) {
            if (rlhf_rng_below(&r, 3) == 0) given[k] = 1 + (int32_t)rlhf_rng_below(&r, 6);
            total += given[k];
        }
    total += 2 * ((b->n + 3) / 4);
    assert_true(total < FULL && total > b->total + 20);
    assert_int_equal(rlhf__rows_init(&s->e, (uint32_t)b->n, (uint32_t)total, NULL), RLHF_OK);
    assert_int_equal(rlhf__rows_add_turns(&s->e, NULL), RLHF_OK);
    for (int32_t i = 0, t = 0; i < b->n; i++) {
        int32_t turn = 0;
        s->e.prompt_len[i] = b->prompt_len[i];
        for (int32_t k = b->offset[i]; k < b->offset[i + 1]; k++) {
            t += given[k];
            turn += given[k] > 0;
            s->e.ids[t] = k;
            s->e.turn[t] = k < b->offset[i] + b->prompt_len[i] ? -1 : turn;
            s->place[k] = t++;
        }
        t += i % 4 ? 0 : 2;
        s->e.offset[i + 1] = t;
    }
    for (uint32_t t = 0; leak && t < s->e.total; t++)
        if (t > 0 && s->e.turn[t] < 0 && s->e.turn[t - 1] >= 0) {
            s->e.turn[t] = s->e.turn[t - 1];
            break;
        }
    s->logp = spread(s, b->logp);
    s->entropy = spread(s, b->entropy);
    s->kl = spread(s, b->kl);
    s->value = spread(s, b->value);
    s->d_logp = calloc(FULL, sizeof(float));
    s->d_entropy = calloc(FULL, sizeof(float));
    s->d_kl = calloc(FULL, sizeof(float));
    s->d_value = calloc(FULL, sizeof(float));
}

static void episodes_finish(struct episodes *s) {
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

static rlhf_status advantages(struct algo *a, struct episodes *s) {
    const struct batch *b = s->b;
    struct hosted h;
    struct rlhf__error err = {0, ""};
    int64_t finished = 0;
    float *arrays[5] = {spread(s, b->token_reward), spread(s, b->old), spread(s, b->ref),
                        spread(s, b->value_old), spread(s, b->old)};
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
                             .advantage = s->e.token[RLHF__ADVANTAGE],
                             .returns = s->e.token[RLHF__RETURNS],
                             .use = s->e.use,
                             .batch_finished_tokens = finished,
                             .ids = s->e.ids,
                             .label = b->label};
    host_it(&h, a);
    const rlhf_status st = rlhf__view_advantages(&h.instance, &s->e, &in, &err);
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
        if (s->e.use[i] != RLHF_ROW_EXCLUDED) tokens += rlhf__rows_loss_tokens(&s->e, i, i + 1);
    const size_t row = (size_t)(from * b->n_labels);
    float score[MAX_ROWS * 8];
    memcpy(score, b->class_score, sizeof score);
    rlhf_heads x = {.size = sizeof x,
                    .logp = heads & RLHF_HEAD_LOGP ? s->logp + base : NULL,
                    .entropy = heads & RLHF_HEAD_ENTROPY ? s->entropy + base : NULL,
                    .kl = heads & RLHF_HEAD_KL ? s->kl + base : NULL,
                    .value = heads & RLHF_HEAD_VALUE ? s->value + base : NULL,
                    .score = heads & RLHF_HEAD_SCORE ? score + row : NULL};
    rlhf_heads d = {.size = sizeof d,
                    .logp = x.logp ? s->d_logp + base : NULL,
                    .entropy = x.entropy ? s->d_entropy + base : NULL,
                    .kl = x.kl ? s->d_kl + base : NULL,
                    .value = x.value ? s->d_value + base : NULL,
                    .score = x.score ? s->d_class_score + row : NULL};
    float *old = spread(s, b->old), *ref = spread(s, b->ref), *value_old = spread(s, b->value_old);
    const int reference = (a->plan.flags & RLHF_PLAN_REFERENCE) && !x.kl;
    const rlhf_loss_in in = {.size = sizeof in,
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
    host_it(&h, a);
    const struct rlhf__objective o = rlhf__algo_objective(&h.instance);
    if (rlhf__view_loss(&o, &s->e, (uint32_t)from, (uint32_t)to, &in, &out, &err) != RLHF_OK)
        fail_msg("%s", err.text);
    free(old);
    free(ref);
    free(value_old);
    return out.loss;
}

// As batch_loss, but does not pass excluded rows.
static double loss(struct algo *a, struct episodes *s, int32_t from, int32_t to) {
    double sum = 0;
    for (int32_t i = from, end; i < to; i = end + 1) {
        for (end = i; end < to && s->e.use[end] != RLHF_ROW_EXCLUDED;)
            end++;
        if (end > i) sum += part_loss(a, s, i, end);
    }
    return sum;
}

// ---- the same ----

// Returns 1 if the bits differ at a token of the policy, or if a token of the environment has a
// number at all.
static int differs(const struct episodes *s, const float *full, const float *by_hand) {
    int bad = 0;
    uint8_t own[FULL] = {0};
    for (int32_t k = 0; k < s->b->total; k++) {
        own[s->place[k]] = 1;
        bad += memcmp(&full[s->place[k]], &by_hand[k], sizeof *full) != 0;
    }
    for (uint32_t t = 0; t < s->e.total; t++)
        bad += !own[t] && full[t] != 0;
    return bad;
}

struct outcome {
    double loss[2];
    uint32_t n;
    struct rlhf_test_reading metric[RLHF_TEST_METRICS];
};

static void keep_metrics(const struct algo *a, struct outcome *o) {
    a->ops->phase_end(a->self, 0);
    o->n = a->host->n_metrics;
    memcpy(o->metric, a->host->metric, sizeof o->metric);
}

static int other_metrics(const struct outcome *a, const struct outcome *b) {
    int bad = a->n != b->n;
    for (uint32_t i = 0; !bad && i < a->n; i++)
        bad |= strcmp(a->metric[i].name, b->metric[i].name) != 0 ||
               memcmp(&a->metric[i].value, &b->metric[i].value, sizeof(double)) != 0;
    return bad;
}

struct kind {
    const char *file, *options;
    int32_t pairs, labels; // labels: outputs of the score head
};

// Gives the rows the labels of their source. A pair has one preferred row; for kto.so, the second
// row of a pair has label -1.
static void make_batch(struct batch *b, const struct kind *k, uint64_t seed) {
    batch_random(b, ROWS, seed);
    b->n_labels = k->labels;
    for (int32_t i = 0; i < b->n; i++) {
        b->finished[i] = (uint8_t)(i % 3 != 0);
        if (k->pairs == 1) b->label[i] = i % 2 == 0;
        if (k->pairs == 2) b->label[i] = i % 2 ? -1 : i / 2 % 2;
    }
    for (int32_t i = 0; i < b->n * b->n_labels; i++)
        b->class_score[i] = (float)sin(i + 1.0);
}

// Returns how many numbers differ.
static int compare(const struct kind *k, uint64_t seed, int32_t leak) {
    static struct batch b;
    static struct outcome hand, host;
    static struct episodes s;
    struct algo a;
    int bad = 0;
    make_batch(&b, k, seed);
    episodes_init(&s, &b, leak);
    algo_open(&a, k->file, k->options, b.n);
    if (a.ops->advantages) assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    hand.loss[0] = batch_loss(&a, &b, 0, 6, 0);
    hand.loss[1] = batch_loss(&a, &b, 6, b.n, 0);
    if (a.ops->minibatch_end) algo_step_end(&a, 0, 0);
    keep_metrics(&a, &hand);
    algo_close(&a);
    algo_open(&a, k->file, k->options, b.n);
    if (a.ops->advantages) bad += advantages(&a, &s) != RLHF_OK;
    bad += memcmp(s.e.use, b.use, (size_t)b.n) != 0;
    bad += differs(&s, s.e.token[RLHF__ADVANTAGE], b.advantage);
    bad += differs(&s, s.e.token[RLHF__RETURNS], b.returns);
    host.loss[0] = loss(&a, &s, 0, 6);
    host.loss[1] = loss(&a, &s, 6, b.n);
    if (a.ops->minibatch_end) algo_step_end(&a, 0, 0);
    keep_metrics(&a, &host);
    algo_close(&a);
    bad += memcmp(hand.loss, host.loss, sizeof hand.loss) != 0;
    bad += differs(&s, s.d_logp, b.d_logp) + differs(&s, s.d_entropy, b.d_entropy);
    bad += differs(&s, s.d_kl, b.d_kl) + differs(&s, s.d_value, b.d_value);
    bad +=
        memcmp(s.d_class_score, b.d_class_score, sizeof(float) * (size_t)(b.n * b.n_labels)) != 0;
    bad += other_metrics(&hand, &host);
    episodes_finish(&s);
    return bad;
}

static const struct kind kinds[] = {
    {"ppo.so", "", 0, 0},
    {"ppo.so", "advantage=group,group_size=2,aggregation=sequence,entropy_coef=0.01", 0, 0},
    {"ppo.so", "whiten_rewards=true,ratio=sequence,kl_placement=loss,kl_estimator=full", 0, 0},
    {"grpo.so", "group_size=2", 0, 0},
    {"grpo.so", "group_size=4,mask_truncated=true", 0, 0},
    {"rloo.so", "group_size=2", 0, 0},
    {"sft.so", "", 0, 0},
    {"classify.so", "", 0, 3},
    {"bradley_terry.so", "", 1, 1},
    {"dpo.so", "", 1, 0},
    {"kto.so", "", 2, 0}};

static void algorithms_see_the_policys_tokens(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint64_t seed = 1; seed < 6; seed++)
            if (compare(&kinds[k], seed, 0))
                fail_msg("%s, %s, seed %d: other numbers", kinds[k].file, kinds[k].options,
                         (int)seed);
}

// The comparison fails if a token of the environment is marked as the policy's.
static void one_observation_too_many(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (kinds[k].labels == 0 && compare(&kinds[k], 1, 1) == 0)
            fail_msg("%s, %s: the same numbers", kinds[k].file, kinds[k].options);
}

// ---- GAE ----

// verl's recurrence over whole rows (verl/trainer/ppo/core_algos.py, compute_gae_advantage_return).
// Where the mask is 0, it keeps the value and the advantage of the next token.
static void masked(const struct episodes *s, uint32_t i, const float *reward, const float *value,
                   double gamma, double lambda, float *adv, float *ret) {
    const struct rlhf__rows *e = &s->e;
    double next_value = 0, last = 0;
    for (int32_t t = e->offset[i + 1] - 1; t >= e->offset[i] + e->prompt_len[i]; t--) {
        const double mask = e->turn[t] >= 0, r = mask > 0 ? (double)reward[t] : 0;
        const double v = mask > 0 ? (double)value[t] : 0;
        const double delta = r + gamma * next_value - v;
        const double here = delta + gamma * lambda * last;
        next_value = v * mask + (1 - mask) * next_value;
        last = here * mask + (1 - mask) * last;
        adv[t] = (float)last;
        ret[t] = (float)(last + v);
    }
}

static void gae_is_the_masked_recurrence(void **state) {
    (void)state;
    static struct batch b;
    static struct episodes s;
    static float adv[FULL], ret[FULL];
    struct algo a;
    int tokens = 0;
    const struct kind k = {"ppo.so",
                           "kl_placement=none,whiten_advantages=off,gamma=0.97,lambda=0.9", 0, 0};
    for (uint64_t seed = 1; seed <= 125; seed++) { // 2,000 rows
        make_batch(&b, &k, seed);
        episodes_init(&s, &b, 0);
        algo_open(&a, k.file, k.options, b.n);
        assert_int_equal(advantages(&a, &s), RLHF_OK);
        float *reward = spread(&s, b.token_reward), *value = spread(&s, b.value_old);
        for (uint32_t i = 0; i < s.e.n; i++) {
            int32_t end, last = rlhf__rows_last_turn(&s.e, i, &end);
            if (last == end) continue;
            // The score belongs to the policy's last token; PPO adds it in double.
            const int32_t t = s.e.offset[i] + end - 1;
            const double paid = (double)reward[t] + (double)b.score[i];
            reward[t] = (float)paid;
            masked(&s, i, reward, value, 0.97, 0.9, adv, ret);
            for (int32_t u = s.e.offset[i] + s.e.prompt_len[i]; u < s.e.offset[i + 1]; u++) {
                if (s.e.turn[u] < 0) continue;
                tokens++;
                assert_near((double)s.e.token[RLHF__ADVANTAGE][u], (double)adv[u], 1e-6,
                            "advantage");
                assert_near((double)s.e.token[RLHF__RETURNS][u], (double)ret[u], 1e-6, "return");
            }
        }
        free(reward);
        free(value);
        algo_close(&a);
        episodes_finish(&s);
    }
    assert_true(tokens > 5000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(algorithms_see_the_policys_tokens),
                                       cmocka_unit_test(one_observation_too_many),
                                       cmocka_unit_test(gae_is_the_masked_recurrence)};
    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
