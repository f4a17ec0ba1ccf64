// test_e2e_export.c: exports a run. Checks which checkpoint is exported, which files are written
// and what they contain. The files must not contain any trace of the machine.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define PPO                                                                                        \
    "--algo ppo.so --reward period_count.so --policy model --prompts prompts.txt "                 \
    "--set policy.init=random --set batch.size=4 --set sampling.max_new_tokens=6 "                 \
    "--set sampling.temperature=0.7 --set sampling.top_k=5 --set sampling.top_p=0.9 --set "        \
    "sampling.min_p=0.02 "                                                                         \
    "--set 'sampling.stop=[\"x\", 13]' --set run.phases=3 --set checkpoint.every=1 "               \
    "--set checkpoint.keep=0 --set optim.weight_decay=0.1 --set run.note='for nobody' "

static json_t *json_of(struct e2e *t, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    json_t *v = json_load_file(path, 0, NULL);
    if (!v) fail_msg("%s is missing or no JSON", name);
    return v;
}

static void says(json_t *v, const char *key, const char *want) {
    char *text = json_dumps(json_object_get(v, key), JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    assert_string_equal(text ? text : "missing", want);
    free(text);
}

static void ok(struct e2e *t, int status) {
    if (status != 0) fail_msg("exit %d: %s", status, t->out);
}

static void the_last_checkpoint(void **state) {
    struct e2e *t = *state;
    if (e2e_run(t, PPO "--out r") != 0) fail_msg("%s", t->out);
    ok(t, e2e_shell(t, "\"$HOST\" export r --to new/out"));
    e2e_says(t, "checkpoint 000003 of r");
    e2e_says(t, "the value head is left out");
    e2e_says(t, "parameters as f32 in 1 file: new/out");
    ok(t, e2e_shell(t, "cmp new/out/vocab.json r/checkpoints/latest/vocab.json && "
                       "cmp new/out/merges.txt r/checkpoints/latest/merges.txt && "
                       "ls -A new new/out"));
    assert_string_equal(t->out, "new:\nout\n\nnew/out:\nREADME.md\nconfig.json\n"
                                "generation_config.json\nmerges.txt\nmodel.safetensors\n"
                                "vocab.json\n");
    json_t *g = json_of(t, "new/out/generation_config.json");
    says(g, "do_sample", "true");
    says(g, "temperature", "0.7");
    says(g, "top_k", "5");
    says(g, "top_p", "0.9");
    says(g, "min_p", "0.02");
    says(g, "max_new_tokens", "6");
    says(g, "eos_token_id", "[259, 13]");
    json_decref(g);
    json_t *c = json_of(t, "new/out/config.json");
    says(c, "dtype", "\"float32\"");
    says(c, "architectures", "[\"GPT2LMHeadModel\"]");
    json_decref(c);
    // The program accepts the export as a model directory, and the same weights generate the same
    // text. --ignore-eos is needed because in the export, the ids that end a text include
    // sampling.stop.
    ok(t, e2e_shell(t, "for m in new/out r/checkpoints/latest; do \"$HOST\" generate "
                       "--model $m --prompt 'The th' --seed 3 --max-new 12 --ignore-eos || exit; "
                       "done >both 2>log; n=$(wc -l <both); head -n $((n/2)) both >a; "
                       "tail -n $((n/2)) both | cmp - a"));
}

// If a stop text is one special token, it ends a text in transformers as in the run.
static void special_stop(void **state) {
    struct e2e *t = *state;
    ok(t, e2e_shell(t, "cp -rL model special && echo '{\"eos_token\": \"<|endoftext|>\", "
                       "\"pad_token\": \"the\"}' >special/special_tokens_map.json"));
    ok(t, e2e_run(t, PPO "--policy special --set 'sampling.stop=[\"the\", \"in\", "
                         "\"<|endoftext|>\"]' --out s"));
    ok(t, e2e_shell(t, "\"$HOST\" export s --to new/special"));
    json_t *g = json_of(t, "new/special/generation_config.json");
    says(g, "eos_token_id", "[259, 257]");
    json_decref(g);
}

static void best_last_or_by_name(void **state) {
    struct e2e *t = *state;
    ok(t, e2e_run(t, PPO "--set checkpoint.best=objective/entropy "
                         "--set checkpoint.best_mode=max --out r"));
    ok(t, e2e_shell(t, "ln -sfn 000001 r/checkpoints/best"));
    ok(t, e2e_shell(t, "\"$HOST\" export r --to a"));
    e2e_says(t, "checkpoint 000001 of r: its best; --checkpoint last takes the newest");
    ok(t, e2e_shell(t, "\"$HOST\" export r --to b --checkpoint last"));
    e2e_says(t, "checkpoint 000003 of r\n");
    ok(t, e2e_shell(t, "\"$HOST\" export r --to c --checkpoint 000002"));
    ok(t,
       e2e_shell(t, "\"$HOST\" export r/checkpoints/000002 --to d")); // recognized as part of a run
    ok(t, e2e_shell(t, "cmp c/model.safetensors d/model.safetensors && "
                       "! cmp -s a/model.safetensors b/model.safetensors && "
                       "grep -c '^| `objective/entropy`' a/README.md && "
                       "sed 's/^# c$/# d/' c/README.md | cmp - d/README.md"));
    for (const char *const *bad = (const char *const[]){"000009", "../000001", ".", "", NULL}; *bad;
         bad++) {
        assert_int_equal(e2e_shell(t, "\"$HOST\" export r --to e --checkpoint '%s'", *bad), 2);
        e2e_says(t, "has no checkpoint '");
    }
    assert_false(e2e_exists(t, "e"));
}

// Rounded checkpoints also store the exact weights.
static void exact_weights_of_a_rounded_checkpoint(void **state) {
    struct e2e *t = *state;
    ok(t, e2e_run(t, PPO "--set checkpoint.dtype=bf16 --out r"));
    ok(t, e2e_run(t, PPO "--out exact"));
    ok(t, e2e_shell(t, "\"$HOST\" export r --to a"));
    e2e_says(t, "as bf16");
    ok(t, e2e_shell(t, "\"$HOST\" export r --to b --dtype f32"));
    ok(t, e2e_shell(t, "\"$HOST\" export exact --to c --dtype bf16"));
    ok(t, e2e_shell(t, "\"$HOST\" export exact --to d"));
    ok(t, e2e_shell(t, "cmp b/model.safetensors d/model.safetensors && "
                       "cmp a/model.safetensors c/model.safetensors && "
                       "cmp b/config.json d/config.json && "
                       "cmp a/config.json c/config.json"));
}

static void the_card(void **state) {
    struct e2e *t = *state;
    ok(t, e2e_shell(t, "mkdir -p hub/models--Some--Model-1/snapshots/abc && "
                       "cp model/* hub/models--Some--Model-1/snapshots/abc && "
                       "\"$HOST\" " PPO "--threads 1 --out r "
                       "--policy \"$PWD/hub/models--Some--Model-1/snapshots/abc\""));
    ok(t, e2e_shell(t, "\"$HOST\" export r --to out"));
    ok(t, e2e_shell(t, "cat out/README.md; ! grep -e \"$PWD\" -e /tmp "
                       "-e nobody out/* >&2"));
    e2e_says(t, "---\nlibrary_name: transformers\npipeline_tag: text-generation\n"
                "base_model: \"Some/Model-1\"\ntags:\n- rlhf-host\n- \"ppo\"\n---\n\n# out\n");
    e2e_says(t, "| start | `Some/Model-1`, random weights |");
    e2e_says(t, "| reward | `{\"plugin\": \"period_count.so\"");
    e2e_says(t, "| phases | `3` |");
    e2e_says(t, "| sequences | `12` |");
    e2e_says(t, "| input `prompts.path` | `prompts.txt`, ");
    e2e_says(t, "org.rlhf-host.ppo` 1.");
    e2e_says(t, "| `objective/kl` | ");
    e2e_says(t, "    \"temperature\": 0.7,\n");
    assert_null(strstr(t->out, "perf/"));
    // The model card of a run that started from another run's result names that run.
    ok(t, e2e_run(t, PPO "--policy r/checkpoints/000003 --threads 1 --out s "));
    ok(t, e2e_shell(t, "\"$HOST\" export s --to more && cat more/README.md"));
    e2e_says(t, "| start | `r`, checkpoint `000003`");
    ok(t, e2e_shell(t, "\"$HOST\" export r --to out --force --base-model My-Own"));
    ok(t, e2e_shell(t, "cat out/README.md"));
    e2e_says(t, "base_model: \"My-Own\"\n");
}

// If a model does not come from a run, its export keeps the model's own card and generation config.
static void a_model_directory(void **state) {
    struct e2e *t = *state;
    ok(t, e2e_run(t, PPO "--out r"));
    ok(t,
       e2e_shell(t, "cp -r r/checkpoints/latest/ m && rm -r m/state && echo mine >m/README.md && "
                    "echo '{\"repetition_penalty\": 1.1, \"eos_token_id\": [1, 2]}' "
                    ">m/generation_config.json && sed -i '/architectures/,/]/d' m/config.json && "
                    "\"$HOST\" export m --to out --dtype f16 --shard-size 20KB && ls out && "
                    "cat out/README.md out/config.json out/generation_config.json"));
    e2e_says(t, "model.safetensors.index.json");
    e2e_says(t, "mine\n");
    e2e_says(t, "\"dtype\": \"float16\"");
    e2e_says(t, "GPT2LMHeadModel");
    e2e_says(t, "\"repetition_penalty\": 1.1");
    assert_null(strstr(t->out, "value head"));
    assert_int_equal(e2e_shell(t, "\"$HOST\" export m --to other --base-model a/b"), 2);
    e2e_says(t, "--base-model has no effect on a model that already has a README.md");
    assert_false(e2e_exists(t, "other"));
}

// The next export removes the files that a killed export left. It does not touch the files of an
// export that is still running.
static void what_a_killed_export_left_goes(void **state) {
    struct e2e *t = *state;
    if (e2e_run(t, PPO "--set run.phases=1 --out r") != 0) fail_msg("%s", t->out);
    ok(t,
       e2e_shell(t, "mkdir -p at/.rlhf-export-new-7 at/.rlhf-export-new-8 at/.rlhf-export-new-9 "
                    "at/.rlhf-export-old-7 && touch at/.rlhf-export-new-7/x "
                    "at/.rlhf-export-new-8/x at/.rlhf-export-old-7/x && "
                    "flock at/.rlhf-export-new-8 \"$HOST\" export r --to at/out >/dev/null 2>&1 && "
                    "ls -A at"));
    // The export of process 8 is running, and the directory of process 9 was just created. A
    // directory named "old" may hold a user's model, so it is kept.
    assert_string_equal(t->out, ".rlhf-export-new-8\n.rlhf-export-new-9\n.rlhf-export-old-7\n"
                                "out\n");
    ok(t, e2e_shell(t, "touch -d '2 minutes ago' at/.rlhf-export-new-9 && "
                       "\"$HOST\" export r --to at/two >/dev/null 2>&1 && ls -A at"));
    assert_string_equal(t->out, ".rlhf-export-old-7\nout\ntwo\n");
}

// Makes model m, which a run wrote. The run's directory is then deleted.
static void make_model(struct e2e *t) {
    ok(t, e2e_run(t, "--algo sft.so --policy model --data texts.jsonl --set policy.init=random "
                     "--set batch.size=4 --set run.phases=1 --out r0"));
    ok(t, e2e_shell(t, "\"$HOST\" export r0 --to m && rm -r r0"));
}

// The GGUF file may be inside the directory of --to. The program recognizes this however the two
// paths are written, and moves the file together with the directory.
static void a_gguf_inside(void **state) {
    struct e2e *t = *state;
    make_model(t);
    static const char *const names[][2] = {
        {"out", "out/g.gguf"},      {"out", "./out/g.gguf"},       {"./out/", "out//g.gguf"},
        {"out", "$PWD/out/g.gguf"}, {"out", "no/../out/./g.gguf"}, {"$PWD/out", "out/g.gguf"},
        {"out", "link/g.gguf"},     {"here/out", "out/g.gguf"}};
    ok(t, e2e_shell(t, "ln -s . here"));
    for (int there = 0; there < 2; there++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (strncmp(names[i][1], there ? "no/" : "link/", there ? 3 : 5) == 0) continue;
            ok(t, e2e_shell(t,
                            "rm -rf out link; if [ %d = 1 ]; then cp -r m out; ln -s out link; "
                            "fi; \"$HOST\" export m --to %s --gguf %s --force",
                            there, names[i][0], names[i][1]));
            ok(t, e2e_shell(t, "test -s out/g.gguf && test -s out/model.safetensors && "
                               "grep -x 'FROM ./g.gguf' out/Modelfile && "
                               "test -z \"$(ls -A | grep -e new -e old)\""));
        }
}

static void a_gguf_where_it_may_not_be(void **state) {
    struct e2e *t = *state;
    make_model(t);
    static const char *const cases[][3] = {
        {"out", "out/model.safetensors", "its name must end in .gguf"},
        {"out", "./out/README.md", "its name must end in .gguf"},
        {"out", "out/.gguf", "its name must end in .gguf"},
        {"out", "out/deep/g.gguf", "is in a folder of --to"},
        {"out", "$PWD/out/additional_chat_templates/g.gguf", "is in a folder of --to"},
        {"out", "./out", "is where --to 'out' makes a directory"},
        {"new/out", "new", "is where --to 'new/out' makes a directory"},
        {"out", "missing/g.gguf", "there is no directory to put it into"},
        {"out", "m/config.json/g.gguf", "is inside the exported model"},
        {"out", "model/config.json/g.gguf", "there is no directory to put it into"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            e2e_shell(t, "\"$HOST\" export m --to %s --gguf %s --force", cases[i][0], cases[i][1]),
            2);
        e2e_says(t, cases[i][2]);
        assert_false(e2e_exists(t, "out") || e2e_exists(t, "new"));
    }
    assert_int_equal(e2e_shell(t, "\"$HOST\" export m --gguf missing/g.gguf"), 2);
    e2e_says(t, "there is no directory to put it into");
    ok(t, e2e_shell(t, "\"$HOST\" export m --to new/out --gguf new/g.gguf && LC_ALL=C ls -A new"));
    e2e_says(t, "g.Modelfile\ng.gguf\nout\n");
    assert_int_equal(e2e_shell(t, "rm new/g.gguf; \"$HOST\" export m --gguf new/g.gguf"), 2);
    e2e_says(t, "the Modelfile of --gguf, 'new/g.Modelfile' exists already; --force replaces it");
}

// The base model of an adapter also counts as a source, which an export must not overwrite.
static void the_base_stays(void **state) {
    struct e2e *t = *state;
    make_model(t);
    ok(t, e2e_shell(t, "mv m \"$(printf 'big\\033[31m')\" && ln -s big* m && cp -rL m before"));
    ok(t, e2e_run(t, "--algo sft.so --policy m --data texts.jsonl --set batch.size=4 "
                     "--set policy.adapter.rank=2 --set run.phases=1 --out r"));
    ok(t, e2e_shell(t, "\"$HOST\" export r --to a >said && cat said"));
    e2e_says(t, "/big\\x1b[31m: a\n");
    assert_int_equal(e2e_shell(t, "grep -q \"$(printf '\\033')\" said"), 1);
    static const char *const tries[] = {"a --merge --to big*", "m --adapter a --merge --to big*",
                                        "r --to big*", "a --merge --gguf m/model.safetensors",
                                        "a --merge --to out --gguf m/g.gguf"};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        assert_int_equal(e2e_shell(t, "\"$HOST\" export %s --force", tries[i]), 2);
        e2e_says(t, "is inside the exported model; choose a name outside of it");
        ok(t, e2e_shell(t, "diff -r before m/."));
    }
}

