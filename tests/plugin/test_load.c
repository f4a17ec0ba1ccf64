// test_load.c: where plugins are looked up, and the message for each faulty plugin.
#include "plugin/modules.h"

#include "base/printable.h"
#include "model/compute_load.h"
#include "plugin/search.h"

#include <rlhf/test.h>

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    struct scratch *scratch;
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
};

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    void *s;
    if (!f || scratch_setup(&s) != 0) return -1;
    f->scratch = s;
    f->plugins = loader(&f->dirs, f->scratch->dir);
    unsetenv("RLHF_PLUGIN_PATH");
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    void *s = f->scratch;
    rlhf__plugins_close(f->plugins);
    unsetenv("RLHF_PLUGIN_PATH");
    int failed = scratch_teardown(&s);
    free(f);
    return failed;
}

// Each faulty module, and a part of the loader's message about it.
static const struct {
    const char *name, *part;
} want[] = {
    {"not_plugin.so",
     "not a plugin, or built for another contract (it does not export rlhf_plugin_v1)"},
    {"other_abi.so", "built for plugin contract 3, this rlhf-host speaks 1.0"},
    {"other_minor.so",
     "org.example.faulty needs plugin contract 1.1 or newer, this rlhf-host speaks 1.0; use a "
     "newer rlhf-host, or rebuild it with SDK " RLHF_SDK_VERSION},
    {"ops_flag.so", "org.example.faulty sets bit 8 of the flags of its ops"},
    {"desc_flag.so", "org.example.faulty sets bit 2 of the flags of its descriptor"},
    {"host_key.so", "its option \"weight\" has a name that the host uses itself"},
    {"later_key.so", "org.example.faulty: its option \"host_retries\" has a name that begins "
                     "with \"host_\"; such names are for options of later hosts"},
    {"odd_key.so", "its option \"gain.more\" has a name that does not consist of letters from "
                   "a to z and A to Z"},
    {"needless.so",
     "its option \"pace\" sets choices, which does not apply to its type F64; it must be 0"},
    {"reserved.so", "its option \"pace\" sets `reserved` to 5; it must be 0"},
    {"other_flag.so",
     "its option \"pace\" sets RLHF_OPT_TRUSTED, which does not apply to its type ENUM"},
    {"named_table.so", "row 2 of its option table has the type TABLE and a key or a help text"},
    {"no_stride.so", "its option table has a stride of 0 bytes; "},
    {"null_bundle.so", "rlhf_plugin_v1() returned nothing"},
    {"no_plugins.so", "lists 0 plugins"},
    {"no_ops.so", "org.example.faulty has no ops table"},
    {"no_score.so", "org.example.faulty lacks the required function score()"},
    {"no_save.so", "org.example.faulty has a state_version but no save function"},
    {"no_load.so", "org.example.faulty has a state_version but no load function"},
    {"no_version.so", "org.example.faulty has save() and load() but state_version 0, so "
                      "nothing is saved"},
    {"save_alone.so", "org.example.faulty has save() but neither load() nor a state_version"},
    {"load_alone.so", "org.example.faulty has load() but neither save() nor a state_version"},
    {"state_alone.so", "org.example.faulty has a state_version but no create()"},
    {"no_create.so", "org.example.faulty has destroy() but no create()"},
    {"bad_id.so", "its id is \"two words\"; it must be reverse DNS such as "
                  "\"org.example.period\": two or more parts with dots between them"},
    {"short_id.so", "its id is \"faulty\"; it must be reverse DNS"},
    {"empty_part.so", "its id is \"org..faulty\"; it must be reverse DNS"},
    {"twice_id.so", "its bundle lists the id \"org.example.faulty\" twice, as plugins 0 and 1; "
                    "each plugin must have an id of its own"},
    {"null_version.so", "org.example.faulty has version NULL; it must be a text"},
    {"null_summary.so", "org.example.faulty has summary NULL; it must be a text"},
    {"row_and_batch.so",
     "org.example.faulty sets RLHF_REWARD_ROW_ALONE and RLHF_REWARD_WHOLE_BATCH in the flags "
     "of its ops; a reward may set one of the two at most"},
    {"short_ops.so", "org.example.faulty: its rlhf_reward_ops says it has 16 bytes, 24 to "},
    {"odd_ops.so", "org.example.faulty: its rlhf_reward_ops says it has 28 bytes, which is not a "
                   "multiple of 8; set its size to sizeof(rlhf_reward_ops)"},
    {"half_ops.so", "org.example.faulty: its rlhf_environment_ops says it has 68 bytes, which is "},
    {"varies_and_function.so",
     "org.example.faulty sets RLHF_ENVIRONMENT_VARIES and RLHF_ENVIRONMENT_FUNCTION in the flags "
     "of its ops; an environment may set one of the two at most"},
    {"empty_version.so", "org.example.faulty has an empty version; it must be a text"},
    {"odd_version.so", "org.example.faulty has the version \"\\xff\\n\"; it must be UTF-8 "
                       "without control characters"},
    {"long_version.so", "org.example.faulty has a version of 64 bytes; it must have at most 63"},
    {"odd_url.so", "org.example.faulty has the url \"https://example.org/\\x1b[31m\"; it must be "},
    {"odd_built_with.so", "its bundle has the built_with \"0.11\\n\"; it must be UTF-8 without"},
    {"odd_help.so", "its option \"text\" has the help \"red \\x1b[31m\"; it must be UTF-8 "
                    "without control characters"},
    {"bad_kind.so", "org.example.faulty is of kind 77"},
    {"no_step.so", "org.example.faulty lacks the required function step()"},
    {"environment_flag.so", "sets bit 4 of the flags of its ops"},
    {"algo_flag.so", "sets bit 0 of the flags of its ops"},
    {"sink_flag.so", "sets bit 31 of the flags of its ops"},
    {"model_compute.so", "org.example.faulty: it is for the compute contract 0.99 "
                         "(compute_major and compute_minor of its rlhf_model_ops), this "
                         "rlhf-host speaks 0.14 exactly"},
    {"kernels_compute.so", "it is for the compute contract 0.9 (compute_major and "
                           "compute_minor of its rlhf_kernels_ops)"},
    {"no_close.so", "org.example.faulty lacks the required function close()"},
    {"sink_key.so", "its option \"network\" has a name that the host uses itself"},
    {"no_phase.so", "org.example.faulty lacks the required function phase()"},
    {"newer_host.so", "org.example.faulty needs plugin contract 1.1000 or newer"},
    {"long_set.so", "its descriptor uses fields newer than this host (152 > 144 bytes)"},
    {"huge_size.so", "its descriptor says it has 2147483647 bytes"},
    {"short_descriptor.so", "its descriptor says it has 16 bytes"},
    {"default_range.so", "org.example.faulty: its option \"gain\" has a default outside its range"},
    {"twice_key.so", "its option \"gain\" is defined twice"},
    {"outside_config.so", "its option \"mode\" lies outside the config struct"},
    {"option_flag.so", "its option \"gain\" sets bit 16 of its flags"},
    {"deep_table.so", "row 2 of its option table includes a table that includes another"},
    {"empty_table.so", "row 2 of its option table includes no table"},
    {"no_choices.so", "its option \"mode\" has no choices"},
    {"nan_default.so", "its option \"gain\" has f_def nan; a default must be finite"},
    {"infinite_default.so", "its option \"gain\" has f_def inf; a default must be finite"},
    {"nan_limit.so",
     "its option \"factors\" has f_max nan; it must be a finite number or infinite"},
    {"bool_range.so", "its option \"on\" has i_min 0 and i_max 2; a BOOL must have i_min 0, and "
                      "i_max 1 or 0"},
    {"enum_range.so",
     "its option \"pace\" sets i_max, which does not apply to its type ENUM; it must be 0"},
    {"required_default.so",
     "its option \"text\" sets s_def and RLHF_OPT_REQUIRED; a required option has no default, "
     "so s_def must be 0"},
    {"empty_choice.so",
     "its option \"mode\" has \"\" as item 1 of choices; a choice must not be empty"},
    {"twice_choice.so",
     "its option \"mode\" has \"a\" as item 2 of choices; an earlier one is the same"},
    {"comma_choice.so",
     "its option \"mode\" has \"a,b\" as item 0 of choices; a choice must not contain a comma"},
    {"list_choice.so", "its option \"words\" has \"x\" as item 1 of choices"},
    {"odd_text.so", "its option \"text\" has \"a\\xff\" in s_def; it must be UTF-8"},
    {"odd_choice.so", "its option \"words\" has \"b\\xff\" in choices; it must be UTF-8"},
    {"odd_item.so", "its option \"words\" has \"b\\xff\" in l_def; it must be UTF-8"},
    {"shared_field.so", "its options \"mode\" (offset 8) and \"pace\" (offset 8) share bytes "
                        "of the config struct; "
                        "each option must have a field of its own"},
    {"shared_table.so", "its options \"mode\" (offset 8) and \"inside\" (offset 8) share"},
    {"far_table.so", "row 2 of its option table has offset 4294967288, so its option "
                     "\"inside\" lies outside the config struct"},
    {"table_alone.so", "it has no options (n_opts is 0) but sets opts; it must be 0"},
    {"stride_alone.so", "it has no options (n_opts is 0) but sets opt_stride; it must be 0"},
    {"config_alone.so", "it has no options (n_opts is 0) but sets config_size; it must be 0"},
};

