// test_workers.c: a minibatch is divided among several workers. They make the same decisions and
// report the same numbers as one worker that sees the whole minibatch. If the minibatch is divided
// into shards, even the bits are equal. Synchronized threads play the host's reduce().
#include "algos/fixture.h"

#include <pthread.h>

#include <math.h>

enum { MOST = 4, SUMS = 128 };

struct meeting {
    pthread_barrier_t barrier;
    uint32_t n; // workers
    double sums[MOST][SUMS];
};

static struct meeting meeting;

struct worker {
    struct rlhf_test_host host; // the first member, because reduce() casts back
    int32_t rank, stops;        // stops: minibatches after which the worker stops the phase
    const rlhf_plugin *plugin;
    void *self;
    const struct batch *rows;
    int32_t n_parts;
    struct part {
        int32_t from, to; // rows of a microbatch
        uint32_t shard;
    } part[2 * MOST];
};

static struct worker worker[MOST], alone;

static rlhf_status sum_over_all(const rlhf_host *h, double *sums, uint32_t n) {
    const struct worker *w = (const struct worker *)(const void *)h;
    if (n > SUMS) return RLHF_E_INTERNAL;
    memcpy(meeting.sums[w->rank], sums, n * sizeof *sums);
    pthread_barrier_wait(&meeting.barrier);
    for (uint32_t i = 0; i < n; i++) {
        sums[i] = meeting.sums[0][i];
        for (uint32_t r = 1; r < meeting.n; r++)
            sums[i] += meeting.sums[r][i];
    }
    pthread_barrier_wait(&meeting.barrier);
    return RLHF_OK;
}

// Runs the loss on the part of worker `w`, as one microbatch. `own` receives the outputs.
static rlhf_status learn(const struct worker *w, const struct part *p, struct batch *own,
                         uint32_t epoch) {
    const struct batch *b = w->rows;
    const rlhf_algo_ops *ops = w->plugin->ops;
    int32_t base = b->offset[p->from], offset[MAX_ROWS + 1], n_labels = b->n_labels;
    for (int32_t i = p->from; i <= p->to; i++)
        offset[i - p->from] = b->offset[i] - base;
    rlhf_head_values heads = {.size = sizeof heads,
                              .logp = own->logp + base,
                              .entropy = own->entropy + base,
                              .kl = own->kl + base,
                              .score = own->class_score + p->from * n_labels};
    rlhf_head_gradients d = {.size = sizeof d,
                             .logp = own->d_logp + base,
                             .entropy = own->d_entropy + base,
                             .kl = own->d_kl + base,
                             .score = own->d_class_score + p->from * n_labels};
    rlhf_loss_in in = {.size = sizeof in,
                       .n = (uint32_t)(p->to - p->from),
                       .total = (uint32_t)offset[p->to - p->from],
                       .epoch = epoch,
                       .shard = p->shard,
                       .batch_sequences = b->n,
                       .batch_tokens = b->total,
                       .max_new_tokens = (uint32_t)b->max_len,
                       .offset = offset,
                       .prompt_len = b->prompt_len + p->from,
                       .group = b->group + p->from,
                       .heads = &heads,
                       .logp_old = b->old + base,
                       .logp_ref = b->ref + base,
                       .advantage = own->advantage + base,
                       .returns = own->returns + base,
                       .label = b->label + p->from,
                       .n_labels = (uint32_t)n_labels};
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &d};
    return in.n ? ops->loss(w->self, &in, &out) : RLHF_OK;
}

