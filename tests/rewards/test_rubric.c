// test_rubric.c: rubric.so with a service whose answers are good, late, huge, nonsensical or
// missing. Also tests rubric.so with programs, and that answers are recorded, and read again
// without the judge.
#include "plugin/row_service.h"
#include "rewards/fixture.h"
#include "rewards/http_server.h"
#include "rewards/many.h"

#include <jansson.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static struct reward r;
static struct texts t;
static struct http_server *server;
static rlhf_limits limits = {.size = sizeof limits, .timeout_s = 60};
static char dir[64], file[128], record[128];

// How the service answers questions about a criterion whose text contains "bad". The server's
// threads read these variables.
static const char *_Atomic answer_bad;
static atomic_int bad_how, bad_status;

static const char three[] =
    "{\"criteria\": [{\"name\": \"short\", \"ask\": \"Is it short?\", \"weight\": 3},"
    " {\"name\": \"bad\", \"ask\": \"Is it bad, unlike {row.like}?\"},"
    " {\"name\": \"gate\", \"ask\": \"Does it pass?\", \"weight\": 0, \"gate\": 0.5}]}";

static void put(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static char *completion(const char *text) {
    json_t *v = json_pack("{s:[{s:{s:s, s:s}}]}", "choices", "message", "role", "assistant",
                          "content", text);
    char *out = json_dumps(v, 0);
    json_decref(v);
    return out;
}

// The criterion "short" gives 10 minus the response's length. The criterion "gate" gives 0 to
// responses that begin with 'x'.
static void serve(void *context, const struct http_request *q, struct http_reply *reply) {
    (void)context;
    json_t *v = json_loads(q->body, 0, NULL);
    const char *text = json_string_value(
        json_object_get(json_array_get(json_object_get(v, "messages"), 0), "content"));
    const char *response = text ? strstr(text, "<response>\n") : NULL;
    char said[64];
    if (!response || strcmp(json_string_value(json_object_get(v, "model")), "judge") != 0) {
        reply->status = 400;
        reply->body = strdup("not what was expected");
    } else if (strstr(text, "Is it bad")) {
        reply->how = bad_how;
        if (bad_status) reply->status = bad_status;
        const char *answer = answer_bad;
        reply->body = answer ? strdup(answer) : completion("5");
        if (!strstr(text, "unlike this?")) reply->status = 400;
    } else if (strstr(text, "Is it short")) {
        snprintf(said, sizeof said, "It is short.\nScore: %d/10",
                 10 - (int)strcspn(response + 11, "\n"));
        reply->body = completion(said);
    } else {
        reply->body = completion(response[11] == 'x' ? "0" : "10");
    }
    json_decref(v);
}

static void rows(uint32_t n) {
    static const char text[] = "abcdefgh";
    memset(&t, 0, sizeof t);
    for (uint32_t i = 0; i < n; i++) {
        texts_add(&t, "Say", 3, text, i + 1);
        t.meta[i] = (rlhf_str){"{\"like\": \"this\"}", 16};
    }
}

static rlhf_status try_it(const char *options) {
    char all[1024];
    snprintf(all, sizeof all, "file=%s,url=http://127.0.0.1:%d/v1,model=judge,patience_s=0.2%s%s",
             file, http_server_port(server), *options ? "," : "", options);
    return reward_try(&r, "rubric.so", all);
}

static void open_it(const char *options) {
    if (try_it(options) != RLHF_OK) fail_msg("%s", r.host.fail_text);
}

static int setup(void **state) {
    (void)state;
    strcpy(dir, "/tmp/rlhf-rubric-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(file, sizeof file, "%s/rubric.json", dir);
    snprintf(record, sizeof record, "%s/answers.jsonl", dir);
    put(file, three);
    answer_bad = NULL;
    bad_how = bad_status = 0;
    limits.timeout_s = 60;
    r.limits = &limits;
    r.programs = many_programs();
    server = http_server_open(serve, NULL);
    return server ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    http_server_close(server);
    unlink(file);
    unlink(record);
    rmdir(dir);
    return 0;
}

static double metric(const char *name) {
    double value = -1;
    rlhf_test_metric(&r.host, name, &value);
    return value;
}

static void logged(const char *text) {
    char all[8192] = "";
    for (uint32_t i = 0; i < r.host.n_logs && i < RLHF_TEST_LOGS; i++) {
        if (strstr(r.host.log[i].text, text)) return;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s\n", r.host.log[i].text);
    }
    fail_msg("\"%s\" is not in: %s", text, all);
}

static void near(float got, double want) {
    if (!(fabs((double)got - want) < 1e-6)) fail_msg("%g instead of %g", (double)got, want);
}

// ---- scores ----

static void mixed(void **state) {
    (void)state;
    open_it("");
    rows(4);
    t.response[3].ptr = "xyzw";
    assert_int_equal(texts_score(&r, &t, 0, 4), RLHF_OK);
    for (int i = 0; i < 3; i++)
        near(t.seq[i], (3 * (9 - i) / 10.0 + 0.5) / 4);
    near(t.seq[3], 0); // the gate is closed
    near((float)metric("criterion_bad"), 0.5);
    near((float)metric("criterion_gate"), 0.75);
    near((float)metric("asked"), 12);
    reward_close(&r);
}

// If a criterion gets no answer, it is reported by name as lost, and the others count.
static void attacks(void **state) {
    (void)state;
    static char long_text[3 << 20];
    memset(long_text, 'a', sizeof long_text - 1);
    const struct {
        const char *answer, *why;
        int how, status, timeout;
    } all[] = {
        {"{]", "not a chat completion", 0, 0, 60},
        {"{\"choices\": []}", "not a chat completion", 0, 0, 60},
        {"{\"choices\": [{\"message\": {\"content\": \"great\"}}]}",
         "it says \"great\", which has no number; expected one number from 0 to 10 in the last "
         "line",
         0, 0, 60},
        {"{\"seed\": 18446744073709551615, \"choices\": [{\"message\": {\"content\": \"11\"}}]}",
         "it says \"11\"", 0, 0, 60},
        {"{\"choices\": [{\"message\": {\"content\": \"-1\"}}]}", "it says \"-1\"", 0, 0, 60},
        {"{\"choices\": [{\"message\": {\"content\": \"\\u0000\"}}]}", "it says", 0, 0, 60},
        {long_text, "its answer is longer than max_answer_mib", 0, 0, 60},
        {"x", "its answer is longer than max_answer_mib", HTTP_ENDLESS, 0, 60},
        {"late", "it did not answer within rewards.timeout_s=1", HTTP_SILENT, 0, 1},
        {"no", "status 401", 0, 401, 60},
        {"no", "for patience_s=0.2", HTTP_DROPPED, 0, 60}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        answer_bad = all[i].answer;
        bad_how = all[i].how;
        bad_status = all[i].status;
        limits.timeout_s = all[i].timeout;
        open_it("concurrency=1");
        rows(2);
        r.host.n_logs = 0;
        const int down = all[i].how == HTTP_DROPPED; // the questions after it are lost, too
        assert_int_equal(texts_score(&r, &t, 0, 2), down ? RLHF_E_IO : RLHF_OK);
        if (!down) near(t.seq[0], 0.9);
        if (!down) near((float)metric("lost_bad"), 2);
        if (!down) near((float)metric("lost_short"), 0);
        if (!down) logged("criterion bad: 2 questions are lost");
        logged(all[i].why);
        reward_close(&r);
    }
}

// If the question about a gate, or every question, gets no answer, the row has failed.
static void gates_are_needed(void **state) {
    (void)state;
    put(file, "{\"criteria\": [{\"name\": \"short\", \"ask\": \"Is it short?\"},"
              " {\"name\": \"bad\", \"ask\": \"Is it bad, unlike {row.like}?\", \"gate\": 0.1}]}");
    answer_bad = "none";
    open_it("");
    rows(2);
    assert_int_equal(texts_score(&r, &t, 0, 2), RLHF_E_IO);
    assert_non_null(strstr(r.host.fail_text, "2 rows are without a criterion that is a gate"));
    reward_close(&r);
}

// ---- the record ----

static void recorded(void **state) {
    (void)state;
    char options[256], dead[512];
    float first[4];
    snprintf(options, sizeof options, "record=%s", record);
    answer_bad = "none"; // the answer is lost, which is recorded, too
    open_it(options);
    rows(3);
    assert_int_equal(texts_score(&r, &t, 0, 3), RLHF_OK);
    memcpy(first, t.seq, 3 * sizeof(float));
    const int asked = http_server_requests(server);
    assert_int_equal(asked, 9);
    assert_int_equal(texts_score(&r, &t, 0, 3), RLHF_OK);
    assert_int_equal(http_server_requests(server), asked);
    reward_close(&r);
    FILE *f = fopen(record, "a"); // a process that was killed while it wrote
    fputs("{\"question\":\"0123", f);
    fclose(f);
    // without a judge, and in another order
    snprintf(dead, sizeof dead, "file=%s,url=http://127.0.0.1:%d/,model=judge,record=%s", file,
             http_free_port(), record);
    if (reward_try(&r, "rubric.so", dead) != RLHF_OK) fail_msg("%s", r.host.fail_text);
    assert_int_equal(texts_score(&r, &t, 1, 2), RLHF_OK);
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_OK);
    assert_memory_equal(t.seq, first, 3 * sizeof(float));
    reward_close(&r);
    put(record, "{\"question\":\"01\"}\n");
    if (reward_try(&r, "rubric.so", dead) != RLHF_OK) fail_msg("%s", r.host.fail_text);
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_E_INVALID);
    assert_non_null(strstr(r.host.fail_text, "answers.jsonl:1: it is not a recorded answer"));
    reward_close(&r);
}

