// test_e2e_rubric.c: runs whose reward is a judge (rubric.so). With the judge's recorded answers, a
// repeated run and a resumed run give the same bytes without the judge.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define RUN                                                                                        \
    "--algo grpo.so --set algo.group_size=4 --policy model --set policy.init=random "              \
    "--prompts prompts.txt --set batch.size=12 --set sampling.max_new_tokens=8 "                   \
    "--set optim.lr=0.01 --set run.seed=5 --set log.rollouts=true --threads 1 "
// The judge of a run: `command` answers questions that the file `record` does not contain.
#define JUDGE "--reward \"rubric.so:file=rubric.json,command=python3 %s,record=%s\" "

// This judge scores by the question's length and counts the questions in the file `judged`.
static const char judge[] =
    "import json, sys\n"
    "for line in sys.stdin:\n"
    "    q = json.loads(line)\n"
    "    with open('judged', 'a') as f:\n"
    "        f.write('.')\n"
    "    score = sum(q['text'].encode()) % 11\n"
    "    print(json.dumps({'ask': q['ask'], 'score': score}), flush=True)\n";

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    e2e_write(*state, "judge.py", judge);
    e2e_write(*state, "absent.py", "import sys\nsys.exit('the judge is gone')\n");
    e2e_write(*state, "rubric.json",
              "{\"criteria\": [{\"name\": \"clear\", \"ask\": \"Is it clear?\", \"weight\": 2},\n"
              " {\"name\": \"short\", \"ask\": \"Is it short?\"}]}\n");
    return 0;
}

static void same(struct e2e *t, const char *dir) {
    static const char *const files[] = {"checkpoints/latest/model.safetensors", "rollouts.jsonl"};
    for (size_t i = 0; i < 2; i++)
        if (e2e_shell(t, "cmp whole/%s %s/%s", files[i], dir, files[i]) != 0)
            fail_msg("%s: %s", dir, t->out);
}

static void run_whole(struct e2e *t) {
    if (e2e_run(t, RUN JUDGE "--set run.phases=4 --set run.dir=whole", "judge.py", "all.jsonl") !=
        0)
        fail_msg("%s", t->out);
    json_t *m = e2e_metrics(t, "whole");
    assert_true(e2e_metric(m, 0, "rewards/rubric/asked") > 1);
    assert_true(e2e_metric(m, 0, "rewards/rubric/criterion_clear") > 0);
    json_decref(m);
}

static void again_without_a_judge(void **state) {
    struct e2e *t = *state;
    run_whole(t);
    if (e2e_run(t, RUN JUDGE "--set run.phases=4 --set run.dir=again", "absent.py", "all.jsonl") !=
        0)
        fail_msg("%s", t->out);
    same(t, "again");
    // without the record, every criterion is lost
    assert_int_not_equal(
        e2e_run(t, RUN JUDGE "--set run.phases=4 --set run.dir=none", "absent.py", "new.jsonl"), 0);
    e2e_says(t, "clear");
}

// A run that ended in the middle of a phase has that phase's answers in its record.
static void resumed_without_a_judge(void **state) {
    struct e2e *t = *state;
    run_whole(t);
    if (e2e_run(t, RUN JUDGE "--set run.phases=4 --set run.stop_after=2 --set run.dir=part",
                "judge.py", "part.jsonl") != 0)
        fail_msg("%s", t->out);
    assert_int_equal(e2e_shell(t, "cmp -n 200 part.jsonl all.jsonl && cp all.jsonl part.jsonl && "
                                  "cp judged before && cp absent.py judge.py"),
                     0);
    // A resume uses these options of the run directory only if the user gives them again.
    if (e2e_run(t, "--resume part --set run.stop_after=0 " JUDGE, "judge.py", "part.jsonl") != 0)
        fail_msg("%s", t->out);
    same(t, "part");
    assert_int_equal(e2e_shell(t, "cmp judged before"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(again_without_a_judge, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(resumed_without_a_judge, setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("rubric", tests, NULL, NULL);
}
