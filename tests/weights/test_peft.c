// test_peft.c: adapter_config.json and the names of adapter_model.safetensors as PEFT writes them:
// which fields are accepted, and which are refused with a message that has their name and value. If
// we write files and read them back, the adapter is the same.
#include "support/scratch.h"

#include "base/json.h"
#include "weights/file_sum.h"
#include "weights/peft.h"
#include "weights/safetensors_writer.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

// Fields as peft 0.21 writes them.
#define REST                                                                                       \
    "\"alora_invocation_tokens\": null, \"alpha_pattern\": {}, \"arrow_config\": null, "           \
    "\"auto_mapping\": null, \"base_model_name_or_path\": \"base\", \"bias\": \"none\", "          \
    "\"corda_config\": null, \"ensure_weight_tying\": false, \"eva_config\": null, "               \
    "\"exclude_modules\": null, \"fan_in_fan_out\": false, \"inference_mode\": true, "             \
    "\"init_lora_weights\": true, \"layer_replication\": null, \"layers_pattern\": null, "         \
    "\"layers_to_transform\": null, \"loftq_config\": {}, \"lora_bias\": false, "                  \
    "\"lora_dropout\": 0.0, \"megatron_config\": null, \"megatron_core\": \"megatron.core\", "     \
    "\"modules_to_save\": null, \"peft_type\": \"LORA\", \"peft_version\": \"0.21.2\", "           \
    "\"qalora_group_size\": 16, \"rank_pattern\": {}, \"revision\": null, "                        \
    "\"target_parameters\": null, \"task_type\": \"CAUSAL_LM\", "                                  \
    "\"trainable_token_indices\": null, \"use_dora\": false, \"use_qalora\": false, "
#define CONFIG                                                                                     \
    "{" REST "\"r\": 2, \"lora_alpha\": 8, \"use_rslora\": false, \"target_modules\": "            \
    "[\"v_proj\", \"q_proj\"]}"

#define P "base_model.model."
#define L P "model.layers.0.self_attn."
static const struct rlhf__tensor_spec good[] = {{L "q_proj.lora_A.weight", 0, 2, {2, 6}},
                                                {L "q_proj.lora_B.weight", 0, 2, {4, 2}},
                                                {L "v_proj.lora_A.weight", 0, 2, {2, 6}},
                                                {L "v_proj.lora_B.weight", 0, 2, {3, 2}}};

static void write_tensors(struct scratch *s, const struct rlhf__tensor_spec *spec, size_t n) {
    struct rlhf__weights_writer *w = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__weights_writer_open(NULL, scratch_path(s, RLHF__PEFT_WEIGHTS), spec, n, NULL, 0,
                                       &w, &err),
             &err);
    const float zeros[64] = {0};
    for (size_t i = 0; i < n; i++) {
        size_t count = 1;
        for (int32_t d = 0; d < spec[i].ndim; d++)
            count *= (size_t)spec[i].shape[d];
        check_ok(rlhf__weights_put_f32(w, zeros, count, &err), &err);
    }
    check_ok(rlhf__weights_commit(w, &err), &err);
}

static int setup(void **state) {
    if (scratch_setup(state)) return -1;
    write_tensors(*state, good, 4);
    scratch_text(*state, RLHF__PEFT_CONFIG, CONFIG);
    return 0;
}

static void read_as_written(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__peft p = {0};
    assert_true(rlhf__peft_is(s->dir));
    check_ok(rlhf__peft_read(s->dir, &p, &err), &err);
    assert_int_equal(p.rank, 2);
    assert_int_equal(p.n_targets, 2);
    assert_string_equal(p.target[0], "model.layers.0.self_attn.q_proj");
    assert_string_equal(p.target[1], "model.layers.0.self_attn.v_proj");
    assert_string_equal(p.base, "base");
    assert_true(rlhf__peft_scale(&p) == 4);
    assert_false(p.scores);
    rlhf__peft_finish(&p);
}

// Makes the config with one edit: FROM (in the text) becomes TO.
static void edited(struct scratch *s, const char *from, const char *to) {
    char text[4096];
    const char *at = strstr(CONFIG, from);
    if (!at) fail_msg("no %s in the config", from);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - CONFIG), CONFIG, to, at + strlen(from));
    scratch_text(s, RLHF__PEFT_CONFIG, text);
}

static void scales(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__peft p = {0};
    edited(s, "\"use_rslora\": false", "\"use_rslora\": true");
    check_ok(rlhf__peft_read(s->dir, &p, &err), &err);
    assert_true(fabs(rlhf__peft_scale(&p) - 8 / sqrt(2)) < 1e-12);
    rlhf__peft_finish(&p);
    edited(s, "\"lora_alpha\": 8", "\"lora_alpha\": 0.5");
    check_ok(rlhf__peft_read(s->dir, &p, &err), &err);
    assert_true(rlhf__peft_scale(&p) == 0.25);
    rlhf__peft_finish(&p);
}

