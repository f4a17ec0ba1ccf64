// test_env_http.c: env_http.so with a service in each of its two forms. Tests whole episodes, and
// faults after which replayed episodes get the same answers.
#include "environments/play.h"

#include "http_handshake.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct play p;
static const uint64_t both[] = {0, 1};
static FILE *served; // its standard input; closing it ends the service
static int port;

static const char *more_arguments = ""; // of the next service

static void serve(const char *fault, int call) {
    char command[1024], name[] = "/tmp/rlhf-served-XXXXXX", line[32] = "";
    const int fd = mkstemp(name);
    assert_true(fd >= 0);
    snprintf(command, sizeof command, "exec %s %s/served.py %s %d %s > %s",
             access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3",
             PLAY_SOURCE_DIR, fault, call, more_arguments, name);
    served = popen(command, "w");
    assert_non_null(served);
    for (int k = 0; k < 600 && !strchr(line, '\n'); k++) {
        usleep(100000);
        const ssize_t n = pread(fd, line, sizeof line - 1, 0);
        line[n > 0 ? n : 0] = 0;
    }
    port = atoi(line);
    assert_true(port > 0);
    close(fd);
    unlink(name);
}

enum { LINES, OPENENV, OPENENV_REPLAYS };

static const char *options(int form) {
    static const char *const more[] = {"/play", "/;form=openenv;observation=/text",
                                       "/;form=openenv;observation=/text;execution_error=replay"};
    static char text[256];
    snprintf(text, sizeof text, "url=http://127.0.0.1:%d%s", port, more[form]);
    return text;
}

static void open_it(int form, int timeout_s) {
    if (play_open_within(&p, "env_http.so", options(form), timeout_s) < 0)
        fail_msg("%s", p.host.fail_text);
}

// Plays both episodes to their end, as the host does: a failed episode is closed and replayed from
// its reset. Returns the number of failures.
static int play_all(char out[600]) {
    static const char *const turns[] = {"abc", "de", "fghijkl"};
    int at[] = {-1, -1}, failures = 0; // turns taken; -1: to be reset
    char log[2][200] = {"", ""};
    while (at[0] < 3 || at[1] < 3) {
        for (int k = 0; k < 2; k++) {
            const uint64_t which[] = {(uint64_t)k};
            if (at[k] == 3) continue;
            if (at[k] < 0) log[k][0] = 0;
            const rlhf_status st = at[k] < 0 ? play_reset(&p, 1, which, "{\"x\": 1}")
                                             : play_step(&p, 1, which, &turns[at[k]], NULL);
            if (st < 0 || p.failed[k]) {
                play_end(&p, 1, which);
                assert_true(++failures < 20);
                at[k] = -1;
                continue;
            }
            const size_t n = strlen(log[k]);
            const int more = snprintf(log[k] + n, sizeof log[k] - n, "%s%g/%d ", p.said[k],
                                      (double)p.reward[k], (int)p.end[k]);
            assert_true(more > 0 && (size_t)more < sizeof log[k] - n);
            at[k]++;
        }
    }
    play_end(&p, 2, both);
    snprintf(out, 600, "%s\n%s", log[0], log[1]);
    return failures;
}

static void lines(void **state) {
    (void)state;
    const char *const turns[] = {"abc", "0123456789"};
    serve("none", 0);
    open_it(0, 60);
    assert_null(p.ops->tools(p.self));
    assert_int_equal(play_reset(&p, 2, both, NULL), RLHF_OK);
    assert_string_equal(p.said[0], "user: 0, P?|");
    assert_string_equal(p.said[1], "user: 2, P?|"); // 2^29 % 3
    assert_int_equal(play_step(&p, 2, both, turns, NULL), RLHF_OK);
    assert_string_equal(p.said[0], "user: 3.|");
    assert_true(p.reward[1] == 6 && p.end[1] == RLHF_EPISODE_DONE);
    assert_int_equal(p.verdict[1], RLHF_VERDICT_RIGHT);
    assert_int_equal(play_finish(&p, 1, both, RLHF_EPISODE_TURNS), RLHF_OK);
    assert_true(p.reward[0] == 100);
    play_close(&p);
    pclose(served);
}

