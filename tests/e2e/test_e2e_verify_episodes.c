// test_e2e_verify_episodes.c: `rlhf-host verify` of runs with an environment. If an
// environment's answers depend only on its inputs, the environment plays again, also with another
// instruction set. Answers of other environments are taken on trust. A changed answer is found and
// named.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEEP                                                                                       \
    " --set log.rollouts=true --set checkpoint.every=1 --set checkpoint.keep=0 "                   \
    "--set log.level=error --set log.progress=off --threads 1 "
#define GAME                                                                                       \
    "--algo grpo.so --set algo.group_size=4 --policy model --set policy.init=random "              \
    "--set batch.size=12 --set run.phases=2 --set sampling.max_new_tokens=40 "                     \
    "--set episodes.reply_tokens=20 --set optim.lr=0.01 --set run.seed=5 "                         \
    "--set episodes.tokens=62 --set compute.dtype=bf16 "                                           \
    "--set 'sampling.stop=[\"a\",\"e\",\"o\",\"i\",\"n\",\"t\",\"s\",\"r\",259]' " KEEP
#define CALCULATOR                                                                                 \
    "--preset calculator --policy form/checkpoints/latest --phases 2 --set batch.size=32 "         \
    "--set compute.dtype=bf16 --set compute.arithmetic=v1 --set data.eval_limit=8 "                \
    "--set data.eval_every=1 " KEEP

// A program that counts the bytes of the turns. It adds MORE to its second answer.
#define PROGRAM                                                                                    \
    "import json, os, sys\n"                                                                       \
    "sums = {}\n"                                                                                  \
    "print('{\"function\": true}' if sys.argv[1] == 'promises' else '{}', flush=True)\n"           \
    "for text in sys.stdin:\n"                                                                     \
    "    line = json.loads(text)\n"                                                                \
    "    what = next(iter(line))\n"                                                                \
    "    e = line[what]\n"                                                                         \
    "    if what == 'close':\n"                                                                    \
    "        continue\n"                                                                           \
    "    if what == 'reset':\n"                                                                    \
    "        sums[e] = line['seed'] % 5\n"                                                         \
    "        out = {'say': '%d?' % sums[e]}\n"                                                     \
    "    else:\n"                                                                                  \
    "        sums[e] += len(line['text'].encode())\n"                                              \
    "        said = sums[e] + (int(os.environ.get('MORE', 0)) if line['turn'] == 2 else 0)\n"      \
    "        out = {'reward': sums[e] % 4 / 2, 'metrics': {'sum': sums[e]}}\n"                     \
    "        out.update({'done': True, 'verdict': 'right'} if line['turn'] == 3\n"                 \
    "                   else {'say': '%d.' % said})\n"                                             \
    "    print(json.dumps({'episode': e, **out}), flush=True)\n"

// The system's interpreter starts faster than a wrapper that comes first on PATH.
static const char *python(void) {
    return access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
}

static void expect(struct e2e *t, int status, int wanted) {
    if (status != wanted) fail_msg("exit status %d, not %d:\n%s", status, wanted, t->out);
}

static void lacks(const struct e2e *t, const char *text) {
    if (strstr(t->out, text)) fail_msg("the output has \"%s\":\n%s", text, t->out);
}

// Makes a run whose environment is the program. `how` is "promises" if the program promises that
// its answers depend only on its inputs, and otherwise "not".
static void play(struct e2e *t, const char *dir, const char *how, const char *more) {
    e2e_write(t, "game.py", PROGRAM);
    expect(t,
           e2e_run(t,
                   GAME
                   "--env env_exec.so --set \"environment.command=%s %s/game.py %s\" %s --out %s",
                   python(), t->dir, how, more, dir),
           0);
}

// ---- environments that are functions ----

// The calculator gives the same bytes with another instruction set, and can be verified with it.
static void the_calculator(void **state) {
    struct e2e *t = *state;
    expect(t, e2e_run(t, "--preset calculator-form --set log.level=error --out form"), 0);
    expect(t, e2e_run(t, CALCULATOR "--out calc"), 0);
    expect(t, e2e_shell(t, "RLHF_CPU_ISA=avx2 \"$HOST\" " CALCULATOR "--threads 2 --out other"), 0);
    expect(t,
           e2e_shell(t, "cmp calc/rollouts.jsonl other/rollouts.jsonl && cmp "
                        "calc/checkpoints/latest/model.safetensors "
                        "other/checkpoints/latest/model.safetensors && grep -q "
                        "'\"environment\", [1-9]' calc/rollouts.jsonl"),
           0);
    expect(t, e2e_shell(t, "RLHF_CPU_ISA=avx2 \"$HOST\" verify calc --all --out r.json"), 0);
    e2e_says(t, "2 of 2 phases are equal to the bit (bf16, arithmetic v1)");
    lacks(t, "trust");
    expect(t, e2e_shell(t, "grep -q '\"environment_on_trust\": null' r.json"), 0);
}

