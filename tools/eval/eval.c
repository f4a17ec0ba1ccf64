// eval.c: `rlhf-host eval`: measures a model on a file. For a language model on {"text"} rows it
// prints bits per byte. For a classifier, and for any model on preference rows, it prints the
// accuracy. With --reward, the model responds to {"prompt"} rows, and `eval` prints the rewards.
#include "base/json.h"
#include "eval/impl.h"
#include "eval/stats.h"
#include "learn/evaluate.h"
#include "model/adapter.h"
#include "sample/decode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_GIVEN (-1) // a number that no flag accepts

#define O struct rlhf__eval_options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--model", model, "DIR",
                 "model directory or GGUF file; the default policy when not given"),
    RLHF__FLAG_L(O, "--data", data, "FILE", "rows: .jsonl, .jsonl.gz or .txt; repeatable"),
    RLHF__FLAG_I(O, "--limit", limit, "N", 0, (int64_t)1 << 40, "use the first N rows; 0: all [0]"),
    RLHF__FLAG_SW(O, "--json", json, "print one JSON object"),
    RLHF__FLAG_I(O, "--max-tokens", max_tokens, "N", 0, 1 << 24,
                 "classifier, preferences: cut rows to N tokens; 0: the context [0]"),
    RLHF__FLAG_L(O, "--reward", reward, "X.so[:k=v,..]", "score responses to prompts; repeatable"),
    RLHF__FLAG_S(O, "--env", environment, "X.so[:k=v,..]",
                 "play episodes with this environment; --reward may be given too"),
    RLHF__FLAG_S(O, "--reference", reference, "DIR",
                 "with --reward: for the KL; policy on preferences: for implicit rewards"),
    RLHF__FLAG_F(O, "--beta", beta, "X", 1e-6, 1e6,
                 "policy on preferences: factor of the implicit rewards [the run's, else 0.1]"),
    RLHF__FLAG_SW(O, "--bos", bos, "policy on preferences: put the BOS token in front of prompts"),
    RLHF__FLAG_I(O, "--n", n, "N", 1, 1 << 20,
                 "with --reward: responses in all, prompts used in turn [512]"),
    RLHF__FLAG_I(O, "--per-prompt", per_prompt, "N", 1, 1 << 16,
                 "with --reward, in place of --n: N responses to each prompt; gives pass@k"),
    RLHF__FLAG_F(O, "--pass", pass, "X", -1e30, 1e30,
                 "with --reward: a response is right from this reward on [the reward's verdict]"),
    RLHF__FLAG_S(O, "--compare", compare, "DIR",
                 "with --reward: a second model on the same prompts; \"base\": the run's policy"),
    RLHF__FLAG_SW(O, "--save", save,
                  "with --reward: also store the result in the run, for export's model card"),
    RLHF__FLAG_S(
        O, "--config", config, "FILE",
        "with --reward: sampling, prompts and response settings; else the run's, or ppo.so's"),
    RLHF__DECODING_FLAGS(O),
    RLHF__FLAG_L(O, "--set", set, "PATH=VALUE",
                 "with --reward: one setting, e.g. sampling.top_k=20"),
    RLHF__CHAT_FLAGS(O),
    RLHF__FLAG_S(O, "--tokens", tokens, "WHICH",
                 "rows of messages: all tokens or the assistant's [auto: as the run counted them]"),
    RLHF__FLAG_I(O, "--max-mib", max_mib, "N", 1, 1 << 20,
                 "MiB of memory that the rows may take [1024]"),
    RLHF__FLAG_I(O, "--seed", seed, "S", 0, INT64_MAX, "seed of the draws [1]"),
    RLHF__COMMAND_SETUP_FLAGS(O),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

rlhf_status rlhf__eval_json_new(const struct rlhf__eval_options *o, json_t *v,
                                struct rlhf__error *err) {
    if (!o->results) return rlhf__print_json_new(v, err);
    if (!v || json_array_append_new(o->results, v) != 0) return RLHF__NOMEM(err, "out of memory");
    return RLHF_OK;
}

// ---- rows of --data ----

static rlhf_status open_rows(const struct rlhf__eval_options *o, const struct rlhf__model *m,
                             const struct rlhf__loading *loading, struct rlhf__dataset **out,
                             struct rlhf__error *err) {
    struct rlhf__dataset_opts d = {.paths = &o->rows,
                                   .n_paths = 1,
                                   .setting = "--data",
                                   .need = RLHF__FIELD_BIT(RLHF__FIELD_TEXT),
                                   .want = RLHF__FIELD_BIT(RLHF__FIELD_MESSAGES),
                                   .limit = o->limit,
                                   .loading = loading};
    if (m->n_labels == 0) d.want |= RLHF__FIELD_BIT(RLHF__FIELD_COMPLETION);
    if (m->n_labels > 0) {
        d.need |= RLHF__FIELD_BIT(RLHF__FIELD_LABEL);
        d.labels = (const char *const *)m->labels.name;
        d.n_labels = m->n_labels;
    }
    return rlhf__dataset_open(&d, out, err);
}

