// test_e2e_trust.c: a model or run directory is data: none of its code runs, and links that lead
// out of the directory are not followed.
#include "e2e.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SFT                                                                                        \
    "--algo sft.so --data texts.jsonl --policy model --set policy.init=random "                    \
    "--set batch.size=4 "
#define PPO                                                                                        \
    "--algo ppo.so --policy model --set policy.init=random --prompts prompts.txt "                 \
    "--set batch.size=4 --set sampling.max_new_tokens=4 --set algo.minibatches=1 "

// Code that prints a message when it is opened. It is used as kernels and as any kind of plugin.
#define EVIL "\"$RLHF_TEST_PLUGINS/evil.so\""

static void a_model_directory_runs_no_code(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, SFT "--set run.phases=1 --set run.dir=r"), 0);
    assert_int_equal(e2e_shell(t, "cp -rL r/checkpoints/latest m; cp " EVIL " m/gpt2.so; cd m; "
                                  "\"$HOST\" generate --model . --prompt It --max-new 2"),
                     0);
    assert_null(strstr(t->out, "EVIL"));
    assert_int_equal(e2e_shell(t, "cp " EVIL " m/evil.so; sed -i 's/\"gpt2\"/\"evil\"/' "
                                  "m/config.json; cd m; export RLHF_PLUGIN_PATH=; "
                                  "\"$HOST\" generate --model . --prompt It --max-new 2"),
                     2);
    assert_null(strstr(t->out, "EVIL"));
    e2e_says(t, "model_type 'evil' is not supported");
    assert_int_equal(e2e_shell(t, "sed -i 's/\"evil\"/\"..\\/evil\"/' m/config.json; cd m; "
                                  "\"$HOST\" generate --model . --prompt It --max-new 2"),
                     2);
    assert_null(strstr(t->out, "EVIL"));
    e2e_says(t, "'../evil' is not a valid model_type");
}

// If the program itself looks up a plugin by name, it uses a file of the installation.
static void implicit_plugins_are_installed_ones(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, SFT "--set run.phases=1 --set run.dir=r"), 0);
    assert_int_equal(
        e2e_shell(t, "cp " EVIL " ppo.so; cp " EVIL " gpt2.so; \"$HOST\" eval "
                     "--model r/checkpoints/latest --data prompts.txt --n 4 "
                     "--set sampling.max_new_tokens=4 --reward period_count.so --threads 1"),
        0);
    assert_null(strstr(t->out, "EVIL"));
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It was\", \"chosen\": \" a fine film\", \"rejected\": \" dull\"}\n"
              "{\"prompt\": \"I think\", \"chosen\": \" it is\", \"rejected\": \" not\"}\n");
    assert_int_equal(e2e_run(t, "--algo bradley_terry.so --data pairs.jsonl --policy model "
                                "--set policy.init=random --set batch.size=2 "
                                "--set score.calibrate=0 --phases 1 --out rm"),
                     0);
    assert_int_equal(e2e_shell(t, "cp " EVIL " bradley_terry.so"), 0);
    assert_int_equal(e2e_run(t, "--algo grpo_iterative.so:replay=true,group_size=2 --judge "
                                "\"$RLHF_TEST_PLUGINS/even_judge.so\" "
                                "--reward bt_rm.so:model=rm/checkpoints/latest --policy model "
                                "--set policy.init=random --prompts prompts.txt "
                                "--set sampling.max_new_tokens=4 --set batch.size=4 --dry-run"),
                     0);
    assert_null(strstr(t->out, "EVIL"));
    // The same holds if a config file has a bare name. A path in the file is the user's own choice.
    e2e_write(t, "c.json", "{\"reward\": [{\"plugin\": \"here.so\"}]}");
    assert_int_equal(
        e2e_shell(t, "rm *.so; cp \"$RLHF_TEST_PLUGINS/bad_reward.so\" here.so; \"$HOST\" "
                     "--config c.json --algo ppo.so --print-config"),
        2);
    e2e_says(t, "no reward plugin \"here.so\"");
    e2e_says(t, "write ./here.so");
    e2e_write(t, "c.json", "{\"reward\": [{\"plugin\": \"./here.so\"}]}");
    assert_int_equal(e2e_run(t, "--config c.json --algo ppo.so --print-config"), 0);
}

