// test_reward_ask.c: a reward is asked about rows, and asked again: which rows, in which order,
// with which state, and what is counted. The reward is a script in this process; row i has the
// response 'a' + i, and is paid i + 1.
#include "plugin/modules.h"

#include "sample/reward_ask.h"
#include "sample/reward_narrow.h"

#include <math.h>
#include <time.h>

enum { ROWS = 8, PAUSE_MS = 20 };
#define ODD_MEAN 0.69 // 7 * 0.69 / 7 is another number

// What one call does, its rows by their letters.
struct call {
    rlhf_status status;
    const char *fails, *odd; // marked as failed; paid NaN
    const char *words;       // that are said of what fails
    double metric;           // 0: none is reported
};

// The reward. Calls behind the last of the script go well.
struct script {
    const rlhf_host *host;
    struct call call[8];
    const char *kills;   // rows that end its process
    int32_t once, pad;   // once 1: only in the first call that has them
    int32_t late, liar;  // where it is said to have ended: behind the last row; at the first
    int64_t ended_at;    // row of the last call
    int32_t pause, stop; // milliseconds a call; 1: the user presses Ctrl-C in the first
    sig_atomic_t *stopped;
    uint32_t n, calls; // calls: the state, of those that were answered
    char asked[1024];  // "abcd|b|": the rows of each call
};

static int is_in(const char *list, char row) { return list && row && strchr(list, row); }

static void wait_ms(int32_t ms) {
    const struct timespec t = {0, ms * 1000000L};
    if (ms) nanosleep(&t, NULL);
}

// What happened, behind what has.
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
    if (c->metric != 0) s->host->metric(s->host, "x", c->metric);
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

// ---- rows of it, and what is said ----

struct fixture {
    struct rlhf__plugin plugin;
    struct rlhf__outside outside;
    struct rlhf__services services;
    struct rlhf__instance *instance;
    struct rlhf__log log;
    struct rlhf__mixing_config rules;
    struct rlhf__reward_books books;
    struct rlhf__reward_call q;
    struct script *s; // of the instance
    struct rlhf__reward_rows rows;
    struct rlhf__reward_answer answer;
    struct rlhf__reward_early early;
    rlhf_str text[ROWS];
    int32_t zero[ROWS], offset[ROWS + 1], group[ROWS];
    uint8_t finished[ROWS];
    sig_atomic_t stopped;
    int metrics;
    double metric;
    char *said; // the log
    size_t said_bytes;
};

static void take_metric(void *ctx, const char *name, double value) {
    struct fixture *f = ctx;
    if (strcmp(name, "rewards/s/x") == 0) f->metrics++;
    f->metric = value;
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
                                         .finished = f->finished};
}

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    struct rlhf__error err = {0};
    const struct rlhf__origin from = {"test", "reward.0", NULL, 0, 0, 0};
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
    check_ok(rlhf__instance_create(&f->plugin, &f->services, "rewards/s", NULL, &from, &f->instance,
                                   &err),
             &err);
    f->s = f->instance->self;
    f->s->host = f->instance->host;
    f->s->stopped = &f->stopped;
    f->rules = (struct rlhf__mixing_config){.on_failure = RLHF__FAILURE_RETRY, .retries = 3};
    f->q = (struct rlhf__reward_call){.rules = &f->rules,
                                      .plugin = f->instance,
                                      .phase = 2,
                                      .pays = 1,
                                      .log = &f->log,
                                      .books = &f->books};
    make_rows(f);
    check_ok(rlhf__reward_answer_init(&f->answer, &f->rows, &err), &err);
    check_ok(rlhf__reward_early_init(&f->early, ROWS, &err), &err);
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    rlhf__reward_early_finish(&f->early);
    rlhf__reward_answer_finish(&f->answer);
    rlhf__instance_destroy(f->instance);
    fclose(f->log.out);
    free(f->said);
    rlhf__log_finish(&f->log);
    free(f);
    return 0;
}

// Rows are scored each for itself.
static void alone(struct fixture *f) { f->plugin.ops.reward.flags = RLHF_REWARD_ROW_ALONE; }

static void ask_with(struct fixture *f, struct rlhf__reward_early *early) {
    struct rlhf__error err = {0};
    check_ok(rlhf__reward_ask(&f->q, early, &f->rows, &f->answer, &err), &err);
}

