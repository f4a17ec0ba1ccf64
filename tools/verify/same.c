// same.c: see same.h.
#include "verify/same.h"

#include "base/file.h"
#include "verify/checkpoints.h"
#include "verify/moved.h"
#include "verify/recompute_files.h"
#include "verify/turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- metrics.jsonl ----

// Removes the metrics that cannot be compared: those that may differ between machines and, with
// trusted scores, those that `other` lacks.
static void strip(json_t *row, const json_t *other, int trusted) {
    const char *name;
    json_t *v;
    void *next;
    json_object_foreach_safe(row, next, name, v) if (!rlhf__chain_is_steady(name) ||
                                                     (trusted && !json_object_get(other, name)))
        json_object_del(row, name);
}

static rlhf_status same_metrics(const struct rlhf__same *s, int64_t phase, struct rlhf__faults *f,
                                struct rlhf__error *err) {
    json_t *run = NULL, *again = NULL;
    int64_t last;
    const struct rlhf__fault at = {.phase = phase, .file = "metrics.jsonl"};
    rlhf_status st = rlhf__run_files_metrics(s->run, phase, &run, &last, err);
    if (st == RLHF_OK) st = rlhf__run_files_metrics(s->again, phase, &again, &last, err);
    if (st == RLHF_OK && !run)
        st = rlhf__faults_say(f, phase, at.file, "the phase is missing", err);
    if (st == RLHF_OK && run && again) {
        strip(run, again, s->trusted);
        strip(again, run, s->trusted);
        st = rlhf__faults_compare(f, &at, run, again, err);
    }
    json_decref(run);
    json_decref(again);
    return st;
}

// ---- rollouts.jsonl ----

static rlhf_status same_lines(int64_t phase, const char *what, const json_t *run,
                              const json_t *again, int trusted, struct rlhf__faults *f,
                              struct rlhf__error *err) {
    const size_t n = json_array_size(run), m = json_array_size(again);
    struct rlhf__fault at = {.phase = phase, .file = "rollouts.jsonl"};
    if (n != m) {
        snprintf(at.where, sizeof at.where, "number of %ss", what);
        snprintf(at.was, sizeof at.was, "%zu", n);
        snprintf(at.expected, sizeof at.expected, "%zu", m);
        return rlhf__faults_add(f, &at, err);
    }
    for (size_t i = 0; i < n; i++) {
        json_t *a = json_array_get(run, i), *b = json_array_get(again, i);
        // Without rewards, the reference may be unnecessary.
        if (trusted && json_is_null(json_object_get(b, "logp_ref")))
            json_object_set(b, "logp_ref", json_object_get(a, "logp_ref"));
        const size_t before = f->n;
        snprintf(at.where, sizeof at.where, "%s %zu, ", what, i);
        RLHF_TRY(rlhf__faults_compare(f, &at, a, b, err));
        if (f->n > before) rlhf__turns_name(a, &f->item[before]);
    }
    return RLHF_OK;
}

static rlhf_status same_rollouts(const struct rlhf__same *s, int64_t phase, struct rlhf__faults *f,
                                 struct rlhf__error *err) {
    int found, mine;
    const rlhf_status read = rlhf__recorded_seek(s->rows, phase, &found, err);
    if (read == RLHF_E_INVALID) return rlhf__faults_say(f, phase, "rollouts.jsonl", err->text, err);
    RLHF_TRY(read);
    RLHF_TRY(rlhf__recorded_seek(s->rows_again, phase, &mine, err));
    const json_t *rows = rlhf__recorded_rows(s->rows);
    const json_t *steps = rlhf__recorded_updates(s->rows);
    if (!mine || (json_array_size(rows) == 0 && json_array_size(steps) == 0)) return RLHF_OK;
    RLHF_TRY(
        same_lines(phase, "row", rows, rlhf__recorded_rows(s->rows_again), s->trusted, f, err));
    return same_lines(phase, "step", steps, rlhf__recorded_updates(s->rows_again), 0, f, err);
}

// ---- the chain ----