static void *run(void *arg) {
    struct worker *w = arg;
    const struct batch *b = w->rows;
    const rlhf_algo_ops *ops = w->plugin->ops;
    struct batch *own = malloc(sizeof *own); // the outputs of this worker
    if (!own) return NULL;
    *own = *b;
    rlhf_rollout all = {.size = sizeof all,
                        .n = (uint32_t)b->n,
                        .total = (uint32_t)b->total,
                        .max_new_tokens = (uint32_t)b->max_len,
                        .offset = b->offset,
                        .prompt_len = b->prompt_len,
                        .group = b->group,
                        .label = b->label,
                        .finished = b->finished,
                        .score = b->score,
                        .token_reward = b->token_reward,
                        .logp_old = b->old,
                        .logp_ref = b->ref};
    rlhf_advantages results = {.size = sizeof results,
                               .advantage = own->advantage,
                               .returns = own->returns,
                               .use = own->use,
                               .carry_row = own->carry_row,
                               .carry_token = own->carry_token};
    const rlhf_phase_info phase = {.size = sizeof phase, .steps = 2};
    if (ops->advantages && ops->advantages(w->self, &all, &results) < 0) w->stops = -1;
    for (uint32_t k = 0; k < 2; k++) {
        rlhf_step_out out = {.size = sizeof out};
        rlhf_step_info step = {.size = sizeof step, .epoch = k, .lr_factor = 1};
        for (int32_t t = 0; k && t < b->total; t++)
            own->logp[t] -= own->logp[t] < 0 ? 0.01f : 0; // the changes of the previous step
        for (int32_t i = 0; i < w->n_parts; i++)
            if (learn(w, &w->part[i], own, k) < 0) w->stops = -100;
        if (ops->minibatch_end && ops->minibatch_end(w->self, &step, &out) < 0) w->stops = -100;
        w->stops += out.stop;
    }
    if (ops->phase_end(w->self, &phase) < 0) w->stops = -100;
    free(own);
    return NULL;
}

static void open_worker(struct worker *w, const char *file, const char *options,
                        const struct batch *b, uint32_t shards) {
    struct algo a; // loads the plugin and parses the options
    const rlhf_run_info info = {.size = sizeof info,
                                .phases = 1,
                                .batch_size = (uint32_t)b->n,
                                .max_new_tokens = (uint32_t)b->max_len,
                                .n_labels = (uint32_t)b->n_labels == 1 ? 0 : (uint32_t)b->n_labels,
                                .shards = shards,
                                .temperature = 1};
    rlhf_plan plan = {.size = sizeof plan};
    memset(w, 0, sizeof *w);
    assert_int_equal(algo_try(&a, file, options), RLHF_OK);
    rlhf_test_init(&w->host, 1);
    w->plugin = a.plugin;
    w->rows = b;
    assert_int_equal(a.plugin->create(&w->host.table, a.config.bytes, &w->self), RLHF_OK);
    assert_int_equal(((const rlhf_algo_ops *)a.plugin->ops)->plan(w->self, &info, &plan), RLHF_OK);
    algo_close(&a);
}

static void give(struct worker *w, int32_t from, int32_t to, uint32_t shard) {
    w->part[w->n_parts++] = (struct part){from, to, shard};
}

// Workers 0 to n - 1 must be open. They run the phase together.
static void run_together(uint32_t n) {
    pthread_t thread[MOST];
    meeting.n = n;
    pthread_barrier_init(&meeting.barrier, NULL, n);
    for (uint32_t r = 0; r < n; r++) {
        worker[r].rank = (int32_t)r;
        worker[r].host.table.reduce = sum_over_all;
    }
    for (uint32_t r = 0; r < n; r++)
        assert_int_equal(pthread_create(&thread[r], NULL, run, &worker[r]), 0);
    for (uint32_t r = 0; r < n; r++)
        pthread_join(thread[r], NULL);
    pthread_barrier_destroy(&meeting.barrier);
}

static void close_worker(struct worker *w) {
    w->plugin->destroy(w->self);
    assert_int_equal(w->host.live, 0);
}