// Tensors of 8-byte numbers are refused, and the message names them. Earlier versions left them out
// or copied them unchanged.
static void no_doubles(void **state) {
    struct e2e *t = *state;
    make_model(t);
    ok(t, e2e_run(t, "--algo sft.so --policy m --data texts.jsonl --set batch.size=4 "
                     "--set policy.adapter.rank=2 --set run.phases=1 --out r"));
    // In both files, the header now declares the tensors as F64 with half as many elements.
    ok(t, e2e_shell(t, "\"$HOST\" export r --to a"));
    ok(t, e2e_shell(t, "cp -r m m8; cp -r a a8; "
                       "sed -i 's/\"F32\",\"shape\":\\[2,/\"F64\",\"shape\":[1,/g; "
                       "s/\"F32\",\"shape\":\\[64,/\"F64\",\"shape\":[32,/g' "
                       "m8/model.safetensors; grep -c F64 m8/model.safetensors; "
                       "sed -i 's/\"F32\",\"shape\":\\[2, 32/\"F64\",\"shape\":[2, 16/g' "
                       "a8/adapter_model.safetensors; grep -c F64 a8/adapter_model.safetensors"));
    assert_int_equal(e2e_shell(t, "\"$HOST\" export a8 --to out"), 2);
    e2e_says(t, ".lora_A.weight is F64; weights must be F32, F16 or BF16");
    assert_int_equal(e2e_shell(t, "\"$HOST\" export m8 --to out"), 2);
    e2e_says(t, "is F64; weights must be F32, F16 or BF16");
    assert_false(e2e_exists(t, "out"));
}