static void each_fault_has_its_sentence(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < CHECK_COUNT(want); i++) {
        char path[1024];
        const struct rlhf__plugin *p;
        struct rlhf__error err = {0};
        rlhf_status st =
            rlhf__plugin_open(f->plugins, module_path(want[i].name, path), RLHF_KIND_REWARD,
                              RLHF__NAME_TYPED, "--reward", &p, &err);
        check_error(st, RLHF_E_UNSUPPORTED, &err, want[i].part);
        assert_non_null(strstr(err.text, want[i].name)); // every message names the file
        assert_null(p);
    }
}

// A file's version of the compute contract matters only for models and kernels.
static void rewards_and_algorithms_of_another_compute_contract_load(void **state) {
    struct fixture *f = *state;
    char path[1024];
    const struct rlhf__plugin *p;
    struct rlhf__error err = {0};
    check_ok(rlhf__plugin_open(f->plugins, module_path("reward_compute.so", path), RLHF_KIND_REWARD,
                               RLHF__NAME_TYPED, "--reward", &p, &err),
             &err);
    check_ok(rlhf__plugin_open(f->plugins, module_path("algo_compute.so", path), RLHF_KIND_ALGO,
                               RLHF__NAME_TYPED, "--algo", &p, &err),
             &err);
}

static void a_sound_one_is_described(void **state) {
    struct fixture *f = *state;
    char path[1024];
    const struct rlhf__plugin *p, *again;
    struct rlhf__error err = {0};
    module_path("sample.so", path);
    check_ok(rlhf__plugin_open(f->plugins, path, RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward", &p,
                               &err),
             &err);
    assert_string_equal(p->desc.id, "org.example.sample");
    assert_string_equal(p->file, "sample.so");
    assert_string_equal(p->stem, "sample");
    assert_int_equal(p->path[0], '/');
    assert_int_equal(strlen(p->sha256), 64);
    assert_int_equal(p->table.n, 6);
    assert_non_null(p->ops.reward.score);
    check_ok(rlhf__plugin_open(f->plugins, path, RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward",
                               &again, &err),
             &err);
    assert_ptr_equal(p, again);
}