static void openenv(void **state) {
    (void)state;
    const char *const turns[] = {"abc", "0123456789"};
    serve("none", 0);
    open_it(1, 60);
    assert_int_equal(play_reset(&p, 2, both, NULL), RLHF_OK);
    assert_string_equal(p.said[0], "user: 0?|");
    assert_string_equal(p.said[1], "user: 2?|"); // 2^40 >> 33 is 128
    assert_int_equal(play_step(&p, 2, both, turns, NULL), RLHF_OK);
    assert_string_equal(p.said[0], "user: 3.|");
    assert_true(p.reward[1] == 6 && p.end[1] == RLHF_EPISODE_DONE);
    play_end(&p, 2, both);
    play_close(&p);
    char all[300]; // the whole observation
    snprintf(all, sizeof all, "url=http://127.0.0.1:%d;form=openenv", port);
    if (play_open(&p, "env_http.so", all) < 0) fail_msg("%s", p.host.fail_text);
    assert_int_equal(play_reset(&p, 1, both, NULL), RLHF_OK);
    assert_string_equal(p.said[0], "user: {\"text\": \"0?\"}|");
    play_end(&p, 1, both);
    play_close(&p);
    assert_int_equal(pclose(served), 0); // every WebSocket ended with a close frame
}

// A turn that is not an action does not count as a failure: the policy reads the reason, and the
// episode continues.
static void refused_turns(void **state) {
    (void)state;
    const char *const wrong[] = {"invalid"}, *const right[] = {"0123456789"},
                      *const illegal[] = {"illegal"};
    serve("none", 0);
    open_it(1, 60);
    assert_int_equal(play_reset(&p, 1, both, NULL), RLHF_OK);
    assert_true(p.metric[0] == 0);
    for (int turn = 1; turn <= 2; turn++) {
        assert_int_equal(play_step(&p, 1, both, wrong, NULL), RLHF_OK);
        assert_string_equal(p.said[0], "user: error: Invalid message: message: Input should be 'a' "
                                       "or 'b'; x: wrong|");
        assert_true(!p.failed[0] && !p.end[0] && p.reward[0] == 0 && p.metric[0] == turn);
    }
    // The same holds for a turn on which the server's environment fails.
    assert_int_equal(play_step(&p, 1, both, illegal, NULL), RLHF_OK);
    assert_string_equal(p.said[0], "user: error: the field is taken|");
    assert_true(!p.failed[0] && !p.end[0] && p.metric[0] == 3);
    assert_int_equal(play_step(&p, 1, both, right, NULL), RLHF_OK);
    assert_int_equal(p.end[0], RLHF_EPISODE_DONE);
    play_end(&p, 1, both);
    play_close(&p);
    assert_int_equal(pclose(served), 0);
}

// An action that is JSON is sent as the policy wrote it, with all digits.
static void json_actions(void **state) {
    (void)state;
    const char *const turns[] = {"{\"message\": \"invalid\", \"n\": -12345678901234567890}"};
    char options[300];
    serve("none", 0);
    snprintf(options, sizeof options, "url=http://127.0.0.1:%d;form=openenv;action=json", port);
    if (play_open(&p, "env_http.so", options) < 0) fail_msg("%s", p.host.fail_text);
    assert_int_equal(play_reset(&p, 1, both, NULL), RLHF_OK);
    assert_int_equal(play_step(&p, 1, both, turns, NULL), RLHF_OK);
    assert_non_null(strstr(p.said[0], "; -12345678901234567890: wrong"));
    play_end(&p, 1, both);
    play_close(&p);
    assert_int_equal(pclose(served), 0);
}

// Observations and rewards keep all digits of their integers.
static void long_observations(void **state) {
    static const char *const said[] = {"user: {\"text\": -12345678901234567890, \"few\": 3}|",
                                       "user: -12345678901234567890|"};
    const char *const turns[] = {"long"};
    char options[300];
    (void)state;
    for (int i = 0; i < 2; i++) {
        serve("none", 0);
        snprintf(options, sizeof options, "url=http://127.0.0.1:%d;form=openenv%s", port,
                 i ? ";observation=/text" : "");
        if (play_open(&p, "env_http.so", options) < 0) fail_msg("%s", p.host.fail_text);
        assert_int_equal(play_reset(&p, 1, both, NULL), RLHF_OK);
        assert_int_equal(play_step(&p, 1, both, turns, NULL), RLHF_OK);
        assert_string_equal(p.said[0], said[i]);
        assert_true(p.reward[0] == 0x1p70f);
        play_end(&p, 1, both);
        play_close(&p);
        assert_int_equal(pclose(served), 0);
    }
}

