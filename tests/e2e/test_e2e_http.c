// test_e2e_http.c: runs whose rewards come from a service. One service works, one fails
// occasionally, and one is down.
#include "e2e.h"

#include "rewards/http_score.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN                                                                                        \
    "--algo grpo.so:group_size=2,kl_placement=none,kl_measure=false --policy model "               \
    "--set policy.init=random --set sampling.max_new_tokens=6 --set batch.size=8 "                 \
    "--set log.progress=off --set optim.schedule_phases=4 --prompts prompts.txt --seed 3 "

// A server, and how it treats request number n, counted from 0.
struct service {
    struct http_server *server;
    char url[64];
    atomic_int refuse_every; // n > 0: requests n - 1, 2n - 1, ... are answered with status 400
    atomic_int down;         // 1: all requests are answered with status 503
    atomic_int picky;        // n > 0: requests of n rows are answered with status 400
    atomic_int requests;
};

static struct service service;

static int rows_of(const struct http_request *q) {
    int n = 0;
    for (const char *at = q->body; (at = strstr(at, "\"response\"")) != NULL; at++)
        n++;
    return n;
}

static void serve(void *context, const struct http_request *q, struct http_reply *reply) {
    struct service *s = context;
    const int n = atomic_fetch_add(&s->requests, 1);
    if (s->down)
        reply->status = 503;
    else if (s->picky && rows_of(q) == s->picky)
        reply->status = 400;
    else if (s->refuse_every && n % s->refuse_every == s->refuse_every - 1)
        reply->status = 400;
    else
        reply->body = http_score(q);
    if (reply->status == 200 && !reply->body) reply->status = 400;
}

static int setup(void **state) {
    static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                          "ALL_PROXY"};
    for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++)
        unsetenv(proxies[i]);
    if (e2e_setup(state) != 0) return -1;
    memset(&service, 0, sizeof service);
    service.server = http_server_open(serve, &service);
    if (!service.server) return -1;
    snprintf(service.url, sizeof service.url, "url=http://127.0.0.1:%d/score",
             http_server_port(service.server));
    return 0;
}

static int teardown(void **state) {
    http_server_close(service.server);
    return e2e_teardown(state);
}

static int run(struct e2e *t, const char *options, const char *more) {
    return e2e_run(t, RUN "--reward http.so:%s%s%s %s", service.url, *options ? "," : "", options,
                   more);
}

// Three runs give the same bytes: one that is not stopped, one that is stopped and resumed, and one
// with another number of parallel requests.
static void resumed(void **state) {
    struct e2e *t = *state;
    assert_int_equal(run(t, "batch=3,concurrency=3", "--phases 4 --out a"), 0);
    json_t *m = e2e_metrics(t, "a");
    assert_true(e2e_metric(m, 0, "rewards/http/requests") == 3);
    assert_true(e2e_metric(m, 0, "rewards/http/half") == e2e_metric(m, 0, "rewards/http/mean") / 2);
    json_decref(m);
    assert_int_equal(run(t, "batch=3,concurrency=3", "--phases 2 --out b"), 0);
    assert_int_equal(e2e_run(t, "--resume b --phases 4 --set reward.0.%s", service.url), 0);
    e2e_same_tree(t, "a/checkpoints/latest/", "b/checkpoints/latest/");
}

// A run directory may come from another person. It names the URL to which prompts and responses are
// sent, and the header that is taken from the environment. So a resume requires that the user gives
// both again, or trusts the directory.
static void a_resumed_run_chooses_no_service(void **state) {
    struct e2e *t = *state;
    setenv("E2E_TOKEN", "X-Token: secret", 1);
    assert_int_equal(run(t, "header_env=E2E_TOKEN", "--phases 1 --out b"), 0);
    const int requests = service.requests;
    assert_int_equal(e2e_run(t, "--resume b --phases 2"), 2);
    e2e_says(t, "where to: reward.0.url is http://127.0.0.1:");
    e2e_says(t, "(--set reward.0.url=) or give --trust-run");
    assert_int_equal(e2e_run(t, "--resume b --phases 2 --set reward.0.%s", service.url), 2);
    e2e_says(t, "reward.0.header_env is E2E_TOKEN; ");
    assert_int_equal(service.requests, requests);
    assert_int_equal(e2e_run(t,
                             "--resume b --phases 2 --set reward.0.header_env=E2E_TOKEN "
                             "--set reward.0.%s",
                             service.url),
                     0);
    assert_int_equal(e2e_run(t, "--resume b --phases 3 --trust-run"), 0);
    // If the run directory could name another certificate authority, an attacker's certificate
    // would be accepted.
    e2e_write(t, "ca.pem", "");
    assert_int_equal(e2e_shell(t, "sed -i \"s|\\\"ca\\\": null|\\\"ca\\\": \\\"$PWD/ca.pem\\\"|\" "
                                  "b/config.json && grep -q ca.pem b/config.json"),
                     0);
    assert_int_equal(e2e_run(t,
                             "--resume b --phases 4 --set reward.0.header_env=E2E_TOKEN "
                             "--set reward.0.%s",
                             service.url),
                     2);
    e2e_says(t, "reward.0.ca is /");
}