// A run whose config.json names code elsewhere.
static void a_resumed_run_opens_no_code_of_its_own(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"", "--dry-run", "--print-config"};
    assert_int_equal(e2e_shell(t, "cp \"$RLHF_TEST_PLUGINS/bad_reward.so\" own.so"), 0);
    assert_int_equal(e2e_run(t, PPO "--reward ./own.so:every=1000 --set run.phases=1 "
                                    "--set run.dir=r"),
                     0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(e2e_run(t, "--resume r --set run.phases=2 %s", how[i]), 2);
        e2e_says(t, "own.so");
        e2e_says(t, "reward.0.plugin");
        e2e_says(t, "--trust-run");
        assert_null(strstr(t->out, "compute.backend ("));
    }
    // This run cannot be resumed, not even with --trust-run. Its settings can still be printed.
    assert_int_equal(e2e_shell(t, "cp -r r early && rm -r early/checkpoints"), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(e2e_run(t, "--resume early --set run.phases=2 %s", how[i]), 2);
        e2e_says(t, i < 2 ? "--resume: early has no checkpoint" : "--trust-run");
        if (i < 2) assert_null(strstr(t->out, "--trust-run"));
    }
    assert_int_equal(e2e_run(t, "--resume r --set run.phases=2 --reward ./own.so"), 0);
    assert_int_equal(e2e_run(t, "--resume r --set run.phases=3 --trust-run"), 0);
    assert_int_equal(e2e_run(t, SFT "--trust-run --set run.dir=n"), 2);
    e2e_says(t, "--trust-run goes with --resume");
    // Now the run's config names the same plugin in a directory of the search path.
    assert_int_equal(e2e_shell(t, "sed -i \"s|$PWD/own.so|$RLHF_TEST_PLUGINS/bad_reward.so|\" "
                                  "r/config.json && grep -q tests/e2e/bad_reward.so r/config.json"),
                     0);
    assert_int_equal(e2e_run(t, "--resume r --set run.phases=4 --print-config"), 0);
    assert_int_equal(e2e_shell(t, "cp " EVIL " . && sed -i 's|\"backend\": \"cpu\"|\"backend\": "
                                  "\".\\/evil.so\"|' r/config.json && grep -q evil r/config.json"),
                     0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(e2e_run(t, "--resume r --set run.phases=4 %s", how[i]), 2);
        e2e_says(t, "compute.backend (./evil.so)");
        assert_null(strstr(t->out, "EVIL"));
    }
}

// A run's config.json cannot weaken the confinement of any plugin, not even of one that the user
// names.
static void a_resumed_run_takes_down_no_wall(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *began, *again, *says;
    } cases[] = {
        {":every=1000,network=true", "--set reward.0.network=true",
         "gives bad_reward.so the network: "},
        {":every=1000,isolate=false", "--set reward.0.isolate=false",
         "reward.0 is isolate=false; give it "},
        {":every=1000 --set rewards.isolate=never", "--set rewards.isolate=never",
         "rewards.isolate is never; give it again (--set rewards.isolate=never) or give "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(e2e_run(t,
                                 PPO "--reward bad_reward.so%s --set run.phases=1 --set "
                                     "run.dir=r%zu",
                                 cases[i].began, i),
                         0);
        assert_int_equal(e2e_run(t, "--resume r%zu --set run.phases=2", i), 2);
        e2e_says(t, cases[i].says);
        assert_int_equal(e2e_run(t, "--resume r%zu --set run.phases=2 %s", i, cases[i].again), 0);
        assert_int_equal(e2e_run(t, "--resume r%zu --set run.phases=3 --trust-run", i), 0);
    }
}

// The hint about a misspelled option needs the plugin's options. Even then, the run's code is not
// opened.
static void a_hint_opens_no_code_of_a_run(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--reward period_count.so --set run.phases=1 --set run.dir=r"),
                     0);
    assert_int_equal(e2e_run(t, "--resume r --set kl_coef=1"), 2);
    e2e_says(t, "did you mean \"algo.kl_coef\"?");
    assert_int_equal(e2e_shell(t, "cp " EVIL " . && sed -i 's|\"ppo.so\"|\"./evil.so\"|' "
                                  "r/config.json && grep -q evil r/config.json"),
                     0);
    assert_int_equal(e2e_run(t, "--resume r --set kl_coef=1"), 2);
    e2e_says(t, "is not of the form");
    assert_null(strstr(t->out, "EVIL"));
}