// A caller that only describes plugins does not wait until a large file is hashed.
static void the_sum_can_be_left_out(void **state) {
    struct fixture *f = *state;
    char path[1024];
    const struct rlhf__plugin *p;
    struct rlhf__error err = {0};
    module_path("sample.so", path);
    rlhf__plugins_leave_sums(f->plugins);
    check_ok(rlhf__plugin_open(f->plugins, path, RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward", &p,
                               &err),
             &err);
    assert_string_equal(p->sha256, "");
}

// The backends are ordinary plugins.
static void kernels_and_extensions(void **state) {
    struct fixture *f = *state;
    char path[1024];
    const struct rlhf__plugin *p;
    struct rlhf__error err = {0};
    snprintf(path, sizeof path, "%s/lib/rlhf/1/kernels/kernels_reference.so",
             getenv("RLHF_BUILD_DIR"));
    check_ok(
        rlhf__plugin_open(f->plugins, path, RLHF_KIND_KERNELS, RLHF__NAME_TYPED, "test", &p, &err),
        &err);
    assert_non_null(p->ops.kernels.open);
    assert_string_equal(rlhf__kind_name((int32_t)p->desc.kind), "kernels");
    check_error(rlhf__plugin_open(f->plugins, path, RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward",
                                  &p, &err),
                RLHF_E_INVALID, &err, "is a compute backend, but --reward needs a reward");
    module_path("sample.so", path);
    check_ok(rlhf__plugin_open(f->plugins, path, RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward", &p,
                               &err),
             &err);
    assert_string_equal(p->desc.vendor, "the tests");
    assert_string_equal(p->desc.license, "");
    assert_non_null(rlhf__plugin_extension(p, NULL, "org.example.sample/1"));
    assert_null(rlhf__plugin_extension(p, NULL, "org.example.calls/1"));
    assert_null(rlhf__plugin_extension(p, NULL, "org.example.unknown/1"));
    module_path("long_zero.so", path);
    check_ok(rlhf__plugin_open(f->plugins, path, RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward", &p,
                               &err),
             &err);
    assert_null(rlhf__plugin_extension(p, NULL, "org.example.sample/1")); // it has no function
}