// The file of this tied model holds only the LM head. That tensor is also the embedding, so every
// export stores it under the embedding's name. Three exports are checked: the model itself, the
// model with a merged adapter, and the model with a score head (exported without an LM head).
static void a_lone_head(void **state) {
    struct e2e *t = *state;
    make_model(t);
    ok(t, e2e_shell(t, "cp -r m h && sed -i 's/\"transformer.wte.weight\":/"
                       "\"lm_head.weight\"        :/' h/model.safetensors && "
                       "grep -c '\"lm_head.weight\"  ' h/model.safetensors && mkdir of_m of_h && "
                       "printf '{\"prompt\": \"It was\", \"chosen\": \" fine\", \"rejected\": "
                       "\" poor\"}\\n%%.0s' 1 2 3 4 5 6 7 8 >pairs.jsonl"));
    for (const char *const *d = (const char *const[]){"m", "h", NULL}; *d; d++) {
        ok(t, e2e_shell(t, "\"$HOST\" export %s --to of_%s/out --gguf of_%s/g.gguf", *d, *d, *d));
        ok(t, e2e_run(t,
                      "--algo sft.so --policy %s --data texts.jsonl --set batch.size=4 "
                      "--set policy.adapter.rank=2 --set run.phases=1 --out r_%s",
                      *d, *d));
        ok(t, e2e_shell(t, "\"$HOST\" export r_%s --merge --to of_%s/tuned --gguf of_%s/t.gguf", *d,
                        *d, *d));
        ok(t, e2e_run(t,
                      "--algo bradley_terry.so --data pairs.jsonl --policy %s --set batch.size=4 "
                      "--set policy.adapter.rank=2 --set run.phases=1 --out b_%s",
                      *d, *d));
        ok(t, e2e_shell(t, "\"$HOST\" export b_%s --merge --to of_%s/scores", *d, *d));
    }
    ok(t, e2e_shell(t, "for f in out/model.safetensors g.gguf tuned/model.safetensors t.gguf "
                       "scores/model.safetensors; do cmp of_m/$f of_h/$f || exit; done && "
                       "grep -c transformer.wte.weight of_h/scores/model.safetensors"));
}

