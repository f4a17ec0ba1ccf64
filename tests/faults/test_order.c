// test_order.c: the state after a power cut. Replays a run's operations on files in order, and
// keeps track of what a file system guarantees. The bytes of a file are safe if it was synced after
// its last write. A name is safe if its directory was synced. If a name means "complete", only
// files that are safe may get it.
#include "e2e.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES 4096

// A path, and the parts that a power cut would lose: the bytes of the file, or its name in its
// directory. (A removed name may come back, which does no harm.)
struct entry {
    char path[512];
    int bytes, name;
};

struct disk {
    struct entry entry[ENTRIES];
    int n, renames, links;
    char run[512]; // only paths below this directory count
};

// Prints a path into a buffer. The test fails if the path does not fit.
__attribute__((format(printf, 2, 3))) static void put(char to[512], const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(to, 512, fmt, ap);
    va_end(ap);
    assert_in_range(n, 0, 511);
}

static struct entry *entry_of(struct disk *d, const char *path) {
    for (int i = 0; i < d->n; i++)
        if (strcmp(d->entry[i].path, path) == 0) return &d->entry[i];
    assert_true(d->n < ENTRIES);
    struct entry *e = &d->entry[d->n++];
    memset(e, 0, sizeof *e);
    put(e->path, "%s", path);
    return e;
}

static int below(const char *path, const char *dir) {
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static int directly_in(const char *path, const char *dir) {
    return below(path, dir) && strrchr(path, '/') == path + strlen(dir);
}

// Marks the bytes of a file as synced, or the names in a directory.
static void synced(struct disk *d, const char *path) {
    entry_of(d, path)->bytes = 0;
    for (int i = 0; i < d->n; i++)
        if (directly_in(d->entry[i].path, path)) d->entry[i].name = 0;
}

static int ends(const char *path, const char *with) {
    size_t n = strlen(path), m = strlen(with);
    return n >= m && strcmp(path + n - m, with) == 0;
}

// Fails the test if a power cut would lose something at or below `path`. The name of `path` itself
// does not count.
static void must_be_safe(const struct disk *d, const char *path, const char *what) {
    for (int i = 0; i < d->n; i++) {
        const struct entry *e = &d->entry[i];
        if (!below(e->path, path)) continue;
        // A resumed run gives these sinks again what their files lack (test_csv, test_tensorboard).
        if (strstr(e->path, "/tensorboard/") || ends(e->path, "/metrics.csv")) continue;
        if (e->bytes) fail_msg("%s, but the bytes of %s were not synced", what, e->path);
        if (e->name && strcmp(e->path, path) != 0)
            fail_msg("%s, but the directory of %s was not synced", what, e->path);
    }
}

// Forgets everything at or below `path` that could be lost.
static void gone(struct disk *d, const char *path) {
    for (int i = 0; i < d->n; i++)
        if (below(d->entry[i].path, path)) d->entry[i].bytes = d->entry[i].name = 0;
}

static void rename_to(struct disk *d, const char *from, const char *to) {
    char what[512];
    put(what, "%s got its name", to);
    must_be_safe(d, from, what);
    gone(d, from);
    if (ends(to, "/checkpoints/latest") || ends(to, "/checkpoints/best")) {
        put(what, "%s was pointed at a checkpoint", to);
        must_be_safe(d, d->run, what); // the checkpoint, its name, and the rows up to it
        d->links++;
    }
    gone(d, to);
    entry_of(d, to)->name = 1;
    d->renames++;
}

static void replay_line(struct disk *d, const char *op, const char *path, char from[512]) {
    if (strcmp(op, "from") == 0) {
        put(from, "%s", path);
        return;
    }
    if (!below(path, d->run) || ends(path, "/lock"))
        return; // the holder of a run does not matter later
    if (strcmp(op, "rename") == 0)
        rename_to(d, from, path);
    else if (strcmp(op, "sync") == 0)
        synced(d, path);
    else if (strcmp(op, "write") == 0 || strcmp(op, "empty") == 0)
        entry_of(d, path)->bytes = 1;
    else if (strcmp(op, "remove") == 0)
        gone(d, path);
    else if (strcmp(op, "make") == 0)
        entry_of(d, path)->name = 1;
}

// Replays the log. Fails the test if a file is not safe when it has to be.
static struct disk *replay(const char *log, const char *run) {
    struct disk *d = calloc(1, sizeof *d);
    assert_non_null(d);
    put(d->run, "%s", run);
    FILE *f = fopen(log, "r");
    assert_non_null(f);
    char op[16], path[4096], from[512] = "";
    while (fscanf(f, "%15s %4095[^\n]", op, path) == 2)
        replay_line(d, op, path, from);
    fclose(f);
    return d;
}

static void run_and_replay(struct e2e *t, const char *args, int links) {
    char log[512], run[512];
    put(log, "%s/log", t->dir);
    put(run, "%s/r", t->dir);
    remove(log);
    // A sanitizer's runtime checks that it is the first library that is loaded. The test turns this
    // check off, because fault_files.so comes first.
    int status =
        e2e_shell(t,
                  "ASAN_OPTIONS=\"verify_asan_link_order=0:$ASAN_OPTIONS\" FAULT_LOG=\"$PWD/log\" "
                  "LD_PRELOAD=\"$RLHF_TEST_PLUGINS/../faults/fault_files.so\" \"$HOST\" %s",
                  args);
    assert_int_equal(status, 0);
    struct disk *d = replay(log, run);
    assert_int_equal(d->links, links);
    assert_true(d->renames > links);
    must_be_safe(d, run, "the program ended");
    free(d);
}

static void every_name_is_given_to_what_is_safe(void **state) {
    run_and_replay(*state,
                   "--algo sft.so --policy model --data texts.jsonl --set policy.init=random "
                   "--set batch.size=16 --set run.phases=4 --set checkpoint.every=1 "
                   "--set checkpoint.keep=2 --set checkpoint.best=objective/loss "
                   "--set checkpoint.best_mode=min --set run.stop_after=3 --threads 1 --out r",
                   6);
    run_and_replay(*state, "--resume r --set run.stop_after=0 --threads 1", 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_name_is_given_to_what_is_safe, e2e_setup,
                                        e2e_teardown),
    };
    return cmocka_run_group_tests_name("faults_order", tests, NULL, NULL);
}