// If a server is down during the run, env_http.so waits for it.
static void patience(void **state) {
    char all[300];
    struct timespec from, to;
    (void)state;
    serve("none", 0);
    snprintf(all, sizeof all, "url=http://127.0.0.1:%d;form=openenv;patience_s=1.5", port);
    if (play_open(&p, "env_http.so", all) < 0) fail_msg("%s", p.host.fail_text);
    pclose(served);
    clock_gettime(CLOCK_MONOTONIC, &from);
    assert_int_equal(play_reset(&p, 1, both, NULL), RLHF_E_IO);
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_true((double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec) >
                1.4);
    play_end(&p, 1, both);
    play_close(&p);
}

static void faults(void **state) {
    static const struct {
        const char *name, *lines, *openenv; // reason in each form; NULL: the episode does not fail
    } all[] = {{"half", "its answer to", "it closed"},
               {"nonsense", "it answered \"}{\"", "it answered }{: it is not an observation"},
               {"huge", "its answer is longer than max_answer_mib", "too long"},
               {"status", "status 404", NULL},
               {"error", NULL, "EXECUTION_ERROR"},
               {"drop", "Empty reply from server", "it closed the connection"},
               {"late", "within rewards.timeout_s", "within rewards.timeout_s"}};
    const int few = getenv("RLHF_LONG_FAULTS") == NULL;
    char good[2][600], got[600];
    (void)state;
    for (int form = 0; form < 2; form++) {
        serve("none", 0);
        open_it(form, 60);
        assert_int_equal(play_all(good[form]), 0);
        play_close(&p);
        pclose(served);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int form = 0; form < 2; form++) {
            const char *why = form ? all[i].openenv : all[i].lines;
            const int late = strcmp(all[i].name, "late") == 0;
            for (int call = few ? 4 : 1; call <= 8; call += few ? 9 : 1) {
                serve(all[i].name, call);
                open_it(form * OPENENV_REPLAYS, late ? 3 : 60);
                const int failures = play_all(got);
                if (why && !failures) fail_msg("%s at call %d: no failure", all[i].name, call);
                if (why && !strstr(p.host.fail_text, why))
                    fail_msg("%s at call %d: \"%s\"", all[i].name, call, p.host.fail_text);
                assert_string_equal(got, good[form]);
                play_close(&p);
                pclose(served);
            }
        }
    }
}

// A server that breaks RFC 6455, or that sends frames without end, loses the episode, and does not
// hold the run.
static void sockets(void **state) {
    static const struct {
        const char *name, *why;
    } all[] = {{"pongflood", "too many frames without text"},
               {"pingflood", "too many frames without text"},
               {"contflood", "too many frames without text"},
               {"reserved", "a frame that is not text"},
               {"binary", "a frame that is not text"},
               {"continuation", "it continues a message that it did not begin"},
               {"inside", "it begins a message inside another"},
               {"longping", "a ping or pong that is too long"}};
    const uint64_t one[] = {0};
    const char *const turn[] = {"abc"};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        serve(all[i].name, 2);
        open_it(OPENENV, 60);
        assert_int_equal(play_reset(&p, 1, one, NULL), RLHF_OK);
        assert_int_equal(play_step(&p, 1, one, turn, NULL), RLHF_E_IO);
        if (!strstr(p.host.fail_text, all[i].why))
            fail_msg("%s: \"%s\"", all[i].name, p.host.fail_text);
        play_end(&p, 1, one);
        play_close(&p);
        pclose(served);
    }
}

// The deadline and Ctrl-C hold while frames with text arrive faster than they are read.
static void endless_message(void **state) {
    char all[300];
    const uint64_t one[] = {0};
    const char *const turn[] = {"abc"};
    (void)state;
    for (int cancel = 0; cancel < 2; cancel++) {
        serve("dripflood", 2);
        snprintf(all, sizeof all, "url=http://127.0.0.1:%d;form=openenv;max_answer_mib=1024", port);
        if (play_open_within(&p, "env_http.so", all, 1) < 0) fail_msg("%s", p.host.fail_text);
        assert_int_equal(play_reset(&p, 1, one, NULL), RLHF_OK);
        p.host.cancel = cancel;
        const rlhf_status st = play_step(&p, 1, one, turn, NULL);
        assert_int_equal(st, cancel ? RLHF_E_CANCELLED : RLHF_E_IO);
        if (!cancel) assert_non_null(strstr(p.host.fail_text, "within rewards.timeout_s"));
        p.host.cancel = 0;
        play_end(&p, 1, one);
        play_close(&p);
        pclose(served);
    }
}

