// test_episode_share.c: the episodes of a batch on 1, 2, 3 and 4 ranks, which are threads here. Any
// number of ranks gives the same rows, counts and metrics, although environments answer after
// random delays and one of them fails.
#include "support/chat_tokenizer.h"
#include "support/team_threads.h"

#include "episode/episode_share.h"

#include <time.h>

enum { N = 20, GROUP = 4, SLOTS = 3, MOST_TOKENS = 300, PREFIXES = 2 };

// ---- an environment ----

// How an environment behaves in this thread.
struct mood {
    uint64_t dice; // random state that decides how long it sleeps
    int32_t fails; // 1: every ninth call of step() fails
    int32_t later; // 1: most answers come later, in an order that changes
    int32_t calls;
    int64_t polls, waits; // calls of poll(), and those that may wait
};
static _Thread_local struct mood mood;

struct state {
    int64_t sum, turns;
    int64_t asks;     // the function whose answer comes later: RESET, STEP or FINISH
    int64_t left;     // calls of poll() until the answer is there
    int64_t said_len; // of the turn
};

enum { RESET, STEP, FINISH };

static uint32_t draw(uint32_t below) {
    mood.dice = mood.dice * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(mood.dice >> 33) % below;
}

static void sleep_a_while(void) {
    const struct timespec t = {.tv_nsec = (long)draw(400000)};
    nanosleep(&t, NULL);
}

// Returns 1 if the answer comes later.
static int is_later(const rlhf_episode_in *in, const rlhf_episode_out *out, uint32_t i, int asks) {
    struct state *s = in->state[i];
    if (!mood.later || !draw(3)) return 0;
    s->asks = asks;
    s->left = draw(9);
    s->said_len = (int64_t)in->text[i].len;
    out->later[i] = 1;
    return 1;
}

static rlhf_status begin_one(const rlhf_episode_in *in, const rlhf_episode_out *out, uint32_t i) {
    ((struct state *)in->state[i])->sum = (int64_t)(in->seed[i] % 7);
    return rlhf_sayf(out, i, RLHF_ROLE_USER, "%d?", (int)(in->seed[i] % 7));
}

static rlhf_status step_one(const rlhf_episode_in *in, const rlhf_episode_out *out, uint32_t i,
                            int64_t len, int fails) {
    struct state *s = in->state[i];
    s->sum += len;
    s->turns++;
    out->metric(out, i, s->turns > 1 ? "later" : "first", (double)s->sum / 10, 1,
                RLHF_COMBINE_MEAN);
    out->reward[i] = (float)s->sum / 8;
    if (fails) {
        out->failed[i] = 1;
    } else if (s->turns + s->sum % 3 > 4) {
        out->end[i] = RLHF_EPISODE_DONE;
        out->verdict[i] = s->sum % 2 ? RLHF_VERDICT_RIGHT : RLHF_VERDICT_WRONG;
    } else {
        RLHF_TRY(rlhf_sayf(out, i, RLHF_ROLE_USER, "%d.<|im_end|>", (int)s->sum));
    }
    return RLHF_OK;
}

static rlhf_status reset(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    (void)self;
    sleep_a_while();
    for (uint32_t i = 0; i < in->n; i++)
        if (!is_later(in, out, i, RESET)) RLHF_TRY(begin_one(in, out, i));
    return RLHF_OK;
}

static rlhf_status step(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    (void)self;
    sleep_a_while();
    const int fails = mood.fails && mood.calls++ % 9 == 5;
    for (uint32_t i = 0; i < in->n; i++)
        if (!is_later(in, out, i, STEP))
            RLHF_TRY(step_one(in, out, i, (int64_t)in->text[i].len, fails));
    return RLHF_OK;
}

static rlhf_status finish(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    (void)self;
    for (uint32_t i = 0; i < in->n; i++)
        if (!is_later(in, out, i, FINISH))
            out->metric(out, i, "end", in->end[i], 2, RLHF_COMBINE_SUM);
    return RLHF_OK;
}