// Compares the digests of the phase. A difference in the files that a digest covers was already
// reported. So if only the digest differs, either someone edited it, or it covers numbers that the
// run did not keep.
static rlhf_status same_link(const struct rlhf__same *s, int64_t phase, struct rlhf__faults *f,
                             struct rlhf__error *err) {
    static const char *const keys[] = {"rows", "rewards", "metrics"};
    const struct rlhf__chain_line *run = rlhf__chain_file_at(s->chain, RLHF__CHAIN_PHASE, phase);
    const struct rlhf__chain_line *again =
        rlhf__chain_file_at(s->chain_again, RLHF__CHAIN_PHASE, phase);
    if (!run) return rlhf__faults_say(f, phase, RLHF__CHAIN_FILE, "the phase is missing", err);
    for (size_t i = 0; again && i < (s->trusted ? 2 : 3); i++) {
        struct rlhf__fault at = {.phase = phase, .file = RLHF__CHAIN_FILE};
        snprintf(at.where, sizeof at.where, "digest of %s", keys[i]);
        const json_t *a = json_object_get(run->value, keys[i]);
        const json_t *b = json_object_get(again->value, keys[i]);
        if (json_equal((json_t *)(uintptr_t)a, (json_t *)(uintptr_t)b)) continue;
        snprintf(at.was, sizeof at.was, "%s", rlhf__json_text_in(run->value, keys[i]));
        snprintf(at.expected, sizeof at.expected, "%s", rlhf__json_text_in(again->value, keys[i]));
        RLHF_TRY(rlhf__faults_add(f, &at, err));
    }
    return RLHF_OK;
}

// ---- checkpoints ----

// Returns a fault in a file of a checkpoint.
static struct rlhf__fault at_file(int64_t phase, const char *name) {
    struct rlhf__fault at = {.phase = phase};
    snprintf(at.file, sizeof at.file, "checkpoints/%06lld/%.100s", (long long)phase, name);
    return at;
}

// Report the tensors that differ, each with the element that has the largest difference.
static rlhf_status name_tensors(int64_t phase, const char *run, const char *again,
                                struct rlhf__faults *f, struct rlhf__error *err) {
    static const char element[] = "element of ";
    const struct rlhf__check_limits exact = rlhf__check_limits(0, 1);
    const struct rlhf__checkpoints dirs = {again, run, again};
    struct rlhf__checks checks = {0};
    rlhf_status st = rlhf__checkpoints_compare(&dirs, &exact, &checks, err);
    for (size_t i = 0; st == RLHF_OK && i < checks.n; i++) {
        const struct rlhf__recompute_check *k = &checks.item[i];
        const int is_element = strncmp(k->what, element, sizeof element - 1) == 0;
        if (!k->wrong || (!is_element && k->has_values)) continue;
        struct rlhf__fault at = at_file(phase, is_element ? k->what + sizeof element - 1 : k->what);
        snprintf(at.where, sizeof at.where, "%s", k->where);
        if (is_element) {
            snprintf(at.was, sizeof at.was, "%.9g", k->run);
            snprintf(at.expected, sizeof at.expected, "%.9g", k->again);
        }
        st = rlhf__faults_add(f, &at, err);
    }
    rlhf__checks_finish(&checks);
    if (st == RLHF_E_INVALID) { // a file that cannot be read
        st = rlhf__faults_say(f, phase, at_file(phase, "").file, err->text, err);
    }
    return st;
}