static void a_longer_descriptor_with_a_zero_tail_is_fine(void **state) {
    struct fixture *f = *state;
    char path[1024];
    const struct rlhf__plugin *p;
    struct rlhf__error err = {0};
    module_path("long_zero.so", path);
    check_ok(rlhf__plugin_open(f->plugins, path, RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward", &p,
                               &err),
             &err);
    assert_string_equal(p->desc.id, "org.example.faulty");
}

static void two_files_with_one_id(void **state) {
    struct fixture *f = *state;
    char path[1024];
    const struct rlhf__plugin *p;
    struct rlhf__error err = {0};
    module_path("sample.so", path);
    check_ok(rlhf__plugin_open(f->plugins, path, RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward", &p,
                               &err),
             &err);
    module_path("twin.so", path);
    check_error(rlhf__plugin_open(f->plugins, path, RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward",
                                  &p, &err),
                RLHF_E_INVALID, &err, "the plugin id \"org.example.sample\" is in two files");
    assert_non_null(strstr(err.text, "sample.so and "));
    assert_non_null(strstr(err.text, "twin.so"));
}

static void a_wrong_kind_is_called_by_name(void **state) {
    struct fixture *f = *state;
    char path[1024];
    const struct rlhf__plugin *p;
    struct rlhf__error err = {0};
    module_path("sample.so", path);
    check_error(
        rlhf__plugin_open(f->plugins, path, RLHF_KIND_ALGO, RLHF__NAME_TYPED, "--algo", &p, &err),
        RLHF_E_INVALID, &err, "sample.so is a reward, but --algo needs an algorithm");
    module_path("algo.so", path);
    check_error(rlhf__plugin_open(f->plugins, path, RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward",
                                  &p, &err),
                RLHF_E_INVALID, &err, "algo.so is an algorithm, but --reward needs a reward");
    snprintf(path, sizeof path, "%s/lib/rlhf/1/environments/guess.so", getenv("RLHF_BUILD_DIR"));
    check_error(rlhf__plugin_open(f->plugins, path, RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward",
                                  &p, &err),
                RLHF_E_INVALID, &err, "guess.so is an environment, but --reward needs a reward");
}

