// test_http.c: http.so with a server that answers correctly, late, wrongly, or not at all.
#include "plugin/row_service.h"
#include "rewards/fixture.h"
#include "rewards/http_score.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

// How the server reacts to one request. Requests after the end of the list get the last reaction.
struct script {
    int status;
    int how; // enum http_how
    const char *body, *headers;
};

struct service {
    const struct script *step; // NULL: answers with scores
    int steps;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int wanted, arrived, answered; // wanted > 0: that many requests must arrive at the same time
    char seen[8][4096];            // heads and bodies of the first requests
    char line[8][1024];
};

static struct reward r;
static struct texts t;
static struct service service = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                 .moved = PTHREAD_COND_INITIALIZER};
static struct http_server *server;
static rlhf_limits limits = {.size = sizeof limits, .timeout_s = 60};

// Delays the answer to this request until `wanted` requests have arrived, and until requests that
// came after it have been answered. So the answers are sent in reverse order. If the client sends
// one request at a time, the delay ends after half a minute.
static int take_turn(struct service *s, int number) {
    struct timespec until;
    int in_time = 1;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    pthread_mutex_lock(&s->lock);
    s->arrived++;
    pthread_cond_broadcast(&s->moved);
    while (in_time && (s->arrived < s->wanted || s->answered < s->wanted - 1 - number))
        in_time = pthread_cond_timedwait(&s->moved, &s->lock, &until) == 0;
    s->answered++;
    pthread_cond_broadcast(&s->moved);
    pthread_mutex_unlock(&s->lock);
    return in_time;
}

static void serve(void *context, const struct http_request *q, struct http_reply *reply) {
    struct service *s = context;
    if (q->number < 8) {
        snprintf(s->seen[q->number], sizeof s->seen[0], "%s%s", q->head, q->body);
        snprintf(s->line[q->number], sizeof s->line[0], "%s", q->line);
    }
    if (s->wanted && !take_turn(s, q->number)) reply->status = 400;
    if (!s->step) {
        reply->body = http_score(q);
        if (!reply->body) reply->status = 400;
        return;
    }
    const struct script *step = &s->step[q->number < s->steps ? q->number : s->steps - 1];
    if (step->status) reply->status = step->status;
    reply->how = step->how;
    if (step->headers) snprintf(reply->headers, sizeof reply->headers, "%s", step->headers);
    reply->body = step->body ? strdup(step->body) : http_score(q);
}

static rlhf_status try_path(const char *path, const char *options) {
    char all[1024];
    snprintf(all, sizeof all, "url=http://127.0.0.1:%d%s%s%s", http_server_port(server), path,
             *options ? "," : "", options);
    return reward_try(&r, "http.so", all);
}

static void open_service(const struct script *step, int steps, const char *options) {
    service.step = step;
    service.steps = steps;
    service.wanted = service.arrived = service.answered = 0;
    memset(service.seen, 0, sizeof service.seen);
    server = http_server_open(serve, &service);
    assert_non_null(server);
    if (try_path("/score", options) != RLHF_OK) fail_msg("%s", r.host.fail_text);
}

static void close_service(void) {
    reward_close(&r);
    http_server_close(server);
    server = NULL;
}

// Makes n rows whose responses are 1, 2, ... bytes long.
static void rows(uint32_t n) {
    static const char text[] = "abcdefghijklmnopqrstuvwxyz";
    memset(&t, 0, sizeof t);
    for (uint32_t i = 0; i < n; i++)
        texts_add(&t, "It was ", 7, text, i + 1);
}

static rlhf_status score(void) {
    r.host.fail_text[0] = 0;
    return texts_score(&r, &t, 0, t.n);
}

static void expect_scores(void) {
    const rlhf_status st = score();
    if (st != RLHF_OK) fail_msg("%d: %s", st, r.host.fail_text);
    for (uint32_t i = 0; i < t.n; i++)
        assert_true(t.seq[i] == (float)(i + 1) && !t.failed[i]);
}

static double metric(const char *name) {
    double value = -1;
    if (!rlhf_test_metric(&r.host, name, &value)) fail_msg("there is no metric %s", name);
    return value;
}

static const char *body_of(int number) { return strstr(service.seen[number], "\r\n\r\n") + 4; }

// ---- requests and answers ----

