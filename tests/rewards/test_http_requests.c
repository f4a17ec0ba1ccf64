// test_http_requests.c: requests to a service that is busy, broken or down (http/requests.h).
#include "support/check.h"
#include <rlhf/test.h>

#include "http/requests.h"
#include "rewards/http_server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST = 8 };

static struct rlhf_test_host host;
static struct http_server *server;
static struct rlhf__http_options options;
static struct rlhf__http_client client;
static char url[64];

// What the functions recorded about each request.
static struct seen {
    int written[MOST];
    int taken[MOST], lost[MOST];
    char why[RLHF__WHY]; // why the last lost request was lost
    rlhf_status write_fails, take_fails;
} seen;

// The service replies to the first `failures` attempts of a request with `status`, and to later
// attempts with a copy of the request's body.
static struct service {
    int failures, status;
    const char *only; // body of the only request that fails, NULL = all
    int skip;         // the number of requests that `together` leaves out
    atomic_int attempts[MOST], now, together;
} service;

static void serve(void *context, const struct http_request *q, struct http_reply *reply) {
    struct service *s = context;
    const int now = atomic_fetch_add(&s->now, 1) + 1;
    int most = atomic_load(&s->together);
    while (q->number >= s->skip && now > most &&
           !atomic_compare_exchange_weak(&s->together, &most, now))
        continue;
    const int at = q->len == 1 ? q->body[0] - '0' : MOST - 1;
    const int attempt = atomic_fetch_add(&s->attempts[at], 1);
    if ((!s->only || s->only[0] == q->body[0]) && attempt < s->failures) reply->status = s->status;
    reply->body = strdup(q->body);
    usleep(2000); // so that requests meet
    atomic_fetch_sub(&s->now, 1);
}

static rlhf_status write_one(void *ctx, uint32_t at, struct rlhf__bytes *body) {
    struct seen *s = ctx;
    assert_int_equal(body->len, 0);
    s->written[at]++;
    rlhf__bytes_number(body, at);
    return s->write_fails;
}

static rlhf_status take_one(void *ctx, uint32_t at, const struct rlhf__bytes *answer) {
    struct seen *s = ctx;
    s->taken[at]++;
    assert_int_equal(answer->len, 1);
    assert_int_equal(answer->data[0], '0' + (int)at);
    return s->take_fails;
}

static void lose_one(void *ctx, uint32_t at, const char *why) {
    struct seen *s = ctx;
    s->lost[at]++;
    snprintf(s->why, sizeof s->why, "%s", why);
}

static struct rlhf__requests requests(uint32_t n) {
    return (struct rlhf__requests){.client = &client,
                                   .ctx = &seen,
                                   .write = write_one,
                                   .take = take_one,
                                   .lose = lose_one,
                                   .n = n};
}

static void expect(int at, int written, int taken, int lost) {
    assert_int_equal(seen.written[at], written);
    assert_int_equal(seen.taken[at], taken);
    assert_int_equal(seen.lost[at], lost);
}

// ---- the tests ----

static void all_are_answered(void **state) {
    (void)state;
    struct rlhf__requests r = requests(MOST);
    assert_int_equal(rlhf__requests_send(&r), RLHF_OK);
    for (int at = 0; at < MOST; at++)
        expect(at, 1, 1, 0);
    assert_true(r.sent == MOST && r.repeats == 0 && r.paused == 0);
    assert_true(atomic_load(&service.together) <= 3); // concurrency
    assert_int_equal(client.n_flying, 0);
    r = requests(0);
    assert_int_equal(rlhf__requests_send(&r), RLHF_OK);
    assert_true(r.sent == 0);
}

static void a_status_5xx_is_repeated(void **state) {
    (void)state;
    service.only = "2";
    service.failures = 2;
    struct rlhf__requests r = requests(4);
    assert_int_equal(rlhf__requests_send(&r), RLHF_OK);
    for (int at = 0; at < 4; at++)
        expect(at, at == 2 ? 3 : 1, 1, 0);
    assert_true(r.sent == 6 && r.repeats == 2 && r.paused == 0);
    atomic_store(&service.attempts[2], 0);
    service.failures = 3; // one more than the option allows
    r = requests(4);
    memset(&seen, 0, sizeof seen);
    assert_int_equal(rlhf__requests_send(&r), RLHF_OK);
    for (int at = 0; at < 4; at++)
        expect(at, at == 2 ? 3 : 1, at != 2, at == 2);
    assert_string_equal(seen.why, "it answered with status 500: \"2\"");
    assert_true(r.sent == 6 && r.repeats == 2);
}