// A run stores hashes of the code that made it. If a file has changed, a resume names it.
static void changed_code_is_named(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"", "--dry-run"};
    assert_int_equal(e2e_shell(t, "mkdir p && cp \"$RLHF_TEST_PLUGINS/bad_reward.so\" p/own.so && "
                                  "cp \"$(dirname \"$HOST\")/../lib/rlhf/1/kernels/"
                                  "kernels_reference.so\" p/k.so"),
                     0);
    assert_int_equal(e2e_run(t, PPO "--reward p/own.so:every=1000 --set run.phases=1 "
                                    "--set compute.backend=p/k.so --set run.dir=r"),
                     0);
    // This works from any directory, because paths of code are stored as absolute paths.
    assert_int_equal(e2e_shell(t, "grep -q \"\\\"backend\\\": \\\"$PWD/p/k.so\\\"\" r/config.json"),
                     0);
    assert_int_equal(e2e_run(t, "--resume r --trust-run --set run.phases=2"), 0);
    assert_int_equal(e2e_shell(t, "printf x >> p/own.so; printf x >> p/k.so"), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(e2e_run(t, "--resume r --trust-run --set run.phases=3 %s", how[i]), 2);
        e2e_says(t, "/p/own.so (sha256 ");
        e2e_says(t, "/p/k.so (sha256 ");
        e2e_says(t, "--allow-changed-plugins");
        assert_null(strstr(t->out, "ppo.so"));
    }
    assert_int_equal(e2e_run(t, "--resume r --trust-run --set run.phases=3 "
                                "--allow-changed-plugins"),
                     0);
    // The next resume compares with the new files. The manifest keeps the old list, too.
    assert_int_equal(e2e_run(t, "--resume r --trust-run --set run.phases=4"), 0);
    assert_int_equal(e2e_shell(t, "grep -q '\"earlier\"' r/manifest.json && "
                                  "test $(grep -c own.so r/manifest.json) = 2"),
                     0);
    // Here the manifest has another version, or is missing.
    assert_int_equal(e2e_shell(t, "sed -i 's/\"version\": \"[^\"]*\"/\"version\": \"9.9.9\"/' "
                                  "r/manifest.json"),
                     0);
    assert_int_equal(e2e_run(t, "--resume r --trust-run --set run.phases=5"), 2);
    e2e_says(t, "ppo.so (version 9.9.9 is now ");
    e2e_says(t, "gpt2.so (version 9.9.9 is now ");
    assert_int_equal(e2e_shell(t, "sed -i 's/org.rlhf-host.ppo/org.example.algo.other/' "
                                  "r/manifest.json"),
                     0);
    assert_int_equal(e2e_run(t, "--resume r --trust-run --set run.phases=5"), 2);
    e2e_says(t, "ppo.so (id org.example.algo.other is now org.rlhf-host.ppo, version");
    assert_int_equal(e2e_shell(t, "rm r/manifest.json"), 0);
    assert_int_equal(e2e_run(t, "--resume r --trust-run --set run.phases=5"), 2);
    e2e_says(t, "r/manifest.json");
    assert_int_equal(e2e_run(t, "--resume r --trust-run --set run.phases=5 "
                                "--allow-changed-plugins"),
                     2);
    e2e_says(t, "what the run 'r' read is not known (");
    assert_int_equal(e2e_run(t, "--resume r --trust-run --set run.phases=5 "
                                "--allow-changed-plugins --allow-changed-inputs"),
                     0);
    assert_int_equal(e2e_run(t, SFT "--allow-changed-plugins --set run.dir=n"), 2);
    e2e_says(t, "--allow-changed-plugins goes with --resume");
}