// Requests fail repeatedly and are retried. The run gives the same bytes as a run without failures.
static void asked_again(void **state) {
    struct e2e *t = *state;
    assert_int_equal(run(t, "batch=1,concurrency=1", "--phases 3 --out a"), 0);
    service.refuse_every = 5;
    assert_int_equal(
        run(t, "batch=1,concurrency=1", "--phases 3 --set rewards.on_failure=retry --out b"), 0);
    json_t *m = e2e_metrics(t, "b");
    assert_true(e2e_metric(m, 0, "rewards/http/failures") >= 1);
    json_decref(m);
    assert_int_equal(e2e_shell(t, "cmp a/checkpoints/latest/model.safetensors "
                                  "b/checkpoints/latest/model.safetensors"),
                     0);
}

// If a service is down, the run ends after patience_s with the checkpoint of the last phase. When
// the service is back, the user can resume the run.
static void given_up(void **state) {
    struct e2e *t = *state;
    assert_int_equal(run(t, "patience_s=0.5,backoff_s=0.1", "--phases 4 --out a"), 0);
    assert_int_equal(run(t, "patience_s=0.5,backoff_s=0.1", "--phases 2 --out b"), 0);
    service.down = 1;
    assert_int_equal(e2e_run(t, "--resume b --phases 4 --trust-run"), 1);
    e2e_says(t, "reward http.so");
    e2e_says(t, "/score: it answered with status 503 and nothing more, for patience_s=0.5 (all 8 "
                "rows); rewards.on_failure says stop");
    assert_true(e2e_exists(t, "b/checkpoints/000002"));
    service.down = 0;
    assert_int_equal(e2e_run(t, "--resume b --phases 4 --trust-run"), 0);
    e2e_same_tree(t, "a/checkpoints/latest/", "b/checkpoints/latest/");
}

// Ctrl-C ends the pause between retries, which would otherwise be far too long.
static void ctrl_c_in_a_pause(void **state) {
    struct e2e *t = *state;
    service.down = 1;
    assert_int_equal(
        e2e_shell(t,
                  "\"$HOST\" " RUN "--reward http.so:%s,patience_s=1000000,backoff_s=3600,"
                  "backoff_max_s=86400 --phases 2 --out a --threads 1 >log 2>&1 & pid=$!; n=0; "
                  "while [ $n -lt 600 ] && ! grep -q 'the run waits for it' log; do sleep 0.1; "
                  "n=$((n+1)); done; kill -INT $pid; wait $pid; status=$?; cat log; exit $status",
                  service.url),
        130);
    e2e_says(t, "/score does not answer: it answered with status 503");
    e2e_says(t, "the run waits for it, at most 99999");
}

static void refused_at_the_start(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--reward http.so:url=http:///score --phases 2 --out a"), 2);
    e2e_says(t, "url has no host; expected https://HOST/PATH");
    assert_int_equal(e2e_run(t, RUN "--reward http.so --phases 2 --out a"), 2);
    e2e_says(t, "url");
    assert_int_equal(e2e_run(t, RUN "--reward http.so:url=http://x/,ca=y --phases 2 --out a"), 2);
    e2e_says(t, "the url is http, which has no certificate");
    assert_int_equal(e2e_exists(t, "a"), 0);
    assert_int_equal(e2e_run(t, RUN "--reward http.so:url=http://127.0.0.1:9/x,isolate=true "
                                    "--phases 2 --out a"),
                     2);
    e2e_says(t, "it needs the network, which is closed to it in a worker; network=true opens it");
}

// plugin check against a service reports what it could test and what it could not.
static void checked(void **state) {
    struct e2e *t = *state;
#define CHECK "plugin check http.so --set repeats=0 --set %s"
    assert_int_equal(e2e_run(t, CHECK, service.url), 0);
    e2e_says(t, "it has work done outside the process (it asks for rlhf.limits/1)");
    e2e_says(t, "score() takes ");
    e2e_says(t, "nothing found");
    assert_null(strstr(t->out, "refused"));
    assert_null(strstr(t->out, "marked"));
    service.refuse_every = 1;
    assert_int_equal(e2e_run(t, CHECK, service.url), 0);
    e2e_says(t, "it refuses rows, so their scores are not tested: score(): http://127.0.0.1:");
    e2e_says(t, "it answered with status 400");
    assert_null(strstr(t->out, "score() takes "));
    service.refuse_every = 0;
    service.picky = 3;
    assert_int_equal(e2e_run(t, CHECK " --set batch=4", service.url), 0);
    e2e_says(t, "score() marks 3 of 11 rows as failed, which are not compared; the first is row ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(resumed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_resumed_run_chooses_no_service, setup, teardown),
        cmocka_unit_test_setup_teardown(asked_again, setup, teardown),
        cmocka_unit_test_setup_teardown(given_up, setup, teardown),
        cmocka_unit_test_setup_teardown(ctrl_c_in_a_pause, setup, teardown),
        cmocka_unit_test_setup_teardown(refused_at_the_start, setup, teardown),
        cmocka_unit_test_setup_teardown(checked, setup, teardown),
    };
    return cmocka_run_group_tests_name("e2e_http", tests, NULL, NULL);
}