static void a_refusal_is_not_repeated(void **state) {
    (void)state;
    service.status = 400;
    service.only = "1";
    service.failures = 9;
    struct rlhf__requests r = requests(3);
    assert_int_equal(rlhf__requests_send(&r), RLHF_OK);
    for (int at = 0; at < 3; at++)
        expect(at, 1, at != 1, at == 1);
    assert_true(r.sent == 3 && r.repeats == 0);
}

static void they_wait_for_the_service(void **state) {
    (void)state;
    service.status = 503;
    service.only = "0";
    service.failures = 5;
    struct rlhf__requests r = requests(1);
    assert_int_equal(rlhf__requests_send(&r), RLHF_OK);
    expect(0, 6, 1, 0); // fails more often than `repeats` allows
    assert_true(r.sent == 6 && r.repeats == 5 && r.paused > 0);
    service.only = NULL;
    service.failures = 1;
    for (int at = 0; at < MOST; at++)
        atomic_store(&service.attempts[at], 0);
    memset(&seen, 0, sizeof seen);
    r = requests(MOST);
    assert_int_equal(rlhf__requests_send(&r), RLHF_OK);
    for (int at = 0; at < MOST; at++)
        expect(at, 2, 1, 0);
    assert_true(r.sent == 2 * MOST && r.repeats == MOST);
}

static void patience_ends(void **state) {
    (void)state;
    options.patience_s = 0.05;
    service.status = 503;
    service.failures = 1000;
    service.skip = 3; // these are sent before the first answer
    struct rlhf__requests r = requests(5);
    assert_int_equal(rlhf__requests_send(&r), RLHF_OK);
    for (int at = 0; at < 5; at++) {
        assert_int_equal(seen.lost[at], 1);
        assert_int_equal(seen.taken[at], 0);
    }
    expect(4, 0, 0, 1); // it was never sent, because three fly at the same time
    assert_non_null(strstr(seen.why, "it answered with status 503: \""));
    assert_non_null(strstr(seen.why, "\", for patience_s=0.05"));
    assert_true(r.paused >= 0.05);
    assert_int_equal(atomic_load(&service.together), 1);
}

static void a_call_is_ended(void **state) {
    (void)state;
    struct rlhf__requests r = requests(3);
    host.cancel = 1;
    assert_int_equal(rlhf__requests_send(&r), RLHF_E_CANCELLED);
    host.cancel = 0;
    assert_int_equal(r.sent, 0);
    seen.write_fails = RLHF_E_INVALID;
    assert_int_equal(rlhf__requests_send(&r), RLHF_E_INVALID);
    expect(0, 1, 0, 0);
    seen.write_fails = RLHF_OK;
    seen.take_fails = RLHF_E_NOMEM;
    assert_int_equal(rlhf__requests_send(&r), RLHF_E_NOMEM);
    assert_int_equal(seen.taken[0] + seen.taken[1] + seen.taken[2], 1);
    assert_int_equal(client.n_flying, 0); // the other two requests were dropped
}

static int setup(void **state) {
    (void)state;
    memset(&seen, 0, sizeof seen);
    memset(&service, 0, sizeof service);
    memset(&client, 0, sizeof client);
    service.status = 500;
    rlhf_test_init(&host, 1);
    server = http_server_open(serve, &service);
    if (!server) return -1;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", http_server_port(server));
    options = (struct rlhf__http_options){.url = url,
                                          .concurrency = 3,
                                          .repeats = 2,
                                          .max_answer_mib = 1,
                                          .connect_timeout_s = 10,
                                          .patience_s = 60,
                                          .backoff_s = 0.001,
                                          .backoff_max_s = 0.01};
    client.host = &host.table;
    client.o = &options;
    return rlhf__http_open(&client) == RLHF_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    rlhf__http_close(&client);
    http_server_close(server);
    return host.live == 0 ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_are_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(a_status_5xx_is_repeated, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refusal_is_not_repeated, setup, teardown),
        cmocka_unit_test_setup_teardown(they_wait_for_the_service, setup, teardown),
        cmocka_unit_test_setup_teardown(patience_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_is_ended, setup, teardown),
    };
    return cmocka_run_group_tests_name("http_requests", tests, NULL, NULL);
}
