// test_e2e_injected.c: injects failures into rewards of every form. Runs survive, each failure is
// named, and nothing is left behind. With rewards.on_failure=retry, the last checkpoint has the
// same bytes as in a run without failures.
//
// usage: test_e2e_injected [FAILURES [FORM]]. Injects at least FAILURES failures over all forms;
// the default is a few. If FORM is given, only that form gets failures: its share of FAILURES.
#include "e2e.h"

#include "rewards/http_score.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN                                                                                        \
    "--algo grpo.so:group_size=4,kl_placement=none,epochs=1 --policy model "                       \
    "--set policy.init=random --prompts prompts.txt --set batch.size=16 "                          \
    "--set sampling.max_new_tokens=6 --set optim.lr=0.01 --set log.tensorboard=false "             \
    "--set log.samples=0 --set log.progress=off --set run.phases=10 --threads 1 "                  \
    "--set rewards.isolate=never "                                                                 \
    "--set rewards.on_failure=retry --set rewards.retries=50 "

static long wanted = 16; // failures, over all forms
static const char *only; // the form that is tried, NULL = all

// Where injected failures are reported.
enum told_by { BY_RUN, BY_FILE, BY_SERVICE };

// One way to run a reward. `clean` has the arguments of a run without failures. `faulty` has the
// arguments of a run in which a seed chooses the failures.
struct form {
    const char *name, *clean, *faulty; // faulty: %d is the seed
    const char *limits;
    enum told_by by;
};

static const struct form forms[] = {
    {"in the process", "--reward \"$RLHF_TEST_PLUGINS/faulty_reward.so:how=none,tokens=true\"",
     "--reward "
     "\"$RLHF_TEST_PLUGINS/faulty_reward.so:how=rows,every=8,times=2,tokens=true,seed=%d\"",
     "", BY_RUN},
    {"in a worker", "--reward $RLHF_TEST_PLUGINS/injected_reward.so:isolate=false",
     "--reward $RLHF_TEST_PLUGINS/injected_reward.so:isolate=true,every=24,seed=%d",
     "--set rewards.timeout_s=10 --set rewards.memory_mib=256", BY_RUN},
    {"in a worker, asked early", "--reward $RLHF_TEST_PLUGINS/injected_alone.so:isolate=false",
     "--reward $RLHF_TEST_PLUGINS/injected_alone.so:isolate=true,every=24,seed=%d "
     "--set rewards.overlap=true",
     "--set rewards.timeout_s=10 --set rewards.memory_mib=256", BY_RUN},
    {"in several workers", "--reward $RLHF_TEST_PLUGINS/injected_reward.so:isolate=false",
     "--reward $RLHF_TEST_PLUGINS/injected_reward.so:isolate=true,every=24,seed=%d",
     "--set rewards.timeout_s=10 --set rewards.memory_mib=256 --set rewards.workers=3", BY_RUN},
    {"exec.so", "--reward \"exec.so:command='$RLHF_TEST_PLUGINS/faulty_program' 0 0\"",
     "--reward \"exec.so:command='$RLHF_TEST_PLUGINS/faulty_program' %d 10\"",
     "--set rewards.timeout_s=3 --set rewards.memory_mib=256", BY_FILE},
    {"exec.so, asked early", "--reward \"exec.so:command='$RLHF_TEST_PLUGINS/faulty_program' 0 0\"",
     "--reward \"exec.so:command='$RLHF_TEST_PLUGINS/faulty_program' %d 10\" "
     "--set rewards.overlap=true",
     "--set rewards.timeout_s=3 --set rewards.memory_mib=256", BY_FILE},
    {"python.so", "--reward python.so:file=$RLHF_TEST_SOURCE/faulty.py,function=pays",
     "--reward python.so:file=$RLHF_TEST_SOURCE/faulty.py,function=pays",
     "--set rewards.timeout_s=10 --set rewards.memory_mib=2048", BY_FILE},
    {"http.so", "--reward http.so:url=$RLHF_TEST_URL",
     "--reward http.so:url=$RLHF_TEST_URL,concurrency=1,repeats=0,patience_s=0.02,backoff_s=0.005",
     "--set rewards.timeout_s=2", BY_SERVICE},
};

