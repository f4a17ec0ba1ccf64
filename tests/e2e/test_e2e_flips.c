// test_e2e_flips.c: flips bits in the files of a run. Every flip is found, and the message names
// the phase and the place: tensor and index, row, metric or setting. In episodes, the message also
// names the turn.
//
// The run is verified once, by recomputing its files. The recomputed files equal the originals, so
// a copy of the unchanged run can replace them: after every flip, the test compares the run with
// this copy instead of recomputing it.
#include "e2e.h"

#include "base/file.h"
#include "verify/recompute_files.h"
#include "verify/record.h"
#include "verify/same.h"
#include "weights/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PHASES = 2 };

// The run, its recomputed phases, and the hash chains of both.
struct fixture {
    struct e2e *e;
    char run[300], again[300];
    struct rlhf__chain_file chain, chain_again;
    uint64_t random;
    int share; // divisor of the usual number of flips
};
static struct fixture at;

static uint64_t draw(uint64_t below) {
    at.random = at.random * 6364136223846793005u + 1442695040888963407u;
    return (at.random >> 33) % below;
}

// Makes the run with these commands, verifies it and copies it. The tests that flip random bits in
// text files make 1 / `share` of the usual number of flips.
static int make(void **state, int share, const char *commands) {
    if (e2e_setup(state) != 0) return -1;
    at.e = *state;
    at.random = 30;
    at.share = share;
    const int status = e2e_shell(at.e,
                                 "%s && \"$HOST\" verify run --all && cp -r run again && mv "
                                 "again/checkpoints/0* again",
                                 commands);
    if (status) fail_msg("exit %d\n%s", status, at.e->out);
    e2e_says(at.e, "2 of 2 phases are equal to the bit");
    snprintf(at.run, sizeof at.run, "%s/run", at.e->dir);
    snprintf(at.again, sizeof at.again, "%s/again", at.e->dir);
    struct rlhf__error err;
    assert_int_equal(rlhf__chain_file_read(at.run, &at.chain, &err), RLHF_OK);
    assert_int_equal(rlhf__chain_file_read(at.again, &at.chain_again, &err), RLHF_OK);
    return 0;
}

#define KEPT                                                                                       \
    "--set log.rollouts=true --set checkpoint.every=1 --set checkpoint.keep=0 --set "              \
    "compute.dtype=f32 --phases 2 --threads 1 --out run"

static int setup(void **state) {
    return make(state, 1,
                "\"$HOST\" --algo sft.so --data texts.jsonl --policy model --set "
                "policy.init=random --phases 1 --out s --threads 1 && cp -rL "
                "s/checkpoints/latest policy && \"$HOST\" --algo ppo.so --reward "
                "'format.so:pattern=[a-p]' --policy policy --prompts prompts.txt --set "
                "batch.size=8 --set sampling.max_new_tokens=6 " KEPT);
}

// A policy that calls a calculator. Its first run teaches it the form of calls.
static int setup_episodes(void **state) {
    return make(state, 10,
                "\"$HOST\" --preset calculator-form --threads 1 --out form && \"$HOST\" "
                "--preset calculator --policy form/checkpoints/latest --set batch.size=16 "
                "--set data.eval_every=0 --set data.eval_limit=1 " KEPT);
}

static int teardown(void **state) {
    rlhf__chain_file_finish(&at.chain);
    rlhf__chain_file_finish(&at.chain_again);
    return e2e_teardown(state);
}

// ---- a flip, and the faults that are found ----

static int64_t size_of(const char *path) {
    struct stat is;
    assert_int_equal(stat(path, &is), 0);
    return is.st_size;
}

// Flip a bit of a file below the run.
static void flip(const char *name, int64_t byte, int bit) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", at.run, name);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)byte, SEEK_SET), 0);
    const int was = fgetc(f);
    assert_int_equal(fseek(f, (long)byte, SEEK_SET), 0);
    fputc(was ^ 1 << bit, f);
    assert_int_equal(fclose(f), 0);
}

