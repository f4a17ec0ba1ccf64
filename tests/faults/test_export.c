// test_export.c: an export is stopped at each operation on files in turn. It leaves either the old
// files or the whole new directory, and one message with the reason.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The command; FAULT=... comes before it.
#define EXPORT                                                                                     \
    "ASAN_OPTIONS=\"verify_asan_link_order=0:$ASAN_OPTIONS\" "                                     \
    "LD_PRELOAD=\"$RLHF_TEST_PLUGINS/../faults/fault_files.so\" \"$HOST\" export r --to deep/out " \
    "--shard-size 50KB --dtype bf16 --gguf deep/out/m.gguf "

static void make_run(struct e2e *t) {
    assert_int_equal(e2e_run(t, "--algo sft.so --policy model --data texts.jsonl "
                                "--set policy.init=random --set batch.size=4 --set run.phases=2 "
                                "--set checkpoint.every=1 --out r"),
                     0);
}

// Returns the number of operations of an export.
static int operations(struct e2e *t) {
    assert_int_equal(e2e_shell(t, "FAULT=count:0 FAULT_COUNT=$PWD/n " EXPORT "--force && cat n"),
                     0);
    const char *last = strrchr(t->out, ':');
    const int n = atoi(strchr(last ? last : t->out, '\n') + 1);
    assert_in_range(n, 20, 400);
    return n;
}

// If an export fails at operation i, it leaves neither a directory nor temporary files.
static void disk_full_once(void **state) {
    struct e2e *t = *state;
    int failed = 0;
    make_run(t);
    const int n = operations(t);
    for (int i = 1; i <= n; i++) {
        assert_int_equal(e2e_shell(t, "rm -rf deep; mkdir deep"), 0);
        const int status = e2e_shell(t, "FAULT=enospc:%d " EXPORT, i);
        if (status != 0) {
            e2e_says(t, "rlhf-host: error: ");
            e2e_says(t, "No space left on device");
            assert_int_equal(status, 1);
            failed++;
        }
        // The very last step writes the new name to disk. If it fails, the directory is already
        // complete.
        if (status != 0 && !e2e_exists(t, "deep/out"))
            assert_int_equal(e2e_shell(t, "test -z \"$(ls -A deep)\""), 0);
        else
            assert_int_equal(
                e2e_shell(t, "cd deep && test -s out/README.md && test $(ls -A) = out"), 0);
    }
    assert_in_range(failed, n - 3, n);
}

// old/ is an export with two more files: one has a name that exports write, the other is the
// user's. new/ is an export with only the user's file. deep/ must equal one of them.
static int old_and_new(struct e2e *t) {
    make_run(t);
    assert_int_equal(e2e_shell(t, EXPORT), 0);
    const int n = operations(t);
    assert_int_equal(e2e_shell(t,
                               "echo mine >deep/out/notes && cp -r deep new && cp -r deep old && "
                               "echo x >old/out/vocab.txt"),
                     0);
    return n;
}

static void is_old_or_new(struct e2e *t, int i) {
    if (e2e_shell(t, "rm -rf deep/.rlhf-export-*; diff -r old deep >log || diff -r new deep") != 0)
        fail_msg("operation %d: %s", i, t->out);
}

// A disk that stays full.
static void disk_full_for_good(void **state) {
    struct e2e *t = *state;
    const int n = old_and_new(t);
    for (int i = 1; i <= n; i += 2) {
        assert_int_equal(e2e_shell(t, "rm -rf deep; cp -r old deep"), 0);
        const int status = e2e_shell(t, "FAULT=enospc:%d+ " EXPORT "--force", i);
        assert_true(status == 1 || i > n - 20);
        is_old_or_new(t, i);
    }
}

static void killed(void **state) {
    struct e2e *t = *state;
    const int n = old_and_new(t);
    for (int i = 1; i <= n; i++) {
        assert_int_equal(e2e_shell(t, "rm -rf deep; cp -r old deep"), 0);
        assert_int_equal(e2e_shell(t, "FAULT=torn:%d " EXPORT "--force", i), 128 + 9);
        is_old_or_new(t, i);
    }
}

static void interrupted(void **state) {
    struct e2e *t = *state;
    int stopped = 0;
    make_run(t);
    const int n = operations(t);
    for (int i = 1; i <= n; i++) {
        assert_int_equal(e2e_shell(t, "rm -rf deep; mkdir deep"), 0);
        const int status = e2e_shell(t, "FAULT=int:%d " EXPORT, i);
        if (status == 130) {
            e2e_says(t, "stopped; 'deep/out' was not written");
            assert_int_equal(e2e_shell(t, "test -z \"$(ls -A deep)\""), 0);
            stopped++;
            continue;
        }
        assert_int_equal(status, 0);
        assert_int_equal(e2e_shell(t, "cd deep && test -s out/README.md && test $(ls -A) = out"),
                         0);
    }
    assert_in_range(stopped, n - 6, n); // once renaming has begun, the new name exists
}