// ---- a service that fails ----

static struct service {
    struct http_server *server;
    atomic_ulong seed, every; // every 0: never fails
    atomic_ulong asked;
    atomic_long faults, outages; // failures that must be reported
    atomic_int down, down_left;  // status of the service, and how many more answers have it
} service;

static const char *const kinds[] = {"429",   "503", "refused", "500",    "400",    "garbage",
                                    "count", "cut", "text",    "silent", "dropped"};

// Within patience_s, a call cannot retry this often. So at least one call gives up.
enum { KINDS = sizeof kinds / sizeof *kinds, DOWN_ANSWERS = 8, DEAF_MS = 60 };

static int is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static void be_down(struct service *s, int status, struct http_reply *reply) {
    s->outages++;
    s->down = reply->status = status;
    s->down_left = DOWN_ANSWERS - 1;
}

static void say_instead(struct http_reply *reply, const char *body) {
    free(reply->body);
    reply->body = strdup(body);
}

// Three faults do not count as failures, because a run waits for the end of a short outage: a
// connection dropped without an answer, half an answer, and refused connections for a short time.
static void go_wrong(struct service *s, const char *kind, struct http_reply *reply) {
    if (is(kind, "429") || is(kind, "503")) {
        be_down(s, atoi(kind), reply);
        return;
    }
    if (is(kind, "cut")) reply->how = HTTP_HALF;
    if (is(kind, "dropped")) reply->how = HTTP_DROPPED;
    if (is(kind, "refused")) {
        http_server_refuse(s->server, DEAF_MS);
        reply->how = HTTP_DROPPED;
    }
    if (reply->how != HTTP_WHOLE) return;
    s->faults++;
    if (is(kind, "500") || is(kind, "400")) reply->status = atoi(kind);
    if (is(kind, "garbage")) say_instead(reply, "<html>\033[31m\001</html>");
    if (is(kind, "count")) say_instead(reply, "[1, 2]");
    if (is(kind, "text")) say_instead(reply, "{\"rewards\": \"much\"}");
    if (is(kind, "silent")) reply->how = HTTP_SILENT;
}

static void serve(void *context, const struct http_request *q, struct http_reply *reply) {
    struct service *s = context;
    const unsigned long n = s->every ? atomic_fetch_add(&s->asked, 1) : 0;
    // Knuth's multiplicative hash.
    const unsigned long draw = ((s->seed * 2654435761UL + n) * 2654435761UL & 0xffffffff) >> 8;
    reply->body = http_score(q);
    if (!reply->body) reply->status = 400;
    if (s->down_left > 0) {
        s->down_left--;
        reply->status = s->down;
    } else if (s->every && draw % s->every == 0)
        go_wrong(s, kinds[draw / s->every % KINDS], reply);
}

// ---- runs ----

static long count(struct e2e *t, const char *script) {
    assert_int_equal(e2e_shell(t, "%s", script), 0);
    return strtol(t->out, NULL, 10);
}

static void nothing_is_left_behind(struct e2e *t) {
    assert_int_equal(
        e2e_shell(t, "for p in $(cat children 2>/dev/null); do "
                     "s=$(sed 's/.*) //; s/ .*//' /proc/$p/stat 2>/dev/null); "
                     "[ -z \"$s\" ] || [ \"$s\" = Z ] || { echo \"$p lives\"; exit 1; }; done"),
        0);
    assert_int_equal(e2e_shell(t, "for e in /proc/[0-9]*/environ; do "
                                  "  tr '\\0' '\\n' 2>/dev/null <$e | grep -qx "
                                  "\"INJECTED=$PWD\" && { echo \"$e is still there\"; exit 1; }; "
                                  "done; exit 0"),
                     0);
}

// Counts the injected failures that must be reported. Slow answers and noise are not reported.
// Neither is a NaN if another row of the call fails.
static long injected(struct e2e *t, const struct form *f) {
    if (f->by == BY_SERVICE) return service.faults + service.outages;
    if (f->by == BY_FILE) return count(t, "cat faults 2>/dev/null | grep -vcE 'slow|nan' || true");
    if (f == forms) return count(t, "grep -c 'score(), phase [0-9]*: ' said || true");
    return count(t, "grep 'injected: ' said | grep -vcE 'slow|noise|nan' || true");
}

