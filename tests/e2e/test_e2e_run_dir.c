// test_e2e_run_dir.c: the directory of a run: which process may write it, where its files go, and
// how a resume treats its contents.
#include "e2e.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SFT                                                                                        \
    "--algo sft.so --policy model --data texts.jsonl --set policy.init=random "                    \
    "--set batch.size=16 --set optim.schedule_phases=100 --threads 1 "
#define RL                                                                                         \
    "--algo ppo.so --policy model --prompts prompts.txt --set policy.init=random "                 \
    "--set batch.size=4 --set algo.minibatches=1 --set sampling.max_new_tokens=4 --threads 1 "

static void fine(struct e2e *t, int status) {
    if (status != 0) fail_msg("exit status %d:\n%s", status, t->out);
}

static void refused(struct e2e *t, int status, const char *text) {
    if (status != 2) fail_msg("exit status %d, not 2:\n%s", status, t->out);
    e2e_says(t, text);
}

static int rows(const struct e2e *t, const char *run) {
    json_t *all = e2e_metrics(t, run);
    int n = (int)json_array_size(all);
    json_decref(all);
    return n;
}

// ---- two at once ----

static void runs_without_a_name_get_one_each(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_shell(t, "for i in 1 2 3; do \"$HOST\" " SFT "--set run.phases=2 --seed $i & "
                         "p=\"$p $!\"; done; for i in $p; do wait $i || exit 1; done"));
    fine(t, e2e_shell(t, "ls runs | wc -l; for r in runs/*; do wc -l <$r/metrics.jsonl; done; "
                         "[ $(ls runs | wc -l) = 3 ] && for r in runs/*; do "
                         "[ $(wc -l <$r/metrics.jsonl) = 2 ] && "
                         "[ -f $r/checkpoints/latest/state/run.json ] || exit 1; done"));
}

static void of_two_with_one_name_one_is_refused(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_shell(t, "for i in 1 2 3; do \"$HOST\" " SFT "--set run.phases=2 --out o >log$i "
                         "2>&1; echo $? >status$i & done; wait; cat log*; "
                         "[ \"$(cat status* | sort | tr -d '\\n')\" = 022 ] && "
                         "[ $(grep -l \"exists already\" log* | wc -l) = 2 ]"));
    assert_int_equal(rows(t, "o"), 2);
}

#define WAIT_FOR(what)                                                                             \
    "n=0; until [ " what " ] || [ $n -gt 600 ]; do sleep 0.05; n=$((n+1)); done; "
#define WAITS(free, out)                                                                           \
    "--reward $RLHF_TEST_PLUGINS/roaming_reward.so:free=" free ",gate=$PWD/gate " RL               \
    "--set checkpoint.every=1 --set run.phases=2 --out " out " "
#define GATED WAITS("1", "g")

static void a_live_run_is_not_resumed(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_shell(t, "\"$HOST\" " GATED ">log 2>&1 & pid=$!; " WAIT_FOR(
                             "-e g/checkpoints/latest") "\"$HOST\" --resume g; status=$?; "
                                                        "\"$HOST\" --resume g --dry-run; dry=$?; "
                                                        "\"$HOST\" " SFT "--out g; new=$?; "
                                                        "touch gate; wait $pid || { cat log; exit "
                                                        "1; }; echo by $pid. on $(uname -n); "
                                                        "[ $status = 2 ] && [ $dry = 2 ] && "
                                                        "[ $new = 2 ]"));
    char want[160], *who = strstr(t->out, "by ");
    assert_non_null(who);
    const char *pid = strstr(t->out, "\nby ") + 4; // the pid that the shell printed
    const int digits = (int)strcspn(pid, ".");
    snprintf(want, sizeof want, "exists already and a run is alive in it (process %.*s on ", digits,
             pid);
    e2e_says(t, want);
    snprintf(want, sizeof want, "the run is alive: process %.*s on ", digits, pid);
    e2e_says(t, want);
    e2e_says(t, strstr(pid, "on ") + 3);
    assert_int_equal(rows(t, "g"), 2);
    fine(t, e2e_run(t, "--resume g --set run.phases=3"));
    // A run before its first phase has nothing worth keeping. But it is still running, so no other
    // run may use the directory.
    fine(t, e2e_shell(t, "rm gate; \"$HOST\" " WAITS("0", "h") ">log 2>&1 & pid=$!; " WAIT_FOR(
                             "-e h/config.json") "\"$HOST\" " SFT "--out h; new=$?; touch gate; "
                                                 "wait $pid || { cat log; exit 1; }; "
                                                 "[ $new = 2 ]"));
    e2e_says(t, "exists already and a run is alive in it");
}