static void an_environment_is_opened(void **state) {
    struct fixture *f = *state;
    char path[1024];
    const struct rlhf__plugin *p;
    struct rlhf__error err = {0};
    snprintf(path, sizeof path, "%s/lib/rlhf/1/environments/guess.so", getenv("RLHF_BUILD_DIR"));
    check_ok(rlhf__plugin_open(f->plugins, path, RLHF_KIND_ENVIRONMENT, RLHF__NAME_TYPED, "--env",
                               &p, &err),
             &err);
    assert_int_equal(p->ops.environment.flags,
                     RLHF_ENVIRONMENT_PAYS | RLHF_ENVIRONMENT_TASKS | RLHF_ENVIRONMENT_FUNCTION);
    assert_int_equal(p->ops.environment.state_size, 8);
    assert_non_null(p->ops.environment.step);
    assert_string_equal(rlhf__kind_name(RLHF_KIND_ENVIRONMENT), "environment");
    assert_true(rlhf__opt_find(&p->table, "most") >= 0);
}

static void several_in_one_file_need_a_choice(void **state) {
    struct fixture *f = *state;
    char path[1024], chosen[1100];
    const struct rlhf__plugin *p, **all;
    struct rlhf__error err = {0};
    size_t n;
    module_path("several.so", path);
    check_error(rlhf__plugin_open(f->plugins, path, RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward",
                                  &p, &err),
                RLHF_E_INVALID, &err,
                "several.so#org.example.faulty or several.so#org.example.second");
    snprintf(chosen, sizeof chosen, "%s#org.example.second", path);
    check_ok(rlhf__plugin_open(f->plugins, chosen, RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward",
                               &p, &err),
             &err);
    assert_string_equal(p->desc.id, "org.example.second");
    snprintf(chosen, sizeof chosen, "%s#org.example.third", path);
    check_error(rlhf__plugin_open(f->plugins, chosen, RLHF_KIND_REWARD, RLHF__NAME_TYPED,
                                  "--reward", &p, &err),
                RLHF_E_INVALID, &err, "no plugin with the id \"org.example.third\"");
    check_ok(rlhf__plugin_open_file(f->plugins, path, &all, &n, &err), &err);
    assert_int_equal(n, 2);
    free(all);
}

// ---- lookup ------------------------------------------------------------------------------------

// Makes a link to a test module in the scratch directory.
static void place(struct fixture *f, const char *module, const char *at) {
    char path[1024];
    struct rlhf__error err = {0};
    char *dir = strdup(scratch_path(f->scratch, at));
    assert_non_null(dir);
    *strrchr(dir, '/') = '\0';
    check_ok(rlhf__make_dirs(dir, &err), &err);
    free(dir);
    assert_int_equal(symlink(module_path(module, path), scratch_path(f->scratch, at)), 0);
}

static void the_first_place_wins(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    const struct rlhf__plugin *p;
    char back[1024], env[1024];
    place(f, "sample.so", "rewards/x.so");
    place(f, "several.so", "path/rewards/x.so");
    check_ok(rlhf__plugin_open(f->plugins, "x", RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward", &p,
                               &err),
             &err);
    assert_string_equal(p->desc.id, "org.example.sample"); // ".so" was added
    snprintf(env, sizeof env, "/nowhere::%s/path", f->scratch->dir);
    setenv("RLHF_PLUGIN_PATH", env, 1);
    check_ok(rlhf__plugin_open(f->plugins, "x.so#org.example.second", RLHF_KIND_REWARD,
                               RLHF__NAME_TYPED, "--reward", &p, &err),
             &err);
    // If the working directory has a file of that name, it takes precedence over both directories.
    place(f, "algo.so", "here/x.so");
    assert_non_null(getcwd(back, sizeof back));
    assert_int_equal(chdir(scratch_path(f->scratch, "here")), 0);
    rlhf_status st =
        rlhf__plugin_open(f->plugins, "x.so", RLHF_KIND_ALGO, RLHF__NAME_TYPED, "--algo", &p, &err);
    assert_int_equal(chdir(back), 0);
    check_ok(st, &err);
    assert_string_equal(p->desc.id, "org.example.algo");
}

