// test_exec.c: exec.so and the programs that it runs. Tests the input of programs, valid answers,
// and failed rows.
#include "rewards/many.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct reward r;
static struct many m;
static char folder[64];

// Returns a command that runs the helper with these arguments. Options may follow after a comma.
static const char *answering(const char *args) {
    static char text[900];
    const char *build = getenv("RLHF_BUILD_DIR");
    snprintf(text, sizeof text, "command='%s/tests/answering' %s", build ? build : ".", args);
    return text;
}

static void open_it(const char *args, double timeout_s) {
    reward_open(&r, "exec.so", answering(args));
    r.host.limits.timeout_s = timeout_s;
}

static void fill(uint32_t n, const char *response) {
    many_fill(&m, n, (rlhf_str){response, strlen(response)});
}

static void says(const char *text) {
    if (!strstr(r.host.fail_text, text))
        fail_msg("\"%s\" is not in \"%s\"", text, r.host.fail_text);
}

// ---- input ----

static const char *kept(void) {
    static char text[4096];
    char path[128];
    snprintf(path, sizeof path, "%s/kept", folder);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    unlink(path);
    return text;
}

static void rows_as_json(void **state) {
    (void)state;
    char args[128];
    snprintf(args, sizeof args, "keep %s/kept", folder);
    open_it(args, 0);
    many_fill(&m, 2, (rlhf_str){"fine\n\xff \"x\"\0", 11});
    m.meta[1] = (rlhf_str){"{\"answer\": \"4\"}", 15};
    m.phase = 2;
    m.finished[1] = 0;
    assert_int_equal(many_score(&r, &m, 2), RLHF_OK);
    assert_string_equal(kept(),
                        "{\"phase\":3,\"index\":0,\"group\":0,\"prompt\":\"It was \",\"response\":"
                        "\"fine\\n\xef\xbf\xbd \\\"x\\\"\\u0000\",\"finished\":true,\"row\":null}\n"
                        "{\"phase\":3,\"index\":1,\"group\":0,\"prompt\":\"It was \",\"response\":"
                        "\"fine\\n\xef\xbf\xbd \\\"x\\\"\\u0000\",\"finished\":false,"
                        "\"row\":{\"answer\": \"4\"}}\n");
    reward_close(&r);
    snprintf(args, sizeof args, "keep %s/kept,ids=true", folder);
    open_it(args, 0);
    fill(1, "y");
    assert_int_equal(many_score(&r, &m, 1), RLHF_OK);
    assert_string_equal(
        kept(), "{\"phase\":1,\"index\":0,\"group\":0,\"prompt\":\"It was \",\"response\":\"y\","
                "\"finished\":true,\"prompt_ids\":[7,8],\"ids\":[9,10],"
                "\"row\":null}\n");
    reward_close(&r);
}

// ---- answers ----