// Links in a run directory must not lead out of it.
static void no_link_leads_out_of_a_run(void **state) {
    struct e2e *t = *state;
    static const char *const links[] = {
        "metrics.jsonl", "samples.jsonl", "spread.jsonl",       "chain.jsonl",
        "events.jsonl",  "checkpoints",   "checkpoints/latest", "checkpoints/000001/state",
        "manifest.json", "config.json"};
    assert_int_equal(e2e_run(t, SFT "--set run.phases=1 --set run.dir=r"), 0);
    e2e_write(t, "victim", "precious\n");
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        int dir = strstr(links[i], "checkpoints") != NULL;
        assert_int_equal(e2e_shell(t,
                                   "rm -rf s out; cp -r r s; cp -rL s/%s out 2>/dev/null; "
                                   "rm -rf s/%s; ln -s %s s/%s",
                                   links[i], links[i], dir ? "$PWD/out" : "../victim", links[i]),
                         0);
        assert_int_equal(e2e_shell(t, "ls -lR out victim > before; \"$HOST\" --resume s "
                                      "--set run.phases=2 --threads 1"),
                         2);
        e2e_says(t, links[i]);
        e2e_says(t, "leads out of the run directory");
        assert_int_equal(e2e_shell(t, "ls -lR out victim | cmp - before"), 0);
    }
    assert_int_equal(e2e_shell(t, "rm -rf s; cp -r r s; rm s/metrics.jsonl; "
                                  "mkfifo s/metrics.jsonl"),
                     0);
    assert_int_equal(e2e_run(t, "--resume s --set run.phases=2"), 2);
    e2e_says(t, "s/metrics.jsonl is neither a file nor a directory");
    // Links that the run itself makes, and others that stay inside the directory, are allowed.
    assert_int_equal(e2e_shell(t, "ln -s 000001 r/checkpoints/keep"), 0);
    assert_int_equal(e2e_run(t, "--resume r --set run.phases=2"), 0);
}

// Download caches make model directories whose files are links. Such a directory can be read, and
// nothing is written through its links.
static void a_model_directory_may_be_links(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, SFT "--set run.phases=1 --set run.dir=r"), 0);
    assert_int_equal(e2e_shell(t, "mkdir -p hub/blobs hub/snapshots/x && for f in "
                                  "r/checkpoints/latest/*; do test -d $f || { n=$(basename $f); "
                                  "cp $f hub/blobs/b-$n; ln -s ../../blobs/b-$n "
                                  "hub/snapshots/x/$n; }; done; ls -lR hub > before"),
                     0);
    assert_int_equal(e2e_run(t, "--algo sft.so --data texts.jsonl --policy hub/snapshots/x "
                                "--set batch.size=4 --set run.phases=1 --set run.dir=s"),
                     0);
    assert_int_equal(e2e_shell(t, "ls -lR hub | cmp - before && test -z \"$(find "
                                  "s/checkpoints/000001 -type l)\""),
                     0);
}

// ---- who may write code -----------------------------------------------------------------------