// The user's own directory is searched after RLHF_PLUGIN_PATH and before the installation's. The
// rule of trust.h applies to its files.
static void the_users_place_is_between(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    const struct rlhf__plugin *p;
    char *found = NULL, env[1024];
    place(f, "sample.so", "rewards/x.so");
    place(f, "several.so", "mine/rewards/x.so");
    place(f, "algo.so", "path/rewards/x.so");
    snprintf(f->dirs.user, sizeof f->dirs.user, "%s/mine", f->scratch->dir);
    check_ok(rlhf__plugin_open(f->plugins, "x.so#org.example.second", RLHF_KIND_REWARD,
                               RLHF__NAME_LOOKED_UP, "it", &p, &err),
             &err);
    snprintf(env, sizeof env, "%s/path", f->scratch->dir);
    setenv("RLHF_PLUGIN_PATH", env, 1);
    check_ok(rlhf__plugin_find(&f->dirs, "x.so", RLHF_KIND_REWARD, RLHF__NAME_LOOKED_UP, "it",
                               &found, &err),
             &err);
    assert_non_null(strstr(found, "/algo.so")); // the target of the link
    free(found);
    unsetenv("RLHF_PLUGIN_PATH");
    check_error(
        rlhf__plugin_open(f->plugins, "y", RLHF_KIND_REWARD, RLHF__NAME_LOOKED_UP, "it", &p, &err),
        RLHF_E_INVALID, &err, "/mine/rewards, ");
    assert_int_equal(chmod(scratch_path(f->scratch, "mine/rewards"), 0777), 0);
    check_error(rlhf__plugin_open(f->plugins, "x.so#org.example.faulty", RLHF_KIND_REWARD,
                                  RLHF__NAME_LOOKED_UP, "it", &p, &err),
                RLHF_E_INVALID, &err, "can be written by everybody");
}

// A file is found in the user's directory itself, too, not only in its subdirectory for the kind.
// The loader reports which other file it hides.
static void what_a_file_hides_is_known(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    char *found = NULL, other[RLHF__PATH_CAP];
    snprintf(f->dirs.user, sizeof f->dirs.user, "%s/mine", f->scratch->dir);
    place(f, "sample.so", "mine/x.so");
    place(f, "several.so", "rewards/x.so");
    place(f, "twin.so", "elsewhere/x.so");
    check_ok(rlhf__plugin_find(&f->dirs, "x.so", RLHF_KIND_REWARD, RLHF__NAME_LOOKED_UP, "it",
                               &found, &err),
             &err);
    assert_non_null(strstr(found, "/sample.so"));
    free(found);
    assert_true(rlhf__plugin_hidden(&f->dirs, scratch_path(f->scratch, "mine/x.so"), other));
    assert_non_null(strstr(other, "/several.so"));
    // A file in the last directory does not hide any other file. Neither does a file that is given
    // by its path.
    assert_false(rlhf__plugin_hidden(&f->dirs, scratch_path(f->scratch, "rewards/x.so"), other));
    assert_false(rlhf__plugin_hidden(&f->dirs, scratch_path(f->scratch, "elsewhere/x.so"), other));
}