static void numbers_and_objects(void **state) {
    (void)state;
    static const struct {
        const char *line;
        double pays;
    } all[] = {{"1", 1},
               {"-0.25", -0.25},
               {" 3 ", 3},
               {"1e3", 1000},
               {"{\"reward\": 7}", 7},
               {"inf", INFINITY},
               {"1e999", INFINITY},
               {"{\"reward\": true}", 1},
               {"False", 0},
               {"true", 1},
               {"{\"reward\": false}", 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char args[64];
        snprintf(args, sizeof args, "each '%s'", all[i].line);
        open_it(args, 0);
        fill(3, "x");
        assert_int_equal(many_score(&r, &m, 3), RLHF_OK);
        for (int k = 0; k < 3; k++)
            if ((double)m.seq[k] != all[i].pays)
                fail_msg("%s pays %g", all[i].line, (double)m.seq[k]);
        assert_int_equal(many_failed(&m, 3), 0);
        reward_close(&r);
    }
    open_it("each '{\"reward\": null}'", 0);
    assert_int_equal(many_score(&r, &m, 1), RLHF_OK);
    assert_true(m.seq[0] != m.seq[0]);
    reward_close(&r);
}

static void metrics_and_verdicts(void **state) {
    (void)state;
    char script[128];
    double value;
    // The script gives three kinds of answers in turn. A row without a metric does not count in the
    // metric's mean.
    snprintf(script, sizeof script, "%s/turns", folder);
    FILE *f = fopen(script, "w");
    assert_non_null(f);
    fputs("#!/bin/sh\nwhile read -r a && read -r b && read -r c; do\n"
          "echo '{\"reward\": 1, \"metrics\": {\"x\": 3, \"y\": 1}, \"verdict\": \"right\"}'\n"
          "echo '{\"reward\": 2, \"metrics\": {\"x\": 6, \"y\": null}, \"verdict\": false}'\n"
          "echo 3\ndone\n",
          f);
    fclose(f);
    assert_int_equal(chmod(script, 0755), 0);
    char options[160];
    snprintf(options, sizeof options, "command=%s", script);
    reward_open(&r, "exec.so", options);
    fill(6, "x");
    assert_int_equal(many_score(&r, &m, 6), RLHF_OK);
    assert_true(rlhf_test_metric(&r.host, "x", &value) && value == 4.5);
    assert_true(rlhf_test_metric(&r.host, "y", &value) && value == 1);
    for (int i = 0; i < 6; i++) {
        assert_true((double)m.seq[i] == i % 3 + 1);
        assert_int_equal(m.verdict[i], i % 3 == 0   ? RLHF_VERDICT_RIGHT
                                       : i % 3 == 1 ? RLHF_VERDICT_WRONG
                                                    : RLHF_VERDICT_NONE);
    }
    reward_close(&r);
}

// A call does not block if the pipes are full in both directions, if a program answers all rows at
// once, or if it writes much to standard error.
static void much_both_ways(void **state) {
    (void)state;
    static char text[4096];
    memset(text, 'x', sizeof text - 1);
    open_it("wide 4000", 0);
    fill(500, text);
    assert_int_equal(many_score(&r, &m, 500), RLHF_OK);
    assert_int_equal(many_failed(&m, 500), 0);
    reward_close(&r);
    open_it("batch 500", 0);
    assert_int_equal(many_score(&r, &m, 500), RLHF_OK);
    assert_int_equal(many_score(&r, &m, 500), RLHF_OK);
    reward_close(&r);
    open_it("loud 100000", 0);
    assert_int_equal(many_score(&r, &m, 20), RLHF_OK);
    reward_close(&r);
    open_it("length", 0);
    fill(2000, "x");
    assert_int_equal(many_score(&r, &m, 2000), RLHF_OK);
    assert_true(m.seq[0] > 50 && m.seq[1998] == m.seq[1000]);
    reward_close(&r);
}

// The same program in several calls.
static void kept_alive(void **state) {
    (void)state;
    open_it("count", 0);
    fill(4, "x");
    for (int call = 0; call < 3; call++) {
        assert_int_equal(many_score(&r, &m, 4), RLHF_OK);
        for (int i = 0; i < 4; i++)
            assert_true((double)m.seq[i] == 4 * call + i + 1);
    }
    assert_int_equal(many_score(&r, &m, 0), RLHF_OK);
    reward_close(&r);
}

// ---- failures ----

// Rows before the failure keep their rewards. The other rows have failed. The next call starts the
// program again.
static void fails_after_two(const char *what, double timeout_s, const char *sentence) {
    char args[256];
    snprintf(args, sizeof args, "after 2 %s", what);
    open_it(args, timeout_s);
    fill(5, "x");
    for (int call = 0; call < 2; call++) {
        assert_int_equal(many_score(&r, &m, 5), RLHF_OK);
        says(sentence);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(m.failed[i], i >= 2);
            if (i < 2) assert_true((double)m.seq[i] == 1);
        }
    }
    assert_true(rlhf_test_logged(&r.host, "is started again"));
    r.host.limits.timeout_s = 0;
    fill(2, "x");
    assert_int_equal(many_score(&r, &m, 2), RLHF_OK);
    assert_int_equal(many_failed(&m, 2), 0);
    reward_close(&r);
}