static void code_that_others_may_write_is_refused(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *make, *says;
    } cases[] = {
        {"chmod 0666 d/x.so", "mode 0666"},
        {"chmod 0777 d", "/d can be written by everybody (mode 0777, owner "},
        {"chmod 0777 d/..", "can be written by everybody (mode 0777, owner "},
        {"chgrp 1 d/x.so; chmod 0664 d/x.so", "mode 0664"},
        {"chown 12345 d/x.so", "belongs to another user (mode 0644, owner 12345"},
        {"chown 12345 d", "/d belongs to another user (mode 0755, owner 12345"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strncmp(cases[i].make, "chmod", 5) != 0 && geteuid() != 0) {
            print_message("skipped without root: %s\n", cases[i].make);
            continue;
        }
        for (int kernels = 0; kernels < 2; kernels++) {
            assert_int_equal(e2e_shell(t,
                                       "rm -rf e; mkdir -p e/d; cp %s e/d/x.so; "
                                       "chmod 0644 e/d/x.so; cd e; %s",
                                       kernels ? EVIL : "\"$RLHF_TEST_PLUGINS/bad_reward.so\"",
                                       cases[i].make),
                             0);
            const char *use =
                kernels ? SFT "--set compute.backend=e/d/x.so" : PPO "--reward e/d/x.so:every=1000";
            assert_int_equal(e2e_run(t, "%s --set run.phases=1 --dry-run", use), 2);
            e2e_says(t, cases[i].says);
            assert_null(strstr(t->out, "EVIL"));
        }
    }
    // Root's own group contains only root.
    if (geteuid() == 0) {
        assert_int_equal(e2e_shell(t, "rm -rf e; mkdir -p e/d; cp \"$RLHF_TEST_PLUGINS/"
                                      "bad_reward.so\" e/d/x.so; chgrp root e/d e/d/x.so; "
                                      "chmod 0775 e/d e/d/x.so"),
                         0);
        assert_int_equal(e2e_run(t, PPO "--reward e/d/x.so:every=1000 --dry-run"), 0);
    }
    // In a sticky directory such as /tmp, others cannot replace a file.
    assert_int_equal(e2e_shell(t, "rm -rf e; mkdir -p e/d; cp \"$RLHF_TEST_PLUGINS/"
                                  "bad_reward.so\" e/d/x.so; chmod 1777 e/d"),
                     0);
    assert_int_equal(e2e_run(t, PPO "--reward e/d/x.so:every=1000 --dry-run"), 0);
    // But names are not looked up there.
    assert_int_equal(e2e_shell(t, "RLHF_PLUGIN_PATH=$PWD/e/d \"$HOST\" " PPO
                                  "--reward x.so:every=1000 --dry-run --threads 1"),
                     2);
    e2e_says(t, "mode 1777");
}

static void the_plugin_path_is_absolute(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "mkdir d; cp \"$RLHF_TEST_PLUGINS/bad_reward.so\" d/x.so; "
                                  "RLHF_PLUGIN_PATH=/nowhere:d \"$HOST\" " PPO
                                  "--reward x.so:every=1000 --dry-run --threads 1"),
                     2);
    e2e_says(t, "RLHF_PLUGIN_PATH: 'd' is not an absolute path");
    assert_int_equal(e2e_shell(t, "RLHF_PLUGIN_PATH=/nowhere:d \"$HOST\" plugin list"), 2);
    // The same holds for code in a run's config.json.
    assert_int_equal(e2e_run(t, PPO "--reward d/x.so:every=1000 --phases 1 --out made"), 0);
    assert_int_equal(e2e_shell(t, "RLHF_PLUGIN_PATH=d \"$HOST\" --resume made --phases 2"), 2);
    e2e_says(t, "names code that lies elsewhere than the installed plugins");
    assert_int_equal(e2e_shell(t, "RLHF_PLUGIN_PATH=/nowhere::$PWD/d \"$HOST\" " PPO
                                  "--reward x.so:every=1000 --dry-run --threads 1"),
                     0);
}

// If two files have the same name, the user's own is used, and the log reports it.
static void what_hides_a_plugin_is_said(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_shell(t, "mkdir -p data/rlhf/plugins; cp \"$RLHF_TEST_PLUGINS/bad_reward.so\" "
                     "data/rlhf/plugins/length.so; "
                     "XDG_DATA_HOME=$PWD/data \"$HOST\" " PPO
                     "--reward length.so:every=1000 --dry-run --threads 1"),
        0);
    e2e_says(t, "length.so is ");
    e2e_says(t, "/data/rlhf/plugins/length.so, which hides ");
    e2e_says(t, "/rewards/length.so\n");
    assert_int_equal(e2e_run(t, PPO "--reward length.so:max_len=9 --dry-run"), 0);
    assert_null(strstr(t->out, "hides"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, e2e_setup, e2e_teardown)
    const struct CMUnitTest tests[] = {
        T(a_model_directory_runs_no_code),
        T(implicit_plugins_are_installed_ones),
        T(a_resumed_run_opens_no_code_of_its_own),
        T(a_resumed_run_takes_down_no_wall),
        T(a_hint_opens_no_code_of_a_run),
        T(changed_code_is_named),
        T(no_link_leads_out_of_a_run),
        T(a_model_directory_may_be_links),
        T(code_that_others_may_write_is_refused),
        T(the_plugin_path_is_absolute),
        T(what_hides_a_plugin_is_said),
    };
    return cmocka_run_group_tests_name("e2e_trust", tests, NULL, NULL);
}
