// inspect.c: `rlhf-host inspect`: shows what training changed in a model, on one prompt.
#include "inspect/inspect.h"

#include "cmd/command_setup.h"
#include "cmd/commands.h"
#include "cmd/program.h"
#include "inspect/data.h"
#include "inspect/inspect_models.h"
#include "inspect/inspect_samples.h"
#include "inspect/inspect_table.h"
#include "inspect/weights.h"
#include "page/page_file.h"
#include "sample/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *base, *tuned, *prompt, *words, *reward_model, *critic, *out;
    int32_t no_patching, bos, json, weights, samples, no_rank;
    int64_t n, max_new, seed;
    double temperature;
    struct rlhf__command_setup_flags at;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--tuned", tuned, "DIR",
                 "the trained model: a directory, a GGUF file or a run"),
    RLHF__FLAG_S(O, "--base", base, "DIR",
                 "the model before [the one that the run or the adapter names]"),
    RLHF__FLAG_S(O, "--prompt", prompt, "TEXT", "the text that the models read"),
    RLHF__FLAG_S(O, "--words", words, "A,B",
                 "explain the logit of A minus that of B as the next word; several a side: "
                 "good/great,bad/awful"),
    RLHF__FLAG_S(O, "--reward-model", reward_model, "DIR", "explain this model's reward too"),
    RLHF__FLAG_S(O, "--critic", critic, "DIR", "explain the value of this run's critic too"),
    RLHF__FLAG_SW(O, "--no-patching", no_patching, "leave out patching, which takes most time"),
    RLHF__FLAG_SW(O, "--weights", weights, "compare the weights instead, tensor by tensor"),
    RLHF__FLAG_SW(O, "--no-rank", no_rank, "with --weights: leave out ranks, which take most time"),
    RLHF__FLAG_SW(O, "--samples", samples,
                  "print texts of both models instead, drawn with the same random numbers"),
    RLHF__FLAG_I(O, "--n", n, "K", 1, 1 << 16, "with --samples: how many texts [4]"),
    RLHF__FLAG_I(O, "--max-new", max_new, "N", 1, RLHF__MAX_NEW_TOKENS,
                 "with --samples: longest text in new tokens [48]"),
    RLHF__FLAG_F(O, "--temperature", temperature, "T", 1e-6, 100,
                 "with --samples: logits are divided by it [1]"),
    RLHF__FLAG_I(O, "--seed", seed, "S", 0, INT64_MAX, "with --samples: seed of the draws [1]"),
    RLHF__FLAG_SW(O, "--bos", bos, "put the BOS token in front of the prompt"),
    RLHF__FLAG_S(O, "--out", out, "FILE",
                 "write a page with all of it [a summary on the terminal]"),
    RLHF__FLAG_SW(O, "--json", json, "print all numbers as one JSON object"),
    RLHF__FLAG_S(O, "--adapter", at.adapter, "DIR",
                 "adapter on --tuned, as PEFT or a run wrote it"),
    RLHF__FLAG_I(O, "--threads", at.threads, "N", 0, 1024, "CPU threads; 0: one a core [0]"),
    RLHF__FLAG_S(O, "--backend", at.backend, "NAME",
                 "kernels: auto, cpu, cuda, reference or a file [:key=value,...] [auto]"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

enum { SUBJECTS = 3 };

struct job {
    const struct options *o;
    struct rlhf__command_setup setup;
    struct rlhf__inspect_models models;
    struct rlhf__subject subject[SUBJECTS];
    size_t n;
};

// ---- flags ----

// Refuses flags that --weights or --samples would ignore, and flags that have an effect only with
// one of the two.
static rlhf_status check_kind(const struct options *o, struct rlhf__error *err) {
    const struct rlhf__flag_idle of_samples[] = {{"--n", o->n > 0},
                                                 {"--max-new", o->max_new > 0},
                                                 {"--temperature", o->temperature > 0},
                                                 {"--seed", o->seed >= 0}};
    const struct rlhf__flag_idle of_weights[] = {{"--no-rank", o->no_rank}};
    const struct rlhf__flag_idle of_numbers[] = {{"--words", o->words != NULL},
                                                 {"--reward-model", o->reward_model != NULL},
                                                 {"--critic", o->critic != NULL},
                                                 {"--out", o->out != NULL},
                                                 {"--no-patching", o->no_patching}};
    const struct rlhf__flag_idle of_models[] = {{"--prompt", o->prompt != NULL},
                                                {"--bos", o->bos},
                                                {"--threads", o->at.threads > 0},
                                                {"--backend", strcmp(o->at.backend, "auto") != 0}};
    if (o->weights && o->samples)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "inspect: --weights and --samples do not go together");
    if (!o->samples) RLHF_TRY(rlhf__flags_idle(of_samples, 4, "inspect", "without --samples", err));
    if (!o->weights) RLHF_TRY(rlhf__flags_idle(of_weights, 1, "inspect", "without --weights", err));
    if (o->weights) RLHF_TRY(rlhf__flags_idle(of_models, 4, "inspect", "with --weights", err));
    if (!o->weights && !o->samples) return RLHF_OK;
    return rlhf__flags_idle(of_numbers, 5, "inspect",
                            o->weights ? "with --weights" : "with --samples", err);
}