// Fields that do not change what the adapter computes are accepted. The tensors determine which
// layers are adapted.
static void told(void **state) {
    struct scratch *s = *state;
    static const char *const edits[][2] = {
        {"[\"v_proj\", \"q_proj\"]", "\"all-linear\""},
        {"[\"v_proj\", \"q_proj\"]", "\".*(q|v)_proj\""},
        {"\"layers_to_transform\": null", "\"layers_to_transform\": [0]"},
        {"\"exclude_modules\": null", "\"exclude_modules\": [\"lm_head\"]"},
        {"\"init_lora_weights\": true", "\"init_lora_weights\": \"gaussian\""},
        {"\"fan_in_fan_out\": false", "\"fan_in_fan_out\": true"},
        {"\"lora_dropout\": 0.0", "\"lora_dropout\": 0.05"},
        {"\"task_type\": \"CAUSAL_LM\"", "\"task_type\": null"},
        {"\"modules_to_save\": null", "\"modules_to_save\": [\"classifier\", \"score\"]"}};
    for (size_t i = 0; i < CHECK_COUNT(edits); i++) {
        struct rlhf__error err = {0};
        struct rlhf__peft p = {0};
        edited(s, edits[i][0], edits[i][1]);
        check_ok(rlhf__peft_read(s->dir, &p, &err), &err);
        assert_int_equal(p.n_targets, 2);
        rlhf__peft_finish(&p);
    }
}

static void refused(void **state) {
    struct scratch *s = *state;
    static const struct {
        const char *from, *to, *says;
        int32_t code;
    } cases[] = {
        {"\"use_dora\": false", "\"use_dora\": true", "\"use_dora\" true is not supported",
         RLHF_E_UNSUPPORTED},
        {"\"rank_pattern\": {}", "\"rank_pattern\": {\"q_proj\": 4}",
         "\"rank_pattern\" {\"q_proj\": 4} is not supported", RLHF_E_UNSUPPORTED},
        {"\"alpha_pattern\": {}", "\"alpha_pattern\": {\"q\": 4}", "\"alpha_pattern\"",
         RLHF_E_UNSUPPORTED},
        {"\"lora_bias\": false", "\"lora_bias\": true", "\"lora_bias\" true", RLHF_E_UNSUPPORTED},
        {"\"bias\": \"none\"", "\"bias\": \"all\"", "\"bias\" \"all\" is not supported: biases",
         RLHF_E_UNSUPPORTED},
        {"\"peft_type\": \"LORA\"", "\"peft_type\": \"IA3\"", "\"peft_type\" \"IA3\"",
         RLHF_E_UNSUPPORTED},
        {"\"peft_type\": \"LORA\", ", "", "peft_type must be \"LORA\", found nothing",
         RLHF_E_INVALID},
        {"\"task_type\": \"CAUSAL_LM\"", "\"task_type\": \"TOKEN_CLS\"", "\"task_type\"",
         RLHF_E_UNSUPPORTED},
        {"\"modules_to_save\": null", "\"modules_to_save\": [\"lm_head\"]",
         "\"modules_to_save\" \"lm_head\" is not supported", RLHF_E_UNSUPPORTED},
        {"\"init_lora_weights\": true", "\"init_lora_weights\": \"pissa_niter_4\"",
         "\"init_lora_weights\" \"pissa_niter_4\" is not supported: it changes the base",
         RLHF_E_UNSUPPORTED},
        {"\"layer_replication\": null", "\"layer_replication\": [[0, 1]]", "\"layer_replication\"",
         RLHF_E_UNSUPPORTED},
        {"\"use_qalora\": false", "\"use_qalora\": false, \"use_tomorrow\": 1",
         "\"use_tomorrow\" 1 is not supported", RLHF_E_UNSUPPORTED},
        {"\"use_qalora\": false", "\"use_qalora\": false, \"a\\u001b[31m\": 1",
         "\"a\\u001b[31m\" 1 is not supported", RLHF_E_UNSUPPORTED},
        {"\"r\": 2", "\"r\": 0", "r must be a whole number from 1 to 65536, found 0",
         RLHF_E_INVALID},
        {"\"r\": 2", "\"r\": 4", "has shape [2, 6], which does not have the rank 4",
         RLHF_E_INVALID},
        {"\"lora_alpha\": 8", "\"lora_alpha\": \"8\"",
         "lora_alpha must be a number above 0, up to 1e9, found \"8\"", RLHF_E_INVALID},
        {"\"lora_alpha\": 8", "\"lora_alpha\": 0", "lora_alpha must be a number above 0",
         RLHF_E_INVALID},
        {"\"lora_alpha\": 8", "\"lora_alpha\": -8", "found -8", RLHF_E_INVALID},
        {"\"lora_dropout\": 0.0", "\"lora_dropout\": 1", "lora_dropout must be a number from 0",
         RLHF_E_INVALID},
        {"[\"v_proj\", \"q_proj\"]", "[3]", "target_modules must be a list of names",
         RLHF_E_INVALID},
        {"[\"v_proj\", \"q_proj\"]", "null", "target_modules must be", RLHF_E_INVALID},
        {"{\"alora", "[{\"alora", "adapter_config.json:1", RLHF_E_INVALID},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__error err = {0};
        struct rlhf__peft p = {0};
        edited(s, cases[i].from, cases[i].to);
        check_error(rlhf__peft_read(s->dir, &p, &err), cases[i].code, &err, cases[i].says);
        rlhf__peft_finish(&p);
    }
}

