// test_e2e_parts.c: a reward of several parts. Each part is shown by its name wherever the reward
// is: the phase line, the summary, `runs show`, `report` and `eval`.
#include "e2e.h"

#include <math.h>
#include <string.h>

#define RUN                                                                                        \
    "--algo grpo.so --policy model --set policy.init=random --prompts prompts.txt --set "          \
    "batch.size=8 --set algo.group_size=4 --set sampling.max_new_tokens=8 --set "                  \
    "log.tensorboard=false --set run.phases=2 "
#define PYTHON "python.so:file=rewards.py,function=fmt,correct"

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    e2e_write(*state, "rewards.py",
              "def fmt(completions, **kwargs): return [float(len(set(c))) for c in completions]\n"
              "def correct(completions, **kwargs): return [0.0 for c in completions]\n");
    return 0;
}

static double at(const json_t *v, const char *a, const char *b, const char *c, const char *d) {
    const char *const path[] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        v = path[i] ? json_object_get(v, path[i]) : v;
    if (!json_is_number(v)) fail_msg("no number at %s %s", a, b ? b : "");
    return json_number_value(v);
}

static void runs(void **state) {
    struct e2e *t = *state;
    if (e2e_run(t, RUN "--reward " PYTHON " --out a") != 0) fail_msg("%s", t->out);
    e2e_says(t, " (correct 0.0000, fmt ");
    e2e_says(t, "rewards: correct 0 (0 at first), fmt ");
    assert_int_equal(e2e_shell(t, "\"$HOST\" runs show a"), 0);
    e2e_says(t, "correct: 0 in the first phase, 0 at the end.");
    if (e2e_run(t,
                RUN "--reward " PYTHON " --reward period_count.so --set log.format=json --out b"))
        fail_msg("%s", t->out);
    e2e_says(t, "\"parts\": {\"python/correct\": 0, \"python/fmt\": ");
}

// The table has a row for each function. The rows add up to the reward.
static void evaluated(void **state) {
    struct e2e *t = *state;
    const char *eval = "eval --model model/w --data prompts.txt --n 8 --set "
                       "sampling.max_new_tokens=8 --reward " PYTHON;
    if (e2e_run(t, RUN "--reward " PYTHON " --out s") ||
        e2e_shell(t, "cp -rL s/checkpoints/latest model/w"))
        fail_msg("%s", t->out);
    assert_int_equal(e2e_run(t, "%s", eval), 0);
    e2e_says(t, "\n  correct   0.0000\n  fmt       ");
    assert_int_equal(e2e_run(t, "%s --reward period_count.so", eval), 0);
    e2e_says(t, "\n  python/correct 0.0000\n  python/fmt ");
    assert_int_equal(e2e_run(t, "%s --compare model/w", eval), 0);
    e2e_says(t, "\n  correct    0.0000                0.0000                +0.0000\n");
    assert_int_equal(e2e_shell(t, "\"$HOST\" %s --compare model/w --json 2>log", eval), 0);
    json_t *v = json_loads(t->out, 0, NULL);
    const json_t *parts =
        json_object_get(json_object_get(json_object_get(v, "rewards"), "python"), "parts");
    assert_true(at(parts, "correct", "mean", NULL, NULL) == 0);
    assert_true(fabs(at(parts, "fmt", "mean", NULL, NULL) - at(v, "reward", NULL, NULL, NULL)) <
                1e-6);
    assert_true(at(v, "difference", "python/fmt", "mean", NULL) == 0);
    json_decref(v);
}

// A function in Python that takes completions for texts, although they are lists of messages.
static void messages(void **state) {
    struct e2e *t = *state;
    e2e_write(
        t, "chats.jsonl",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a film\"}], \"answer\": \"b\"}\n");
    e2e_write(t, "texts.jsonl", "{\"prompt\": \"a film\", \"answer\": \"b\"}\n");
    e2e_write(
        t, "naive.py",
        "def right(completions, answer, **kwargs):\n"
        "    return [1.0 if '\\n\\n' + a in c else 0.0 for a, c in zip(answer, completions)]\n");
#define NAIVE "--reward python.so:file=naive.py,function=right "
    if (e2e_run(t, RUN NAIVE "--set prompts.template=plain --prompts chats.jsonl --out a"))
        fail_msg("%s", t->out);
    e2e_says(t, "warning: phase 1: the prompts are messages, so a reward in Python gets each "
                "completion c as a list of messages; its text is c[0][\"content\"], and");
    assert_int_equal(e2e_run(t, RUN NAIVE "--prompts texts.jsonl --out b"), 0);
    e2e_says(t, "warning: phase 1: All responses have the same reward");
    assert_null(strstr(t->out, "list of messages"));
    assert_int_equal(
        e2e_run(
            t, RUN
            "--reward period_count.so --set prompts.template=plain --prompts chats.jsonl --out c"),
        0);
    assert_null(strstr(t->out, "list of messages"));
    // Rewards that are flat within each group, but differ between groups, read the messages.
    e2e_write(t, "two.jsonl",
              "{\"messages\": [{\"role\": \"user\", \"content\": \"a film\"}]}\n"
              "{\"messages\": [{\"role\": \"user\", \"content\": \"a long film\"}]}\n");
    e2e_write(
        t, "flat.py",
        "def flat(prompts, **kwargs): return [float(len(p[0]['content'])) for p in prompts]\n");
    assert_int_equal(e2e_run(t, RUN "--reward python.so:file=flat.py,function=flat --set "
                                    "prompts.template=plain --prompts two.jsonl --out d"),
                     0);
    e2e_says(t, "warning: phase 1: ");
    assert_null(strstr(t->out, "list of messages"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(evaluated, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(messages, setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_parts", tests, NULL, NULL);
}