// Runs the checks of `verify --all` for one phase, but only the checks that read `file`. If `file`
// is NULL, runs all checks.
static rlhf_status try_look(const char *file, int64_t phase, struct rlhf__faults *f,
                            struct rlhf__error *err) {
    struct rlhf__same s = {
        .run = at.run, .again = at.again, .chain = &at.chain, .chain_again = &at.chain_again};
    char path[600];
    rlhf_status st = RLHF_OK;
    if (file && strncmp(file, "checkpoints/", 12) == 0) {
        return rlhf__same_checkpoint(&s, phase, f, err);
    }
    if (!file || strcmp(file, "config.json") == 0)
        st = rlhf__record_config(at.run, &at.chain, f, err);
    if (file && strcmp(file, "config.json") == 0) return st;
    if (st == RLHF_OK) st = rlhf__record_metrics(at.run, &at.chain, f, err);
    if (st == RLHF_OK) st = rlhf__record_rollouts(at.run, &at.chain, f, err);
    snprintf(path, sizeof path, "%s/rollouts.jsonl", at.run);
    if (st == RLHF_OK) st = rlhf__recorded_open(path, &s.rows, err);
    snprintf(path, sizeof path, "%s/rollouts.jsonl", at.again);
    if (st == RLHF_OK) st = rlhf__recorded_open(path, &s.rows_again, err);
    if (st == RLHF_OK) st = rlhf__same_phase(&s, phase, f, err);
    rlhf__recorded_close(s.rows);
    rlhf__recorded_close(s.rows_again);
    return st;
}

static void look(const char *file, int64_t phase, struct rlhf__faults *f) {
    struct rlhf__error err = {0, ""};
    if (try_look(file, phase, f, &err) != RLHF_OK) fail_msg("%s", err.text);
}

// Returns 1 if a fault names the phase, the file and the place. If `where` is NULL, any place is
// accepted.
static int is_named(const struct rlhf__faults *f, int64_t phase, const char *file,
                    const char *where) {
    for (size_t i = 0; i < f->n; i++)
        if (f->item[i].phase == phase && strcmp(f->item[i].file, file) == 0 &&
            (!where || strcmp(f->item[i].where, where) == 0))
            return 1;
    return 0;
}

static void must_find(const char *file, int64_t byte, int bit, int64_t phase, const char *where) {
    struct rlhf__faults f = {0};
    struct rlhf__error err = {0, ""};
    flip(file, byte, bit);
    const int refused = try_look(file, phase, &f, &err) != RLHF_OK;
    // A file of lines with a byte 0 is refused before any line is checked.
    if (refused && !(strstr(err.text, file) && strstr(err.text, "a byte in it is 0")))
        fail_msg("%s", err.text);
    if (!refused && !is_named(&f, phase, file, where)) {
        for (size_t i = 0; i < f.n; i++)
            rlhf__fault_print(&f.item[i]);
        fail_msg("bit %d of byte %lld of %s: phase %lld, %s, is not named", bit, (long long)byte,
                 file, (long long)phase, where ? where : "any place");
    }
    rlhf__faults_finish(&f);
    flip(file, byte, bit);
}

// ---- tensors ----

// Flip a random bit of a random element of a file of tensors.
static void flip_tensor(const char *name) {
    char file[200], path[600], where[400];
    struct rlhf__weights *w;
    struct rlhf__error err;
    uint64_t header;
    const int64_t phase = 1 + (int64_t)draw(PHASES);
    snprintf(file, sizeof file, "checkpoints/%06lld/%s", (long long)phase, name);
    snprintf(path, sizeof path, "%s/%s", at.run, file);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(&header, sizeof header, 1, f), 1);
    fclose(f);
    assert_int_equal(rlhf__weights_open(path, &w, &err), RLHF_OK);
    const struct rlhf__tensor *t = rlhf__weights_at(w, draw(rlhf__weights_count(w)));
    const int64_t i = (int64_t)draw((uint64_t)t->count);
    const uint64_t bit = draw(32);
    snprintf(where, sizeof where, "%s[%lld]", t->name, (long long)i);
    const int64_t byte = (t->data - t->in->bytes) + 4 * i + (int64_t)bit / 8;
    rlhf__weights_close(w);
    assert_in_range((uint64_t)byte, 8 + header, (uint64_t)size_of(path) - 1);
    must_find(file, byte, (int)(bit % 8), phase, where);
}