// The user's directory is below XDG_DATA_HOME or, if this is not set, below HOME. Relative paths
// are ignored.
static void the_users_place_is_xdgs(void **state) {
    (void)state;
    const struct {
        const char *data, *home, *user;
    } cases[] = {{"/data", "/home/me", "/data/rlhf/plugins"},
                 {NULL, "/home/me", "/home/me/.local/share/rlhf/plugins"},
                 {"data", "/home/me", "/home/me/.local/share/rlhf/plugins"},
                 {"", "/home/me", "/home/me/.local/share/rlhf/plugins"},
                 {NULL, "me", ""},
                 {NULL, NULL, ""}};
    enum { N = sizeof cases / sizeof *cases };
    static struct rlhf__dirs dirs[N];
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    char *data = getenv("XDG_DATA_HOME") ? strdup(getenv("XDG_DATA_HOME")) : NULL;
    for (size_t i = 0; i < N; i++) {
        struct rlhf__error err;
        cases[i].data ? setenv("XDG_DATA_HOME", cases[i].data, 1) : unsetenv("XDG_DATA_HOME");
        cases[i].home ? setenv("HOME", cases[i].home, 1) : unsetenv("HOME");
        if (rlhf__dirs_find(&dirs[i], &err) < 0) dirs[i].user[0] = '!';
    }
    home ? setenv("HOME", home, 1) : unsetenv("HOME");
    data ? setenv("XDG_DATA_HOME", data, 1) : unsetenv("XDG_DATA_HOME");
    free(home);
    free(data);
    for (size_t i = 0; i < N; i++)
        assert_string_equal(dirs[i].user, cases[i].user);
}

// Names that the program itself looks up, and bare names in a config, are not looked up in the
// working directory.
static void only_typed_names_are_files(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    const struct rlhf__plugin *p;
    char back[1024], path[1100], file[1024];
    place(f, "sample.so", "here/x.so");
    snprintf(path, sizeof path, "%s/here/x.so", f->scratch->dir);
    assert_non_null(getcwd(back, sizeof back));
    assert_int_equal(chdir(scratch_path(f->scratch, "here")), 0);
    for (int32_t from = RLHF__NAME_LOOKED_UP; from <= RLHF__NAME_TYPED; from++) {
        int typed = from == RLHF__NAME_TYPED, named = from != RLHF__NAME_LOOKED_UP;
        assert_int_equal(rlhf__plugin_is_path("x.so", from, file), typed);
        assert_int_equal(rlhf__plugin_is_path("x#org.example.sample", from, file), typed);
        assert_string_equal(file, "x.so");
        assert_int_equal(rlhf__plugin_is_path("./x.so", from, file), named);
        rlhf_status st =
            rlhf__plugin_open(f->plugins, "x.so", RLHF_KIND_REWARD, from, "it", &p, &err);
        assert_int_equal(st, typed ? RLHF_OK : RLHF_E_INVALID);
        st = rlhf__plugin_open(f->plugins, path, RLHF_KIND_REWARD, from, "it", &p, &err);
        assert_int_equal(st, named ? RLHF_OK : RLHF_E_INVALID);
    }
    assert_int_equal(chdir(back), 0);
    check_error(rlhf__plugin_open(f->plugins, "../x", RLHF_KIND_MODEL, RLHF__NAME_LOOKED_UP,
                                  "config.json", &p, &err),
                RLHF_E_INVALID, &err, "config.json: \"../x\" is not a plugin's name");
}

static void a_missing_one_gets_a_hint(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    const struct rlhf__plugin *p;
    place(f, "sample.so", "rewards/imdb.so");
    place(f, "algo.so", "algos/ppo.so");
    check_error(rlhf__plugin_open(f->plugins, "imbd.so", RLHF_KIND_REWARD, RLHF__NAME_TYPED,
                                  "--reward", &p, &err),
                RLHF_E_INVALID, &err,
                "--reward: no reward plugin \"imbd.so\" (did you mean \"imdb.so\"?); looked for");
    check_error(rlhf__plugin_open(f->plugins, "ppo", RLHF_KIND_REWARD, RLHF__NAME_TYPED, "--reward",
                                  &p, &err),
                RLHF_E_INVALID, &err, "is an algorithm, but --reward needs a reward");
    check_error(rlhf__plugin_open(f->plugins, "./ppo.so", RLHF_KIND_ALGO, RLHF__NAME_TYPED,
                                  "--algo", &p, &err),
                RLHF_E_INVALID, &err, "--algo: there is no plugin file ./ppo.so");
    check_error(
        rlhf__plugin_open(f->plugins, "", RLHF_KIND_ALGO, RLHF__NAME_TYPED, "--algo", &p, &err),
        RLHF_E_INVALID, &err, "name is empty");
}