static void rows_are_paid(void **state) {
    (void)state;
    open_service(NULL, 0, "batch=2");
    rows(5);
    t.meta[1] = (rlhf_str){"{\"right\": true}", 15};
    t.meta[3] = (rlhf_str){"{\"right\": false}", 16};
    expect_scores();
    assert_int_equal(http_server_requests(server), 3);
    assert_true(metric("half") == 1.5 && metric("requests") == 3 && metric("repeats") == 0);
    assert_true(metric("paused") == 0);
    const uint8_t verdict[] = {RLHF_VERDICT_NONE, RLHF_VERDICT_RIGHT, RLHF_VERDICT_NONE,
                               RLHF_VERDICT_WRONG, RLHF_VERDICT_NONE};
    assert_memory_equal(t.verdict, verdict, 5);
    expect_scores(); // the same phase continues
    assert_true(metric("requests") == 6);
    assert_int_equal(texts_score(&r, &t, 0, 0), RLHF_OK);
    close_service();
}

static void a_request(void **state) {
    (void)state;
    open_service(NULL, 0, "ids=true,concurrency=1");
    memset(&t, 0, sizeof t);
    texts_add(&t, "a\"", 2, "\xff\xc3\xa9\n\x01\\", 6);
    texts_add(&t, "b", 1, "", 0);
    t.meta[0] = (rlhf_str){"{\"x\": [1, 2.50]}", 16};
    assert_int_equal(score(), RLHF_OK);
    assert_string_equal(
        body_of(0),
        "{\"rows\": "
        "[\n{\"phase\":1,\"index\":0,\"prompt\":\"a\\\"\",\"response\":"
        "\"\xef\xbf\xbd\xc3\xa9\\n\\u0001"
        "\\\\\",\"finished\":false,\"prompt_ids\":[97,34],\"ids\":[255,195,169,10,1,92],\"row\":"
        "{\"x\": [1, "
        "2.50]}}\n,{\"phase\":1,\"index\":1,\"prompt\":\"b\",\"response\":\"\",\"finished\":false,"
        "\"prompt_ids\":[98],\"ids\":[],\"row\":null}\n]}");
    assert_string_equal(service.line[0], "POST /score HTTP/1.1");
    assert_non_null(strstr(service.seen[0], "\r\nContent-Type: application/json\r\n"));
    assert_null(strstr(service.seen[0], "Expect:"));
    close_service();
}

static void openrlhf(void **state) {
    (void)state;
    static const struct script step = {
        .body = "{\"rewards\": [0.5, 2], \"scores\": [7, 7], \"extra_logs\": {\"kept\": [1, 4], "
                "\"one\": 3}}"};
    open_service(&step, 1, "form=openrlhf,label=answer");
    rows(2);
    t.meta[0] = (rlhf_str){"{\"answer\": \"4\"}", 15};
    static const char numbers[] = "{\"id\": \"\\\\\\\"1\", \"n\": 12345678901234567890, "
                                  "\"answer\": {\"n\": [5, -98765432109876543210]}}";
    t.meta[1] = (rlhf_str){numbers, sizeof numbers - 1};
    assert_int_equal(score(), RLHF_OK);
    assert_true(t.seq[0] == 0.5f && t.seq[1] == 2 && metric("kept") == 2.5 && metric("one") == 3);
    assert_string_equal(body_of(0),
                        "{\"query\": [\"It was a\", \"It was ab\"], \"prompts\": [\"It was \", "
                        "\"It was \"], \"labels\": [\"4\", {\"n\": [5, -98765432109876543210]}]}");
    t.meta[1] = (rlhf_str){"{\"gold\": 5}", 11};
    assert_int_equal(score(), RLHF_E_INVALID);
    assert_string_equal(r.host.fail_text, "the data row has no \"answer\", which label names");
    assert_int_equal(reward_check_row(&r, t.meta[1]), RLHF_E_INVALID);
    assert_int_equal(reward_check_row(&r, t.meta[0]), RLHF_OK);
    assert_int_equal(reward_check_row(&r, (rlhf_str){NULL, 0}), RLHF_E_INVALID);
    assert_string_equal(r.host.fail_text,
                        "the prompt has no data row, so no \"answer\", which label names");
    close_service();
    static const struct script one = {.body = "{\"rewards\": 3}"};
    open_service(&one, 1, "form=openrlhf");
    rows(1);
    assert_int_equal(score(), RLHF_OK);
    assert_true(t.seq[0] == 3);
    assert_non_null(strstr(body_of(0), "\"labels\": [\"\"]"));
    close_service();
}