static rlhf_status poll_all(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    (void)self;
    mood.polls++;
    mood.waits += in->wait_ms > 0;
    const int fails = mood.fails && mood.calls++ % 9 == 5;
    for (uint32_t i = 0; i < in->n; i++) {
        struct state *s = in->state[i];
        assert_true(in->text[i].len == 0 && in->call_offset[i + 1] == 0);
        assert_int_equal(in->end[i] != RLHF_EPISODE_OPEN, s->asks == FINISH);
        if (s->left-- > 0)
            out->later[i] = 1;
        else if (s->asks == RESET)
            RLHF_TRY(begin_one(in, out, i));
        else if (s->asks == STEP)
            RLHF_TRY(step_one(in, out, i, s->said_len, fails));
        else
            out->metric(out, i, "end", in->end[i], 2, RLHF_COMBINE_SUM);
    }
    return RLHF_OK;
}

static char file[] = "adding.so";
static const struct rlhf__plugin plugin = {
    .desc = {.kind = RLHF_KIND_ENVIRONMENT, .id = "org.test.adding"},
    .file = file,
    .stem = file,
    .ops.environment = {.state_size = sizeof(struct state),
                        .reset = reset,
                        .step = step,
                        .poll = poll_all,
                        .finish = finish,
                        .flags = RLHF_ENVIRONMENT_TASKS | RLHF_ENVIRONMENT_PAYS}};

// ---- a model: the next token is a hash of what its row has read, and of the draw's counter ----

struct rlhf_gen {
    int32_t len[SLOTS + PREFIXES], ids[SLOTS + PREFIXES][MOST_TOKENS];
};

static uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static rlhf_status gen_step(void *self, rlhf_gen *g, const rlhf_gen_step *s) {
    const struct rlhf__model *m = self;
    for (uint32_t i = 0; i < s->n; i++) {
        const int32_t slot = s->slot[i];
        if (s->start[i] == 0) g->len[slot] = 0;
        for (int32_t k = s->offset[i]; k < s->offset[i + 1]; k++)
            g->ids[slot][g->len[slot]++] = s->ids[k];
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const int32_t prefix = s->prefix ? s->prefix[i] : -1, slot = s->slot[i];
        uint64_t h = 1;
        if (s->silent && s->silent[i]) continue;
        for (int32_t k = 0; prefix >= 0 && k < g->len[prefix]; k++)
            h = mix(h, (uint64_t)g->ids[prefix][k]);
        for (int32_t k = 0; k < g->len[slot]; k++)
            h = mix(h, (uint64_t)g->ids[slot][k]);
        h = mix(h, s->counter[i]);
        s->next[i] = h % 5 == 0 ? m->ends.id[0] : (int32_t)(h / 8 % 40);
        s->logp[i] = -(float)(h % 1009) / 16;
    }
    return RLHF_OK;
}

static const rlhf_model_ops model_ops = {.size = sizeof model_ops, .gen_step = gen_step};
static const struct rlhf__plugin model_plugin = {.desc = {.kind = RLHF_KIND_MODEL, .id = "fake"}};
static struct rlhf__instance model_instance = {.plugin = &model_plugin};

// ---- a rank ----

struct rank {
    struct rlhf__model model;
    struct rlhf__config config;
    struct rlhf__services services;
    struct rlhf__instance *environment;
    struct rlhf__prompts *prompts;
    struct rlhf__episode_setup setup;
    struct rlhf_gen cache;
    struct mood mood;
    struct rlhf__rows rows;
    struct rlhf__episode_counts counts;
    struct rlhf__buf metrics; // what the environments reported, in order
    int64_t tokens;
    rlhf_status status;
    struct rlhf__error err;
};

static void heard(void *ctx, const char *name, double value, double weight, int32_t combine) {
    rlhf__buf_printf(ctx, "%s %a %g %d\n", name, value, weight, combine);
}