static void it_ends(void **state) {
    (void)state;
    fails_after_two(
        "exit 3", 0,
        "answering ended with status 3 at row 2 of 5; it said: \"I give up\\nfor good\"");
    fails_after_two("kill 11", 0, "answering was ended by signal 11 (Segmentation fault) at row 2");
    fails_after_two("kill 9", 0, "answering was ended by signal 9 (Killed) at row 2 of 5");
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The program stops answering but keeps running. It may have omitted a row, so its answers do not
// count. When the program is restarted, it again has the whole time limit for its first answer.
static void it_hangs(void **state) {
    (void)state;
    open_it("after 2 hang", 0.3);
    fill(5, "x");
    for (int call = 0; call < 2; call++) {
        assert_int_equal(many_score(&r, &m, 5), RLHF_E_IO);
        assert_true(rlhf_test_logged(&r.host, "answering has not answered for 0."));
        assert_true(rlhf_test_logged(&r.host, " s; its limit is 0.3 s"));
        says("answering did not answer within 0.3 s (rewards.timeout_s) at row 2 of 5; answers "
             "without an \"index\" do not tell which row lacks its own, so they do not count");
    }
    reward_close(&r);
    open_it("after 2 close", 0);
    assert_int_equal(many_score(&r, &m, 5), RLHF_E_IO);
    says("answering closed its standard output at row 2 of 5; answers without an \"index\"");
    reward_close(&r);
    open_it("after 0 hang", 0.3);
    assert_int_equal(many_score(&r, &m, 5), RLHF_E_IO);
    const double from = seconds();
    assert_int_equal(many_score(&r, &m, 5), RLHF_E_IO);
    assert_true(seconds() - from >= 0.6);
    says("at row 0 of 5; it was started again for this call, had as long again for that, and has "
         "not answered since");
    reward_close(&r);
    open_it("after 1 hang", 0.3);
    fill(1, "x");
    assert_int_equal(many_score(&r, &m, 1), RLHF_OK);
    assert_int_equal(many_score(&r, &m, 1), RLHF_E_IO);
    assert_null(strstr(r.host.fail_text, "flush")); // not suggested: it has answered before
    reward_close(&r);
}

// The program omits a row. With the index in each answer, the rows before the omitted row keep
// their rewards. Without the index, none of the rows keep them.
static void it_leaves_a_row_out(void **state) {
    (void)state;
    open_it("skip 2 yes", 0);
    fill(5, "x");
    assert_int_equal(many_score(&r, &m, 5), RLHF_OK);
    says("answering answered row 3 where row 2 of 5 was asked: it left one out");
    for (int i = 0; i < 5; i++)
        assert_int_equal(m.failed[i], i >= 2);
    reward_close(&r);
    open_it("skip 4 yes", 0.3); // the last answer is missing; the others are assigned
    assert_int_equal(many_score(&r, &m, 5), RLHF_OK);
    says("answering did not answer within 0.3 s (rewards.timeout_s) at row 4 of 5");
    assert_null(strstr(r.host.fail_text, "index"));
    assert_int_equal(many_failed(&m, 5), 1);
    reward_close(&r);
    open_it("skip 2 no", 0.3);
    assert_int_equal(many_score(&r, &m, 5), RLHF_E_IO);
    says("at row 4 of 5; answers without an \"index\" do not tell which row lacks its own");
    reward_close(&r);
    open_it("number 0", 0);
    assert_int_equal(many_score(&r, &m, 5), RLHF_OK);
    says("answered row 0 where row 1 of 5 was asked: it answered one more than once");
    assert_int_equal(many_failed(&m, 5), 4);
    reward_close(&r);
}

static void it_talks_nonsense(void **state) {
    (void)state;
    fails_after_two(
        "say good", 0,
        "answering answered row 2 of 5 with \"good\": it is neither a number nor a JSON object");
    fails_after_two("say 0x10", 0, "row 2 of 5 with \"0x10\": it is neither a number");
    fails_after_two("say ''", 0, "answered row 2 of 5 with \"\": it is empty");
    fails_after_two("say '\x1b[31m'", 0, "with \"\\x1b[31m\": it is neither a number");
    fails_after_two("say '{\"reward\": \"1\"}'", 0, ": its \"reward\" is a string");
    fails_after_two("say '{\"metrics\": {}}'", 0, ": it has no \"reward\"");
    fails_after_two("say '{\"reward\": 1 \"x\": 2}'", 0, ": it is not JSON: ");
    fails_after_two("say '{\"rewards\": 1}'", 0, ": its member \"rewards\" is not one of reward");
}

// All rows of the call fail if none of them is answered, or if lines cannot be assigned to rows.
static void fails(const char *args, double timeout_s, uint32_t n, const char *sentence) {
    open_it(args, timeout_s);
    fill(n, "x");
    assert_int_equal(many_score(&r, &m, n), RLHF_E_IO);
    says(sentence);
    reward_close(&r);
}

static void no_row_is_sure(void **state) {
    (void)state;
    fails("batch 3", 0.3, 2,
          "answering did not answer within 0.3 s (rewards.timeout_s) at row 0 of 2; it may not "
          "flush its output after each line");
    fails("twice", 0, 1, "answering answered 1 rows with more lines, the first of them \"1\"");
    fails("after 0 exit 0", 0, 4, "answering ended with status 0 at row 0 of 4");
    fails("number 1.5", 0, 2,
          "answered row 0 of 2 with \"{\"reward\": 1, \"index\": 1.5}\": its "
          "\"index\" is not the number of a row");
    fails("number '\"0\"'", 0, 2, ": its \"index\" is not the number of a row");
    fails("number -1", 0, 2, ": its \"index\" is not the number of a row");
    fails("number 1", 0, 2, "answering answered row 1 where row 0 of 2 was asked: it left one out");
    fails("wide 1200000", 0, 1, "answering answered row 0 of 1 with \"{\"reward\": 1");
    open_it("early", 0);
    fill(2, "x");
    poll(NULL, 0, 300);                      // it writes before it reads
    while (many_score(&r, &m, 2) == RLHF_OK) // or its line is too late for the first call
        continue;
    assert_non_null(strstr(r.host.fail_text, "answer"));
    reward_close(&r);
}

static void ended_between_calls(void **state) {
    (void)state;
    siginfo_t info;
    open_it("once", 0);
    fill(1, "x");
    for (int call = 0; call < 3; call++) {
        assert_int_equal(many_score(&r, &m, 1), RLHF_OK);
        assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0); // it has exited
    }
    assert_true(rlhf_test_logged(&r.host, "answering ended with status 0 between two calls"));
    reward_close(&r);
}