// ---- one connection pool, several simultaneous requests ----

static void several_at_a_time(void **state) {
    (void)state;
    open_service(NULL, 0, "batch=1,concurrency=4,probe=false");
    rows(4);
    service.wanted = 4; // all four must arrive, and are answered from the last to the first
    expect_scores();
    service.wanted = 0;
    for (int k = 0; k < 3; k++) {
        rows(12);
        expect_scores();
    }
    assert_true(http_server_connections(server) <= 4);
    close_service();
}

static void rewards_do_not_depend_on_the_split(void **state) {
    (void)state;
    static const char *const splits[] = {"batch=1,concurrency=7", "batch=5,concurrency=2",
                                         "batch=100"};
    double half = 0;
    for (int k = 0; k < 3; k++) {
        open_service(NULL, 0, splits[k]);
        rows(20);
        expect_scores();
        if (k) assert_true(metric("half") == half);
        half = metric("half");
        close_service();
    }
}

// ---- refusals ----

static void options_that_are_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"url=ftp://host/x", "url does not begin with http:// or https://, which are allowed"},
        {"url=host/x", "url does not begin with http:// or https://, which are allowed"},
        {"url=", "url does not begin with http:// or https://, which are allowed"},
        {"url=http://", "url has no host; expected https://HOST/PATH"},
        {"url=http:///score", "url has no host; expected https://HOST/PATH"},
        {"url=https://:8000/score", "url has no host; expected https://HOST/PATH"},
        {"url=https://?x", "url has no host; expected https://HOST/PATH"},
        {"url=http://host:99999/", "url is not valid: Port number was not a decimal number between "
                                   "0 and 65535"},
        {"url=http://me:secret@host/x",
         "url has a user or a password in it, which the run's files would show: put an "
         "Authorization header into an environment variable, and its name into header_env"},
        {"url=https://host/,ca=/nowhere.pem",
         "ca=/nowhere.pem cannot be read: No such file or directory"},
        {"url=http://host/,header_env=RLHF_TEST_NONE",
         "header_env=RLHF_TEST_NONE: this environment variable is not set"},
        {"url=http://host/,header_env=RLHF_TEST_BAD",
         "header_env=RLHF_TEST_BAD: the variable's value is not a header of one line; expected "
         "\"Name: value\""}};
    static const char *const headers[] = {"secret", ": secret", "A b: secret",
                                          "A: ", "A: secret\r\nB: c"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t k = 0; k < sizeof headers / sizeof *headers; k++) {
            setenv("RLHF_TEST_BAD", headers[k], 1);
            assert_int_equal(reward_try(&r, "http.so", bad[i][0]), RLHF_E_INVALID);
            assert_string_equal(r.host.fail_text, bad[i][1]);
            assert_int_equal(r.host.live, 0);
        }
}

static int said_anywhere(const char *text) {
    return rlhf_test_logged(&r.host, text) || strstr(r.host.fail_text, text) != NULL;
}

static void the_header_is_sent_and_never_shown(void **state) {
    (void)state;
    static const struct script refuse = {.status = 401, .body = "who are you"};
    setenv("RLHF_TEST_HEADER", "Authorization: Bearer hush-hush", 1);
    open_service(&refuse, 1, "header_env=RLHF_TEST_HEADER");
    rows(1);
    assert_int_equal(score(), RLHF_E_IO);
    assert_non_null(strstr(service.seen[0], "\r\nAuthorization: Bearer hush-hush\r\n"));
    assert_non_null(strstr(r.host.fail_text, "it answered with status 401: \"who are you\""));
    assert_false(said_anywhere("hush"));
    close_service();
    // Warns about a header that is sent unencrypted.
    assert_int_equal(reward_try(&r, "http.so",
                                "url=http://example.invalid/,probe=false,"
                                "header_env=RLHF_TEST_HEADER"),
                     RLHF_OK);
    assert_true(rlhf_test_logged(&r.host, "is sent over http") && !said_anywhere("hush"));
    reward_close(&r);
}

// ---- invalid answers ----