// A run has made its directory and its lock, but has not written config.json yet.
static void a_run_that_is_just_beginning(void **state) {
    struct e2e *t = *state;
    char path[512];
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    fine(t, e2e_shell(t, "mkdir j && touch j/lock"));
    snprintf(path, sizeof path, "%s/j/lock", t->dir);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(fd, F_SETLK, &l), 0);
    assert_int_equal(e2e_run(t, SFT "--out j"), 2);
    e2e_says(t, "exists already and a run is alive in it");
    close(fd);
    fine(t, e2e_run(t, SFT "--out j")); // it ended there
    fine(t, e2e_shell(t, "mkdir k && touch k/lock k/mine"));
    assert_int_equal(e2e_run(t, SFT "--out k"), 2);
    e2e_says(t, "holds something else than a run");
}

// A killed process leaves its lock file, but the kernel releases the lock.
static void a_dead_run_is_resumed(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_shell(t, "\"$HOST\" " GATED ">log 2>&1 & pid=$!; " WAIT_FOR(
                             "-e g/checkpoints/latest") "kill -KILL $pid; wait $pid; touch gate; "
                                                        "[ -s g/lock ] && \"$HOST\" --resume g"));
    assert_int_equal(rows(t, "g"), 2);
}

#define EARLY "--set checkpoint.every=0 --set checkpoint.every_s=0 "

// If a run is killed in its second phase, before any checkpoint, the same command starts it over.
static void a_run_that_was_killed_early_begins_anew(void **state) {
    struct e2e *t = *state;
    fine(
        t,
        e2e_shell(
            t, "begin() { exec \"$HOST\" " WAITS("1", "k") EARLY
            "\"$@\"; }; "
            "begin >log 2>&1 & pid=$!; " WAIT_FOR(
                "-s k/metrics.jsonl") "(begin); alive=$?; kill -KILL $pid; wait $pid; touch gate; "
                                      "mkdir -p k/checkpoints/.writing-000001/state; "
                                      "(begin --seed 9); other=$?; (begin --seed 9 --threads 2); "
                                      "two=$?; touch k/mine k/phases.csv; (begin); "
                                      "mine=$?; rm k/mine k/phases.csv; "
                                      "mkdir -p k/sinks/wandb; echo {} >k/sinks/wandb/run.json; "
                                      "echo alive $alive other $other two $two mine $mine; begin"));
    e2e_says(t, "alive 2 other 2 two 2 mine 2");
    e2e_says(t, "exists already and a run is alive in it");
    e2e_says(
        t, "but holds files of a run that began with other settings (run.seed was 1 and is now 9); "
           "choose");
    e2e_says(t, "(run.seed was 1 and is now 9; 1 more differs)");
    e2e_says(t,
             "but holds files of a run and \"mine\" (1 more), which the run does not write: move "
             "them away, or choose another run.dir");
    e2e_says(t, "ended before its first checkpoint; it starts over");
    assert_int_equal(rows(t, "k"), 2);
    fine(t, e2e_shell(t, "ls -A k/checkpoints | tr '\\n' ' '"));
    assert_string_equal(t->out, "000002 latest ");
    assert_false(e2e_exists(t, "k/sinks"));
}

