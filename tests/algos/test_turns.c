// test_turns.c: gives rows of several turns to algorithms that do not know about turns. The results
// must equal, to the bit, the results for rows from which the environment's tokens were removed by
// hand.
#include "algos/episodes.h"

#include <math.h>

enum { ROWS = 16 };

// ---- the same ----

// Returns the number of wrong tokens. A token of the policy is wrong if its bits differ from those
// in `by_hand`. A token of the environment is wrong if its number is not 0.
static int differs(const struct episodes *s, const float *full, const float *by_hand) {
    int bad = episodes_given(s, full);
    for (int32_t k = 0; k < s->b->total; k++)
        bad += memcmp(&full[s->place[k]], &by_hand[k], sizeof *full) != 0;
    return bad;
}

struct outcome {
    double loss[2];
    uint32_t n;
    struct rlhf_test_reading metric[RLHF_TEST_METRICS];
};

static void keep_metrics(struct algo *a, struct outcome *o) {
    algo_phase_end(a, 0);
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

// Gives the rows the labels that their source would give. In preference pairs, the first row is
// preferred. In pairs of kto.so, the second row has label -1.
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

// Inserts up to 6 tokens of an environment before some tokens of the policy, but none before the
// first token of the policy in a row. Inserts 2 after the last token of some rows.
static void insert(struct episodes *s, struct batch *b, int32_t leak) {
    rlhf_rng r = {7, rlhf_rng_stream("episodes"), 0};
    int32_t before[MAX_TOKENS + 1] = {0}, after[MAX_ROWS] = {0};
    for (int32_t i = 0; i < b->n; i++) {
        after[i] = i % 4 ? 0 : 2;
        for (int32_t k = b->offset[i] + b->prompt_len[i] + 1; k < b->offset[i + 1]; k++)
            if (rlhf_rng_below(&r, 3) == 0) before[k] = 1 + (int32_t)rlhf_rng_below(&r, 6);
    }
    episodes_init(s, b, before, after, leak);
}

// Returns how many numbers differ.
static int compare(const struct kind *k, uint64_t seed, int32_t leak) {
    static struct batch b;
    static struct outcome hand, host;
    static struct episodes s;
    struct algo a;
    int bad = 0;
    make_batch(&b, k, seed);
    insert(&s, &b, leak);
    algo_open(&a, k->file, k->options, b.n);
    if (a.ops->advantages) assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    hand.loss[0] = batch_loss(&a, &b, 0, 6, 0);
    hand.loss[1] = batch_loss(&a, &b, 6, b.n, 0);
    if (a.ops->minibatch_end) algo_step_end(&a, 0, 0);
    keep_metrics(&a, &hand);
    algo_close(&a);
    algo_open(&a, k->file, k->options, b.n);
    if (a.ops->advantages) bad += episodes_advantages(&a, &s) != RLHF_OK;
    bad += memcmp(s.e.use, b.use, (size_t)b.n) != 0;
    bad += differs(&s, s.e.token[RLHF__ADVANTAGE], b.advantage);
    bad += differs(&s, s.e.token[RLHF__RETURNS], b.returns);
    host.loss[0] = episodes_loss(&a, &s, 0, 6);
    host.loss[1] = episodes_loss(&a, &s, 6, b.n);
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
// Where the mask is 0, the recurrence keeps the value and the advantage of the next token.
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
    static float adv[EPISODE_TOKENS], ret[EPISODE_TOKENS];
    struct algo a;
    int tokens = 0;
    const struct kind k = {"ppo.so",
                           "kl_placement=none,whiten_advantages=off,gamma=0.97,lambda=0.9", 0, 0};
    for (uint64_t seed = 1; seed <= 125; seed++) { // 2,000 rows
        make_batch(&b, &k, seed);
        insert(&s, &b, 0);
        algo_open(&a, k.file, k.options, b.n);
        assert_int_equal(episodes_advantages(&a, &s), RLHF_OK);
        float *reward = episodes_spread(&s, b.token_reward),
              *value = episodes_spread(&s, b.value_old);
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