// Choose which tokens of the rows to measure: those that --tokens names or, without this flag,
// those that the checkpoint's run was trained on.
static rlhf_status which_tokens(const struct rlhf__command_setup *w, const char *dir,
                                const struct rlhf__eval_options *o, const struct rlhf__dataset *ds,
                                int *assistant_only, struct rlhf__error *err) {
    const struct rlhf__flag_idle idle = {"--tokens", o->tokens && !rlhf__dataset_chats(ds)};
    RLHF_TRY(rlhf__flags_idle(&idle, 1, "eval", "here: no row has messages", err));
    *assistant_only = o->tokens && strcmp(o->tokens, "assistant") == 0;
    if (*assistant_only || (o->tokens && strcmp(o->tokens, "all") == 0) ||
        rlhf__dataset_chats(ds) < rlhf__dataset_rows(ds))
        return RLHF_OK;
    json_t *run;
    RLHF_TRY(rlhf__command_setup_run_config(w, dir, &run, err));
    *assistant_only = json_is_true(json_object_get(json_object_get(run, "data"), "assistant_only"));
    json_decref(run);
    if (*assistant_only)
        rlhf__logf(w->env->log, RLHF_LOG_INFO,
                   "eval: only the assistant's tokens count, as in the run (data.assistant_only); "
                   "--tokens all counts every token");
    return RLHF_OK;
}

static rlhf_status text_quality(struct rlhf__command_setup *w, const char *dir,
                                const struct rlhf__eval_options *o, const struct rlhf__model *m,
                                const struct rlhf__dataset *ds, struct rlhf__error *err) {
    struct rlhf__text_quality q;
    if (o->max_tokens > 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "eval: --max-tokens has no effect here: '%s' is a language model and the "
                          "rows are texts",
                          m->dir);
    int assistant_only;
    RLHF_TRY(which_tokens(w, dir, o, ds, &assistant_only, err));
    const struct rlhf__evaluating how = {.cancelled = w->env->cancelled};
    rlhf__progress_note(w->progress, "measuring the rows");
    rlhf_status st = rlhf__evaluate_text(m, ds, assistant_only, &how, &q, err);
    rlhf__progress_hide(w->progress);
    if (st != RLHF_OK) return st;
    double bits = rlhf__bits_per_byte(&q);
    if (o->json)
        return rlhf__eval_json_new(o,
                                   json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:f}", "model", m->dir,
                                             "data", o->rows, "rows", (json_int_t)q.rows, "tokens",
                                             (json_int_t)q.tokens, "bytes", (json_int_t)q.bytes,
                                             "bits_per_byte", bits, "nats_per_token",
                                             q.nats / (double)q.tokens),
                                   err);
    printf("%.4f bits per byte (%lld row%s, %lld tokens, %lld bytes)\n", bits, (long long)q.rows,
           q.rows == 1 ? "" : "s", (long long)q.tokens, (long long)q.bytes);
    return rlhf__print_flush(err);
}

static rlhf_status label_quality(struct rlhf__command_setup *w, const struct rlhf__eval_options *o,
                                 const struct rlhf__model *m, const struct rlhf__dataset *ds,
                                 struct rlhf__error *err) {
    struct rlhf__label_quality q;
    const struct rlhf__flag_idle idle = {"--tokens", o->tokens != NULL};
    RLHF_TRY(rlhf__flags_idle(&idle, 1, "eval", "here: the model is a classifier", err));
    if (o->max_tokens > m->info.n_ctx)
        return rlhf__fail(err, RLHF_E_INVALID, "--max-tokens is %lld; the context of '%s' is %d",
                          (long long)o->max_tokens, m->dir, m->info.n_ctx);
    const struct rlhf__evaluating how = {.cancelled = w->env->cancelled};
    rlhf__progress_note(w->progress, "measuring the rows");
    rlhf_status st = rlhf__evaluate_labels(m, ds, (int32_t)o->max_tokens, &how, &q, err);
    rlhf__progress_hide(w->progress);
    if (st != RLHF_OK) return st;
    double accuracy = (double)q.correct / (double)q.rows;
    double error = rlhf__share_error(accuracy, q.rows);
    if (o->json)
        return rlhf__eval_json_new(o,
                                   json_pack("{s:s, s:s, s:I, s:f, s:f, s:f}", "model", m->dir,
                                             "data", o->rows, "rows", (json_int_t)q.rows,
                                             "accuracy", accuracy, "accuracy_error", error, "loss",
                                             q.nats / (double)q.rows),
                                   err);
    printf("%.4f accuracy (standard error %.4f, %lld row%s, loss %.4f)\n", accuracy, error,
           (long long)q.rows, q.rows == 1 ? "" : "s", q.nats / (double)q.rows);
    return rlhf__print_flush(err);
}

