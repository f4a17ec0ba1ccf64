// scratch.h: a separate folder for a test, and checks of error messages.
//
// Header only; the test links rlhf_host. Not for tests of plugins.
#ifndef RLHF_TESTS_SUPPORT_SCRATCH_H
#define RLHF_TESTS_SUPPORT_SCRATCH_H

#include "check.h"

#include "base/file.h"
#include "base/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scratch {
    char dir[256];
    char path[8][512]; // scratch_path's results, used in turn
    unsigned turn;
};

// Does the same as `mkdir -p`.
static inline rlhf_status rlhf__make_dirs(const char *path, struct rlhf__error *err) {
    struct rlhf__folder *made = NULL;
    rlhf_status st = rlhf__folder_make_above(NULL, path, err);
    if (st == RLHF_OK) st = rlhf__folder_make(NULL, path, NULL, &made, err);
    rlhf__folder_close(made);
    return st;
}

// Opens an existing directory. Close it with rlhf__folder_close.
static inline struct rlhf__folder *scratch_folder(const char *path) {
    struct rlhf__folder *f = NULL;
    assert_int_equal(rlhf__folder_open(NULL, path, &f, NULL), RLHF_OK);
    return f;
}

// Creates an empty folder, which becomes *state for CMocka. Use as setup, with scratch_teardown.
static inline int scratch_setup(void **state) {
    struct scratch *s = calloc(1, sizeof *s);
    const char *tmp = getenv("TMPDIR");
    if (!s) return -1;
    snprintf(s->dir, sizeof s->dir, "%s/rlhf-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(s->dir)) {
        free(s);
        return -1;
    }
    *state = s;
    return 0;
}

static inline int scratch_teardown(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    rlhf_status st = rlhf__folder_remove(NULL, s->dir, &err);
    free(s);
    return st;
}

// Returns "DIR/name". The result is valid for the next seven calls.
static inline const char *scratch_path(struct scratch *s, const char *name) {
    char *out = s->path[s->turn++ % 8];
    size_t dir = strlen(s->dir), len = strlen(name);
    assert_true(dir + len + 2 <= sizeof s->path[0]);
    memcpy(out, s->dir, dir);
    out[dir] = '/';
    memcpy(out + dir + 1, name, len + 1);
    return out;
}

// Write a file; returns its path.
static inline const char *scratch_bytes(struct scratch *s, const char *name, const void *bytes,
                                        size_t n) {
    const char *path = scratch_path(s, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

static inline const char *scratch_text(struct scratch *s, const char *name, const char *text) {
    return scratch_bytes(s, name, text, strlen(text));
}

// Asserts that the call failed with this code, and that its message contains this text.
static inline void check_error(rlhf_status got, rlhf_status want, const struct rlhf__error *err,
                               const char *part) {
    if (got == want && strstr(err->text, part)) return;
    fail_msg("status %d (expected %d), message \"%s\" (expected \"%s\" in it)", (int)got, (int)want,
             err->text, part);
}

// Asserts that the call succeeded. Shows the message if it did not.
static inline void check_ok(rlhf_status got, const struct rlhf__error *err) {
    if (got != RLHF_OK) fail_msg("status %d: %s", (int)got, err->text);
}

#endif