static void open_rank(struct rank *r, struct scratch *s, int32_t number, int32_t fails) {
    static const struct rlhf__origin nowhere = {"the test", "environment", NULL, 0, 0};
    struct rlhf__error err = {0, ""};
    memset(r, 0, sizeof *r);
    r->model = (struct rlhf__model){
        .ops = &model_ops,
        .self = &r->model,
        .info = {.caps = RLHF_CAP_GENERATE | RLHF_CAP_PREFIX, .n_ctx = MOST_TOKENS},
        .instance = &model_instance,
        .tok = chat_tokenizer(s, "../text/data/bpe")};
    check_ok(rlhf__tokenizer_name_chat(r->model.tok, "chatml", &err), &err);
    r->model.ends.n = 1;
    r->model.ends.id[0] = rlhf__tokenizer_find(r->model.tok, (rlhf_str){"<|im_end|>", 10});
    r->config.sampling.max_new_tokens = 24;
    r->config.episodes.turns = 4;
    r->config.episodes.reply_tokens = 40;
    r->services = (struct rlhf__services){.metric = heard, .metric_ctx = &r->metrics};
    check_ok(rlhf__instance_open(&plugin, &r->services, "environment", NULL, &nowhere,
                                 &r->environment, &err),
             &err);
    check_ok(rlhf__playing_no_prompts(r->model.tok, &r->prompts, &err), &err);
    const struct rlhf__playing p = {.config = &r->config,
                                    .environment = r->environment,
                                    .policy = &r->model,
                                    .prompts = r->prompts,
                                    .alone = 1};
    check_ok(rlhf__playing_open(&p, &r->setup, &err), &err);
    r->setup.retries = 100;
    r->mood = (struct mood){.dice = (uint64_t)(number + 1), .fails = fails};
}

static void close_rank(struct rank *r) {
    rlhf__rows_finish(&r->rows);
    rlhf__buf_finish(&r->metrics);
    rlhf__playing_close(&r->setup);
    rlhf__instance_close(r->environment);
    rlhf__prompts_close(r->prompts);
    rlhf__tokenizer_close(r->model.tok);
}

static void play(struct rank *r, struct rlhf__team *team) {
    static const int64_t row[N];
    const struct rlhf__episodes_request of = {.setup = &r->setup,
                                              .row = row,
                                              .n = N,
                                              .group = GROUP,
                                              .first = 100,
                                              .stream = "environment"};
    const struct rlhf__rollout_request q = {.model = &r->model,
                                            .cache = &r->cache,
                                            .prompts = r->prompts,
                                            .n = N,
                                            .slots = SLOTS,
                                            .prefix_slots = PREFIXES,
                                            .group = GROUP,
                                            .max_new = 24,
                                            .stop_at_eos = 1,
                                            .stream = "rollout",
                                            .dist = RLHF_DIST_WHOLE,
                                            .logp_dist = RLHF_DIST_WHOLE,
                                            .first = 100,
                                            .version = 6};
    mood = r->mood;
    r->status = rlhf__playing_share(team, &of, &q, &r->rows, &r->tokens, &r->counts, &r->err);
    r->mood = mood;
}

static void *play_rank(struct team_thread *t) {
    play(t->arg, &t->team);
    return NULL;
}

// ---- what all ranks have ----

static void same_rows(const struct rlhf__rows *a, const struct rlhf__rows *b) {
    const size_t n = a->n, total = a->total;
    assert_int_equal(b->n, n);
    assert_int_equal(b->total, total);
    assert_int_equal(b->flags, a->flags);
    assert_memory_equal(a->offset, b->offset, (n + 1) * sizeof *a->offset);
    assert_memory_equal(a->prompt_len, b->prompt_len, n * sizeof *a->prompt_len);
    assert_memory_equal(a->group, b->group, n * sizeof *a->group);
    assert_memory_equal(a->source, b->source, n * sizeof *a->source);
    assert_memory_equal(a->version, b->version, n * sizeof *a->version);
    assert_memory_equal(a->finished, b->finished, n);
    assert_memory_equal(a->end, b->end, n);
    assert_memory_equal(a->verdict, b->verdict, n);
    assert_memory_equal(a->ids, b->ids, total * sizeof *a->ids);
    assert_memory_equal(a->turn, b->turn, total * sizeof *a->turn);
    assert_memory_equal(a->paid, b->paid, total * sizeof *a->paid);
    for (int k = 0; k < RLHF__N_TOKEN_ARRAYS; k++)
        assert_memory_equal(a->token[k], b->token[k], total * sizeof(float));
}