// In this killed run, the reference was given as a run directory. config.json stores the path of
// the reference's checkpoint instead. The same command still starts the run over.
static void a_run_from_a_run_begins_anew(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, SFT "--set run.phases=1 --out first"));
    fine(t, e2e_shell(t, "begin() { exec \"$HOST\" " WAITS("1", "k") EARLY
                      "--set reference.path=$PWD/first \"$@\"; }; "
                      "begin >log 2>&1 & pid=$!; " WAIT_FOR(
                          "-s k/metrics.jsonl") "kill -KILL $pid; wait $pid; touch gate; begin"));
    e2e_says(t, "ended before its first checkpoint; it starts over");
    assert_int_equal(rows(t, "k"), 2);
}

// ---- where files go ----

static void a_plugin_that_changes_directory_diverts_nothing(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_shell(t, "mkdir away; \"$HOST\" --reward "
                         "$RLHF_TEST_PLUGINS/roaming_reward.so:cd=$PWD/away " RL
                         "--set checkpoint.every=1 --set log.samples_every=1 --set run.phases=2 "
                         "--out sub/r && \"$HOST\" --resume sub/r --set run.phases=4"));
    assert_int_equal(rows(t, "sub/r"), 4);
    assert_true(e2e_exists(t, "sub/r/checkpoints/000004/state/run.json"));
    assert_true(e2e_exists(t, "sub/r/samples.jsonl"));
    fine(t, e2e_shell(t, "ls -A away; [ -z \"$(ls -A away)\" ]"));
}

// Some links lead out of the directory, and others stay in it.
static void nothing_is_written_through_a_link(void **state) {
    struct e2e *t = *state;
    static const char *const names[] = {
        "metrics.jsonl", "metrics.csv", "samples.jsonl", "spread.jsonl", "events.jsonl",
        "checkpoints",   "tensorboard", "lock",          "chain.jsonl",  "sinks"};
    fine(t, e2e_run(t, SFT "--set run.phases=1 --out whole"));
    fine(t, e2e_shell(t, "mkdir whole/sinks"));
    for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
        const char *name = names[i / 2], *to = i % 2 ? "kept" : "../kept";
        char want[128];
        snprintf(want, sizeof want, "l/%s is a symbolic link", name);
        fine(t,
             e2e_shell(t,
                       "rm -rf l kept && cp -r whole l && cd l && mv %s %s && cp -r %s ../before "
                       "&& ln -s %s %s",
                       name, to, to, to, name));
        refused(t, e2e_run(t, "--resume l --set run.phases=2"), i % 2 ? want : "leads out of");
        fine(t, e2e_shell(t, "cd l && diff -r %s ../before && rm -r ../before", to));
    }
}

// ---- descriptors that are closed ----

static void closed_descriptors_are_not_reused(void **state) {
    struct e2e *t = *state;
    static const char *const closed[] = {"<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"};
    for (int i = 0; i < 5; i++) {
        fine(t, e2e_shell(t, "\"$HOST\" " SFT "--set run.phases=2 --out c%d %s", i, closed[i]));
        fine(t, e2e_shell(t,
                          "cd c%d; ! cat *.jsonl | grep -v '^{\"\\(phase\\|time\\)\": .*}$' && "
                          "[ $(wc -l < metrics.jsonl) = 2 ] && [ $(wc -l < spread.jsonl) = 2 ]",
                          i));
    }
}

// ---- what a resume finds ----

static void a_run_without_a_checkpoint_says_so(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, SFT "--set run.phases=4 --set checkpoint.every=1 --set checkpoint.keep=0 "
                           "--out r"));
    fine(t, e2e_shell(t, "cp -r r early && rm -r early/checkpoints && cp -r r gone && "
                         "rm -r gone/checkpoints/000004 && cp -r r bare && "
                         "rm -r bare/checkpoints/000004/state && mkdir lone && touch lone/lock"));
    refused(t, e2e_run(t, "--resume early"), "early has no checkpoint");
    e2e_says(t, "--config early/config.json");
    refused(t, e2e_run(t, "--resume early --dry-run"), "early has no checkpoint");
    refused(t, e2e_run(t, "--resume gone"), "gone/checkpoints/latest points to 000004");
    e2e_says(t, "000003");
    refused(t, e2e_run(t, "--resume bare"), "bare/checkpoints/latest is not a checkpoint of a run");
    refused(t, e2e_run(t, "--resume lone"), "lone is not a run directory");
    refused(t, e2e_run(t, "--resume model"), "model is not a run directory");
    refused(t, e2e_run(t, "--resume r/checkpoints/latest"), "not a run directory");
    refused(t, e2e_run(t, "--resume texts.jsonl"), "texts.jsonl");
    // The suggested command works.
    fine(t, e2e_run(t, "--config early/config.json --out again"));
}