static void text_is_no_library(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    const struct rlhf__plugin *p;
    const char *path = scratch_text(f->scratch, "text.so", "not ELF");
    check_error(
        rlhf__plugin_open(f->plugins, path, RLHF_KIND_ALGO, RLHF__NAME_TYPED, "--algo", &p, &err),
        RLHF_E_UNSUPPORTED, &err, "text.so: cannot be loaded: file too short");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void a_backend_is_found_like_a_plugin(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    char path[1024], found[RLHF__PATH_CAP];
    snprintf(path, sizeof path, "%s/lib/rlhf/1/kernels/kernels_reference.so",
             getenv("RLHF_BUILD_DIR"));
    check_ok(rlhf__make_dirs(scratch_path(f->scratch, "mine/kernels"), &err), &err);
    assert_int_equal(symlink(path, scratch_path(f->scratch, "mine/kernels/kernels_own.so")), 0);
    check_error(rlhf__compute_find(&f->dirs, "own", found, &err), RLHF_E_INVALID, &err,
                "no compute backend 'own'");
    setenv("RLHF_PLUGIN_PATH", scratch_path(f->scratch, "mine"), 1);
    check_ok(rlhf__compute_find(&f->dirs, "own", found, &err), &err);
    assert_string_equal(strrchr(found, '/'), "/kernels_reference.so");
}

// Returns the part of a message about an option table that follows the plugin's id, or NULL if the
// message is about something else.
static const char *about_options(const char *part) {
    static const char id[] = "org.example.faulty: ";
    if (strncmp(part, id, strlen(id)) == 0) part += strlen(id);
    return strncmp(part, "its option", 10) == 0 || strncmp(part, "row 2", 5) == 0 ||
                   strncmp(part, "it has no options", 17) == 0
               ? part
               : NULL;
}

// The unit test in a plugin refuses the same plugins as the loader, and options with the same
// words.
static void the_fake_host_refuses_them_too(void **state) {
    char path[1024], why[512], shown[1024];
    int tables = 0;
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(want); i++) {
        if (rlhf_test_open(module_path(want[i].name, path), 0))
            fail_msg("%s is not refused", want[i].name);
        const char *part = about_options(want[i].part);
        if (!part) continue;
        union {
            void *data;
            rlhf_entry_fn entry;
        } u = {.data = dlsym(dlopen(path, RTLD_NOW | RTLD_LOCAL), RLHF_ENTRY_SYMBOL)};
        assert_non_null(u.data);
        assert_true(rlhf_test_refused(u.entry()->plugins[0], why, sizeof why) > 0);
        if (!strstr(rlhf__printable(why, shown, sizeof shown), part))
            fail_msg("%s: %s", want[i].name, shown);
        tables++;
    }
    assert_true(tables > 30);
    assert_non_null(rlhf_test_open(module_path("sample.so", path), 0));
    assert_non_null(rlhf_test_open(module_path("long_zero.so", path), 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(each_fault_has_its_sentence),
        T(rewards_and_algorithms_of_another_compute_contract_load),
        T(a_sound_one_is_described),
        T(the_sum_can_be_left_out),
        T(kernels_and_extensions),
        T(a_longer_descriptor_with_a_zero_tail_is_fine),
        T(two_files_with_one_id),
        T(a_wrong_kind_is_called_by_name),
        T(several_in_one_file_need_a_choice),
        T(an_environment_is_opened),
        T(the_first_place_wins),
        T(the_users_place_is_between),
        T(what_a_file_hides_is_known),
        cmocka_unit_test(the_users_place_is_xdgs),
        T(only_typed_names_are_files),
        T(a_missing_one_gets_a_hint),
        T(text_is_no_library),
        cmocka_unit_test_setup_teardown(a_backend_is_found_like_a_plugin, setup, teardown),
        cmocka_unit_test(the_fake_host_refuses_them_too),
    };
    return cmocka_run_group_tests_name("plugin_load", tests, NULL, NULL);
}