static rlhf_status check(const struct options *o, struct rlhf__error *err) {
    const struct rlhf__flag_idle of_pair[] = {{"--base", o->base != NULL},
                                              {"--words", o->words != NULL},
                                              {"--adapter", o->at.adapter != NULL},
                                              {"--no-patching", o->no_patching}};
    RLHF_TRY(check_kind(o, err));
    if (!o->tuned && ((!o->reward_model && !o->critic) || o->weights || o->samples))
        return rlhf__fail(err, RLHF_E_INVALID, "inspect: give the trained model with --tuned DIR%s",
                          o->weights || o->samples ? ""
                                                   : ", or --reward-model DIR or --critic DIR");
    if (!o->prompt && !o->weights)
        return rlhf__fail(err, RLHF_E_INVALID, "inspect: give the text with --prompt TEXT");
    if (o->out) RLHF_TRY(rlhf__page_file_check("inspect", o->out, err));
    return o->tuned ? RLHF_OK : rlhf__flags_idle(of_pair, 4, "inspect", "without --tuned", err);
}

// ---- subjects ----

static struct rlhf__subject *next(struct job *j, int32_t explained, uint32_t n_models) {
    struct rlhf__subject *s = &j->subject[j->n++];
    s->prompt = j->o->prompt;
    s->explained = explained;
    s->n_models = n_models;
    return s;
}

static rlhf_status add_pair(struct job *j, struct rlhf__error *err) {
    const struct options *o = j->o;
    struct rlhf__subject *s = next(j, RLHF__EXPLAINED_WORDS, 2);
    int32_t explained;
    if (o->words) RLHF_TRY(rlhf__words_split(&s->words, o->words, err));
    RLHF_TRY(
        rlhf__inspect_open_pair(&j->models, &j->setup, o->base, o->tuned, s->of, &explained, err));
    s->explained = explained;
    if (explained == RLHF__EXPLAINED_WORDS && !o->words)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "inspect: give the next words to compare with --words, as good,bad");
    if (explained == RLHF__EXPLAINED_REWARD && o->words)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--words has no effect here: reward models write no words; their reward "
                          "is explained");
    return RLHF_OK;
}

static rlhf_status add_all(struct job *j, struct rlhf__error *err) {
    const struct options *o = j->o;
    if (o->tuned) RLHF_TRY(add_pair(j, err));
    if (o->reward_model) {
        struct rlhf__subject *s = next(j, RLHF__EXPLAINED_REWARD, 1);
        RLHF_TRY(rlhf__inspect_open_reward(&j->models, &j->setup, o->reward_model, s->of, err));
    }
    if (o->critic) {
        struct rlhf__subject *s = next(j, RLHF__EXPLAINED_VALUE, 1);
        RLHF_TRY(rlhf__inspect_open_critic(&j->models, &j->setup, o->critic, s->of, err));
    }
    return RLHF_OK;
}

// ---- output ----

static rlhf_status print_tables(const struct job *j, struct rlhf__error *err) {
    for (size_t i = 0; i < j->n; i++) {
        if (i) puts("");
        RLHF_TRY(rlhf__subject_print(&j->subject[i], err));
    }
    return RLHF_OK;
}

static rlhf_status write_page(const struct job *j, const struct rlhf__buf *json,
                              struct rlhf__error *err) {
    static const char *scripts[] = {"chart.js", "inspect.js"};
    const struct rlhf__subject *s = &j->subject[0];
    struct rlhf__buf html = RLHF__BUF_INIT;
    char title[300];
    snprintf(title, sizeof title, "%s%s%s", s->of[0].name, s->n_models == 2 ? " against " : "",
             s->n_models == 2 ? s->of[1].name : "");
    const struct rlhf__page page = {.title = title,
                                    .style = "page.css",
                                    .scripts = scripts,
                                    .n_scripts = 2,
                                    .json = rlhf__buf_text(json),
                                    .json_len = json->len};
    rlhf_status st = rlhf__page_write(&page, &html, err);
    if (st == RLHF_OK) st = rlhf__file_write(NULL, j->o->out, html.data, html.len, err);
    rlhf__buf_finish(&html);
    return st;
}

