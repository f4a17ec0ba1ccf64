// test_e2e_frozen.c: a model that declares frozen parameters and the range of its gradients. False
// declarations are refused.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN                                                                                        \
    "--algo sft.so --data texts.jsonl --policy model --set policy.init=random "                    \
    "--set optim.lr=0.01 --set optim.schedule_phases=3 --set log.progress=off "

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    return e2e_shell(*state, "sed -i 's/\"gpt2\"/\"frozen_gpt2\"/' model/config.json");
}

// Returns the bytes of the tensor whose name ends with `end`, and stores their number in *n. If the
// file lacks this tensor, returns NULL and sets *n to 0.
static char *tensor(const struct e2e *t, const char *file, const char *end, size_t *n) {
    char path[512], *found = NULL;
    uint64_t len = 0;
    snprintf(path, sizeof path, "%s/%s", t->dir, file);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(&len, sizeof len, 1, f), 1);
    char *head = malloc(len);
    assert_non_null(head);
    assert_int_equal(fread(head, 1, len, f), len);
    json_t *all = json_loadb(head, len, 0, NULL), *v;
    const char *key;
    *n = 0;
    json_object_foreach(all, key, v) {
        size_t k = strlen(key), e = strlen(end);
        json_t *at = json_object_get(v, "data_offsets");
        if (found || !at || k < e || strcmp(key + k - e, end) != 0) continue;
        long from = (long)json_integer_value(json_array_get(at, 0));
        *n = (size_t)(json_integer_value(json_array_get(at, 1)) - from);
        found = malloc(*n);
        assert_non_null(found);
        assert_int_equal(fseek(f, (long)(8 + len) + from, SEEK_SET), 0);
        assert_int_equal(fread(found, 1, *n, f), *n);
    }
    json_decref(all);
    free(head);
    fclose(f);
    return found;
}

static int same(const struct e2e *t, const char *a, const char *b, const char *name) {
    size_t n, m;
    char *x = tensor(t, a, name, &n), *y = tensor(t, b, name, &m);
    assert_true(n > 0 && n == m);
    int equal = memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return equal;
}

#define MODEL(run) run "/checkpoints/latest/model.safetensors"
#define STATE(run) run "/checkpoints/latest/state/optimizer.safetensors"

// Frozen parameters keep their initial values and have no optimizer state. The checkpoint contains
// them.
static void what_is_frozen_stays(void **state) {
    struct e2e *t = *state;
    size_t n;
    assert_int_equal(e2e_run(t, RUN "--set run.phases=1 --set run.dir=a"), 0);
    assert_int_equal(e2e_run(t, RUN "--set run.phases=3 --set run.dir=b"), 0);
    assert_int_equal(same(t, MODEL("a"), MODEL("b"), "wpe.weight"), 1);
    assert_int_equal(same(t, MODEL("a"), MODEL("b"), "wte.weight"), 0);
    assert_null(tensor(t, STATE("b"), "wpe.weight", &n));
    assert_int_equal(same(t, STATE("a"), STATE("b"), "wte.weight"), 0);
    assert_int_equal(e2e_run(t, "--resume a --set run.phases=3"), 0);
    assert_int_equal(e2e_shell(t, "cmp " MODEL("a") " " MODEL("b")), 0);
}

static void a_model_that_does_not_train(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "FREEZE_ALL=1 \"$HOST\" " RUN "--set run.dir=a"), 2);
    e2e_says(t, "there is nothing to train: the model says of all its ");
}

static void gradients_lie_in_their_range(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "NARROW=1 \"$HOST\" " RUN "--set run.dir=a"), 2);
    e2e_says(t, "frozen_gpt2.so, info(): the gradient of ");
    e2e_says(t, " lies outside of the range that it names");
}

// The program prints one sentence with the plugin and the parameter, ends with status 2, and
// creates no run directory.
static void parameters_are_checked(void **state) {
    struct e2e *t = *state;
    static const char *const cases[][2] = {
        {"nameless", " has no name"},
        {"empty", " has no name"},
        {"long", "xxxxx...', has 300 bytes; at most 299"},
        {"flat", "its parameter 'transformer.wpe.weight' has 0 dimensions; 1 to 4"},
        {"deep", "its parameter 'transformer.wpe.weight' has 5 dimensions; 1 to 4"},
        {"negative", "dimension 1 of its parameter 'transformer.wpe.weight' is -32; at least 1"},
        {"huge", "'transformer.wpe.weight' has more elements than memory can hold"},
        {"nowhere", "'transformer.wpe.weight' has no value (NULL); only frozen "},
        {"flag", "bit 30 of the flags of its parameter 'transformer.wpe.weight'"},
        {"head", "info(), sets bit 30 of the heads, which this host does not know"},
    };
    assert_int_equal(e2e_shell(t, "sed -i 's/frozen_gpt2/bad_gpt2/' model/config.json"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status =
            e2e_shell(t, "BAD=%s \"$HOST\" " RUN "--set run.phases=1 --set run.dir=a", cases[i][0]);
        if (status != 2) fail_msg("%s: status %d", cases[i][0], status);
        e2e_says(t, "bad_gpt2.so");
        e2e_says(t, cases[i][1]);
        assert_false(e2e_exists(t, "a"));
    }
    assert_int_equal(e2e_shell(t, "\"$HOST\" " RUN "--set run.phases=1 --set run.dir=a"), 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, e2e_teardown)
    const struct CMUnitTest tests[] = {T(what_is_frozen_stays), T(a_model_that_does_not_train),
                                       T(gradients_lie_in_their_range), T(parameters_are_checked)};
    return cmocka_run_group_tests_name("e2e_frozen", tests, NULL, NULL);
}
