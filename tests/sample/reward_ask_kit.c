// reward_ask_kit.c: see reward_ask_kit.h.
#include "reward_ask_kit.h"

#include <math.h>
#include <time.h>

static int is_in(const char *list, char row) { return list && row && strchr(list, row); }

static void wait_ms(int32_t ms) {
    const struct timespec t = {0, ms * 1000000L};
    if (ms) nanosleep(&t, NULL);
}

// Appends an event.
static void note(struct script *s, const char *what) {
    const size_t n = strlen(s->asked);
    snprintf(s->asked + n, sizeof s->asked - n, "%s", what);
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct script *s = self;
    static const struct call well;
    const struct call *c = s->n < CHECK_COUNT(s->call) ? &s->call[s->n] : &well;
    s->n++;
    s->ended_at = -1;
    wait_ms(s->pause);
    for (uint32_t i = 0; i < in->n; i++) {
        const char row = *in->response[i].ptr;
        note(s, (char[]){row, 0});
        if (is_in(s->kills, row) && s->ended_at < 0)
            s->ended_at = s->late ? in->n : s->liar ? 0 : i;
        out->seq[i] = is_in(c->odd, row) ? NAN : (float)(row - 'a' + 1);
        out->verdict[i] = RLHF_VERDICT_RIGHT;
        out->failed[i] = (uint8_t)is_in(c->fails, row);
        if (out->token) out->token[in->offset[i]] = 0.5f;
    }
    note(s, "|");
    uint32_t scored = in->n;
    for (uint32_t i = 0; i < in->n; i++)
        scored -= out->failed[i] != 0;
    if (c->metric != 0) rlhf_metric_mean(s->host, "x", c->metric, scored);
    if (c->metric != 0) rlhf_metric_add(s->host, "n", scored);
    if (s->stop) *s->stopped = 1;
    if (s->ended_at >= 0 && s->once) s->kills = NULL;
    if (s->ended_at >= 0) return (s->host->fail)(s->host, RLHF_E_INTERNAL, "it ended");
    if (c->status < 0) return (s->host->fail)(s->host, c->status, "no");
    if (c->words) (s->host->fail)(s->host, RLHF_E_IO, c->words);
    s->calls++;
    return RLHF_OK;
}

static rlhf_status save(void *self, const rlhf_ostream *out) {
    struct script *s = self;
    note(s, ">");
    return out->write(out, &s->calls, sizeof s->calls);
}

static rlhf_status load(void *self, const rlhf_istream *in, uint32_t version) {
    struct script *s = self;
    (void)version;
    note(s, "<");
    return in->read(in, &s->calls, sizeof s->calls);
}

static int64_t ended_at(void *self) { return ((struct script *)self)->ended_at; }

// ---- rows and messages ----

static void take_metric(void *ctx, const char *name, double value, double weight, int32_t combine) {
    struct fixture *f = ctx;
    if (strcmp(name, "rewards/s/x") == 0) {
        f->metrics++;
        f->metric = value;
        f->weight = weight;
        assert_int_equal(combine, RLHF_COMBINE_MEAN);
    } else if (strcmp(name, "rewards/s/n") == 0) {
        f->counted += weight * value;
        assert_int_equal(combine, RLHF_COMBINE_SUM);
    }
}

static void make_rows(struct fixture *f) {
    static const char letters[] = "abcdefgh";
    for (int i = 0; i < ROWS; i++) {
        f->text[i] = (rlhf_str){letters + i, 1};
        f->group[i] = i / 2;
        f->offset[i + 1] = i + 1;
    }
    f->rows = (struct rlhf__reward_rows){.n = ROWS,
                                         .prompt = f->text,
                                         .response = f->text,
                                         .meta = f->text,
                                         .ids = f->zero,
                                         .offset = f->offset,
                                         .prompt_len = f->zero,
                                         .group = f->group,
                                         .source = f->source,
                                         .finished = f->finished};
}