static void flips_of_weights_and_moments_are_named(void **state) {
    (void)state;
    for (int i = 0; i < 1000; i++) {
        flip_tensor("model.safetensors");
        flip_tensor("state/value_head.safetensors");
        flip_tensor("state/optimizer.safetensors");
    }
}

// ---- lines ----

static struct rlhf__buf read_all(const char *name) {
    char path[600];
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error err;
    snprintf(path, sizeof path, "%s/%s", at.run, name);
    assert_int_equal(rlhf__file_read(path, 1 << 30, &text, &err), RLHF_OK);
    return text;
}

// Returns the phase of the line that contains this byte.
static int64_t phase_at(const struct rlhf__buf *text, size_t byte) {
    size_t from = byte;
    long long phase = 0;
    while (from > 0 && text->data[from - 1] != '\n')
        from--;
    assert_int_equal(sscanf(text->data + from, "{\"phase\": %lld", &phase), 1);
    return phase;
}

static void flips_of_rows_and_rewards_are_named(void **state) {
    (void)state;
    struct rlhf__buf text = read_all("rollouts.jsonl");
    for (int i = 0; i < 2500 / at.share; i++) {
        size_t byte = draw(text.len);
        if (i % 2) { // within a score
            const char *score = strstr(text.data + byte, "\"score\": ");
            if (score) byte = (size_t)(score - text.data) + 9;
        }
        must_find("rollouts.jsonl", (int64_t)byte, (int)draw(8), phase_at(&text, byte), NULL);
    }
    rlhf__buf_finish(&text);
}

// ---- turns ----

// Returns the byte, in the file, of a number in a list of the line: the last digit of entry k.
static size_t digit_of(const struct rlhf__buf *text, size_t line, const char *list, size_t k) {
    char key[64];
    snprintf(key, sizeof key, "\"%s\": [", list);
    const char *from = strstr(text->data + line, key);
    assert_non_null(from);
    from += strlen(key);
    for (; k > 0; k--)
        from = strchr(from, ',') + 1;
    const size_t n = strcspn(from, ",]");
    return (size_t)(from - text->data) + n - 1;
}

// Flips the lowest bit of that digit, which gives another digit.
static void flip_digit(const struct rlhf__buf *text, size_t line, const json_t *row,
                       const char *list, size_t k, const char *where, int turn) {
    char full[200];
    const size_t byte = digit_of(text, line, list, k);
    if (text->data[byte] < '0' || text->data[byte] > '9') return;
    snprintf(full, sizeof full, "row %lld, %s %d, %s[%zu]",
             (long long)json_integer_value(json_object_get(row, "row")), where, turn, list, k);
    must_find("rollouts.jsonl", (int64_t)byte, 0, json_integer_value(json_object_get(row, "phase")),
              full);
}

// Flips one digit at a time: in a token, the reward and a log-prob of each turn, and in a token of
// each answer of the environment. Returns the number of answers in the row.
static int flip_turns(const struct rlhf__buf *text, size_t line, const json_t *row) {
    size_t token = (size_t)json_integer_value(json_object_get(row, "prompt_length")), drawn = 0, i;
    int turn = 0, answers = 0;
    json_t *segment;
    json_array_foreach(json_object_get(row, "segments"), i, segment) {
        const size_t n = (size_t)json_integer_value(json_array_get(segment, 1));
        const int policy = strcmp(json_string_value(json_array_get(segment, 0)), "policy") == 0;
        turn += policy;
        answers += !policy;
        flip_digit(text, line, row, "ids", token + draw(n), policy ? "turn" : "answer to turn",
                   turn);
        if (policy) {
            flip_digit(text, line, row, "paid", (size_t)turn - 1, "turn", turn);
            flip_digit(text, line, row, "logp_sampled", drawn + draw(n), "turn", turn);
            drawn += n;
        }
        token += n;
    }
    return answers;
}

