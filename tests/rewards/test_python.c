// test_python.c: python.so and the functions that it runs. Tests the arguments of functions, valid
// results, and failure messages. Skipped without python3.
#include "rewards/many.h"
#include "rewards/rows.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static struct reward r;
static struct many m;
static char folder[64];

static int has_python(void) { return system("python3 -c 'import sys' >/dev/null 2>&1") == 0; }

// Writes `text` to rewards.py and opens the file with "function=..." and further options.
static rlhf_status try_file(const char *text, const char *options) {
    char path[128], all[512];
    snprintf(path, sizeof path, "%s/rewards.py", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    snprintf(all, sizeof all, "file=%s,%s", path, options);
    return reward_try(&r, "python.so", all);
}

static void open_file(const char *text, const char *options) {
    if (try_file(text, options) != RLHF_OK) fail_msg("%s", r.host.fail_text);
}

static void fill(uint32_t n, const char *response) {
    many_fill(&m, n, (rlhf_str){response, strlen(response)});
}

static void row(uint32_t i, const char *json) { m.meta[i] = (rlhf_str){json, strlen(json)}; }

static void scores(uint32_t n) {
    if (many_score(&r, &m, n) != RLHF_OK) fail_msg("%s", r.host.fail_text);
}

static void says(const char *text) {
    if (!strstr(r.host.fail_text, text))
        fail_msg("\"%s\" is not in \"%s\"", text, r.host.fail_text);
}

static double metric(const char *name) {
    double value = 0;
    if (!rlhf_test_metric(&r.host, name, &value)) fail_msg("no metric %s", name);
    return value;
}

// ---- arguments of a function ----

// This function returns 1 for each row if its arguments are right. Otherwise it raises an
// exception.
#define EXPECTS(conditions)                                                                        \
    "def f(**kw):\n"                                                                               \
    "    assert set(kw) >= {'prompts', 'completions', 'completion_ids', 'trainer_state',\n"        \
    "                       'log_extra', 'log_metric'}, sorted(kw)\n" conditions                   \
    "    return [1] * len(kw['prompts'])\n"

static void texts_ids_and_columns(void **state) {
    (void)state;
    open_file(EXPECTS("    assert kw['prompts'] == ['It was ', 'It was ']\n"
                      "    assert kw['completions'] == ['\\u00e9\\ufffd\\n', '\\u00e9\\ufffd\\n']\n"
                      "    assert kw['completion_ids'] == [[9, 10], [9, 10]]\n"
                      "    assert kw['trainer_state'].global_step == 4\n"
                      "    assert kw['answer'] == ['a', None]\n"
                      "    assert kw['n'] == [None, [1, {'x': 2.5}]]\n"
                      "    assert 'prompt' not in kw and 'completion' not in kw\n"),
              "function=f");
    many_fill(&m, 2, (rlhf_str){"\xc3\xa9\xff\n", 4});
    row(0, "{\"prompt\": \"It was\", \"answer\": \"a\", \"completion\": 3}");
    row(1, "{\"n\": [1, {\"x\": 2.5}],\n \"prompt\": \"It was\"}");
    m.phase = 4;
    scores(2);
    assert_true(m.seq[0] == 1 && m.seq[1] == 1);
    reward_close(&r);
    open_file(EXPECTS("    assert len(kw) == 6, sorted(kw)\n"),
              "function=f"); // text files do not have rows
    fill(2, "x");
    scores(2);
    reward_close(&r);
}

static void conversations(void **state) {
    (void)state;
    open_file(
        EXPECTS("    assert kw['prompts'] == [[{'role': 'user', 'content': 'Hi'}]] * 2\n"
                "    assert kw['completions'] == [[{'role': 'assistant', 'content': 'x'}]] * 2\n"
                "    assert 'messages' not in kw and kw['answer'] == [4, 5]\n"),
        "function=f");
    fill(2, "x");
    row(0, "{\"prompt\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"answer\": 4}");
    row(1, "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"answer\": 5}");
    scores(2);
    reward_close(&r);
}

// ---- results ----

static void numbers_none_and_nan(void **state) {
    (void)state;
    open_file("import math, fractions\n"
              "def f(prompts, **kw):\n"
              "    return (x for x in [1, 2.5, True, None, math.nan, -math.inf, "
              "fractions.Fraction(1, 4), 1e300])\n",
              "function=f");
    static const double pays[] = {1, 2.5, 1, NAN, NAN, -INFINITY, 0.25, INFINITY};
    fill(8, "x");
    scores(8);
    for (int i = 0; i < 8; i++)
        assert_true((double)m.seq[i] == pays[i] || (isnan(pays[i]) && isnan(m.seq[i])));
    assert_true(metric("unscored") == 0.25);
    reward_close(&r);
}

// Rewards are added as in TRL: in f32 and with weights. Functions that do not apply to a row are
// left out.
static void several_functions(void **state) {
    (void)state;
    static const char *const text =
        "def a(prompts, **kw):\n    return [1, None, 3, None]\n"
        "async def b(prompts, **kw):\n    return [0.1, 0.2, None, None]\n";
    open_file(text, "function=a+b");
    fill(4, "x");
    scores(4);
    assert_true(m.seq[0] == 1.0f + 0.1f && m.seq[1] == 0.2f && m.seq[2] == 3 && isnan(m.seq[3]));
    assert_true(metric("a/mean") == 2 && fabs(metric("b/mean") - 0.15) < 1e-12);
    assert_true(metric("unscored") == 0.25);
    assert_true(rlhf_test_logged(
        &r.host, "rewards.py: a() returned None for row 3 of 4, so that no function scores it; "
                 "return a number for every row, or set rewards.nan_policy to zero or drop"));
    reward_close(&r);
    open_file(text, "function=a");
    scores(4);
    assert_true(rlhf_test_logged(&r.host, "a() returned None for row 1 and 1 more of 4, so "));
    reward_close(&r);
    open_file(text, "function=a + b,weights=2+-0.5");
    scores(4);
    assert_true(m.seq[0] == 2.0f + -0.5f * 0.1f && m.seq[1] == -0.5f * 0.2f && m.seq[2] == 6);
    reward_close(&r);
    assert_int_equal(try_file(text, "function=a,weights=1+2"), RLHF_E_INVALID);
    says("weights has 2 numbers for 1 function");
    assert_int_equal(try_file(text, "function=a,weights=x"), RLHF_E_INVALID);
    says("weights is \"x\"; expected numbers from -1e6 to 1e6");
    assert_int_equal(try_file(text, "function=a++b"), RLHF_E_INVALID);
    says("function is \"a++b\"; expected one name");
}

// Async functions run after the others, in one event loop. This loop stays alive between calls.
static void async_functions(void **state) {
    (void)state;
    open_file("import asyncio, functools\n"
              "loops, order, met = set(), [], []\n"
              "async def first(prompts, **kw):\n"
              "    loops.add(id(asyncio.get_running_loop()))\n"
              "    while not met:\n"
              "        await asyncio.sleep(0)\n"
              "    return [len(loops)]\n"
              "class Second:\n"
              "    async def __call__(self, prompts, **kw):\n"
              "        met.append(1)\n"
              "        return [10 * len(order)]\n"
              "second = functools.partial(Second())\n"
              "def last(prompts, **kw):\n"
              "    order.append(1)\n"
              "    return [100]\n",
              "function=first+second+last");
    fill(1, "x");
    scores(1);
    assert_true(m.seq[0] == 111);
    scores(1);
    assert_true(m.seq[0] == 121);
    reward_close(&r);
}

// Returns how many lines of level `level` in the log contain this text. With level -1, all levels
// count.
static int logged(int32_t level, const char *text) {
    int n = 0;
    for (uint32_t i = 0; i < r.host.n_logs && i < RLHF_TEST_LOGS; i++)
        n += (level < 0 || r.host.log[i].level == level) && strstr(r.host.log[i].text, text);
    return n;
}

static void logging(void **state) {
    (void)state;
    open_file("def f(prompts, completions, log_metric, log_extra, **kw):\n"
              "    log_metric('length', 3)\n"
              "    log_metric('length', 5)\n"
              "    log_extra('column', completions)\n"
              "    return [0.0] * len(prompts)\n",
              "function=f");
    fill(2, "x");
    scores(2);
    scores(2);
    assert_true(metric("length") == 4);
    assert_int_equal(logged(-1, "log_extra: there is no table of completions"), 1);
    assert_int_equal(logged(RLHF_LOG_INFO, "rewards.py (python3) runs with your rights"), 1);
    assert_int_equal(r.host.n_logs, 2); // each message is reported once
    reward_close(&r);
}

// Functions may print, read input and start children. This does not disturb the driver's messages.
static void noise(void **state) {
    (void)state;
    open_file("import os, subprocess, sys\n"
              "print('imported')\n"
              "os.write(1, b'scores 0 1\\n')\n"
              "def f(prompts, **kw):\n"
              "    print('x' * 100000)\n"
              "    os.system('echo 1; cat')\n"
              "    assert sys.stdin.read() == ''\n"
              "    return [1]\n",
              "function=f");
    fill(1, "x");
    scores(1);
    assert_true(m.seq[0] == 1);
    reward_close(&r);
}

// The log shows the first lines that functions print in a phase, and how many lines followed.
static void printing(void **state) {
    (void)state;
    open_file("print('imported')\n"
              "def f(prompts, trainer_state, **kw):\n"
              "    for i in range(4):\n"
              "        print('line', i, 'é\x1b')\n"
              "    return [1]\n",
              "function=f");
    fill(1, "x");
    scores(1); // the functions print 4 lines
    assert_int_equal(logged(RLHF_LOG_INFO, "rewards.py: imported"), 1);
    assert_int_equal(logged(RLHF_LOG_INFO, "rewards.py: line 3 é\\x1b"), 1);
    scores(1); // 8 lines in the same phase
    assert_int_equal(logged(RLHF_LOG_INFO, "rewards.py: line"), 5);
    assert_int_equal(logged(RLHF_LOG_DEBUG, "line"), 3);
    assert_int_equal(logged(-1, "more line"), 0);
    m.phase = 1;
    scores(1);
    assert_int_equal(logged(RLHF_LOG_INFO, "rewards.py: 3 more lines printed, shown at "), 1);
    assert_int_equal(logged(RLHF_LOG_INFO, "rewards.py: line"), 9);
    m.phase = 2;
    scores(1);
    scores(1);
    m.phase = 0;
    assert_int_equal(logged(-1, "more line"), 1);
    reward_close(&r);
    assert_int_equal(logged(RLHF_LOG_INFO, "rewards.py: 3 more lines printed"), 2);
}

// ---- invalid files ----

static void refuses(const char *text, const char *options, const char *sentence) {
    assert_int_equal(try_file(text, options), RLHF_E_INVALID);
    if (strcmp(r.host.fail_text, sentence) != 0)
        fail_msg("\"%s\", not \"%s\"", r.host.fail_text, sentence);
    assert_int_equal(r.host.live, 0);
}

static void files_that_do_not_import(void **state) {
    (void)state;
    refuses("import os\nimport no_such_thing\n", "function=f",
            "rewards.py cannot be imported: line 2: ModuleNotFoundError: No module named "
            "'no_such_thing'");
    refuses("def g(x):\n    return 1 / x\nbig = g(0)\n", "function=f",
            "rewards.py cannot be imported: line 2, in g: ZeroDivisionError: division by zero");
    assert_int_equal(try_file("import json\nx = json.loads('{')\n", "function=f"), RLHF_E_INVALID);
    says("rewards.py cannot be imported: line 2 (at decoder.py, line ");
    says("): json.decoder.JSONDecodeError: ");
    refuses("raise SystemExit(3)\n", "function=f",
            "rewards.py cannot be imported: line 1: SystemExit: 3");
    assert_int_equal(try_file("def f(:\n", "function=f"), RLHF_E_INVALID);
    says("rewards.py cannot be imported: line 1: SyntaxError: ");
    assert_int_equal(
        try_file("import os\nos.write(2, b'bad\\x1b luck\\n')\nos._exit(7)\n", "function=f"),
        RLHF_E_INVALID);
    says("rewards.py (python3) ended with status 7 while it imported the file; it said: \"bad\\x1b "
         "luck\"");
    assert_int_equal(reward_try(&r, "python.so", "file=no/such.py,function=f"), RLHF_E_INVALID);
    says("file=no/such.py cannot be read: No such file or directory");
    refuses("def f(**kw):\n    pass\n", "function=f,python=no-such-python",
            "the program no-such-python cannot be run: it is not in PATH");
}

static void functions_that_are_not_there(void **state) {
    (void)state;
    static const char *const text = "accuracy = lambda **kw: [1]\nlimit = 3\n";
    refuses(text, "function=acuracy",
            "rewards.py has no function \"acuracy\" (did you mean \"accuracy\"?)");
    refuses(text, "function=accuracy+x", "rewards.py has no function \"x\"");
    refuses(text, "function=limit", "rewards.py has 'limit', which is a int, not a function");
    refuses("def f(prompts):\n    return []\n", "function=f",
            "rewards.py has f(), which is called with completions= and does not take it; give it "
            "**kwargs");
    refuses("def f(prompt, **kw):\n    return []\n", "function=f",
            "rewards.py has f(), which takes prompt, but prompts is passed");
}

static void columns_that_rows_lack(void **state) {
    (void)state;
    static const char *const file = "def f(completions, solution, hint=None, **kw):\n"
                                    "    return [s == 'a' for s in solution]\n";
    open_file(file, "function=f");
    static const char *const good = "{\"solution\": \"a\"}", *const bad = "{\"hint\": \"a\"}";
    assert_int_equal(reward_check_row(&r, (rlhf_str){good, strlen(good)}), RLHF_OK);
    assert_int_equal(reward_check_row(&r, (rlhf_str){bad, strlen(bad)}), RLHF_E_INVALID);
    assert_string_equal(r.host.fail_text,
                        "the data row has no \"solution\", which f of rewards.py is called with");
    assert_int_equal(reward_check_row(&r, (rlhf_str){NULL, 0}), RLHF_E_INVALID);
    assert_string_equal(r.host.fail_text,
                        "the prompt has no data row, so no \"solution\", which f of rewards.py is "
                        "called with; use prompts in a .jsonl file");
    fill(2, "x");
    row(0, good);
    row(1, "{\"solution\": \"b\"}");
    scores(2);
    assert_true(m.seq[0] == 1 && m.seq[1] == 0);
    reward_close(&r);
    open_file("def f(**kw):\n    return [1, 2]\n", "function=f");
    assert_int_equal(reward_check_row(&r, (rlhf_str){NULL, 0}), RLHF_OK);
    reward_close(&r);
}

// The first row that is checked is also scored, with two made-up responses.
static void functions_are_tried(void **state) {
    (void)state;
    static const char *const row_text = "{\"prompt\": \"Why?\", \"solution\": \"a\"}";
    const rlhf_str checked = {row_text, strlen(row_text)};
    open_file("def f(completions, **kw):\n    return [c.index('Y') for c in completions]\n",
              "function=f");
    assert_int_equal(reward_check_row(&r, checked), RLHF_E_INVALID);
    assert_string_equal(r.host.fail_text,
                        "rewards.py: f() failed: line 2, in <listcomp>: ValueError: substring not "
                        "found (when it scored two made-up responses to the first row, before the "
                        "run)");
    assert_int_equal(reward_check_row(&r, checked), RLHF_OK); // only the first row is tried
    reward_close(&r);
    open_file("def f(completions, solution, **kw):\n    return [1]\n", "function=f");
    assert_int_equal(reward_check_row(&r, checked), RLHF_E_INVALID);
    assert_string_equal(r.host.fail_text,
                        "rewards.py: f() returned 1 rewards for 2 rows (when it scored two made-up "
                        "responses to the first row, before the run)");
    reward_close(&r);
    open_file("seen = []\n"
              "def f(prompts, completions, solution, **kw):\n"
              "    seen.append((completions, solution))\n"
              "    return [float(seen[0] == (['', 'Yes.'], ['a', 'a']))] * len(prompts)\n",
              "function=f");
    assert_int_equal(reward_check_row(&r, checked), RLHF_OK);
    fill(1, "x");
    row(0, row_text);
    scores(1);
    assert_true(m.seq[0] == 1);
    reward_close(&r);
}

// ---- failing functions ----

// The call fails with the message. The next call, which has one row, succeeds.
static void fails(const char *body, const char *sentence) {
    char text[512];
    snprintf(text, sizeof text,
             "def f(prompts, completions, **kw):\n    if len(prompts) == 1: return [1]\n%s", body);
    open_file(text, "function=f");
    fill(3, "some words");
    assert_int_equal(many_score(&r, &m, 3), RLHF_E_IO);
    if (strcmp(r.host.fail_text, sentence) != 0)
        fail_msg("\"%s\", not \"%s\"", r.host.fail_text, sentence);
    scores(1);
    assert_true(m.seq[0] == 1);
    reward_close(&r);
}

static void functions_that_fail(void **state) {
    (void)state;
    fails("    return [1, 2]\n", "rewards.py: f() returned 2 rewards for 3 rows");
    fails("    return [1, 'a', 3]\n",
          "rewards.py: f() returned 'a' for row 1 of 3; expected a number or None");
    fails("    return [1, 2, 10 ** 400]\n    #",
          "rewards.py: f() returned 100000000000000000000000000000000000000000000000000000000... "
          "for row 2 of 3; expected a number or None");
    fails("    pass\n", "rewards.py: f() returned None, not a list of rewards");
    fails("    return 1.5\n", "rewards.py: f() returned a float, not a list of rewards");
    fails("    return {}['x']\n", "rewards.py: f() failed: line 3, in f: KeyError: 'x'");
    // If exactly one row is involved, the message names it. If two or all rows are involved, it
    // does not.
    fails(
        "    for c in completions:\n        1 / (c is not completions[1])\n",
        "rewards.py: f() failed: line 4, in f (c is of row 1 of 3): ZeroDivisionError: division by "
        "zero");
    fails("    c, d = completions[:2]\n    1 / 0\n",
          "rewards.py: f() failed: line 4, in f: ZeroDivisionError: division by zero");
    fails("    raise ValueError('two\\nlines \\x1b')\n",
          "rewards.py: f() failed: line 3, in f: lines \\x1b");
    fails("    raise SystemExit(3)\n", "rewards.py: f() failed: line 3, in f: SystemExit: 3");
    fails(
        "    import os, signal\n    os.kill(os.getpid(), signal.SIGSEGV)\n",
        "rewards.py (python3) was ended by signal 11 (Segmentation fault) while it scored 3 rows");
    fails("    import os\n    os._exit(0)\n",
          "rewards.py (python3) ended with status 0 while it scored 3 rows");
}

static void functions_that_hang(void **state) {
    (void)state;
    open_file("import time\ndef f(prompts, **kw):\n    while len(prompts) > 1: time.sleep(9)\n"
              "    return [1]\n",
              "function=f");
    r.host.limits.timeout_s = 0.3;
    fill(2, "x");
    assert_int_equal(many_score(&r, &m, 2), RLHF_E_IO);
    says("rewards.py (python3) did not answer within 0.3 s (rewards.timeout_s) while it scored 2");
    r.host.limits.timeout_s = 0;
    scores(1);
    r.host.cancel = 1;
    assert_int_equal(many_score(&r, &m, 2), RLHF_E_CANCELLED);
    reward_close(&r);
}

static int setup(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/rlhf-python-XXXXXX");
    r.rows = rlhf__row_service();
    r.programs = many_programs();
    return r.rows && mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

// ---- graders of hosted fine-tuning ----

// A function of (sample, item) is called for each row. Exceptions and values that are no numbers
// are the grade 0.
static void graders(void **state) {
    (void)state;
    static const char *const responses[] = {"a", "{\"x\": [2]}", "b", "c", "d", "e"};
    static const float want[] = {1, 2, 0, 0, 0, -3};
    static const char text[] =
        "def grade(sample, item):\n"
        "    assert set(sample) == {'output_text', 'output_json', 'output_tools', 'output_audio',\n"
        "                           'choices'}\n"
        "    text = sample['output_text']\n"
        "    assert sample['choices'][0]['message'] == {'role': 'assistant', 'content': text}\n"
        "    assert sample['choices'][0]['finish_reason'] == ('length' if text == 'e' else "
        "'stop')\n"
        "    if sample['output_json']:\n"
        "        return sample['output_json']['x'][0]\n"
        "    return {'a': item['reference_answer'] == 'r', 'b': float('inf'), 'c': '1',\n"
        "            'e': -3}[text]\n"
        "def half(sample, item):\n"
        "    return 0.5\n"
        "def trl(completions, reference_answer, **kwargs):\n"
        "    return [10] * len(completions)\n"
        "def other(output, reference):\n"
        "    return 0.5\n";
    open_file(text, "function=grade");
    many_fill(&m, 6, (rlhf_str){"", 0});
    for (uint32_t i = 0; i < 6; i++) {
        m.response[i] = (rlhf_str){responses[i], strlen(responses[i])};
        m.finished[i] = i != 5;
        row(i, "{\"reference_answer\": \"r\", \"messages\": []}");
    }
    r.host.n_logs = 0;
    scores(6);
    for (uint32_t i = 0; i < 6; i++)
        assert_true(m.seq[i] == want[i]);
    assert_true(fabs(metric("invalid") - 0.5) < 1e-9);
    assert_string_equal(r.host.log[0].text,
                        "rewards.py: grade() has no grade for row 2 of 6, which counts as 0: it "
                        "returned inf, not a number");
    m.response[0] = (rlhf_str){"d\x1b", 2};
    reward_close(&r);
    open_file(text, "function=grade+half+trl");
    r.host.n_logs = 0;
    scores(1);
    assert_true(m.seq[0] == 10.5F);
    assert_string_equal(r.host.log[0].text,
                        "rewards.py: grade() has no grade for row 0 of 1, which "
                        "counts as 0: line 9, in grade: KeyError: 'd\\x1b'");
    reward_close(&r);
    assert_int_equal(try_file(text, "function=other"), RLHF_E_INVALID);
    says("other(), which is called with prompts= and does not take it");
    reward_close(&r);
}

// The calls that a response makes are output_tools if the row has tools.
static void tools_of_graders(void **state) {
    (void)state;
    open_file(
        "def grade(sample, item):\n"
        "    calls = [c['function'] for c in sample['output_tools']]\n"
        "    assert sample['choices'][0]['finish_reason'] == ('tool_calls' if calls else 'stop')\n"
        "    if not calls:\n"
        "        return -len(sample['output_text'])\n"
        "    assert calls == [{'name': 'f', 'arguments': '{\"a\": [1, 0.5]}'},\n"
        "                     {'name': 'g', 'arguments': 'x'}], calls\n"
        "    return len(sample['output_text'])\n",
        "function=grade");
    fill(2, "I ask <tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1, 0.5]}}</tool_call>"
            "<tool_call>{}</tool_call>"
            "<tool_call>\n{\"name\": \"g\", \"arguments\": \"x\"}\n</tool_call>\n");
    memset(m.finished, 1, 2);
    row(0, "{\"tools\": []}");
    row(1, "{\"x\": 1}");
    scores(2);
    assert_true(m.seq[0] == 31 && m.seq[1] == -(float)m.response[1].len);
    reward_close(&r);
}

int main(void) {
    if (!has_python()) {
        printf("skipped: there is no python3\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_ids_and_columns),
                                       cmocka_unit_test(conversations),
                                       cmocka_unit_test(numbers_none_and_nan),
                                       cmocka_unit_test(several_functions),
                                       cmocka_unit_test(async_functions),
                                       cmocka_unit_test(graders),
                                       cmocka_unit_test(tools_of_graders),
                                       cmocka_unit_test(logging),
                                       cmocka_unit_test(noise),
                                       cmocka_unit_test(printing),
                                       cmocka_unit_test(files_that_do_not_import),
                                       cmocka_unit_test(functions_that_are_not_there),
                                       cmocka_unit_test(columns_that_rows_lack),
                                       cmocka_unit_test(functions_are_tried),
                                       cmocka_unit_test(functions_that_fail),
                                       cmocka_unit_test(functions_that_hang)};
    return cmocka_run_group_tests_name("rewards/python", tests, setup, teardown);
}