static long least(long a, long b) { return a < b ? a : b; }

// Counts the reports of failing answers and of outages that last too long.
static long told_of_service(struct e2e *t) {
    const long down = count(t, "grep 'score(), phase [0-9]*: ' said | grep -cE 'status (429|503)' "
                               "|| true");
    const long wrong = count(t, "grep 'score(), phase [0-9]*: ' said | grep -cE 'status (500|400)|"
                                "the answer|did not answer within' || true");
    return least(service.outages, down) + least(service.faults, wrong);
}

// Returns the number of failures that were reported.
static long told(struct e2e *t, const struct form *f) {
    if (f->by == BY_SERVICE) return told_of_service(t);
    return count(t, "grep -cE 'score\\(\\), phase [0-9]*: |in the same call: ' said || true");
}

// Runs once with the failures of a seed. Returns the number of failures.
static long inject(struct e2e *t, const struct form *f, int seed) {
    char reward[512];
    snprintf(reward, sizeof reward, f->faulty, seed);
    service.seed = (unsigned long)seed;
    service.every = 3;
    service.asked = 0;
    service.faults = service.outages = service.down_left = 0;
    assert_int_equal(e2e_shell(t, "rm -rf f faults asked children said"), 0);
    if (e2e_shell(t,
                  "export INJECTED=\"$PWD\" FAULTS=%d,3; \"$HOST\" " RUN
                  "%s %s --set run.dir=f > said 2>&1 || { tail -5 said; exit 1; }",
                  seed, f->limits, reward) != 0)
        fail_msg("%s, seed %d: %s", f->name, seed, t->out);
    service.every = 0;
    if (e2e_shell(t, "for x in model.safetensors state/optimizer.safetensors state/run.json; do "
                     "cmp c/checkpoints/000010/$x f/checkpoints/000010/$x || exit 1; done") != 0)
        fail_msg("%s, seed %d: %s", f->name, seed, t->out);
    nothing_is_left_behind(t);
    assert_int_equal(e2e_shell(t, "! grep -q \"$(printf '\\033')\" said"), 0);
    const long faults = injected(t, f), named = told(t, f);
    if (named < faults)
        fail_msg("%s, seed %d: %ld failures, %ld told", f->name, seed, faults, named);
    return faults;
}

static int runs_here(const struct form *f) {
    if (only && strcmp(f->name, only) != 0) return 0;
    if (f->by == BY_SERVICE) return HAS_HTTP;
    if (strcmp(f->name, "python.so") != 0) return 1;
    return system("python3 -c 'import sys' >/dev/null 2>&1") == 0;
}

static void no_run_is_lost(void **state) {
    struct e2e *t = *state;
    const int n = (int)(sizeof forms / sizeof *forms);
    long all = 0;
    char url[64];
    setenv("RLHF_TEST_SOURCE", SOURCE_DIR, 1);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", http_server_port(service.server));
    setenv("RLHF_TEST_URL", url, 1);
    for (int k = 0; k < n; k++) {
        long here = 0;
        int seed = 1;
        if (!runs_here(&forms[k])) continue;
        if (e2e_shell(t, "rm -rf c; \"$HOST\" " RUN "%s --set run.dir=c", forms[k].clean) != 0)
            fail_msg("%s: %s", forms[k].name, t->out);
        for (; here * n < wanted; seed++)
            here += inject(t, &forms[k], seed);
        print_message("%s: %ld failures in %d runs\n", forms[k].name, here, seed - 1);
        all += here;
    }
    print_message("%ld failures, no run lost\n", all);
}

static int setup(void **state) {
    static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                          "ALL_PROXY"};
    for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++)
        unsetenv(proxies[i]);
    service.server = http_server_open(serve, &service);
    return service.server ? e2e_setup(state) : -1;
}

static int teardown(void **state) {
    http_server_close(service.server);
    return e2e_teardown(state);
}

int main(int argc, char **argv) {
    if (argc > 1) wanted = strtol(argv[1], NULL, 10);
    if (argc > 2) only = argv[2];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_run_is_lost, setup, teardown),
    };
    return cmocka_run_group_tests_name("e2e_injected", tests, NULL, NULL);
}