// A file that exists but is not JSON is not treated as missing.
static void broken_json(void **state) {
    struct e2e *t = *state;
    static const char *const cases[][3] = {
        {"m", "m/generation_config.json", "m/generation_config.json:1:"},
        {"r", "r/config.json", "r/config.json:1:"},
        {"r", "r/manifest.json", "r/manifest.json:1:"},
        {"r", "r/checkpoints/latest/state/run.json", "state/run.json:1:"},
        {"r/checkpoints/latest", "r/config.json", "r/config.json:1:"},
    };
    make_model(t);
    ok(t, e2e_run(t, PPO "--out r"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ok(t, e2e_shell(t, "cp %s kept && printf '{' >%s", cases[i][1], cases[i][1]));
        assert_int_equal(e2e_shell(t, "\"$HOST\" export %s --to out", cases[i][0]), 2);
        e2e_says(t, cases[i][2]);
        e2e_says(t, "not valid JSON");
        ok(t, e2e_shell(t, "echo '[1]' >%s", cases[i][1]));
        assert_int_equal(e2e_shell(t, "\"$HOST\" export %s --to out", cases[i][0]), 2);
        e2e_says(t, "expected an object, found a list");
        assert_false(e2e_exists(t, "out"));
        ok(t, e2e_shell(t, "cp kept %s", cases[i][1]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_checkpoint, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(special_stop, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(what_a_killed_export_left_goes, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(best_last_or_by_name, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(exact_weights_of_a_rounded_checkpoint, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(the_card, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_model_directory, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_gguf_inside, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_gguf_where_it_may_not_be, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_base_stays, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(no_doubles, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_lone_head, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(broken_json, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_export", tests, NULL, NULL);
}
