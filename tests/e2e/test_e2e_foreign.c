// test_e2e_foreign.c: a run that comes from a stranger. One of its files is a pipe, a device or a
// link to a secret. No command waits for it, reads it without end, or repeats a part of it.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Makes run `theirs`, and the secret. The pattern matches the secret, also in parts.
static void make_run(struct e2e *t) {
    assert_int_equal(
        e2e_run(t, "--algo ppo.so --reward period_count.so --policy model --prompts prompts.txt "
                   "--set policy.init=random --set batch.size=4 --set sampling.max_new_tokens=4 "
                   "--set algo.minibatches=1 --set log.samples=1 --set log.csv=true "
                   "--set log.rollouts=true --set checkpoint.every=1 --phases 2 --out theirs"),
        0);
    assert_int_equal(e2e_run(t, "verify theirs --out receipt.json"), 0);
    e2e_write(t, "secret.json", "{\"hunter2\": \"hunter2\", \"run\": {\"seed\": \"hunter2\"}}\n");
    e2e_write(t, "secret.txt", "hunter2 hunter2\n");
}

// Run $1 in the shell, with the run `x` in which $2 (a command) replaces the file $f.
#define TRY                                                                                        \
    "try() { rm -rf x ex rec.* page.html t; cp -rP theirs x; rm -r x/$f; eval \"$2\"; "            \
    "timeout -s KILL 60 \"$HOST\" $1 >said 2>&1 </dev/null; st=$?; "                               \
    "test $st -lt 100 && ! grep -rqs -e hunter2 said rec.json rec.html page.html ex t && return; " \
    "echo \"$f, $2: $1: status $st\"; tail -3 said; exit 1; }; "                                   \
    "test -n \"$RLHF_TEST_SANITIZE\" || ulimit -v 4000000; "

// Replaces each file of the run by something else, in the first `ways` ways, and gives the run to
// each of these commands.
static void each_file(struct e2e *t, size_t ways, const char *commands) {
    static const char *const others[] = {"mkfifo x/$f", "ln -s $PWD/secret.json x/$f",
                                         "ln -s /dev/zero x/$f", "ln -s $PWD/secret.txt x/$f"};
    make_run(t);
    // Each command succeeds with the whole run.
    if (e2e_shell(t,
                  TRY "f=lock; while read -r command; do try \"$command\" 'touch x/lock'; "
                      "test $st = 0 || { cat said; exit 1; }; done <<END || exit 1\n%s\nEND",
                  commands) != 0)
        fail_msg("%s", t->out);
    for (size_t i = 0; i < ways && i < sizeof others / sizeof *others; i++)
        if (e2e_shell(
                t,
                TRY "for f in $(cd theirs && find . -type f ! -name lock ! -path '*/000001/*'); do "
                    "while read -r command; do try \"$command\" '%s'; done <<END || exit 1\n"
                    "%s\nEND\ndone",
                others[i], commands) != 0)
            fail_msg("%s", t->out);
}

static void commands_that_check(void **state) {
    each_file(*state, 4,
              "verify x --out rec.json\nverify x --receipt receipt.json\n"
              "verify x --all --backend reference --threads 1\nreport x --out page.html");
}

static void commands_that_use_its_model(void **state) {
    each_file(*state, 2,
              "export x --to ex\n"
              "generate --model x/checkpoints/latest --prompt a --max-new 1 --threads 1\n"
              "eval --model x --reward period_count.so --data prompts.txt --n 1 --max-new 1 "
              "--threads 1\n"
              "inspect --weights --base theirs/checkpoints/000001 --tuned x\n"
              "--algo sft.so --policy x --data texts.jsonl --phases 1 --set batch.size=4 "
              "--threads 1 --out t");
}

static void a_receipt(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "mkfifo pipe.json; timeout -s KILL 60 \"$HOST\" verify "
                                  "--receipt pipe.json"),
                     2);
    e2e_says(t, "pipe.json is not a regular file");
}

// A line without end in a file that is allowed to be large.
static void a_file_of_zeros(void **state) {
    static const char *const names[] = {"events.jsonl", "metrics.jsonl", "rollouts.jsonl"};
    struct e2e *t = *state;
    make_run(t);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(e2e_shell(t, TRY "f=%s; try 'verify x' 'truncate -s 90G x/$f'", names[i]),
                         0);
    }
    assert_int_equal(e2e_shell(t, TRY "f=metrics.jsonl; try 'verify x --all --backend reference' "
                                      "'truncate -s 90G x/$f'; cat said"),
                     0);
    e2e_says(t, "a byte in it is 0");
}

// In a cache of downloaded models all files are links, and they are followed.
static void a_cache_of_links(void **state) {
    struct e2e *t = *state;
    make_run(t);
    assert_int_equal(
        e2e_shell(t, "mkdir -p hub/blobs hub/snapshots/main/state; cd theirs/checkpoints/latest/; "
                     "n=0; for f in * state/*; do [ -f $f ] || continue; n=$((n + 1)); "
                     "cp $f ../../../hub/blobs/$n; case $f in state/*) up=../../../blobs;; "
                     "*) up=../../blobs;; esac; ln -s $up/$n ../../../hub/snapshots/main/$f; "
                     "done; cd ../../..; \"$HOST\" generate --model hub/snapshots/main --prompt a "
                     "--max-new 1 --threads 1"),
        0);
}

// A configuration that the user types may be a pipe.
static void a_typed_config(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "echo '{\"run\": {\"seed\": 5}}' | \"$HOST\" --algo sft.so "
                                  "--data texts.jsonl --policy model --config /dev/stdin "
                                  "--print-config | grep '\"seed\": 5'"),
                     0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(commands_that_check, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(commands_that_use_its_model, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_receipt, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_file_of_zeros, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_cache_of_links, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_typed_config, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("foreign", tests, NULL, NULL);
}