// Makes rows whose second half differs from the first.
static void fill(struct batch *b, const char *file, int32_t n) {
    batch_random(b, n, 11);
    b->n_labels = strcmp(file, "classify.so") == 0 ? 2 : 1;
    for (int32_t i = 0; i < b->n; i++) {
        b->label[i] = i % 2;
        b->group[i] = i / 2;
        for (int32_t k = 0; k < b->n_labels; k++)
            b->class_score[i * b->n_labels + k] = (float)((i + 3 * k) * i % 7) / 5;
    }
    for (int32_t t = b->offset[n / 2]; t < b->total; t++)
        if (b->logp[t] < 0) b->logp[t] = b->old[t] + 0.4f; // the second half moved
    for (int32_t t = 0; t < b->offset[n / 2]; t++)
        b->logp[t] = b->old[t];
}

// Gives the rows before row `first` to one worker and the rest, which may be empty, to the other.
static void compare_split(const char *file, const char *options, int32_t first, int32_t stops) {
    static struct batch b;
    fill(&b, file, 8);
    for (int32_t r = 0; r < 2; r++) {
        open_worker(&worker[r], file, options, &b, 0);
        give(&worker[r], r ? first : 0, r ? b.n : first, 0);
    }
    run_together(2);
    open_worker(&alone, file, options, &b, 0);
    give(&alone, 0, b.n, 0);
    run(&alone);
    assert_int_equal(alone.stops, stops);
    assert_int_equal(worker[0].stops, stops);
    assert_int_equal(worker[1].stops, stops);
    assert_true(alone.host.n_metrics > 1);
    for (uint32_t k = 0; k < alone.host.n_metrics; k++) {
        const struct rlhf_test_reading *m = &alone.host.metric[k];
        double got[2] = {NAN, NAN};
        for (int r = 0; r < 2; r++)
            if (!rlhf_test_metric(&worker[r].host, m->name, &got[r]))
                fail_msg("%s: worker %d lacks %s", file, r, m->name);
        assert_near(got[0], m->value, 1e-9, m->name);
        assert_memory_equal(&got[0], &got[1], sizeof got[0]);
    }
    for (int r = 0; r < 2; r++)
        close_worker(&worker[r]);
    close_worker(&alone);
}

// Divides the batch into four shards of four rows, with two microbatches each. owner[i] is the
// worker that gets shard i. All metrics have the same bits, whichever worker gets which shard.
static void compare_deal(const char *file, const char *options, const uint32_t owner[MOST],
                         uint32_t n) {
    static struct batch b;
    fill(&b, file, 16);
    for (int32_t t = 0; t < b.total; t++)
        if (b.logp[t] < 0) b.logp[t] += (float)(t % 13) / 17; // sums that round
    for (int32_t i = 0; i < b.n * b.n_labels; i++)
        b.class_score[i] += (float)(i * i % 13) / 17;
    for (uint32_t r = 0; r <= n; r++)
        open_worker(r < n ? &worker[r] : &alone, file, options, &b, MOST);
    for (int32_t i = 0; i < 2 * MOST; i++) {
        give(&worker[owner[i / 2]], 2 * i, 2 * i + 2, (uint32_t)i / 2);
        give(&alone, 2 * i, 2 * i + 2, (uint32_t)i / 2);
    }
    run_together(n);
    run(&alone);
    assert_true(alone.stops >= 0 && alone.host.n_metrics > 1);
    for (uint32_t r = 0; r < n; r++) {
        assert_int_equal(worker[r].stops, alone.stops);
        assert_int_equal(worker[r].host.n_metrics, alone.host.n_metrics);
        for (uint32_t k = 0; k < alone.host.n_metrics; k++) {
            const struct rlhf_test_reading *m = &alone.host.metric[k];
            if (memcmp(&worker[r].host.metric[k].value, &m->value, sizeof m->value) != 0)
                fail_msg("%s, worker %u of %u: %s differs", file, r, n, m->name);
        }
        close_worker(&worker[r]);
    }
    close_worker(&alone);
}

static void compare(const char *file, const char *options, int32_t stops) {
    compare_split(file, options, 4, stops);
}