// Measure a classifier or a language model.
static rlhf_status eval_texts(struct rlhf__command_setup *w, const char *dir,
                              const struct rlhf__eval_options *o, struct rlhf__error *err) {
    struct rlhf__model *m = NULL;
    struct rlhf__dataset *ds = NULL;
    struct rlhf__loading loading = rlhf__command_setup_loading(w, o->max_mib);
    struct rlhf__model_spec spec = {
        .dir = dir, .adapter = w->adapter, .role = "model", .n_labels = -1, .frozen = 1};
    rlhf_status st = rlhf__model_open(&w->session.models, &spec, &m, err);
    st = rlhf__command_setup_opened(o->model, st, err);
    if (st == RLHF_OK) st = rlhf__command_setup_template(m, &o->chat, err);
    if (st == RLHF_OK) st = open_rows(o, m, &loading, &ds, err);
    if (st == RLHF_OK)
        st = rlhf__command_setup_template_used("eval", &o->chat, rlhf__dataset_chats(ds), err);
    if (st == RLHF_OK)
        st =
            m->n_labels > 0 ? label_quality(w, o, m, ds, err) : text_quality(w, dir, o, m, ds, err);
    rlhf__dataset_close(ds);
    rlhf__model_close(m);
    return st;
}

// Measure a reward model or a policy on preferences, or any other model on texts.
static rlhf_status eval_kind(struct rlhf__command_setup *w, const char *dir, const json_t *config,
                             const struct rlhf__eval_options *o, int preferences,
                             struct rlhf__error *err) {
    const int reward_model = rlhf__reward_model_is(config);
    if (preferences < 0) preferences = o->reference != NULL;
    if (preferences == 2 && !reward_model && o->reference)
        return rlhf__eval_completions(w, dir, o, err);
    const int labeled = preferences == 2;
    if (labeled) preferences = 0;
    const struct rlhf__flag_idle policy[] = {{"--reference", o->reference != NULL},
                                             {"--bos", o->bos}};
    const struct rlhf__flag_idle tokens = {"--tokens", o->tokens != NULL};
    if (reward_model || preferences)
        RLHF_TRY(rlhf__flags_idle(&tokens, 1, "eval", "on rows of preferences", err));
    if (!reward_model && preferences) return rlhf__eval_policy_preferences(w, dir, o, err);
    RLHF_TRY(rlhf__flags_idle(policy, 2, "eval",
                              reward_model
                                  ? "here: the model is a reward model; it is for a policy"
                                  : "here: the rows are not preferences (\"prompt\", \"chosen\", "
                                    "\"rejected\"), and no --reward is given",
                              err));
    if (reward_model) return rlhf__eval_preferences(w, dir, o, err);
    if (labeled)
        rlhf__logf(w->env->log, RLHF_LOG_INFO,
                   "eval: wanted and unwanted completions are measured together; --reference MODEL "
                   "measures them apart");
    return eval_texts(w, dir, o, err);
}

static rlhf_status eval_rows(const struct rlhf__env *env, const struct rlhf__eval_options *o,
                             struct rlhf__error *err) {
    struct rlhf__command_setup w = {0};
    json_t *config = NULL;
    char room[RLHF__PATH_CAP];
    int preferences = 0;
    RLHF_TRY(rlhf__command_setup_chat_check(&o->chat, err));
    rlhf_status st = rlhf__command_setup_init(&w, env, &o->at, RLHF__PROGRESS_AUTO, err);
    if (st == RLHF_OK) st = rlhf__preferences_are(o->rows, "--data", &preferences, err);
    if (st == RLHF_OK) st = rlhf__command_setup_start(&w, o->seed, err);
    if (st == RLHF_OK) {
        const char *dir = NULL;
        st = rlhf__command_setup_dir(&w, o->model, "policy", room, &dir, err);
        if (st == RLHF_OK) {
            st = rlhf__adapter_config_of(dir, &w.adapter, &config, err);
            st = rlhf__command_setup_opened(o->model, st, err);
        }
        if (st == RLHF_OK) st = eval_kind(&w, dir, config, o, preferences, err);
    }
    json_decref(config);
    rlhf__command_setup_finish(&w);
    return st;
}

// Measure the rows of each --data file. With --json, several files become one object, {"sets":
// [...]}.
static rlhf_status each_file(const struct rlhf__env *env, struct rlhf__eval_options *o,
                             struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    o->results = o->json && o->data.n > 1 ? json_array() : NULL;
    for (size_t i = 0; st == RLHF_OK && i < o->data.n; i++) {
        o->rows = o->data.item[i];
        if (o->data.n > 1 && !o->json) printf("%s:\n", o->rows);
        st = eval_rows(env, o, err);
    }
    json_t *results = o->results;
    if (!results) return st;
    if (st == RLHF_OK) return rlhf__print_json_new(json_pack("{s:o}", "sets", results), err);
    json_decref(results);
    return st;
}