static int ends_in(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

// Sets hex to the digest of a recomputed file, as if the base of an adapter had not moved.
static rlhf_status digest_again(const struct rlhf__same *s, const char *name, const char *run,
                                const char *again, char hex[RLHF__HEX], struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__sha256 sum;
    if (!rlhf__moved_names(name)) return rlhf__sha256_file(again, hex, err);
    const rlhf_status st = rlhf__moved_read(s->run, name, run, again, &text, err);
    rlhf__sha256_init(&sum);
    rlhf__sha256_put(&sum, rlhf__buf_text(&text), text.len);
    rlhf__sha256_hex(&sum, hex);
    rlhf__buf_finish(&text);
    return st;
}

// Compare a file without tensors.
static rlhf_status name_bytes(const struct rlhf__same *s, const char *name, const char *path,
                              const char *again, struct rlhf__fault at, struct rlhf__faults *f,
                              struct rlhf__error *err) {
    struct rlhf__buf a = RLHF__BUF_INIT, b = RLHF__BUF_INIT;
    json_t *x = NULL, *y = NULL;
    const size_t before = f->n;
    rlhf_status st = rlhf__file_read(path, (uint64_t)1 << 30, &a, err);
    if (st == RLHF_OK) st = rlhf__moved_read(s->run, name, path, again, &b, err);
    if (st == RLHF_OK && ends_in(path, ".json")) {
        x = rlhf__json_decode(rlhf__buf_text(&a), a.len, JSON_REJECT_DUPLICATES, NULL);
        y = rlhf__json_decode(rlhf__buf_text(&b), b.len, JSON_REJECT_DUPLICATES, NULL);
        if (x && y) st = rlhf__faults_compare(f, &at, x, y, err);
    }
    size_t k = 0;
    while (k < a.len && k < b.len && a.data[k] == b.data[k])
        k++;
    snprintf(at.where, sizeof at.where, "byte %zu", k);
    if (st == RLHF_OK && f->n == before && (k < a.len || k < b.len))
        st = rlhf__faults_add(f, &at, err);
    json_decref(x);
    json_decref(y);
    rlhf__buf_finish(&a);
    rlhf__buf_finish(&b);
    return st;
}

// Leave out state/run.json, because it names the best checkpoint, which only a run chooses, not a
// recomputation.
static int is_left_out(const char *name) { return strcmp(name, "state/run.json") == 0; }

// Returns 1 if the file is the state of a reward or judge that was not opened because its scores
// came from the record.
static int is_on_trust(const struct rlhf__same *s, int64_t phase, const char *name) {
    char again[RLHF__PATH_CAP];
    if (!s->trusted ||
        (strncmp(name, "state/reward_", 13) != 0 && strcmp(name, "state/judge.bin") != 0))
        return 0;
    rlhf__path_put(again, "%s/%06lld/%s", s->again, (long long)phase, name);
    return !rlhf__is_file(again);
}

static rlhf_status same_file(const struct rlhf__same *s, int64_t phase, const char *name,
                             const char *said, int there, int *tensors, struct rlhf__faults *f,
                             struct rlhf__error *err) {
    char run[RLHF__PATH_CAP], again[RLHF__PATH_CAP], a[RLHF__HEX] = "", b[RLHF__HEX] = "";
    struct rlhf__fault at = at_file(phase, name);
    rlhf__path_put(run, "%s/%s", s->run, at.file);
    rlhf__path_put(again, "%s/%06lld/%s", s->again, (long long)phase, name);
    if (rlhf__is_file(again)) RLHF_TRY(digest_again(s, name, run, again, b, err));
    if (there && rlhf__is_file(run)) RLHF_TRY(rlhf__sha256_file(run, a, err));
    if (!there) snprintf(a, sizeof a, "%.64s", said); // only the chain has it
    if (strcmp(a, b) == 0 && strcmp(said, b) == 0) return RLHF_OK;
    if (!there || !*a || !*b || strcmp(a, b) == 0) {
        snprintf(at.where, sizeof at.where, "sha256%s", there && *a ? " in the chain" : "");
        snprintf(at.was, sizeof at.was, "%.64s", said);
        snprintf(at.expected, sizeof at.expected, "%s", b);
        return rlhf__faults_add(f, &at, err);
    }
    if (!ends_in(name, ".safetensors")) return name_bytes(s, name, run, again, at, f, err);
    *tensors = 1;
    return RLHF_OK;
}

rlhf_status rlhf__same_checkpoint(const struct rlhf__same *s, int64_t phase, struct rlhf__faults *f,
                                  struct rlhf__error *err) {
    char run[RLHF__PATH_CAP], again[RLHF__PATH_CAP];
    const struct rlhf__chain_line *l = rlhf__chain_file_at(s->chain, RLHF__CHAIN_CHECKPOINT, phase);
    const char *name;
    json_t *said;
    int tensors = 0;
    if (!l) return RLHF_OK;
    rlhf__path_put(run, "%s/checkpoints/%06lld", s->run, (long long)phase);
    rlhf__path_put(again, "%s/%06lld", s->again, (long long)phase);
    const int there = rlhf__is_dir(run);
    json_object_foreach(json_object_get(l->value, "checkpoint"), name, said) {
        if (is_left_out(name) || is_on_trust(s, phase, name)) continue;
        RLHF_TRY(same_file(s, phase, name, json_is_string(said) ? json_string_value(said) : "",
                           there, &tensors, f, err));
    }
    if (!tensors) return RLHF_OK;
    const size_t before = f->n;
    RLHF_TRY(name_tensors(phase, run, again, f, err));
    if (f->n > before) return RLHF_OK;
    return rlhf__faults_say(f, phase, at_file(phase, "").file, "a header of its tensors was edited",
                            err);
}

rlhf_status rlhf__same_phase(const struct rlhf__same *s, int64_t phase, struct rlhf__faults *f,
                             struct rlhf__error *err) {
    const size_t before = f->n;
    RLHF_TRY(same_metrics(s, phase, f, err));
    RLHF_TRY(same_rollouts(s, phase, f, err));
    RLHF_TRY(rlhf__same_checkpoint(s, phase, f, err));
    return f->n == before ? same_link(s, phase, f, err) : RLHF_OK;
}
