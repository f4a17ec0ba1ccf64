// test_e2e_printed.c: every command that a run prints for its user runs as it is printed: "try it",
// "look closer", "measure it", "go on", and the commands of refusals.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define USER(s) "{\"role\":\"user\",\"content\":\"" s "\"}"
#define SAYS(s) "{\"role\":\"assistant\",\"content\":\"" s "\"}"
#define TEMPLATE                                                                                   \
    "{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif " \
    "%}{% endfor %}"
#define TINY "--set log.tensorboard=false --set policy.init=random --set run.phases=2 "
#define GRPO                                                                                       \
    "--algo grpo.so --policy model --reward period_count.so --set batch.size=8 --set "             \
    "algo.group_size=4 --set sampling.max_new_tokens=8 " TINY

// Each of the commands in the file `log` runs without an error. $1: the number of commands.
static const char paste[] =
    "sed -n -E 's/^.*(try it|go on|look closer|measure it|the whole command): (rlhf-host .*)$/\\2/p"
    "' log | sed 's/^rlhf-host/\"$HOST\"/' >commands; n=$(wc -l <commands); "
    "[ $n = $1 ] || { echo \"$n commands, not $1:\"; cat log; exit 1; }; "
    "while read -r c; do sh -c \"$c\" </dev/null >said 2>&1 || "
    "{ echo \"fails: $c\"; cat said; exit 1; }; done <commands";

static void pasted(struct e2e *t, int n) {
    if (e2e_shell(t, "set -- %d; %s", n, paste) != 0) fail_msg("%s", t->out);
}

// Run the program, expect the exit status, and run the n commands that it prints.
static void prints(struct e2e *t, const char *args, int status, int n) {
    const int is = e2e_shell(t, "\"$HOST\" %s --threads 1 >log 2>&1; s=$?; cat log; exit $s", args);
    if (is != status) fail_msg("exit %d\n%s", is, t->out);
    pasted(t, n);
}

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    struct e2e *t = *state;
    if (e2e_shell(t, "cp -r model chatty") != 0) return -1;
    e2e_write(t, "chatty/chat_template.jinja", TEMPLATE);
    e2e_write(t, "chats.jsonl",
              "{\"messages\":[" USER("a film") "]}\n{\"prompt\":[" USER("it was") "]}\n");
    e2e_write(t, "mixed.jsonl", "{\"messages\":[" USER("a film") "]}\n{\"prompt\":\"it was\"}\n");
    e2e_write(t, "mixed2.jsonl", "{\"prompt\":\"it was\"}\n{\"messages\":[" USER("a film") "]}\n");
    e2e_write(t, "flags.txt", "--bos\n-x\nit's $HOME\n");
    e2e_write(t, "long.txt", "a prompt that leaves little room, of 50 tokens here.\n");
    e2e_write(t, "talks.jsonl",
              "{\"messages\":[" USER("what was it") "," SAYS(
                  "a film.") "]}\n"
                             "{\"messages\":[" USER("and then") "," SAYS("the end.") "]}\n");
    e2e_write(t, "completions.jsonl",
              "{\"prompt\": \"it was \", \"completion\": \"a film.\"}\n"
              "{\"prompt\": \"the end \", \"completion\": \"is it.\"}\n");
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"the film\", \"chosen\": \" was good.\", \"rejected\": \" was bad\"}\n"
              "{\"prompt\": \"it is \", \"chosen\": \" the end.\", \"rejected\": \" of it\"}\n");
    e2e_write(t, "reward.py",
              "def a(completions, **kwargs): return [float(len(c)) for c in completions]\n"
              "def b(completions, **kwargs): return [float(len(c[0])) for c in completions]\n");
    return 0;
}

static void texts(void **state) {
    struct e2e *t = *state;
    prints(t, GRPO "--prompts prompts.txt --out 'a run'", 0, 2);
    prints(t, GRPO "--prompts prompts.txt --set prompts.prepend_bos=false --out=-b", 0, 2);
    prints(t, GRPO "--prompts flags.txt --out \"it's\"", 0, 2);
    prints(t, GRPO "--prompts long.txt --out c", 0, 2);
    prints(t, GRPO "--policy chatty --prompts prompts.txt --out d", 0, 2);
    prints(t,
           "--algo ppo.so --policy model --reward period_count.so --set batch.size=8 --set "
           "sampling.max_new_tokens=60 --set prompts.text= " TINY "--out e",
           0, 2);
}