// Reject flags that belong to another kind of evaluation. Then set the defaults of flags that were
// not given.
static rlhf_status check_flags(struct rlhf__eval_options *o, struct rlhf__error *err) {
    const struct rlhf__flag_idle sampling[] = {{"--n", o->n != NOT_GIVEN},
                                               {"--seed", o->seed != NOT_GIVEN},
                                               {"--config", o->config != NULL},
                                               {"--set", o->set.n > 0},
                                               {"--max-new", o->decoding.max_new > 0},
                                               {"--temperature", o->decoding.temperature > 0},
                                               {"--greedy", o->decoding.greedy},
                                               {"--per-prompt", o->per_prompt != NOT_GIVEN},
                                               {"--pass", !isnan(o->pass)}};
    const struct rlhf__flag_idle compare = {"--compare", o->compare != NULL},
                                 save = {"--save", o->save};
    const struct rlhf__flag_idle rows[] = {{"--max-tokens", o->max_tokens != NOT_GIVEN},
                                           {"--beta", o->beta != NOT_GIVEN},
                                           {"--tokens", o->tokens != NULL},
                                           {"--bos", o->bos}};
    const struct rlhf__flag_idle beta = {"--beta", o->beta != NOT_GIVEN};
    const int scored = o->reward.n > 0 || o->environment;
    if (!scored) {
        RLHF_TRY(rlhf__flags_idle(sampling, sizeof sampling / sizeof *sampling, "eval",
                                  "without --reward", err));
        RLHF_TRY(rlhf__flags_idle(&compare, 1, "eval",
                                  "without --reward, whose scores it compares; on rows of texts, "
                                  "labels or preferences run eval once for each model",
                                  err));
        RLHF_TRY(rlhf__flags_idle(&save, 1, "eval",
                                  "without --reward, whose results it stores; --json prints the "
                                  "result of any rows, for a file of your own",
                                  err));
    } else {
        RLHF_TRY(rlhf__flags_idle(rows, 4, "eval", "with --reward", err));
    }
    if (scored)
        RLHF_TRY(rlhf__command_setup_chat_idle("eval", &o->chat,
                                               "with --reward, where --set prompts.template=NAME "
                                               "(prompts.template_vars, prompts.date) "
                                               "says it",
                                               err));
    if (!o->reference) RLHF_TRY(rlhf__flags_idle(&beta, 1, "eval", "without --reference", err));
    if (o->tokens && strcmp(o->tokens, "auto") != 0 && strcmp(o->tokens, "all") != 0 &&
        strcmp(o->tokens, "assistant") != 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "eval: --tokens is '%s'; allowed: auto, all, assistant", o->tokens);
    if (o->per_prompt != NOT_GIVEN && o->n != NOT_GIVEN)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "eval: --n is the number of responses in all and --per-prompt the number "
                          "for each prompt; give one of them");
    if (o->per_prompt == NOT_GIVEN) o->per_prompt = 0;
    if (o->beta == NOT_GIVEN) o->beta = 0; // use the value of the run
    if (o->n == NOT_GIVEN) o->n = 512;
    if (o->seed == NOT_GIVEN) o->seed = 1;
    if (o->max_tokens == NOT_GIVEN) o->max_tokens = 0;
    return RLHF_OK;
}

int rlhf__cmd_eval(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct rlhf__eval_options o = {.at = RLHF__COMMAND_SETUP_DEFAULTS,
                                   .n = NOT_GIVEN,
                                   .seed = NOT_GIVEN,
                                   .max_tokens = NOT_GIVEN,
                                   .per_prompt = NOT_GIVEN,
                                   .pass = NAN,
                                   .beta = NOT_GIVEN};
    if (rlhf__flags_helped(flags, N_FLAGS, "rlhf-host eval --model DIR --data FILE [flags]", argc,
                           argv))
        return 0;
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, NULL, &err);
    if (st == RLHF_OK && o.data.n == 0 && o.reward.n == 0 && !o.environment)
        st = rlhf__fail(&err, RLHF_E_INVALID, "eval: give the rows with --data FILE");
    if (st == RLHF_OK) st = check_flags(&o, &err);
    if (st == RLHF_OK)
        st = o.reward.n || o.environment ? rlhf__eval_rewards(env, &o, &err)
                                         : each_file(env, &o, &err);
    free(o.data.item);
    free(o.reward.item);
    free(o.set.item);
    return rlhf__cmd_end(env, st, &err);
}