// If several rows have the same texts, the judge gets only one question.
static void asked_once(void **state) {
    (void)state;
    open_it("");
    rows(1);
    for (int k = 0; k < 5; k++) {
        texts_add(&t, "Say", 3, "a", 1);
        t.meta[t.n - 1] = t.meta[0];
    }
    assert_int_equal(texts_score(&r, &t, 0, t.n), RLHF_OK);
    assert_int_equal(http_server_requests(server), 3);
    for (uint32_t i = 1; i < t.n; i++)
        assert_true(t.seq[i] == t.seq[0]);
    reward_close(&r);
}

// ---- programs ----

static void programs(void **state) {
    (void)state;
    static const struct {
        const char *code, *why;
    } all[] = {{"0: pass", NULL},
               {"1: sys.exit(3)", "ended with status 3"},
               {"1: print(\"}\",flush=True)", "it answered \"}\": it has no \"ask\""},
               {"1: print(\"x\"*(3<<20),flush=True)", "the line is longer than 1 MiB"},
               {"1: time.sleep(60)", "did not answer within 10 s"},
               {"1: print(json.dumps({'ask': q['ask'], 'score': 10**22}), flush=True); continue",
                "it says \"1e+22\""}};
    char script[128], text[1024], options[512];
    snprintf(script, sizeof script, "%s/judge.py", dir);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        snprintf(text, sizeof text,
                 "import json, sys, time\nfor line in sys.stdin:\n    q = json.loads(line)\n"
                 "    if q['criterion'] == 'bad' and %s\n"
                 "    print(json.dumps({'ask': q['ask'], 'score': 8}), flush=True)\n",
                 all[i].code);
        put(script, text);
        limits.timeout_s = i == 4 ? 10 : 60;
        snprintf(options, sizeof options, "file=%s,command=python3 %s", file, script);
        if (reward_try(&r, "rubric.so", options) != RLHF_OK) fail_msg("%s", r.host.fail_text);
        rows(3);
        r.host.n_logs = 0;
        assert_int_equal(texts_score(&r, &t, 0, 3), RLHF_OK);
        near(t.seq[2], 0.8);
        near((float)metric("lost_bad"), all[i].why ? 3 : 0);
        near((float)metric("lost_gate"), 0);
        if (all[i].why) logged(all[i].why);
        reward_close(&r);
    }
    unlink(script);
}