static char answered[128];
static int looks, last_words;

// A cancelled() that waits from its second call on, which usually comes after the rows are sent. It
// waits until the program has answered, so that answer and output arrive together.
static int32_t wait_for_answer(const rlhf_host *host) {
    (void)host;
    looks++;
    const int most = looks < 2 ? 0 : looks == 2 ? 100 : 1000;
    for (int i = 0; i < most && access(answered, F_OK) != 0; i++)
        poll(NULL, 0, 10);
    return 0;
}

static void hear(const rlhf_host *host, int32_t level, const char *text) {
    (void)host;
    (void)level;
    last_words += strcmp(text, "last words") == 0;
}

// The answer is already there, and the program printed more than a single read returns. All of this
// output is logged before the call returns.
static void what_it_printed_comes_before_its_answer(void **state) {
    char args[160];
    (void)state;
    snprintf(answered, sizeof answered, "%s/answered", folder);
    snprintf(args, sizeof args, "waits %s", answered);
    open_it(args, 0);
    fill(1, "x");
    looks = last_words = 0;
    r.host.table.cancelled = wait_for_answer;
    r.host.table.log = hear;
    assert_int_equal(many_score(&r, &m, 1), RLHF_OK);
    assert_int_equal(last_words, 1);
    unlink(answered);
    reward_close(&r);
}

static void stopped_by_the_user(void **state) {
    (void)state;
    open_it("after 0 hang", 0);
    fill(1, "x");
    r.host.cancel = 1;
    assert_int_equal(many_score(&r, &m, 1), RLHF_E_CANCELLED);
    reward_close(&r);
}

// When the program ends, its children end, too, whatever their session.
static void no_orphans(void **state) {
    (void)state;
    char path[128], args[160];
    snprintf(path, sizeof path, "%s/family", folder);
    snprintf(args, sizeof args, "family %s", path);
    for (int how = 0; how < 2; how++) { // by a deadline, and by the end of the run
        long pid = 0;
        open_it(args, 0.5);
        for (int i = 0; i < 1000 && !pid; i++) {
            FILE *f = fopen(path, "r");
            if (f && fscanf(f, "%ld", &pid) != 1) pid = 0;
            if (f) fclose(f);
            poll(NULL, 0, 10);
        }
        assert_true(pid > 0 && kill((pid_t)pid, 0) == 0);
        fill(1, "x");
        if (how == 0) {
            assert_int_equal(many_score(&r, &m, 1), RLHF_E_IO);
            says("did not answer within 0.5 s");
        }
        unlink(path);
        reward_close(&r);
        for (int i = 0; i < 1000 && kill((pid_t)pid, 0) == 0; i++)
            poll(NULL, 0, 10); // its new parent still has to wait for it
        assert_true(kill((pid_t)pid, 0) != 0 && errno == ESRCH);
    }
}