static void ask(struct fixture *f) { ask_with(f, NULL); }

// Asked about the rows `from` up to `to` before the batch is.
static void ask_early(struct fixture *f, uint32_t from, uint32_t to) {
    struct rlhf__error err = {0};
    struct rlhf__reward_rows some = {0};
    struct rlhf__reward_call q = f->q;
    uint32_t number[ROWS];
    for (uint32_t i = from; i < to; i++)
        number[i - from] = i;
    q.books = &f->early.books;
    q.narrows = rlhf__reward_narrows(&f->rules);
    check_ok(rlhf__reward_rows_pick(&some, &f->rows, number, to - from, &err), &err);
    rlhf__reward_ask_early(&q, &some, number, &f->early);
    rlhf__reward_rows_finish(&some);
}

// Which rows have failed is told by their letters, and the others have what they are paid.
static void only_failed(struct fixture *f, const char *letters) {
    const int tokens = (f->plugin.ops.reward.flags & RLHF_REWARD_PER_TOKEN) != 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        const int failed = is_in(letters, (char)('a' + i));
        assert_int_equal(f->answer.failed[i], failed);
        assert_int_equal(f->answer.verdict[i], failed ? RLHF_VERDICT_NONE : RLHF_VERDICT_RIGHT);
        assert_true(f->answer.token[i] == (tokens && !failed ? 0.5f : 0));
        assert_true(f->answer.seq[i] == (failed ? 0 : (float)(i + 1)));
    }
}

// It fails with that status and a sentence that has `why` in it.
static void refused(struct fixture *f, rlhf_status status, const char *why) {
    struct rlhf__error err = {0};
    assert_int_equal(rlhf__reward_ask(&f->q, NULL, &f->rows, &f->answer, &err), status);
    if (!strstr(err.text, why)) fail_msg("%s", err.text);
}

static void logged(struct fixture *f, const char *text) {
    fflush(f->log.out);
    if (!strstr(f->said, text)) fail_msg("%s", f->said);
}