// The message describes the files that already exist. It suggests --resume only if that can work.
static void a_name_that_is_taken(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_shell(t, "mkdir empty other && touch other/x && ln -s nowhere link"));
    fine(t, e2e_run(t, SFT "--set run.phases=1 --out empty"));
    refused(t, e2e_run(t, SFT "--out empty"), "/empty'");
    e2e_says(t, "go on with that run by --resume '");
    fine(t, e2e_shell(t, "rm -r empty/checkpoints"));
    refused(t, e2e_run(t, SFT "--out empty"), "empty' exists already and has no checkpoint");
    refused(t, e2e_run(t, SFT "--out model"), "model' exists already and is a model directory");
    refused(t, e2e_run(t, SFT "--out texts.jsonl"), "exists already and is not a directory");
    refused(t, e2e_run(t, SFT "--out other"), "exists already and holds something else");
    refused(t, e2e_run(t, SFT "--out link"), "link' exists already and is not a directory");
}

// Tests a state/run.json with an impossible count.
static void a_state_that_lies(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *change, *sentence;
    } cases[] = {
        {"s/\"phase\": 2/\"phase\": 9/", "phase is 9, but the checkpoint is that of 000002"},
        {"s/\"phase\": 2/\"phase\": 2, \"still_phases\": 7/",
         "still_phases is 7, but there are only 2 phases"},
        {"s/\"seen\": 2/\"seen\": 99/", "seen is 99, but there are only 2 phases"},
        {"s/\"beyond\": 0/\"beyond\": 50/", "beyond is 50, but there are only 2 phases"},
        {"s/\"skipped_in_a_row\": 0/\"skipped_in_a_row\": 5/", "optim.skipped_in_a_row is 5"},
    };
    fine(t, e2e_run(t, RL "--reward period_count.so --set early_stop.kl=9 --set run.phases=2 "
                          "--out r"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fine(t,
             e2e_shell(t,
                       "rm -rf l && cp -r r l && sed -i '%s' l/checkpoints/000002/state/run.json "
                       "&& ! cmp -s l/checkpoints/000002/state/run.json "
                       "r/checkpoints/000002/state/run.json",
                       cases[i].change));
        refused(t, e2e_run(t, "--resume l --set run.phases=4"), cases[i].sentence);
        assert_int_equal(rows(t, "l"), 2);
    }
}

// A resume loads the reference again from the directory in which the policy started.
static void a_reference_that_is_gone(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, RL "--reward period_count.so --set run.phases=1 --out r"));
    fine(t, e2e_shell(t, "mv model moved"));
    refused(t, e2e_run(t, "--resume r --set run.phases=2"), "model directory ");
    e2e_says(t, "the reference (policy.path, as reference.path is empty): ");
    fine(t, e2e_shell(t, "mv moved model"));
}

static void a_bad_row_costs_no_other(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, SFT "--set run.phases=4 --out r"));
    fine(t, e2e_shell(t, "sed -i '2s/^{/[/' r/metrics.jsonl && printf '{\"phase\": 5, \"lo' "
                         ">>r/metrics.jsonl"));
    fine(t, e2e_run(t, "--resume r --set run.phases=6"));
    e2e_says(t, "r/metrics.jsonl:2");
    fine(t, e2e_shell(t, "[ $(wc -l <r/metrics.jsonl) = 6 ] && "
                         "[ \"$(grep -o '^.\"phase\": [0-9]' r/metrics.jsonl | tr -dc 0-9)\" = "
                         "123456 ]"));
}