static rlhf_status print(const struct job *j, struct rlhf__error *err) {
    struct rlhf__buf json = RLHF__BUF_INIT;
    rlhf_status st = RLHF_OK;
    if (j->o->json || j->o->out) st = rlhf__subjects_json(&json, j->subject, j->n, err);
    if (st == RLHF_OK && j->o->out) st = write_page(j, &json, err);
    if (st == RLHF_OK && j->o->json) fwrite(rlhf__buf_text(&json), 1, json.len, stdout);
    rlhf__buf_finish(&json);
    if (st == RLHF_OK && !j->o->json) st = print_tables(j, err);
    if (st == RLHF_OK && j->o->out)
        rlhf__logf(j->setup.env->log, RLHF_LOG_INFO, "the page is %s", j->o->out);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

// ---- the three uses ----

static rlhf_status run_weights(struct job *j, const struct rlhf__env *env,
                               struct rlhf__error *err) {
    const struct options *o = j->o;
    RLHF_TRY(rlhf__progress_open(RLHF__PROGRESS_AUTO, env->log, &j->setup.progress, err));
    const struct rlhf__weights_request q = {.base = o->base,
                                            .tuned = o->tuned,
                                            .adapter = o->at.adapter,
                                            .json = o->json,
                                            .no_rank = o->no_rank,
                                            .progress = j->setup.progress};
    return rlhf__inspect_weights(env, &q, err);
}

static rlhf_status run_samples(struct job *j, const struct rlhf__env *env,
                               struct rlhf__error *err) {
    const struct options *o = j->o;
    struct rlhf__subject_model of[2] = {{0}};
    int32_t explained;
    RLHF_TRY(
        rlhf__inspect_open_pair(&j->models, &j->setup, o->base, o->tuned, of, &explained, err));
    if (explained == RLHF__EXPLAINED_REWARD)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--samples has no effect here: reward models write no texts");
    const struct rlhf__samples_request q = {.model = {of[0].model, of[1].model},
                                            .name = {of[0].name, of[1].name},
                                            .prompt = o->prompt,
                                            .n = o->n > 0 ? o->n : 4,
                                            .max_new = o->max_new > 0 ? o->max_new : 48,
                                            .seed = o->seed >= 0 ? o->seed : 1,
                                            .temperature = o->temperature > 0 ? o->temperature : 1,
                                            .json = o->json,
                                            .bos = o->bos};
    rlhf__progress_hide(j->setup.progress);
    return rlhf__inspect_samples(env, &q, err);
}

static rlhf_status run(struct job *j, const struct rlhf__env *env, struct rlhf__error *err) {
    if (j->o->weights) return run_weights(j, env, err);
    RLHF_TRY(rlhf__command_setup_init(&j->setup, env, &j->o->at, RLHF__PROGRESS_AUTO, err));
    RLHF_TRY(rlhf__command_setup_start(&j->setup, 1, err));
    if (j->o->samples) return run_samples(j, env, err);
    RLHF_TRY(add_all(j, err));
    const struct rlhf__subject_how how = {.patch = !j->o->no_patching,
                                          .bos = j->o->bos,
                                          .watch = rlhf__progress_watch(j->setup.progress),
                                          .cancelled = env->cancelled};
    for (size_t i = 0; i < j->n; i++)
        RLHF_TRY(rlhf__subject_compute(&j->subject[i], &how, err));
    rlhf__progress_hide(j->setup.progress);
    return print(j, err);
}

int rlhf__cmd_inspect(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct options o = {.at = RLHF__COMMAND_SETUP_DEFAULTS, .seed = -1};
    if (rlhf__flags_helped(flags, N_FLAGS,
                           "rlhf-host inspect --tuned DIR --prompt TEXT --words A,B [flags]", argc,
                           argv))
        return 0;
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, NULL, &err);
    o.at.dtype = "f32"; // f32 even if the run used another dtype
    if (st == RLHF_OK) st = check(&o, &err);
    struct job *j = calloc(1, sizeof *j);
    if (!j) st = RLHF__NOMEM(&err, "out of memory");
    if (j) j->o = &o;
    if (st == RLHF_OK) st = run(j, env, &err);
    for (size_t i = 0; j && i < j->n; i++)
        rlhf__subject_finish(&j->subject[i]);
    if (j) rlhf__inspect_models_finish(&j->models);
    if (j) rlhf__command_setup_finish(&j->setup);
    free(j);
    return rlhf__cmd_end(env, st, &err);
}