// If a token, a reward or a log-prob of a turn is changed, or if an answer of the environment is
// changed, the fault names the phase, the row and the turn.
static void flips_of_turns_are_named(void **state) {
    (void)state;
    struct rlhf__buf text = read_all("rollouts.jsonl");
    int answers = 0;
    for (size_t line = 0; line < text.len;) {
        const size_t n = strcspn(text.data + line, "\n");
        json_t *row = json_loadb(text.data + line, n, 0, NULL);
        if (json_object_get(row, "segments")) answers += flip_turns(&text, line, row);
        json_decref(row);
        line += n + 1;
    }
    assert_true(answers > 5);
    rlhf__buf_finish(&text);
}

static void flips_of_metrics_are_named(void **state) {
    (void)state;
    struct rlhf__buf text = read_all("metrics.jsonl");
    for (int i = 0; i < 1500 / at.share; i++) {
        const size_t byte = draw(text.len);
        must_find("metrics.jsonl", (int64_t)byte, (int)draw(8), phase_at(&text, byte), NULL);
    }
    rlhf__buf_finish(&text);
}

static void flips_of_the_settings_are_named(void **state) {
    (void)state;
    struct rlhf__buf text = read_all("config.json");
    for (int i = 0; i < 1500 / at.share; i++)
        must_find("config.json", (int64_t)draw(text.len), (int)draw(8), 0, NULL);
    rlhf__buf_finish(&text);
}

// Flips random bits of the chain itself. Each flip is found as a fault, or the file is refused.
static void flips_of_the_chain_are_found(void **state) {
    (void)state;
    struct rlhf__buf text = read_all("chain.jsonl");
    for (int i = 0; i < 1500 / at.share; i++) {
        struct rlhf__chain_file c = {.n = 0};
        struct rlhf__faults f = {0};
        struct rlhf__error err;
        const int64_t byte = (int64_t)draw(text.len);
        const int bit = (int)draw(8);
        flip("chain.jsonl", byte, bit);
        rlhf_status st = rlhf__chain_file_read(at.run, &c, &err);
        if (st == RLHF_OK) st = rlhf__record_chain(&c, &f, &err);
        if (st == RLHF_OK) st = rlhf__record_metrics(at.run, &c, &f, &err);
        if (st == RLHF_OK && f.n == 0)
            fail_msg("bit %d of byte %lld is not found", bit, (long long)byte);
        flip("chain.jsonl", byte, bit);
        rlhf__faults_finish(&f);
        rlhf__chain_file_finish(&c);
    }
    rlhf__buf_finish(&text);
}

static void without_a_flip_nothing_is_found(void **state) {
    (void)state;
    struct rlhf__faults f = {0};
    for (int64_t phase = 1; phase <= PHASES; phase++)
        look(NULL, phase, &f);
    assert_int_equal(f.n, 0);
}

// With an argument, runs only the flips in episodes.
int main(int argc, char **argv) {
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_flip_nothing_is_found),
        cmocka_unit_test(flips_of_weights_and_moments_are_named),
        cmocka_unit_test(flips_of_rows_and_rewards_are_named),
        cmocka_unit_test(flips_of_metrics_are_named),
        cmocka_unit_test(flips_of_the_settings_are_named),
        cmocka_unit_test(flips_of_the_chain_are_found),
    };
    const struct CMUnitTest episodes[] = {
        cmocka_unit_test(without_a_flip_nothing_is_found),
        cmocka_unit_test(flips_of_turns_are_named),
        cmocka_unit_test(flips_of_rows_and_rewards_are_named),
        cmocka_unit_test(flips_of_metrics_are_named),
        cmocka_unit_test(flips_of_the_settings_are_named),
        cmocka_unit_test(flips_of_the_chain_are_found),
    };
    const int failed = argc > 1 ? 0 : cmocka_run_group_tests_name("a run", tests, setup, teardown);
    return failed + cmocka_run_group_tests_name("episodes", episodes, setup_episodes, teardown);
}