static void chats(void **state) {
    struct e2e *t = *state;
    prints(t, GRPO "--policy chatty --prompts chats.jsonl --set log.samples_every=1 --out a", 0, 2);
    prints(t, GRPO "--policy chatty --prompts mixed.jsonl --set log.samples_every=1 --out b", 0, 2);
    prints(t, GRPO "--policy chatty --prompts mixed2.jsonl --set log.samples_every=1 --out c", 0,
           2);
    prints(t, GRPO "--set prompts.template=plain --prompts chats.jsonl --out d", 0, 2);
    prints(t, GRPO "--policy chatty --prompts chats.jsonl --set run.stop_after=1 --out e", 0, 3);
}

static void adapters(void **state) {
    struct e2e *t = *state;
    prints(t, "--algo sft.so --policy model --data texts.jsonl " TINY "--out s", 0, 2);
    if (e2e_shell(t, "cp -rL s/checkpoints/latest base && rm -r base/state") != 0)
        fail_msg("%s", t->out);
    prints(t,
           "--algo grpo.so --policy base --reward "
           "python.so:file=reward.py,function=a --set batch.size=8 --set "
           "sampling.max_new_tokens=8 --prompts prompts.txt --set policy.adapter.rank=4 --phases "
           "2 --set run.stop_after=1 --out a",
           0, 3);
    prints(t,
           "--algo sft.so --policy base --data completions.jsonl --set batch.size=2 --set "
           "policy.adapter.rank=4 --phases 2 --out b",
           0, 2);
}

static void supervised(void **state) {
    struct e2e *t = *state;
    prints(t, "--algo sft.so --policy chatty --data talks.jsonl --set batch.size=2 " TINY "--out a",
           0, 2);
    prints(t,
           "--algo sft.so --policy chatty --data completions.jsonl --set batch.size=2 " TINY
           "--out b",
           0, 2);
    prints(t, "--algo dpo.so --policy model --data pairs.jsonl --set batch.size=2 " TINY "--out c",
           0, 2);
    if (e2e_shell(t, "cp pairs.jsonl HELD-OUT.jsonl") != 0) fail_msg("%s", t->out);
    prints(t,
           "--algo bradley_terry.so --policy model --data pairs.jsonl --set batch.size=2 " TINY
           "--out d",
           0, 2);
    prints(t,
           "--algo classify.so --policy model --data labeled.jsonl --set batch.size=4 --set "
           "data.eval_path=labeled.jsonl " TINY "--out e",
           0, 2);
}

static void environments(void **state) {
    struct e2e *t = *state;
    prints(t,
           "--algo grpo.so --policy model --env \"$RLHF_TEST_PLUGINS/answering_env.so:turns=2\" "
           "--prompts prompts.txt --set batch.size=8 --set algo.group_size=4 --set "
           "sampling.max_new_tokens=4 --set episodes.reply_tokens=4 --set run.stop_after=1 " TINY
           "--out a",
           0, 3);
    prints(t,
           "--algo grpo.so --policy model --env guess.so --set batch.size=8 --set "
           "algo.group_size=4 --set sampling.max_new_tokens=4 --set episodes.reply_tokens=4 --set "
           "episodes.turns=1 " TINY "--out b",
           0, 2);
}

#define PYTHON "--reward python.so:file=reward.py,function=a "

// A resume with code from the run directory is refused, and the refusal prints the command that
// works. It is the same command as that of the run's last lines.
static void code(void **state) {
    struct e2e *t = *state;
    static const char parity[] = "--reward \"$RLHF_TEST_PLUGINS/parity_reward.so:levels=5\" ";
    char two[1024];
    snprintf(two, sizeof two, "%s%s%s", GRPO PYTHON, parity,
             "--prompts prompts.txt --set run.stop_after=1 --out b");
    prints(t, two, 0, 3);
    if (e2e_shell(t,
                  "\"$HOST\" " GRPO PYTHON "--prompts prompts.txt --set run.stop_after=1 --out a "
                  "2>first && \"$HOST\" runs show a >shown") != 0)
        fail_msg("%s", t->out);
    prints(t, "--resume a", 2, 1);
    assert_int_equal(e2e_shell(t,
                               "grep -o 'rlhf-host --resume.*' first >x && grep -q . x && "
                               "sed 's,.*the whole command: ,,; s, --threads 1,,' log | cmp - x"),
                     0);
    assert_int_equal(e2e_shell(t, "grep -q '^  rlhf-host report a$' shown && grep -q '^  rlhf-host "
                                  "--resume a    goes on .* asks you' shown"),
                     0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(texts, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(chats, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(adapters, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(supervised, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(environments, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(code, setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_printed", tests, NULL, NULL);
}