static void answers_that_fail(void **state) {
    (void)state;
    static const struct {
        struct script step;
        const char *options, *says;
    } all[] = {
        {{.status = 404, .body = "no\x1b[2J"}, "", "it answered with status 404: \"no\\x1b[2J\""},
        {{.status = 403, .body = ""},
         "",
         "status 403 (header_env names a variable with a header) and nothing more"},
        {{.body = "[1]"}, "", "the answer has 1 rewards for 2 rows"},
        {{.body = "[1, 2, 3]"}, "", "the answer has 3 rewards for 2 rows"},
        {{.body = "[1, NaN]"}, "", "the answer is not JSON ("},
        {{.body = "<html>502</html>"}, "", ": \"<html>502</html>\""},
        {{.body = ""}, "", "the answer is empty"},
        {{.body = "7"}, "", "the answer is a number; expected a list of 2 rewards"},
        {{.body = "{\"rewards\": [1]}"}, "form=openrlhf", "has 1 rewards for 2 rows"},
        {{.body = "[1, 2]"}, "form=openrlhf", "\"rewards\" of the answer is missing"},
        {{.body = "[1, 2]", .how = HTTP_HALF}, "patience_s=0.2", "for patience_s=0.2"},
        {{.body = "[1, 2]", .how = HTTP_DROPPED}, "patience_s=0.2", "for patience_s=0.2"},
        {{.body = "[1111111111, 22222222]", .how = HTTP_ENDLESS},
         "max_answer_mib=1",
         "its answer is longer than max_answer_mib=1"},
        {{.status = 500, .body = "oops"},
         "repeats=2,backoff_s=0.01",
         "it answered with status 500: \"oops\""},
        {{.status = 503, .body = "later"},
         "patience_s=0.2",
         "status 503: \"later\", for patience_s"},
        {{.status = 429, .body = "", .headers = "Retry-After: 100000\r\n"},
         "patience_s=0.2",
         "status 429 and nothing more, for patience_s=0.2"},
        {{.status = 302, .body = "", .headers = "Location: /there?key=hush\r\n"},
         "",
         "/there\" with status 302, and redirects=0"},
        {{.status = 302, .body = "", .headers = "Location: /there\r\n"},
         "redirects=2",
         "and redirects=2"},
        {{.status = 302, .body = "", .headers = "Location: http://127.0.0.2/\r\n"},
         "redirects=2",
         "it redirects to \"http://127.0.0.2/\": only redirects within http://127.0.0.1:"},
        {{.status = 303, .body = "", .headers = "Location: /there\r\n"},
         "redirects=2",
         "it answered with status 303, which is not a valid answer to a POST"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        open_service(&all[i].step, 1, all[i].options);
        rows(2);
        assert_int_equal(score(), RLHF_E_IO);
        if (!strstr(r.host.fail_text, all[i].says))
            fail_msg("\"%s\" does not say \"%s\"", r.host.fail_text, all[i].says);
        assert_null(strstr(r.host.fail_text, "hush"));
        assert_null(strstr(r.host.fail_text, "of 2 rows"));
        assert_true(t.failed[0] && t.failed[1]);
        close_service();
    }
}

static void some_rows_fail(void **state) {
    (void)state;
    static const struct script steps[] = {
        {.body = "[1, {\"reward\": \"x\"}]"},
        {.status = 400, .body = "no"},
        {.body = "[null, {\"reward\": 6, \"verdict\": \"right\"}]"},
        {.body = "[{\"reward\": 7, \"verdict\": 1}]"}};
    open_service(steps, 4, "batch=2,concurrency=1");
    rows(7);
    assert_int_equal(score(), RLHF_OK);
    const uint8_t failed[] = {0, 1, 1, 1, 0, 0, 1};
    assert_memory_equal(t.failed, failed, 7);
    assert_true(t.seq[0] == 1 && t.seq[4] != t.seq[4] && t.seq[5] == 6);
    assert_int_equal(t.verdict[5], RLHF_VERDICT_RIGHT);
    assert_non_null(strstr(r.host.fail_text,
                           "entry 1 of the answer: its \"reward\" is a string, not a number"));
    assert_null(strstr(r.host.fail_text, "(row 1"));
    close_service();
}

static void nobody_is_there(void **state) {
    (void)state;
    char options[128];
    snprintf(options, sizeof options, "url=http://127.0.0.1:%d/score,patience_s=0.2",
             http_free_port());
    assert_int_equal(reward_try(&r, "http.so", options), RLHF_OK);
    assert_true(rlhf_test_logged(&r.host, "/score does not answer yet: "));
    rows(3);
    assert_int_equal(score(), RLHF_E_IO);
    assert_non_null(strstr(r.host.fail_text, "for patience_s=0.2"));
    assert_true(metric("paused") >= 0.2);
    reward_close(&r);
}

static void too_slow(void **state) {
    (void)state;
    static const struct script step = {.how = HTTP_SILENT};
    limits.timeout_s = 0.3;
    open_service(&step, 1, "");
    limits.timeout_s = 60;
    rows(1);
    assert_int_equal(score(), RLHF_E_IO);
    assert_non_null(strstr(r.host.fail_text, "it did not answer within rewards.timeout_s=0.3"));
    close_service();
}

// ---- retries ----

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void asked_again(void **state) {
    (void)state;
    static const struct script steps[] = {
        {.how = HTTP_DROPPED},           {.how = HTTP_HALF},
        {.status = 500, .body = ""},     {.status = 503, .body = ""},
        {.status = 500, .body = "oops"}, {.status = 200}};
    open_service(steps, 6, "backoff_s=0.01");
    rows(3);
    expect_scores();
    assert_true(metric("repeats") == 5 && metric("requests") == 6);
    close_service();
}

static void when_the_service_says(void **state) {
    (void)state;
    static const struct script steps[] = {
        {.status = 429, .body = "", .headers = "Retry-After: 1\r\n"}, {.status = 200}};
    open_service(steps, 2, "backoff_s=0.01,backoff_max_s=0.01");
    rows(3);
    const double began = seconds();
    expect_scores();
    assert_true(seconds() - began >= 1);
    assert_true(metric("paused") >= 1 && metric("repeats") == 1);
    close_service();
}

static void redirected(void **state) {
    (void)state;
    static const struct script steps[] = {
        {.status = 307, .body = "", .headers = "Location: /v2/score\r\n"}, {.status = 200}};
    open_service(steps, 2, "redirects=1");
    rows(3);
    expect_scores();
    assert_string_equal(service.line[1], "POST /v2/score HTTP/1.1");
    assert_string_equal(body_of(0), body_of(1));
    close_service();
}

// ---- Ctrl-C ----

static atomic_int polls;
static int32_t third_poll(const rlhf_host *host) {
    (void)host;
    return atomic_fetch_add(&polls, 1) >= 3;
}

// The service is down or silent for longer than any test takes.
static void cancelled(void **state) {
    (void)state;
    static const struct script steps[] = {{.status = 503, .body = ""}, {.how = HTTP_SILENT}};
    for (int k = 0; k < 2; k++) {
        open_service(&steps[k], 1, "patience_s=100000,backoff_s=1000,backoff_max_s=1000");
        rows(2);
        polls = 0;
        r.host.table.cancelled = third_poll;
        assert_int_equal(score(), RLHF_E_CANCELLED);
        close_service();
    }
}

// ---- memory ----

static void out_of_memory(void **state) {
    (void)state;
    open_service(NULL, 0, "batch=2");
    rows(5);
    int failures = 0;
    for (int n = 1;; n++) {
        memset(t.failed, 0, sizeof t.failed);
        rlhf_test_fail_alloc(&r.host, n, 1);
        const rlhf_status st = score();
        if (st == RLHF_OK && !t.failed[0] && !t.failed[4]) break;
        failures++;
        assert_true(st == RLHF_E_NOMEM || strstr(r.host.fail_text, "memory"));
    }
    assert_true(failures > 0);
    rlhf_test_fail_alloc(&r.host, 0, 0);
    expect_scores();
    close_service();
}

static int setup(void **state) {
    (void)state;
    static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                          "ALL_PROXY"};
    for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++)
        unsetenv(proxies[i]);
    r.limits = &limits;
    return 0;
}

int main(void) {
    r.rows = rlhf__row_service();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_paid),
        cmocka_unit_test(a_request),
        cmocka_unit_test(openrlhf),
        cmocka_unit_test(several_at_a_time),
        cmocka_unit_test(rewards_do_not_depend_on_the_split),
        cmocka_unit_test(options_that_are_refused),
        cmocka_unit_test(the_header_is_sent_and_never_shown),
        cmocka_unit_test(answers_that_fail),
        cmocka_unit_test(some_rows_fail),
        cmocka_unit_test(nobody_is_there),
        cmocka_unit_test(too_slow),
        cmocka_unit_test(asked_again),
        cmocka_unit_test(when_the_service_says),
        cmocka_unit_test(redirected),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests_name("http", tests, setup, NULL);
}
