// test_workers.c: two workers that each see half of a minibatch decide and report alike, and like
// one worker that sees all of it. Two synchronised threads play the host's reduce().
#include "algos/fixture.h"

#include <pthread.h>

#include <math.h>

struct meeting {
    pthread_barrier_t barrier;
    double sums[2][64];
};

static struct meeting meeting;

struct worker {
    struct rlhf_test_host host; // first: reduce() casts back
    int32_t rank, stops;        // stops: minibatches after which it stops the phase
    const rlhf_plugin *plugin;
    void *self;
    const struct batch *rows;
    int32_t from, to;
    int64_t size; // rows of the minibatch
};

static struct worker worker[2], alone;

static rlhf_status sum_over_both(const rlhf_host *h, double *sums, uint32_t n) {
    const struct worker *w = (const struct worker *)(const void *)h;
    memcpy(meeting.sums[w->rank], sums, n * sizeof *sums);
    pthread_barrier_wait(&meeting.barrier);
    for (uint32_t i = 0; i < n; i++)
        sums[i] = meeting.sums[0][i] + meeting.sums[1][i];
    pthread_barrier_wait(&meeting.barrier);
    return RLHF_OK;
}

static void *run(void *arg) {
    struct worker *w = arg;
    const struct batch *b = w->rows;
    const rlhf_algo_ops *ops = w->plugin->ops;
    struct batch *own = malloc(sizeof *own); // the outputs of this worker
    if (!own) return NULL;
    *own = *b;
    int32_t base = b->offset[w->from], offset[MAX_ROWS + 1], stop = 0, n_labels = b->n_labels;
    rlhf_rollout all = {.size = sizeof all,
                        .n = (uint32_t)b->n,
                        .total = (uint32_t)b->total,
                        .max_new_tokens = b->max_len,
                        .offset = b->offset,
                        .prompt_len = b->prompt_len,
                        .group = b->group,
                        .finished = b->finished,
                        .score = b->score,
                        .token_reward = b->token_reward,
                        .logp_old = b->old,
                        .logp_ref = b->ref,
                        .advantage = own->advantage,
                        .returns = own->returns};
    if (ops->advantages && ops->advantages(w->self, &all) < 0) w->stops = -1;
    for (int32_t i = w->from; i <= w->to; i++)
        offset[i - w->from] = b->offset[i] - base;
    rlhf_heads heads = {.size = sizeof heads,
                        .logp = own->logp + base,
                        .entropy = own->entropy + base,
                        .kl = own->kl + base,
                        .score = own->class_score + w->from * n_labels};
    rlhf_heads d = {.size = sizeof d,
                    .logp = own->d_logp + base,
                    .entropy = own->d_entropy + base,
                    .kl = own->d_kl + base,
                    .score = own->d_class_score + w->from * n_labels};
    rlhf_loss_in in = {.size = sizeof in,
                       .n = (uint32_t)(w->to - w->from),
                       .total = (uint32_t)offset[w->to - w->from],
                       .batch_sequences = w->size,
                       .batch_tokens = b->total,
                       .max_new_tokens = b->max_len,
                       .offset = offset,
                       .prompt_len = b->prompt_len + w->from,
                       .group = b->group + w->from,
                       .heads = &heads,
                       .logp_old = b->old + base,
                       .logp_ref = b->ref + base,
                       .advantage = own->advantage + base,
                       .returns = own->returns + base,
                       .label = b->label + w->from,
                       .n_labels = n_labels};
    for (uint32_t k = 0; k < 2; k++) {
        rlhf_loss_out out = {.size = sizeof out, .d_heads = &d};
        rlhf_step_info step = {.size = sizeof step, .epoch = k, .lr_factor = 1};
        in.epoch = k;
        for (int32_t t = base; k && t < b->offset[w->to]; t++)
            own->logp[t] -= own->logp[t] < 0 ? 0.01f : 0; // the changes of the previous step
        if (in.n && ops->loss(w->self, &in, &out) < 0) w->stops = -100;
        if (ops->minibatch_end && ops->minibatch_end(w->self, &step, &stop) < 0) w->stops = -100;
        w->stops += stop;
    }
    if (ops->phase_end(w->self, 0) < 0) w->stops = -100;
    free(own);
    return NULL;
}

static void open_worker(struct worker *w, const char *file, const char *options,
                        const struct batch *b, int32_t from, int32_t to) {
    struct algo a; // loads the plugin and parses the options
    memset(w, 0, sizeof *w);
    assert_int_equal(algo_try(&a, file, options), RLHF_OK);
    rlhf_test_init(&w->host, 1);
    w->plugin = a.plugin;
    w->rows = b;
    w->from = from;
    w->to = to;
    w->size = b->n;
    assert_int_equal(a.plugin->create(&w->host.table, a.config.bytes, &w->self), RLHF_OK);
    algo_close(&a);
}

static void close_worker(struct worker *w) {
    w->plugin->destroy(w->self);
    assert_int_equal(w->host.live, 0);
}

// Rows [0, first) are one worker's and the others, which differ from them, the second's; it may
// have none.
static void compare_split(const char *file, const char *options, int32_t first, int32_t stops) {
    static struct batch b;
    pthread_t thread[2];
    batch_random(&b, 8, 11);
    b.n_labels = strcmp(file, "classify.so") == 0 ? 2 : 1;
    for (int32_t i = 0; i < b.n; i++) {
        b.label[i] = i % 2;
        b.group[i] = i / 2;
        for (int32_t k = 0; k < b.n_labels; k++)
            b.class_score[i * b.n_labels + k] = (float)((i + 3 * k) * i % 7) / 5;
    }
    for (int32_t t = b.offset[4]; t < b.total; t++)
        if (b.logp[t] < 0) b.logp[t] = b.old[t] + 0.4f; // the second half moved
    for (int32_t t = 0; t < b.offset[4]; t++)
        b.logp[t] = b.old[t];
    pthread_barrier_init(&meeting.barrier, NULL, 2);
    for (int32_t r = 0; r < 2; r++) {
        open_worker(&worker[r], file, options, &b, r ? first : 0, r ? b.n : first);
        worker[r].rank = r;
        worker[r].host.table.reduce = sum_over_both;
    }
    for (int r = 0; r < 2; r++)
        assert_int_equal(pthread_create(&thread[r], NULL, run, &worker[r]), 0);
    for (int r = 0; r < 2; r++)
        pthread_join(thread[r], NULL);
    pthread_barrier_destroy(&meeting.barrier);
    open_worker(&alone, file, options, &b, 0, b.n);
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

static void compare(const char *file, const char *options, int32_t stops) {
    compare_split(file, options, 4, stops);
}

// The first half alone would continue, the second alone would stop.
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

// loss() is never called for a worker without a microbatch, and it reports the other's values.
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policy_gradients), cmocka_unit_test(the_measured_kl),
        cmocka_unit_test(preferences), cmocka_unit_test(texts_and_labels),
        cmocka_unit_test(no_microbatch)};
    return cmocka_run_group_tests_name("algos/workers", tests, NULL, NULL);
}