// A GGUF file outside the directory gets its final name last. So whenever the old directory is
// kept, the old GGUF file is kept, too.
#define BESIDE                                                                                     \
    "ASAN_OPTIONS=\"verify_asan_link_order=0:$ASAN_OPTIONS\" "                                     \
    "LD_PRELOAD=\"$RLHF_TEST_PLUGINS/../faults/fault_files.so\" \"$HOST\" export r --to deep/out " \
    "--gguf deep/m.gguf --force "

static void beside_the_directory(void **state) {
    struct e2e *t = *state;
    int stopped = 0, failed = 0;
    make_run(t);
    assert_int_equal(e2e_shell(t, "FAULT=count:0 FAULT_COUNT=$PWD/n " BESIDE "&& cat n"), 0);
    const int n = atoi(strchr(strrchr(t->out, ':'), '\n') + 1);
    assert_in_range(n, 20, 400);
    assert_int_equal(
        e2e_shell(t, "cp -r deep old; echo mine >old/m.gguf; echo x >old/out/vocab.txt"), 0);
    for (int i = 1; i <= n; i++)
        for (int full = 0; full < 2; full++) {
            assert_int_equal(e2e_shell(t, "rm -rf deep; cp -r old deep"), 0);
            const int status =
                e2e_shell(t, "FAULT=%s:%d%s " BESIDE, full ? "enospc" : "int", i, full ? "+" : "");
            stopped += status == 130;
            failed += status == 1;
            // Either nothing or everything has happened, with one exception: if the disk stays
            // full, the directory may be new while the GGUF file is old.
            if (status == 130)
                assert_int_equal(e2e_shell(t, "diff -r old deep"), 0);
            else if (status == 0)
                assert_int_equal(e2e_shell(t,
                                           "test $(head -c 4 deep/m.gguf) = GGUF && ! test -e "
                                           "deep/out/vocab.txt && grep -q stop deep/m.Modelfile && "
                                           "test $(ls -A deep | wc -l) = 3"),
                                 0);
            else if (e2e_exists(t, "deep/out/vocab.txt"))
                assert_int_equal(e2e_shell(t, "grep -qx mine deep/m.gguf"), 0);
        }
    assert_in_range(stopped, n / 2, n);
    assert_in_range(failed, n / 2, n);
}

// Pauses the export at an operation, runs the command `meanwhile`, and continues. Returns the exit
// status of the export.
static int during(struct e2e *t, const char *meanwhile) {
    return e2e_shell(t,
                     "FAULT=stop:9 " EXPORT
                     "--force & p=$!; while [ -e /proc/$p ] && ! grep -q ') [TZ] ' "
                     "/proc/$p/stat; do sleep 0.05; done; %s; kill -CONT $p; wait $p",
                     meanwhile);
}

// If files appear in the old directory while the new one is written, they are kept.
static void looked_at_again(void **state) {
    struct e2e *t = *state;
    old_and_new(t);
    static const char *const cases[][2] = {
        {"echo x >deep/out/news", "files came to --to 'deep/out' or went from it"},
        {"mkdir deep/out/mine", "holds something else than an exported model"},
        {"mkdir deep/out/additional_chat_templates; echo x "
         ">deep/out/additional_chat_templates/a.txt",
         "holds something else than an exported model"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(e2e_shell(t, "rm -rf deep want; cp -r old deep"), 0);
        assert_int_equal(during(t, cases[i][0]), 2);
        e2e_says(t, cases[i][1]);
        assert_int_equal(
            e2e_shell(t, "mv deep want; cp -r old deep; %s; diff -r want deep", cases[i][0]), 0);
        assert_int_equal(e2e_shell(t, EXPORT "--force"), i > 0 ? 2 : 0); // a first check
    }
    // The old directory may disappear meanwhile. If it did not exist, it may appear.
    assert_int_equal(e2e_shell(t, "rm -rf deep; cp -r old deep"), 0);
    assert_int_equal(during(t, "rm -r deep/out"), 0);
    assert_int_equal(e2e_shell(t, "rm -rf deep; mkdir deep"), 0);
    assert_int_equal(during(t, "cp -r old/out deep/out"), 2);
    assert_int_equal(e2e_shell(t, "diff -r old deep"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(disk_full_once, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(disk_full_for_good, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(killed, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(interrupted, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(looked_at_again, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(beside_the_directory, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("export", tests, NULL, NULL);
}