static void stop_after_is_for_one_process(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, SFT "--set run.phases=6 --set run.stop_after=1 --out r"));
    assert_int_equal(rows(t, "r"), 1);
    fine(t, e2e_run(t, "--resume r --set run.stop_after=2"));
    assert_int_equal(rows(t, "r"), 3);
    fine(t, e2e_run(t, "--resume r"));
    assert_int_equal(rows(t, "r"), 6);
}

static void more_phases_are_kept(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, SFT "--set run.phases=2 --out r"));
    fine(t, e2e_run(t, "--resume r --set run.phases=4 --set run.stop_after=1"));
    fine(t, e2e_run(t, "--resume r"));
    assert_int_equal(rows(t, "r"), 4);
    fine(t, e2e_run(t, "--resume r --print-config"));
    e2e_says(t, "\"phases\": 4");
    e2e_says(t, "\"stop_after\": 0");
}

// config.json equals --print-config, except for values that only a run determines: for example, the
// backend replaces "auto", and the number of shards replaces 0.
static void config_is_what_is_printed(void **state) {
    struct e2e *t = *state;
    fine(t,
         e2e_shell(t, "\"$HOST\" " SFT "--phases 1 --out c --print-config >p.json && \"$HOST\" " SFT
                      "--phases 1 --out c && sed '0,/\"backend\"/s/\"auto\"/\"cpu\"/; "
                      "s/\"shards\": 0/\"shards\": 1/' p.json >q.json && "
                      "cmp q.json c/config.json"));
}

// Sanitizers read /proc themselves.
#if defined(__has_feature)
#define HAS_SANITIZER (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#else
#define HAS_SANITIZER 0
#endif

// Runs in a separate namespace in which /proc is an empty folder. Skipped if that is not possible.
static void it_works_without_proc(void **state) {
    struct e2e *t = *state;
    if (HAS_SANITIZER) skip();
    if (e2e_shell(t, "unshare -rm sh -c 'mount -t tmpfs none /proc && [ -z \"$(ls /proc)\" ]'") !=
        0) {
        print_message("no mount namespace here: not tested\n");
        skip();
    }
    fine(t, e2e_shell(t, "unshare -rm sh -c 'mount -t tmpfs none /proc && \"$HOST\" " RL
                         "--reward period_count.so --set run.phases=2 --out r && cd r && "
                         "PATH=$(dirname \"$HOST\"):$PATH && rlhf-host plugin list && "
                         "rlhf-host --resume . --set run.phases=3'"));
    assert_int_equal(rows(t, "r"), 3);
}

// The user can name another directory, so this is an error of the input.
static void a_place_that_cannot_be_written(void **state) {
    struct e2e *t = *state;
    if (e2e_shell(t, "mkdir d && unshare -rm mount -t tmpfs -o ro none d") != 0) {
        print_message("no mount namespace here: not tested\n");
        skip();
    }
    refused(t,
            e2e_shell(t, "unshare -rm sh -c 'mount -t tmpfs -o ro none d && \"$HOST\" " SFT
                         "--set run.phases=1 --out d/r'"),
            "d/r: cannot create the directory: Read-only file system");
}

#define T(f) cmocka_unit_test_setup_teardown(f, e2e_setup, e2e_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(runs_without_a_name_get_one_each),
        T(of_two_with_one_name_one_is_refused),
        T(a_live_run_is_not_resumed),
        T(a_run_that_is_just_beginning),
        T(a_dead_run_is_resumed),
        T(a_run_that_was_killed_early_begins_anew),
        T(a_run_from_a_run_begins_anew),
        T(a_plugin_that_changes_directory_diverts_nothing),
        T(nothing_is_written_through_a_link),
        T(closed_descriptors_are_not_reused),
        T(a_run_without_a_checkpoint_says_so),
        T(a_name_that_is_taken),
        T(a_state_that_lies),
        T(a_reference_that_is_gone),
        T(a_bad_row_costs_no_other),
        T(stop_after_is_for_one_process),
        T(more_phases_are_kept),
        T(config_is_what_is_printed),
        T(a_place_that_cannot_be_written),
        T(it_works_without_proc),
    };
    return cmocka_run_group_tests_name("e2e_run_dir", tests, NULL, NULL);
}