static int warnings;
static void count_warnings(const rlhf_host *h, int32_t level, const char *text) {
    (void)h;
    warnings += level == RLHF_LOG_WARN && strstr(text, "patience_s") != NULL;
}

// Resets four episodes four times while the server takes no connection. Checks that there was one
// warning, and how often the server was asked.
static void reset_in_vain(const char *fault, int timeout_s) {
    const uint64_t four[] = {0, 1, 2, 3};
    char all[300], counts[] = "/tmp/rlhf-counts-XXXXXX", count[200];
    int calls = 0, refusals = 0;
    assert_true(close(mkstemp(counts)) == 0);
    snprintf(count, sizeof count, "1 1000000 %s", counts);
    more_arguments = count;
    serve(fault, 2); // the first connection is that of the run's start
    more_arguments = "";
    snprintf(all, sizeof all, "url=http://127.0.0.1:%d;form=openenv;patience_s=1", port);
    if (play_open_within(&p, "env_http.so", all, timeout_s) < 0) fail_msg("%s", p.host.fail_text);
    p.host.table.log = count_warnings;
    warnings = 0;
    for (int attempt = 0; attempt < 4; attempt++) {
        assert_int_equal(play_reset(&p, 4, four, NULL), RLHF_E_IO);
        play_end(&p, 4, four);
    }
    assert_int_equal(warnings, 1);
    play_close(&p);
    pclose(served);
    FILE *f = fopen(counts, "r");
    assert_true(f && fscanf(f, "%d %d", &calls, &refusals) == 2);
    fclose(f);
    unlink(counts);
    assert_in_range(refusals, 1, 4); // about one in half a second, and none in the later calls
}

// Patience counts once for all episodes of a call, and for the calls of the phase that repeat it.
// So does the time in which a server that hangs may shake hands.
static void patience_of_a_call(void **state) {
    (void)state;
    reset_in_vain("closed_handshake", 60);
    reset_in_vain("hanging_handshake", 1);
}

// rewards.timeout_s also limits TLS's handshake, with a server that accepts and is silent.
static void silent_server(void **state) {
    const uint64_t one[] = {0};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    char all[300];
    (void)state;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    assert_true(listen(fd, 64) == 0 && getsockname(fd, (struct sockaddr *)&at, &n) == 0);
    snprintf(all, sizeof all, "url=https://127.0.0.1:%d;form=openenv;patience_s=0",
             ntohs(at.sin_port));
    p.host.cancel = 0;
    if (play_open_within(&p, "env_http.so", all, 1) < 0) fail_msg("%s", p.host.fail_text);
    assert_int_equal(play_reset(&p, 1, one, NULL), RLHF_E_IO);
    assert_non_null(strstr(p.host.fail_text, "it did not answer within rewards.timeout_s"));
    play_end(&p, 1, one);
    play_close(&p);
    close(fd);
}

// An episode whose server thinks for a long time does not hold up the others: its answer comes
// later. Here it comes only after another episode has taken its turn.
static void slow_episodes(void **state) {
    const char *const hold[] = {"hold"}, *const release[] = {"release"};
    (void)state;
    serve("none", 0);
    open_it(OPENENV, 60);
    assert_int_equal(play_reset(&p, 2, both, NULL), RLHF_OK);
    assert_int_equal(play_step_at_once(&p, 1, both, hold), RLHF_OK);
    assert_true(p.later[0] && !p.said[0][0]);
    assert_int_equal(play_poll_at_once(&p, 1, both), RLHF_OK);
    assert_true(p.later[0] && !p.said[0][0]);
    assert_int_equal(play_step(&p, 1, &both[1], release, NULL), RLHF_OK);
    assert_string_equal(p.said[1], "user: 9.|");
    assert_int_equal(play_wait(&p, 1, both), RLHF_OK);
    assert_string_equal(p.said[0], "user: 4.|");
    assert_true(!p.later[0] && p.reward[0] == 2);
    // an episode may be closed while its answer is missing
    assert_int_equal(play_step_at_once(&p, 1, both, hold), RLHF_OK);
    play_end(&p, 2, both);
    play_close(&p);
    pclose(served);
}