static void same(const struct rank *one, const struct rank *r, int fails) {
    if (r->status != RLHF_OK) fail_msg("%s", r->err.text);
    same_rows(&one->rows, &r->rows);
    assert_string_equal(rlhf__buf_text(&one->metrics), rlhf__buf_text(&r->metrics));
    assert_int_equal(one->counts.cut, r->counts.cut);
    assert_int_equal(one->counts.specials, r->counts.specials);
    assert_int_equal(one->counts.forged, r->counts.forged);
    assert_int_equal(r->counts.failures > 0, fails);
}

static void run_ranks(void **state, int32_t ranks, int fails, struct rank *of) {
    void *arg[TEAM_THREADS_MOST];
    for (int32_t k = 0; k < ranks; k++) {
        open_rank(&of[k], *state, k, fails && k == ranks - 1);
        arg[k] = &of[k];
    }
    team_threads_run(ranks, play_rank, arg);
}

static void ranks_play_the_same(void **state) {
    static struct rank one, of[4];
    open_rank(&one, *state, 9, 0);
    play(&one, NULL);
    if (one.status != RLHF_OK) fail_msg("%s", one.err.text);
    assert_int_equal(one.counts.failures, 0);
    assert_true(one.counts.specials > 0);
    int32_t most = 0, ends = 0;
    for (uint32_t t = 0; t < one.rows.total; t++)
        if (one.rows.turn[t] > most) most = one.rows.turn[t];
    for (uint32_t i = 0; i < N; i++)
        ends |= 1 << one.rows.end[i];
    assert_int_equal(most, 3);
    assert_true(ends & 1 << RLHF_EPISODE_DONE && ends & ~(1 << RLHF_EPISODE_DONE));
    for (int32_t ranks = 2; ranks <= 4; ranks++)
        for (int fails = 0; fails < 2; fails++) {
            run_ranks(state, ranks, fails, of);
            for (int32_t k = 0; k < ranks; k++) {
                same(&one, &of[k], fails);
                assert_int_equal(of[k].counts.failures, of[0].counts.failures);
                assert_int_equal(of[k].tokens, of[0].tokens);
                close_rank(&of[k]);
            }
        }
    close_rank(&one);
}

// The rows do not depend on the order of answers, even if some of them fail.
static void answers_may_come_later(void **state) {
    static struct rank one, late;
    open_rank(&one, *state, 9, 0);
    play(&one, NULL);
    for (int32_t k = 0; k < 8; k++) {
        open_rank(&late, *state, k, k % 2);
        late.mood.later = 1;
        play(&late, NULL);
        same(&one, &late, k % 2);
        assert_true(late.mood.polls > N && late.mood.waits > 0);
        assert_true(late.mood.waits < late.mood.polls);
        close_rank(&late);
    }
    close_rank(&one);
}

// An answer that never comes is a failure after rewards.timeout_s.
static void an_answer_that_never_comes(void **state) {
    static struct rank r;
    open_rank(&r, *state, 1, 0);
    r.mood.later = 1;
    r.setup.timeout_s = 1e-9;
    r.setup.retries = 0;
    play(&r, NULL);
    check_error(r.status, RLHF_E_IO, &r.err, "has no answer within rewards.timeout_s");
    close_rank(&r);
}

// If an environment fails for good on one rank, all ranks end with its message.
static void a_failure_ends_all(void **state) {
    static struct rank of[3];
    void *arg[3];
    for (int32_t k = 0; k < 3; k++) {
        open_rank(&of[k], *state, k, k == 1);
        of[k].setup.retries = 0;
        arg[k] = &of[k];
    }
    team_threads_run(3, play_rank, arg);
    for (int32_t k = 0; k < 3; k++) {
        check_error(of[k].status, RLHF_E_IO, &of[k].err, "could not be answered");
        assert_non_null(strstr(of[k].err.text, "rank 1 on "));
        close_rank(&of[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ranks_play_the_same, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(answers_may_come_later, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(an_answer_that_never_comes, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(a_failure_ends_all, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("episode share", tests, NULL, NULL);
}