static void memory_is_limited(void **state) {
    (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip(); // their shadow memory exceeds every limit
#endif
    open_it("memory 300", 0);
    fill(1, "hang");
    r.host.cancel = 1; // the program is ended, and restarted for the next call
    assert_int_equal(many_score(&r, &m, 1), RLHF_E_CANCELLED);
    r.host.cancel = 0;
    fill(1, "x");
    r.host.limits.memory_bytes = 200 << 20;
    assert_int_equal(many_score(&r, &m, 1), RLHF_E_IO);
    says("answering ended with status 9 at row 0");
    r.host.limits.memory_bytes = 0;
    assert_int_equal(many_score(&r, &m, 1), RLHF_OK);
    reward_close(&r);
}

// ---- programs that cannot be run ----

static void refuses(const char *options, const char *sentence) {
    assert_int_equal(reward_try(&r, "exec.so", options), RLHF_E_INVALID);
    says(sentence);
    assert_int_equal(r.host.live, 0);
}

static void programs_that_cannot_be_run(void **state) {
    (void)state;
    char path[128], options[256], sentence[256];
    refuses("command=", "the command is empty");
    refuses("command=a | b", "the command has an unquoted |");
    refuses("command=no-such-program-here x",
            "the program no-such-program-here cannot be run: it is not in PATH");
    refuses("command=./no/such", "the program ./no/such cannot be run: it does not exist");
    refuses("command=/", "the program / cannot be run: it is a directory");
    snprintf(path, sizeof path, "%s/text", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("echo 1\n", f);
    fclose(f);
    snprintf(options, sizeof options, "command=%s", path);
    assert_int_equal(chmod(path, 0644), 0);
    refuses(options, "cannot be run: it is not executable (chmod +x)");
    assert_int_equal(chmod(path, 0755), 0);
    snprintf(sentence, sizeof sentence,
             "the program %s cannot be run: it is neither a program nor a script that begins with "
             "#!",
             path);
    refuses(options, sentence);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("#!/no/such/thing\n", f);
    fclose(f);
    refuses(options, "cannot be run: the interpreter named in its first line does not exist");
}

static void without_memory(void **state) {
    (void)state;
    for (int64_t n = 1; n <= 2; n++) {
        open_it("one", 0);
        fill(3, "x");
        rlhf_test_fail_alloc(&r.host, n, 0);
        assert_int_equal(many_score(&r, &m, 3), RLHF_E_NOMEM);
        assert_int_equal(many_score(&r, &m, 3), RLHF_OK);
        reward_close(&r);
    }
}

static int make_folder(void **state) {
    (void)state;
    r.programs = many_programs();
    snprintf(folder, sizeof folder, "/tmp/rlhf-exec-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_as_json),
                                       cmocka_unit_test(numbers_and_objects),
                                       cmocka_unit_test(metrics_and_verdicts),
                                       cmocka_unit_test(much_both_ways),
                                       cmocka_unit_test(kept_alive),
                                       cmocka_unit_test(it_ends),
                                       cmocka_unit_test(it_hangs),
                                       cmocka_unit_test(it_leaves_a_row_out),
                                       cmocka_unit_test(it_talks_nonsense),
                                       cmocka_unit_test(no_row_is_sure),
                                       cmocka_unit_test(ended_between_calls),
                                       cmocka_unit_test(what_it_printed_comes_before_its_answer),
                                       cmocka_unit_test(stopped_by_the_user),
                                       cmocka_unit_test(no_orphans),
                                       cmocka_unit_test(memory_is_limited),
                                       cmocka_unit_test(programs_that_cannot_be_run),
                                       cmocka_unit_test(without_memory)};
    return cmocka_run_group_tests_name("rewards/exec", tests, make_folder, remove_folder);
}