// A worker that saw only the first half of the minibatch would continue, and a worker that saw only
// the second half would stop.
static void policy_gradients(void **state) {
    (void)state;
    compare("ppo.so", "advantage=group,group_size=2,target_kl=0.02", 2);
    compare("grpo.so", "group_size=2,target_kl=0.02", 2);
    compare("grpo.so", "group_size=2,target_kl=0.2", 0);
    compare("rloo.so", "group_size=2", 0);
}

// The KL for the coefficient is measured in loss() with the full estimator.
static void the_measured_kl(void **state) {
    (void)state;
    compare("grpo.so",
            "group_size=2,kl_placement=loss,kl_estimator=full,kl_controller=adaptive,kl_coef=0.1",
            0);
}

static void preferences(void **state) {
    (void)state;
    compare("bradley_terry.so", "", 0);
    compare("dpo.so", "", 0);
}

// A worker without a microbatch gets no call of loss(). It still reports the values of all workers.
static void no_microbatch(void **state) {
    (void)state;
    compare_split("grpo.so", "group_size=2", 8, 0);
    compare_split("ppo.so", "advantage=group,group_size=2,target_kl=0.02", 8, 2);
    compare_split("dpo.so", "", 8, 0);
    compare_split("sft.so", "", 8, 0);
}

static void texts_and_labels(void **state) {
    (void)state;
    compare("sft.so", "aggregation=sequence", 0);
    compare("sft.so", "", 0);
    compare("classify.so", "label_smoothing=0.1", 0);
}

static void shards_have_the_same_bits(void **state) {
    static const char *const of[][2] = {
        {"ppo.so", "advantage=group,group_size=2,target_kl=0.02"},
        {"grpo.so", "group_size=2,target_kl=0.2"},
        {"grpo.so", "group_size=2,kl_placement=loss,kl_estimator=full,kl_controller=adaptive,"
                    "kl_coef=0.1,kl_horizon=100"},
        {"rloo.so", "group_size=2"},
        {"bradley_terry.so", ""},
        {"dpo.so", ""},
        {"kto.so", "loss=apo_zero_unpaired"},
        {"sft.so", "aggregation=sequence"},
        {"classify.so", "label_smoothing=0.1"},
    };
    static const uint32_t halves[MOST] = {0, 0, 1, 1}, mixed[MOST] = {1, 0, 0, 1};
    static const uint32_t uneven[MOST] = {2, 0, 2, 2}, each[MOST] = {0, 1, 2, 3};
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        compare_deal(of[i][0], of[i][1], halves, 2);
        compare_deal(of[i][0], of[i][1], mixed, 2);
        compare_deal(of[i][0], of[i][1], uneven, 3); // worker 1 lacks a shard
        compare_deal(of[i][0], of[i][1], each, 4);
    }
}

// The host must not use a shard that the plan did not announce.
static void unknown_shard(void **state) {
    static const char *const of[] = {"grpo.so", "dpo.so", "sft.so", "kto.so"};
    static struct batch b;
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        fill(&b, of[i], 8);
        open_worker(&alone, of[i], strcmp(of[i], "grpo.so") ? "" : "group_size=2", &b, MOST);
        const struct part part = {0, 8, MOST};
        assert_int_equal(learn(&alone, &part, &b, 0), RLHF_E_INTERNAL);
        assert_non_null(strstr(alone.host.fail_text, "shard"));
        close_worker(&alone);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shards_have_the_same_bits),
                                       cmocka_unit_test(unknown_shard),
                                       cmocka_unit_test(policy_gradients),
                                       cmocka_unit_test(the_measured_kl),
                                       cmocka_unit_test(preferences),
                                       cmocka_unit_test(texts_and_labels),
                                       cmocka_unit_test(no_microbatch)};
    return cmocka_run_group_tests_name("algos/workers", tests, NULL, NULL);
}
