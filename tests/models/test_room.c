// test_room.c: cards that the machine has, seen without a driver, and what a model needs on one.
#include "model/compute_load.h"
#include "model/room.h"

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void put(const char *root, const char *device, const char *vendor, const char *class) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, device);
    assert_int_equal(mkdir(path, 0777), 0);
    const char *const names[] = {"vendor", "class"}, *const values[] = {vendor, class};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", root, device, names[i]);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fprintf(f, "%s\n", values[i]);
        fclose(f);
    }
}

static void cards_are_counted(void **state) {
    (void)state;
    char root[] = "/tmp/rlhf-pci-XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    assert_int_equal(rlhf__nvidia_cards(root), 0);
    put(root, "0000:00:02.0", "0x8086", "0x030000"); // of another maker
    put(root, "0000:01:00.1", "0x10de", "0x040300"); // the sound of a card
    assert_int_equal(rlhf__nvidia_cards(root), 0);
    put(root, "0000:01:00.0", "0x10de", "0x030000");
    put(root, "0000:02:00.0", "0x10de", "0x030200"); // one without an output
    assert_int_equal(rlhf__nvidia_cards(root), 2);
    assert_int_equal(rlhf__nvidia_cards("/no/such/directory"), 0);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

static json_t *parse(const char *text) {
    json_t *v = json_loads(text, 0, NULL);
    assert_non_null(v);
    return v;
}

#define GPT2                                                                                       \
    "{\"n_embd\": 768, \"n_layer\": 12, \"vocab_size\": 50257, \"n_positions\": 1024, "            \
    "\"n_inner\": null}"
#define DISTILBERT                                                                                 \
    "{\"dim\": 768, \"n_layers\": 6, \"vocab_size\": 30522, \"max_position_embeddings\": 512, "    \
    "\"hidden_dim\": 3072}"

static void parameters_are_those_of_the_published_models(void **state) {
    (void)state;
    json_t *gpt2 = parse(GPT2), *bert = parse(DISTILBERT), *other = parse("{\"width\": 7}");
    assert_int_equal(rlhf__room_parameters(gpt2), 124439808);
    assert_int_equal(rlhf__room_parameters(bert), 66362880);
    assert_int_equal(rlhf__room_parameters(other), 0);
    json_decref(gpt2);
    json_decref(bert);
    json_decref(other);
}

static uint64_t in_use;
static uint64_t bytes_in_use(void *ctx) {
    (void)ctx;
    return in_use;
}

static rlhf_status check(uint64_t left, const struct rlhf__model_spec *spec,
                         struct rlhf__error *err) {
    const rlhf_compute table = {.bytes_in_use = bytes_in_use};
    const struct rlhf__model_env env = {
        .compute = &table, .dtype = RLHF_BF16, .room = {left, left ? (uint64_t)16 << 30 : 0}};
    json_t *gpt2 = parse(GPT2);
    const rlhf_status st = rlhf__room_check(&env, spec, gpt2, err);
    json_decref(gpt2);
    return st;
}

static void a_model_needs_what_it_will_hold(void **state) {
    (void)state;
    const uint64_t n = 124439808;
    const struct {
        struct rlhf__model_spec spec;
        uint64_t each;
    } cases[] = {
        {{.dir = "d", .role = "policy", .trainable = 1, .moments = 2}, 18},
        {{.dir = "d", .role = "policy", .trainable = 1, .moments = 1}, 14},
        {{.dir = "d", .role = "reference"}, 6},
        {{.dir = "d", .role = "reference", .frozen = 1}, 4},
    };
    struct rlhf__error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (in_use = 0; in_use < 2000; in_use += 1000) {
            assert_int_equal(check(n * cases[i].each + in_use, &cases[i].spec, &err), RLHF_OK);
            assert_int_equal(check(n * cases[i].each + in_use - 1, &cases[i].spec, &err),
                             RLHF_E_INVALID);
            assert_non_null(strstr(err.text, "124.4 million parameters and needs at least"));
            assert_int_equal(check(0, &cases[i].spec, &err), RLHF_OK); // the host's memory
        }
    in_use = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_are_counted),
        cmocka_unit_test(parameters_are_those_of_the_published_models),
        cmocka_unit_test(a_model_needs_what_it_will_hold)};
    return cmocka_run_group_tests_name("models: room on a device", tests, NULL, NULL);
}