// An environment that is a plugin plays again, even if a reward's scores are taken on trust.
static void a_plugin(void **state) {
    struct e2e *t = *state;
    expect(t,
           e2e_shell(t,
                     "\"$HOST\" " GAME "--env answering_env.so --out a && %s "
                     "\"$RLHF_SOURCE_DIR/tests/e2e/chain.py\" digests a",
                     python()),
           0);
    expect(t, e2e_run(t, "verify a --all --threads 2"), 0);
    e2e_says(t, "2 of 2 phases are equal to the bit");
    lacks(t, "taken on trust");
    e2e_write(t, "reward.py",
              "def score(prompts, completions, **kwargs):\n"
              "    return [len(c) % 3 / 2 for c in completions]\n");
    expect(t,
           e2e_shell(t,
                     "\"$HOST\" " GAME "--env guess.so --reward "
                     "python.so:file=reward.py,function=score,python=%s --out p && \"$HOST\" "
                     "verify p --all",
                     python()),
           0);
    e2e_says(t, "rewards of 2 phases were taken on trust: org.rlhf-host.python");
    lacks(t, "answers of the environment");
}

// A program promises that its answers depend only on its inputs. If the user allows the program to
// run, `verify` plays the episodes again. If not, the recorded answers are taken on trust. If an
// answer is different this time, the message names the row and the turn.
static void a_program_that_promises(void **state) {
    struct e2e *t = *state;
    play(t, "run", "promises", "--reward period_count.so");
    expect(t, e2e_run(t, "verify run --all"), 0);
    e2e_says(t, "2 of 2 phases are equal to the bit");
    e2e_says(t, "answers of the environment in 2 phases were taken on trust: "
                "org.rlhf-host.env_exec (its program promises the same answers; --trust-run runs "
                "it)");
    expect(t, e2e_run(t, "verify run --all --trust-run"), 0);
    e2e_says(t, "2 of 2 phases are equal to the bit");
    lacks(t, "taken on trust");
    expect(t, e2e_shell(t, "MORE=1 \"$HOST\" verify run --all --trust-run"), 1);
    e2e_says(t, "phase 1: rollouts.jsonl: row 2, answer to turn 2, ids[");
    expect(t, e2e_run(t, "verify run --phase 2 --backend reference"), 0);
    e2e_says(t, "phase 2: equal within the limits");
    e2e_says(t, "answers of the environment in 1 phases were taken on trust: ");
}

// ---- answers on trust ----

static void others_are_on_trust(void **state) {
    struct e2e *t = *state;
    play(t, "run", "not", "--reward period_count.so --set data.eval_path=prompts.txt");
    expect(t, e2e_run(t, "verify run --all --trust-run --out r.json"), 0);
    e2e_says(t, "2 of 2 phases are equal to the bit");
    e2e_says(t, "answers of the environment in 2 phases were taken on trust: "
                "org.rlhf-host.env_exec\n");
    lacks(t, "rewards of");
    expect(t,
           e2e_shell(t, "grep -q '\"environment_on_trust\": \"org.rlhf-host.env_exec\"' r.json && "
                        "grep -q 'answers in 2 phases were taken on trust' r.html"),
           0);
    // The edited answer contradicts the hash chain. It also contradicts the turn after it, because
    // the policy would have sampled another turn after the edited answer.
    expect(t,
           e2e_shell(t,
                     "sed -E -i '2s/(\"paid\": \\[[^]]*), 1(,|\\])/\\1, 0\\2/; 3s/, 46, /, 47, /' "
                     "run/rollouts.jsonl && \"$HOST\" verify run --phase 1"),
           1);
    e2e_says(t, "phase 1: rollouts.jsonl: its rows are not those of the chain");
    e2e_says(t, "phase 1: rollouts.jsonl: row 2, ");
    expect(t, e2e_shell(t, "rm run/rollouts.jsonl && \"$HOST\" verify run --all"), 2);
    e2e_says(t,
             "org.rlhf-host.env_exec does not promise the same answers each time, and run has not "
             "recorded them: only runs with log.rollouts=true can be recomputed then");
}

// Verifies runs with prompts: first with an environment that gives the only rewards, then with a
// reward that is taken on trust, too.
static void with_prompts_and_python(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "tasks.jsonl",
              "{\"prompt\": \"one \", \"answer\": \"1\"}\n"
              "{\"prompt\": \"two two \", \"answer\": \"2\"}\n"
              "{\"prompt\": \"three \", \"answer\": \"3\"}\n");
    e2e_write(t, "reward.py",
              "def score(prompts, completions, **kwargs):\n"
              "    return [len(c) % 3 / 2 for c in completions]\n");
    play(t, "alone", "not", "--prompts tasks.jsonl");
    expect(t, e2e_run(t, "verify alone --phase 2"), 0);
    e2e_says(t, "1 of 1 phases are equal to the bit");
    char more[512];
    snprintf(more, sizeof more,
             "--prompts tasks.jsonl --reward python.so:file=reward.py,function=score,python=%s",
             python());
    play(t, "both", "not", more);
    expect(t, e2e_run(t, "verify both --all"), 0);
    e2e_says(t, "2 of 2 phases are equal to the bit");
    e2e_says(t, "rewards of 2 phases were taken on trust: org.rlhf-host.python");
    e2e_says(t, "answers of the environment in 2 phases were taken on trust");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_calculator, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_plugin, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_program_that_promises, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(others_are_on_trust, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(with_prompts_and_python, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("verify episodes", tests, NULL, NULL);
}