// The mask and the key of a handshake differ from connection to connection, and an answer that does
// not belong to the key is refused.
static void handshake(void **state) {
    char first[RLHF__HANDSHAKE_TEXT], second[RLHF__HANDSHAKE_TEXT], answer[RLHF__HANDSHAKE_TEXT];
    const uint64_t one[] = {0};
    (void)state;
    assert_true(rlhf__handshake_key(first) && rlhf__handshake_key(second));
    assert_true(strlen(first) == 24 && strcmp(first, second) != 0);
    rlhf__handshake_answer("dGhlIHNhbXBsZSBub25jZQ==", answer); // the example of RFC 6455, 1.3
    assert_string_equal(answer, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    serve("wrong_accept", 2);
    char all[300];
    snprintf(all, sizeof all, "url=http://127.0.0.1:%d;form=openenv;patience_s=0", port);
    if (play_open(&p, "env_http.so", all) < 0) fail_msg("%s", p.host.fail_text);
    assert_int_equal(play_reset(&p, 1, one, NULL), RLHF_E_IO);
    assert_non_null(strstr(p.host.fail_text, "it opens no WebSocket"));
    play_end(&p, 1, one);
    play_close(&p);
    pclose(served);
}

// OpenEnv's rewards are numbers, booleans or null. All else is a failure that shows the value.
static void kinds_of_rewards(void **state) {
    static const struct {
        const char *fault, *why;
        double reward;
    } all[] = {{"reward:true", NULL, 1},
               {"reward:false", NULL, 0},
               {"reward:null", NULL, 0},
               {"reward:-2.5", NULL, -2.5},
               {"reward:\"0.5\"", "the reward that it sent, \"0.5\", is a string", 0},
               {"reward:[1]", "the reward that it sent, [1], is a list", 0},
               {"reward:{}", "the reward that it sent, {}, is an object", 0},
               {"done:\"yes\"", "the \"done\" that it sent is a string", 0}};
    const uint64_t one[] = {0};
    const char *const turn[] = {"abc"};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "'%s'", all[i].fault);
        serve(quoted, 2);
        open_it(OPENENV, 60);
        assert_int_equal(play_reset(&p, 1, one, NULL), RLHF_OK);
        const rlhf_status st = play_step(&p, 1, one, turn, NULL);
        if (st != (all[i].why ? RLHF_E_IO : RLHF_OK)) fail_msg("%s: %d", all[i].fault, (int)st);
        if (all[i].why && !strstr(p.host.fail_text, all[i].why))
            fail_msg("%s: \"%s\"", all[i].fault, p.host.fail_text);
        if (!all[i].why) assert_true((double)p.reward[0] == all[i].reward);
        play_end(&p, 1, one);
        play_close(&p);
        pclose(served);
    }
}

static void refused(void **state) {
    (void)state;
    assert_int_equal(play_open(&p, "env_http.so", "url=ftp://x"), RLHF_E_INVALID);
    play_close(&p);
    assert_int_equal(play_open(&p, "env_http.so", "url=http://u:p@x"), RLHF_E_INVALID);
    play_close(&p);
    assert_int_equal(play_open(&p, "env_http.so", "url=http://127.0.0.1:1/;patience_s=0"),
                     RLHF_E_IO);
    assert_non_null(strstr(p.host.fail_text, ", for patience_s=0"));
    play_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines),
                                       cmocka_unit_test(openenv),
                                       cmocka_unit_test(refused_turns),
                                       cmocka_unit_test(json_actions),
                                       cmocka_unit_test(long_observations),
                                       cmocka_unit_test(patience),
                                       cmocka_unit_test(faults),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(sockets),
                                       cmocka_unit_test(endless_message),
                                       cmocka_unit_test(patience_of_a_call),
                                       cmocka_unit_test(silent_server),
                                       cmocka_unit_test(slow_episodes),
                                       cmocka_unit_test(handshake),
                                       cmocka_unit_test(kinds_of_rewards)};
    return cmocka_run_group_tests_name("env_http", tests, NULL, NULL);
}