int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    struct rlhf__error err = {0};
    const struct rlhf__origin from = {"test", "reward.0", NULL, 0, 0};
    if (!f) return -1;
    *state = f;
    f->plugin.desc = (rlhf_plugin){.id = "org.test.script",
                                   .kind = RLHF_KIND_REWARD,
                                   .config_size = sizeof(struct script),
                                   .save = save,
                                   .load = load};
    f->plugin.stem = (char[]){"script"};
    f->plugin.ops.reward = (rlhf_reward_ops){.size = sizeof(rlhf_reward_ops), .score = score};
    f->outside.ended_at = ended_at;
    rlhf__log_init(&f->log);
    f->log.out = open_memstream(&f->said, &f->said_bytes);
    f->services = (struct rlhf__services){.log = &f->log,
                                          .metric = take_metric,
                                          .metric_ctx = f,
                                          .cancelled = &f->stopped,
                                          .phase = 3};
    check_ok(
        rlhf__instance_open(&f->plugin, &f->services, "rewards/s", NULL, &from, &f->instance, &err),
        &err);
    f->s = f->instance->self;
    f->s->host = f->instance->host;
    f->s->stopped = &f->stopped;
    f->rules = (struct rlhf__mixing_config){.on_failure = RLHF__FAILURE_RETRY, .retries = 3};
    f->q = (struct rlhf__reward_call){.rules = &f->rules,
                                      .plugin = f->instance,
                                      .phase = 2,
                                      .trains = 1,
                                      .metric = take_metric,
                                      .metric_ctx = f,
                                      .log = &f->log,
                                      .tally = &f->tally};
    make_rows(f);
    check_ok(rlhf__reward_answer_init(&f->answer, &f->rows, &err), &err);
    check_ok(rlhf__overlap_answers_init(&f->early, ROWS, &err), &err);
    return 0;
}

int teardown(void **state) {
    struct fixture *f = *state;
    rlhf__overlap_answers_finish(&f->early);
    rlhf__reward_answer_finish(&f->answer);
    rlhf__instance_close(f->instance);
    fclose(f->log.out);
    free(f->said);
    rlhf__log_finish(&f->log);
    free(f);
    return 0;
}

void alone(struct fixture *f) { f->plugin.ops.reward.flags = RLHF_REWARD_ROW_ALONE; }

void ask_with(struct fixture *f, struct rlhf__overlap_answers *early) {
    struct rlhf__error err = {0};
    check_ok(rlhf__reward_ask(&f->q, early, &f->rows, &f->answer, &err), &err);
}

void ask(struct fixture *f) { ask_with(f, NULL); }

void ask_early(struct fixture *f, uint32_t from, uint32_t to) {
    struct rlhf__error err = {0};
    struct rlhf__reward_rows some = {0};
    struct rlhf__reward_call q = f->q;
    uint32_t number[ROWS];
    for (uint32_t i = from; i < to; i++)
        number[i - from] = i;
    q.tally = &f->early.tally;
    q.bisects = rlhf__reward_bisects(&f->rules);
    check_ok(rlhf__reward_rows_pick(&some, &f->rows, number, to - from, &err), &err);
    rlhf__reward_ask_overlapped(&q, &some, number, &f->early);
    rlhf__reward_rows_finish(&some);
}

void only_failed(struct fixture *f, const char *letters) {
    const int tokens = (f->plugin.ops.reward.flags & RLHF_REWARD_PER_TOKEN) != 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        const int failed = is_in(letters, (char)('a' + i));
        assert_int_equal(f->answer.failed[i], failed);
        assert_int_equal(f->answer.verdict[i], failed ? RLHF_VERDICT_NONE : RLHF_VERDICT_RIGHT);
        assert_true(f->answer.token[i] == (tokens && !failed ? 0.5f : 0));
        assert_true(f->answer.seq[i] == (failed ? 0 : (float)(i + 1)));
    }
}

void refused(struct fixture *f, rlhf_status status, const char *why) {
    struct rlhf__error err = {0};
    assert_int_equal(rlhf__reward_ask(&f->q, NULL, &f->rows, &f->answer, &err), status);
    if (!strstr(err.text, why)) fail_msg("%s", err.text);
}

void logged(struct fixture *f, const char *text) {
    fflush(f->log.out);
    if (!strstr(f->said, text)) fail_msg("%s", f->said);
}