// ---- refusals ----

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } all[] = {
        {"[]", "it is not a JSON object"},
        {"{\"criteria\": []}", "\"criteria\" is not a list of 1 to 32 criteria"},
        {"{\"criteria\": [{\"name\": \"A\"}]}", "criterion 0 has no \"name\""},
        {"{\"criteria\": [{\"name\": \"a\"}]}", "criterion \"a\" has no \"ask\", a text"},
        {"{\"criteria\": [{\"name\": \"a\", \"ask\": \"?\", \"gate\": 2}]}",
         "\"gate\" of \"a\" is not a number from 0 to 1"},
        {"{\"criteria\": [{\"name\": \"a\", \"ask\": \"?\", \"wait\": 2}]}",
         "criterion \"a\" has \"wait\"; allowed: name, ask, weight, gate"},
        {"{\"criteria\": [{\"name\": \"a\", \"ask\": \"?\", \"weight\": 0}]}", "all weights are 0"},
        {"{\"criteria\": [], \"scales\": 1}", "it has \"scales\""}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        put(file, all[i].text);
        assert_int_equal(try_it(""), RLHF_E_INVALID);
        if (!strstr(r.host.fail_text, all[i].why)) fail_msg("%zu: %s", i, r.host.fail_text);
        reward_close(&r);
    }
    put(file, three);
    assert_int_equal(try_it("command=true"), RLHF_E_INVALID);
    assert_non_null(strstr(r.host.fail_text, "give url=, a service of chat completions, or"));
    reward_close(&r);
    open_it("");
    assert_int_equal(reward_check_row(&r, (rlhf_str){"{\"x\": 1}", 8}), RLHF_E_INVALID);
    assert_non_null(strstr(r.host.fail_text, "names {row.like}, and the row has no member"));
    static const char number[] = "{\"id\": 12345678901234567890, \"like\": 1}";
    assert_int_equal(reward_check_row(&r, (rlhf_str){number, sizeof number - 1}), RLHF_OK);
    reward_close(&r);
}

int main(void) {
    r.rows = rlhf__row_service();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(mixed, setup, teardown),
        cmocka_unit_test_setup_teardown(attacks, setup, teardown),
        cmocka_unit_test_setup_teardown(gates_are_needed, setup, teardown),
        cmocka_unit_test_setup_teardown(recorded, setup, teardown),
        cmocka_unit_test_setup_teardown(asked_once, setup, teardown),
        cmocka_unit_test_setup_teardown(programs, setup, teardown),
        cmocka_unit_test_setup_teardown(refused, setup, teardown),
    };
    return cmocka_run_group_tests_name("rubric", tests, NULL, NULL);
}