static void tensors_refused(void **state) {
    struct scratch *s = *state;
    static const struct {
        struct rlhf__tensor_spec with;
        size_t n;
        const char *says;
    } cases[] = {
        {{"x.lora_A.weight", 0, 2, {2, 2}},
         4,
         "holds the tensor x.lora_A.weight, which is neither"},
        {{L "q_proj.lora_magnitude_vector", 0, 1, {4}},
         4,
         "lora_magnitude_vector, which is neither"},
        {{P "score.lora", 0, 1, {4}}, 4, "which is neither A nor B of a linear layer"},
        {{L "k_proj.lora_A.weight", 0, 2, {2, 2}}, 4, "lora_A.weight without"},
        {{L "k_proj.lora_B.weight", 0, 2, {2, 2}}, 4, "k_proj.lora_B.weight without its lora_A"},
        {{L "v_proj.lora_B.weight", 0, 2, {3, 4}},
         3,
         "has shape [3, 4], which does not have the rank 2"},
        {{L "v_proj.lora_B.weight", 0, 1, {2}}, 3, "has shape [2], which does not have the rank 2"},
        {{P "score.weight", 0, 2, {2, 2}}, 0, "holds no A and B of a linear layer"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__tensor_spec spec[5];
        struct rlhf__error err = {0};
        struct rlhf__peft p = {0};
        memcpy(spec, good, sizeof good);
        spec[cases[i].n] = cases[i].with;
        write_tensors(s, spec, cases[i].n + 1);
        const rlhf_status st = rlhf__peft_read(s->dir, &p, &err);
        assert_true(st == RLHF_E_INVALID || st == RLHF_E_UNSUPPORTED);
        check_error(st, st, &err, cases[i].says);
        rlhf__peft_finish(&p);
    }
}

static void files_missing(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__peft p = {0};
    remove(scratch_path(s, RLHF__PEFT_WEIGHTS));
    check_error(rlhf__peft_read(s->dir, &p, &err), RLHF_E_INVALID, &err,
                "but no adapter_model.safetensors");
    rlhf__peft_finish(&p);
    remove(scratch_path(s, RLHF__PEFT_CONFIG));
    check_error(rlhf__peft_read(s->dir, &p, &err), RLHF_E_INVALID, &err, "is not an adapter");
    rlhf__peft_finish(&p);
}

// A base that cannot be read is refused like a missing base (root may read all files).
static void a_sum_of_what_may_not_be_read(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__file_sum sum;
    const int root = geteuid() == 0;
    assert_int_equal(chmod(s->dir, 0755), 0);
    scratch_text(s, "config.json", "{}");
    assert_int_equal(chmod(scratch_text(s, "model.safetensors", "x"), 0), 0);
    if (root) assert_int_equal(seteuid(65534), 0);
    const rlhf_status st = rlhf__sum_model(s->dir, 0, 1, &sum, &err);
    if (root) assert_int_equal(seteuid(0), 0);
    check_error(st, RLHF_E_INVALID, &err, "model.safetensors: cannot read: Permission denied");
}

// A relative path of a base is looked up in the adapter's directory, then in the working directory.
static void bases(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__peft p = {0};
    char base[RLHF__PATH_CAP];
    check_ok(rlhf__peft_read(s->dir, &p, &err), &err);
    check_error(rlhf__peft_base(&p, base, &err), RLHF_E_INVALID, &err,
                "'base' (base_model_name_or_path), is not a model directory here");
    assert_int_equal(mkdir(scratch_path(s, "base"), 0700), 0);
    scratch_text(s, "base/config.json", "{}");
    check_ok(rlhf__peft_base(&p, base, &err), &err);
    assert_non_null(strstr(base, "/base"));
    char was[RLHF__PATH_CAP];
    assert_non_null(getcwd(was, sizeof was));
    assert_int_equal(mkdir(scratch_path(s, "here"), 0700), 0);
    assert_int_equal(mkdir(scratch_path(s, "here/base"), 0700), 0);
    scratch_text(s, "here/base/config.json", "{}");
    assert_int_equal(chdir(scratch_path(s, "here")), 0);
    const rlhf_status beside = rlhf__peft_base(&p, base, &err);
    const int is_beside = !strstr(base, "/here/");
    assert_int_equal(remove(scratch_path(s, "base/config.json")), 0);
    const rlhf_status here = rlhf__peft_base(&p, base, &err);
    const int is_here = strstr(base, "/here/base") != NULL;
    assert_int_equal(chdir(was), 0);
    check_ok(beside, &err);
    check_ok(here, &err);
    assert_true(is_beside && is_here);
    rlhf__peft_finish(&p);
    // The base "." means the working directory, not the adapter's directory, although the latter
    // also has a config.json.
    scratch_text(s, "config.json", "{}");
    edited(s, "\"base_model_name_or_path\": \"base\"", "\"base_model_name_or_path\": \".\"");
    check_ok(rlhf__peft_read(s->dir, &p, &err), &err);
    assert_int_equal(chdir(scratch_path(s, "here/base")), 0);
    const rlhf_status dot = rlhf__peft_base(&p, base, &err);
    assert_int_equal(chdir(was), 0);
    check_ok(dot, &err);
    assert_non_null(strstr(base, "/here/base"));
    rlhf__peft_finish(&p);
    edited(s, "\"base_model_name_or_path\": \"base\"", "\"base_model_name_or_path\": null");
    check_ok(rlhf__peft_read(s->dir, &p, &err), &err);
    check_error(rlhf__peft_base(&p, base, &err), RLHF_E_INVALID, &err, "names no base");
    rlhf__peft_finish(&p);
}

static json_t *written(struct scratch *s, const struct rlhf__peft *p,
                       const struct rlhf__peft_written *w) {
    struct rlhf__error err = {0};
    json_t *v = NULL;
    struct rlhf__folder *dir = scratch_folder(s->dir);
    check_ok(rlhf__peft_write(p, w, dir, &err), &err);
    rlhf__folder_close(dir);
    check_ok(rlhf__json_load(scratch_path(s, RLHF__PEFT_CONFIG), &v, &err), &err);
    return v;
}

static void made_and_written(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__peft p = {0}, back = {0};
    const char *const leaf[] = {"c_attn", "c_proj"}, *const saved[] = {"score"};
    const struct rlhf__peft_written w = {
        .base = "/models/x", .saved = saved, .n_saved = 1, .leaf = leaf, .n_leaf = 2, .in_out = 1};
    check_ok(rlhf__peft_make(2, 0, "all-linear", &p, &err), &err);
    assert_true(p.alpha == 4);
    json_t *v = written(s, &p, &w);
    assert_int_equal(json_array_size(json_object_get(v, "target_modules")), 2);
    assert_string_equal(json_string_value(json_object_get(v, "task_type")), "SEQ_CLS");
    assert_true(json_is_true(json_object_get(v, "fan_in_fan_out")));
    assert_true(json_is_integer(json_object_get(v, "lora_alpha")));
    json_decref(v);
    check_ok(rlhf__peft_read(s->dir, &back, &err), &err); // the tensors still exist
    assert_int_equal(back.rank, 2);
    assert_true(back.alpha == 4 && back.scores);
    assert_string_equal(back.base, "/models/x");
    rlhf__peft_finish(&back);
    rlhf__peft_finish(&p);

    check_ok(rlhf__peft_make(3, 1.5, "q_proj,self_attn.v_proj", &p, &err), &err);
    assert_int_equal(p.n_targets, 2);
    assert_string_equal(p.target[1], "self_attn.v_proj");
    v = written(s, &p, &(struct rlhf__peft_written){.base = "b"});
    assert_string_equal(json_string_value(json_array_get(json_object_get(v, "target_modules"), 1)),
                        "self_attn.v_proj");
    assert_true(json_is_null(json_object_get(v, "modules_to_save")));
    assert_true(json_real_value(json_object_get(v, "lora_alpha")) == 1.5);
    json_decref(v);
    rlhf__peft_finish(&p);
    check_error(rlhf__peft_make(3, 1, "q_proj,,v_proj", &p, &err), RLHF_E_INVALID, &err,
                "policy.adapter.targets must be names");
    rlhf__peft_finish(&p);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        T(read_as_written), T(scales),           T(told),
        T(refused),         T(tensors_refused),  T(files_missing),
        T(bases),           T(made_and_written), T(a_sum_of_what_may_not_be_read)};
    return cmocka_run_group_tests_name("weights_peft", tests, NULL, NULL);
}