static int lines_of(const char *text) {
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

// ---- which rows ----

static void only_what_failed_is_asked_again(void **state) {
    struct fixture *f = *state;
    alone(f);
    f->s->call[0] = (struct call){.fails = "bg", .odd = "c"};
    f->s->call[1] = (struct call){.fails = "g"};
    ask(f);
    only_failed(f, "");
    assert_string_equal(f->s->asked, "abcdefgh|bcg|g|");
    assert_int_equal(f->books.failures, 4);
    assert_int_equal(f->books.retries, 4);
    logged(f, "score(), phase 3: it could not score row 1 (rows 1, 2, 6 of 8); rewards.on_failure "
              "says retry: asked again, 1 of 3");
    logged(f, "(row 6 of 8); rewards.on_failure says retry: asked again, 2 of 3");
}

// The others of a group are asked about again, and keep what was said of them.
static void a_group_is_asked_again_whole(void **state) {
    struct fixture *f = *state;
    f->s->call[0] = (struct call){.fails = "d"};
    f->s->call[1] = (struct call){.fails = "c", .odd = "c"};
    ask(f);
    only_failed(f, "");
    assert_string_equal(f->s->asked, "abcdefgh|cd|");
    assert_int_equal(f->books.failures, 1);
    assert_int_equal(f->books.retries, 1);
    // Also where every group is.
    f->s->n = 0;
    f->s->call[0].fails = "bdfh";
    f->s->call[1] = (struct call){.odd = "aceg"};
    ask(f);
    only_failed(f, "");
}

// A number that is not finite is asked for again where it would end the run, and nowhere else.
static void numbers_are_asked_for_again(void **state) {
    struct fixture *f = *state;
    static const struct {
        int32_t failure, nan;
        const char *asked;
    } how[] = {{RLHF__FAILURE_RETRY, RLHF__NAN_STOP, "abcdefgh|b|"},
               {RLHF__FAILURE_RETRY, RLHF__NAN_ZERO, "abcdefgh|"},
               {RLHF__FAILURE_RETRY, RLHF__NAN_DROP, "abcdefgh|"},
               {RLHF__FAILURE_ZERO, RLHF__NAN_STOP, "abcdefgh|"}};
    alone(f);
    f->s->call[0].odd = "b";
    for (size_t k = 0; k < CHECK_COUNT(how); k++) {
        f->rules.on_failure = how[k].failure;
        f->rules.nan_policy = how[k].nan;
        f->s->n = 0;
        f->s->asked[0] = 0;
        ask(f);
        assert_string_equal(f->s->asked, how[k].asked);
        assert_int_equal(isnan(f->answer.seq[1]) != 0, k > 0);
    }
    assert_int_equal(f->books.failures, 1);
}

// Each failure is told with its own reason.
static void a_reason_is_of_its_try(void **state) {
    struct fixture *f = *state;
    f->s->call[0] = (struct call){.fails = "b", .words = "no line"};
    f->s->call[1].odd = "b";
    ask(f);
    logged(f, "phase 3: no line (row 1 of 8); rewards.on_failure says retry: asked again, 1 of 3");
    logged(f,
           "phase 3: it gave nan (row 1 of 8); rewards.on_failure says retry: asked again, 2 of 3");
}

static void tries_have_an_end(void **state) {
    struct fixture *f = *state;
    alone(f);
    f->rules.retries = 2;
    for (int k = 0; k < 3; k++)
        f->s->call[k].fails = "bc";
    refused(f, RLHF_E_IO,
            "(rows 1, 2 of 8); rewards.on_failure says retry, rewards.retries 2 ("
            "zero and drop go on)");
    assert_string_equal(f->s->asked, "abcdefgh|bc|bc|");
    assert_int_equal(f->books.failures, 6);
    assert_int_equal(f->books.retries, 4);
    // Whether another nan_policy would go on depends on what is left at the end.
    static const char *const odd[][3] = {{"b", NULL, NULL}, {"bc", "bc", "b"}, {"bc", "bc", "bc"}};
    static const char *const policy[] = {"rewards.retries 2 (zero", "rewards.retries 2 (zero",
                                         "rewards.retries 2 and rewards.nan_policy stop (zero"};
    for (int k = 0; k < 3; k++) {
        f->s->n = 0;
        for (int i = 0; i < 3; i++) {
            f->s->call[i].odd = odd[k][i];
            f->s->call[i].fails = k == 0 ? "c" : k == 1 && i == 2 ? "c" : NULL;
        }
        refused(f, RLHF_E_IO, policy[k]);
    }
    // One row is not all of them.
    f->rows.n = 1;
    f->s->n = 0;
    for (int k = 0; k < 3; k++)
        f->s->call[k] = (struct call){.fails = "a"};
    refused(f, RLHF_E_IO, "(row 0 of 1)");
}

// Once the user wants to stop, nothing is asked again.
static void stopping_ends_the_tries(void **state) {
    struct fixture *f = *state;
    f->s->stop = 1;
    f->s->call[0].fails = "b";
    refused(f, RLHF_E_CANCELLED, "stopped");
    assert_string_equal(f->s->asked, "abcdefgh|");
    assert_int_equal(f->books.retries, 0);
    assert_null(f->said && strstr(f->said, "asked again"));
    // What went well before that is the answer.
    f->s->call[1].fails = NULL;
    ask(f);
    only_failed(f, "");
}

// Memory and cancelling are no failures of rows, unless the reward could name some.
static void what_is_no_failure_of_rows_ends_it(void **state) {
    struct fixture *f = *state;
    static const rlhf_status status[] = {RLHF_E_NOMEM, RLHF_E_CANCELLED};
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    for (int k = 0; k < 2; k++) {
        f->s->call[k].status = status[k];
        refused(f, status[k], "score(), phase 3: no");
    }
    assert_int_equal(f->books.failures, 0);
    // A call that failed whole has said nothing of any row, whatever it marked.
    f->s->n = 0;
    f->s->call[0] = (struct call){.status = RLHF_E_IO, .fails = "b"};
    ask(f);
    only_failed(f, "abcdefgh");
    // Marks come first where it returned.
    f->s->n = 0;
    f->s->call[0] = (struct call){.fails = "b", .words = "no line"};
    ask(f);
    only_failed(f, "b");
    logged(f, "score(), phase 3: no line (row 1 of 8)");
}

// ---- state ----

// After a call that failed whole the reward is what it was before it; rows that failed leave it.
static void the_state_goes_back_where_a_call_failed(void **state) {
    struct fixture *f = *state;
    f->plugin.desc.state_version = 1;
    f->s->calls = 5;
    f->s->call[0].fails = "b";
    f->s->call[1].status = RLHF_E_IO;
    f->s->call[2].fails = "b";
    ask(f);
    // Call 1 failed at a row and counts, call 2 as a whole, and what it was before that comes back.
    assert_string_equal(f->s->asked, ">abcdefgh|>ab|<>ab|>ab|");
    assert_int_equal(f->s->calls, 8);
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    f->s->n = 0;
    f->s->asked[0] = 0;
    f->s->call[0] = (struct call){.status = RLHF_E_IO};
    ask(f);
    assert_string_equal(f->s->asked, "abcdefgh|");
    only_failed(f, "abcdefgh");
}

// ---- metrics ----

// The mean is over the calls that report, by the rows that each scored.
static void metrics_are_of_the_calls_that_report(void **state) {
    struct fixture *f = *state;
    alone(f);
    f->s->call[0] = (struct call){.fails = "bc", .metric = 1};
    f->s->call[1] = (struct call){.fails = "c"};
    f->s->call[2] = (struct call){.metric = 8};
    ask(f);
    assert_string_equal(f->s->asked, "abcdefgh|bc|c|");
    assert_int_equal(f->metrics, 1);
    assert_true(fabs(f->metric - (6 * 1 + 1 * 8) / 7.0) < 1e-12);
}

// What a call reports that scores nothing is forgotten, also when a later one reports nothing.
static void what_a_failed_call_reports_is_forgotten(void **state) {
    struct fixture *f = *state;
    f->s->call[0] = (struct call){.status = RLHF_E_IO, .metric = 9};
    ask(f);
    assert_int_equal(f->metrics, 0);
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    alone(f);
    f->s->n = 0;
    f->s->call[0] = (struct call){.fails = "b", .metric = ODD_MEAN};
    ask(f);
    assert_int_equal(f->metrics, 1);
    assert_true(f->metric == ODD_MEAN); // as it was reported, not a mean
}

// ---- what was asked before ----

// What early calls took, failed at and reported is that of the batch.
static void early_calls_count(void **state) {
    struct fixture *f = *state;
    alone(f);
    f->s->pause = PAUSE_MS;
    f->s->call[0] = (struct call){.fails = "b", .metric = 2};
    f->s->call[1] = (struct call){.fails = "c", .metric = 7};
    f->s->call[2] = (struct call){.metric = 4};
    ask_early(f, 0, 2);
    ask_early(f, 2, 6);
    ask_with(f, &f->early);
    assert_string_equal(f->s->asked, "ab|cdef|gh|bc|");
    only_failed(f, "");
    assert_true(f->books.seconds >= 4 * 0.95e-3 * PAUSE_MS);
    assert_int_equal(f->books.failures, 2);
    assert_int_equal(f->books.retries, 2);
    assert_int_equal(f->metrics, 1);
    assert_true(fabs(f->metric - (1 * 2 + 3 * 7 + 2 * 4) / 6.0) < 1e-12);
    // The first failure is told with the rows, others at once.
    logged(f, "it could not score row 0");
    assert_int_equal(lines_of(f->said), 2);
    logged(f, "it could not score row 1 (rows 1, 2 of 8); rewards.on_failure says retry");
}

// Early calls went well and the others do not: it is those that are told of.
static void a_failure_after_early_calls_is_told(void **state) {
    struct fixture *f = *state;
    alone(f);
    f->plugin.ops.reward.flags |= RLHF_REWARD_PER_TOKEN;
    f->s->call[1].fails = "g";
    ask_early(f, 0, 6);
    ask_with(f, &f->early);
    assert_string_equal(f->s->asked, "abcdef|gh|g|");
    only_failed(f, "");
    logged(f, "score(), phase 3: it could not score row 0 (row 6 of 8)");
    assert_int_equal(f->books.failures, 1);
}

// All that there is was said early: nothing is asked.
static void nothing_is_asked_twice(void **state) {
    struct fixture *f = *state;
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    f->s->call[0] = (struct call){.fails = "b", .odd = "e"};
    ask_early(f, 0, ROWS);
    ask_with(f, &f->early);
    assert_string_equal(f->s->asked, "abcdefgh|");
    assert_true(isnan(f->answer.seq[4]));
    f->answer.seq[4] = 5;
    only_failed(f, "b");
    assert_int_equal(f->books.failures, 1);
    assert_int_equal(f->books.retries, 0);
}

// Where memory is short early, or the user stops, the batch is asked about as if nothing had been.
static void no_failure_of_rows_leaves_them_unknown(void **state) {
    struct fixture *f = *state;
    f->s->call[0].status = RLHF_E_NOMEM;
    ask_early(f, 0, 4);
    ask_early(f, 4, 8);
    ask_with(f, &f->early);
    assert_string_equal(f->s->asked, "abcd|efgh|abcd|");
    only_failed(f, "");
    assert_int_equal(f->books.failures, 0);
}

// A part of the early rows that ended its process is looked at at once.
static void early_rows_are_parted(void **state) {
    struct fixture *f = *state;
    alone(f);
    f->plugin.outside = &f->outside;
    f->rules.on_failure = RLHF__FAILURE_DROP;
    f->s->kills = "b";
    ask_early(f, 0, 4);
    ask_with(f, &f->early);
    assert_string_equal(f->s->asked, "abcd|a|b|cd|efgh|");
    only_failed(f, "b");
    assert_int_equal(f->books.failures, 1);
    assert_int_equal(f->books.retries, 4);
    f->plugin.outside = NULL;
}

// ---- rows that end its process ----

struct parts {
    const char *kills, *asked;
    int32_t late, liar, alone;
};

// What is believed of where it ended: as long as it turns out true.
static void rows_that_end_it_are_found(void **state) {
    struct fixture *f = *state;
    static const struct parts how[] = {{"c", "abcdefgh|ab|c|defgh|", 0, 0, 1},
                                       {"a", "abcdefgh|a|bcdefgh|", 0, 0, 1},
                                       {"h", "abcdefgh|abcdefg|h|", 0, 0, 1},
                                       {"bf", "abcdefgh|a|b|cdefgh|cde|f|gh|", 0, 0, 1},
                                       {"c", "abcdefgh|ab|cd|efgh|", 0, 0, 0},
                                       {"c", "abcdefgh|abcd|ab|cd|c|d|efgh|", 1, 0, 1},
                                       {"c", "abcdefgh|abcd|ab|cd|efgh|", 1, 0, 0},
                                       {"g", "abcdefgh|a|bcdefgh|bcd|efgh|ef|gh|g|h|", 0, 1, 1}};
    f->plugin.outside = &f->outside;
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    for (size_t k = 0; k < CHECK_COUNT(how); k++) {
        f->plugin.ops.reward.flags = how[k].alone ? RLHF_REWARD_ROW_ALONE : 0;
        f->s->kills = how[k].kills;
        f->s->late = how[k].late;
        f->s->liar = how[k].liar;
        f->s->asked[0] = 0;
        f->books = (struct rlhf__reward_books){0};
        ask(f);
        assert_string_equal(f->s->asked, how[k].asked);
        only_failed(f, how[k].alone ? how[k].kills : "cd");
        assert_int_equal(f->books.failures, how[k].alone ? strlen(how[k].kills) : 2);
        assert_int_equal(f->books.retries,
                         strlen(how[k].asked) - ROWS - f->s->n); // rows behind the first call
        f->s->n = 0;
    }
    f->plugin.outside = NULL;
}

// With retry that is for the last try, and never for a reward whose state the parts would change.
static void they_are_looked_for_when_it_counts(void **state) {
    struct fixture *f = *state;
    f->plugin.outside = &f->outside;
    alone(f);
    f->rules.retries = 2;
    f->s->kills = "c";
    refused(f, RLHF_E_IO, "(row 2 of 8)");
    assert_string_equal(f->s->asked, "abcdefgh|abcdefgh|abcdefgh|ab|c|defgh|");
    f->s->asked[0] = 0;
    f->rules.retries = 1;
    f->plugin.desc.state_version = 1;
    refused(f, RLHF_E_IO, "(all 8 rows)");
    assert_string_equal(f->s->asked, ">abcdefgh|<>abcdefgh|");
    // Stopping has no use for it.
    f->plugin.desc.state_version = 0;
    f->s->asked[0] = 0;
    f->rules.on_failure = RLHF__FAILURE_STOP;
    refused(f, RLHF_E_IO, "(all 8 rows)");
    assert_string_equal(f->s->asked, "abcdefgh|");
    f->plugin.outside = NULL;
}

// A single group cannot be parted, and it is not looked for longer than it takes to end it sixteen
// times.
static void looking_for_them_has_bounds(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    enum { MANY = 40 };
    struct rlhf__reward_rows many = {0};
    struct rlhf__reward_answer answer = {0};
    uint32_t pick[MANY];
    f->plugin.outside = &f->outside;
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    f->s->kills = "a";
    memset(f->group, 0, sizeof f->group);
    ask(f);
    only_failed(f, "abcdefgh");
    assert_string_equal(f->s->asked, "abcdefgh|");
    assert_null(strstr(f->said, "in parts"));
    // Forty times the row that ends it.
    alone(f);
    f->s->n = 0;
    memset(pick, 0, sizeof pick);
    check_ok(rlhf__reward_rows_pick(&many, &f->rows, pick, MANY, &err), &err);
    check_ok(rlhf__reward_answer_init(&answer, &many, &err), &err);
    check_ok(rlhf__reward_ask(&f->q, NULL, &many, &answer, &err), &err);
    assert_int_equal(f->s->n, 16);
    assert_int_equal(rlhf__marks_count(answer.failed, MANY), MANY);
    rlhf__reward_answer_finish(&answer);
    rlhf__reward_rows_finish(&many);
    f->plugin.outside = NULL;
}

// What ends it once and not again has failed nowhere, and nothing is told of it but the parting.
static void one_end_leaves_nothing(void **state) {
    struct fixture *f = *state;
    f->plugin.outside = &f->outside;
    alone(f);
    f->rules.on_failure = RLHF__FAILURE_DROP;
    f->s->kills = "c";
    f->s->once = 1;
    ask(f);
    assert_string_equal(f->s->asked, "abcdefgh|ab|c|defgh|");
    only_failed(f, "");
    logged(f, "it ended; asked again in parts");
    assert_null(strstr(f->said, "rewards.on_failure says"));
    f->s->kills = "c";
    ask_early(f, 0, ROWS);
    assert_int_equal(f->early.why.code, 0);
    struct rlhf__error why, err;
    int32_t whole = 1;
    f->s->kills = "c";
    f->q.narrows = 1;
    check_ok(
        rlhf__reward_narrow(&f->q, &f->early.metrics, &f->rows, &f->answer, &why, &whole, &err),
        &err);
    assert_int_equal(why.code, 0);
    assert_int_equal(whole, 0);
    f->plugin.outside = NULL;
}

// Looking for them ends with the time there is for it, and rows nobody knows of have failed.
static void looking_for_them_takes_no_longer(void **state) {
    struct fixture *f = *state;
    f->plugin.outside = &f->outside;
    alone(f);
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    f->rules.timeout_s = 1e-300;
    f->s->kills = "c";
    ask(f);
    only_failed(f, "abcdefgh");
    assert_string_equal(f->s->asked, "abcdefgh|");
    f->plugin.outside = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(only_what_failed_is_asked_again),
        TEST(a_group_is_asked_again_whole),
        TEST(numbers_are_asked_for_again),
        TEST(a_reason_is_of_its_try),
        TEST(tries_have_an_end),
        TEST(stopping_ends_the_tries),
        TEST(what_is_no_failure_of_rows_ends_it),
        TEST(the_state_goes_back_where_a_call_failed),
        TEST(metrics_are_of_the_calls_that_report),
        TEST(what_a_failed_call_reports_is_forgotten),
        TEST(early_calls_count),
        TEST(a_failure_after_early_calls_is_told),
        TEST(nothing_is_asked_twice),
        TEST(no_failure_of_rows_leaves_them_unknown),
        TEST(early_rows_are_parted),
        TEST(rows_that_end_it_are_found),
        TEST(they_are_looked_for_when_it_counts),
        TEST(looking_for_them_has_bounds),
        TEST(one_end_leaves_nothing),
        TEST(looking_for_them_takes_no_longer),
    };
    return cmocka_run_group_tests_name("reward_ask", tests, NULL, NULL);
}
