// eval_preferences.c: `rlhf-host eval` for a reward model or a policy on preference rows. See
// impl.h.
#include "eval/impl.h"

#include "eval/stats.h"
#include "learn/evaluate.h"

#include <stdio.h>
#include <string.h>

// Open the rows of --data, tokenized by the model `m`. Cuts rows to --max-tokens or, without this
// flag, to the context length of `shortest`, the model with the shortest context.
static rlhf_status open_rows(const struct rlhf__command_setup *w,
                             const struct rlhf__eval_options *o, const struct rlhf__model *m,
                             const struct rlhf__model *shortest, int32_t bos, int32_t completions,
                             struct rlhf__preferences **out, struct rlhf__error *err) {
    const int32_t context = shortest->info.n_ctx;
    struct rlhf__loading loading = rlhf__command_setup_loading(w, o->max_mib);
    struct rlhf__preference_opts rows = {.paths = &o->rows,
                                         .n_paths = 1,
                                         .setting = "--data",
                                         .limit = o->limit,
                                         .prepend_bos = bos,
                                         .max_tokens =
                                             o->max_tokens ? (int32_t)o->max_tokens : context,
                                         .long_rows = RLHF__PREFERENCE_CUT,
                                         .completions = completions,
                                         .loading = &loading};
    if (o->max_tokens > context)
        return rlhf__fail(err, RLHF_E_INVALID, "--max-tokens is %lld; the context of '%s' is %d",
                          (long long)o->max_tokens, shortest->dir, context);
    RLHF_TRY(rlhf__command_setup_template(m, &o->chat, err));
    RLHF_TRY(rlhf__preferences_open(&rows, m->tok, out, err));
    return rlhf__command_setup_template_used("eval", &o->chat, rlhf__preferences_chats(*out), err);
}

// ---- a reward model ----

static rlhf_status print_quality(const struct rlhf__eval_options *o, const char *dir,
                                 const struct rlhf__preference_quality *q,
                                 struct rlhf__error *err) {
    double rows = (double)q->rows, accuracy = (double)q->correct / rows;
    double error = rlhf__share_error(accuracy, q->rows);
    if (o->json)
        return rlhf__eval_json_new(o,
                                   json_pack("{s:s, s:I, s:f, s:f, s:f, s:f}", "model", dir, "rows",
                                             (json_int_t)q->rows, "accuracy", accuracy,
                                             "accuracy_error", error, "margin", q->margin / rows,
                                             "loss", q->nats / rows),
                                   err);
    printf("%.4f accuracy (standard error %.4f, %lld row%s, margin %.4f, loss %.4f)\n", accuracy,
           error, (long long)q->rows, q->rows == 1 ? "" : "s", q->margin / rows, q->nats / rows);
    return rlhf__print_flush(err);
}

rlhf_status rlhf__eval_preferences(struct rlhf__command_setup *w, const char *dir,
                                   const struct rlhf__eval_options *o, struct rlhf__error *err) {
    struct rlhf__reward_model *rm = NULL;
    struct rlhf__preferences *set = NULL;
    struct rlhf__preference_quality q;
    struct rlhf__reward_model_spec spec = {.dir = dir, .adapter = w->adapter};
    rlhf_status st = rlhf__reward_model_open(&w->session.models, &spec, &rm, err);
    if (st != RLHF_OK) return rlhf__command_setup_opened(o->model, st, err);
    const struct rlhf__model *m = rm->model;
    st = open_rows(w, o, m, m, rlhf__tokenizer_has_bos(m->tok), 0, &set, err);
    const struct rlhf__evaluating how = {.cancelled = w->env->cancelled};
    rlhf__progress_note(w->progress, "scoring the rows");
    if (st == RLHF_OK) st = rlhf__evaluate_preferences(rm, set, &how, &q, err);
    rlhf__progress_hide(w->progress);
    if (st == RLHF_OK) st = print_quality(o, m->dir, &q, err);
    rlhf__preferences_close(set);
    rlhf__reward_model_close(rm);
    return st;
}

// ---- a policy ----

struct policy_measured {
    const struct rlhf__eval_options *o;
    double beta;
    int32_t completions;                    // 1: rows of one completion and its label
    struct rlhf__model *policy, *reference; // reference NULL: log-probs only
    struct rlhf__preferences *set;
    struct rlhf__preference_quality q;
};

// Returns the directory that a model was opened from. For an adapter, this is the adapter's
// directory.
static const char *dir_of(const struct rlhf__model *m) {
    return m->peft.dir ? m->peft.dir : m->dir;
}

static rlhf_status print_policy_json(const struct policy_measured *m, double accuracy, double error,
                                     double margin, struct rlhf__error *err) {
    const double rows = (double)m->q.rows;
    json_t *v = json_pack(
        "{s:s, s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:f}", "model", dir_of(m->policy), "data",
        m->o->rows, "measure", m->reference ? "implicit_reward" : "log_prob", "rows",
        (json_int_t)m->q.rows, "accuracy", accuracy, "accuracy_error", error, "margin", margin,
        "logp_chosen", m->q.chosen / rows, "logp_rejected", m->q.rejected / rows);
    if (v && m->reference) {
        json_object_set_new(v, "reference", json_string(dir_of(m->reference)));
        json_object_set_new(v, "beta", json_real(m->beta));
    }
    return rlhf__eval_json_new(m->o, v, err);
}

static rlhf_status print_policy(const struct policy_measured *m, struct rlhf__error *err) {
    const double rows = (double)m->q.rows, accuracy = (double)m->q.correct / rows;
    const double error = rlhf__share_error(accuracy, m->q.rows);
    const double margin = (m->reference ? m->beta : 1) * (m->q.margin / rows);
    if (m->o->json) return print_policy_json(m, accuracy, error, margin, err);
    printf("accuracy    %.4f (standard error %.4f, %lld row%s)\n", accuracy, error,
           (long long)m->q.rows, m->q.rows == 1 ? "" : "s");
    if (m->reference)
        printf("margin      %.4f (implicit rewards, beta %g, reference %s)\n", margin, m->beta,
               dir_of(m->reference));
    else
        printf("margin      %.4f nats (log-probs alone, without a reference)\n", margin);
    printf("chosen      %.4f nats per response\nrejected    %.4f nats per response\n",
           m->q.chosen / rows, m->q.rejected / rows);
    return rlhf__print_flush(err);
}

// Set m->beta to --beta if it was given. Otherwise use the value of the dpo.so or kto.so run that
// wrote the checkpoint, or else the default 0.1.
static rlhf_status choose_beta(const struct rlhf__command_setup *w, const char *dir,
                               struct policy_measured *m, struct rlhf__error *err) {
    json_t *run;
    m->beta = m->o->beta > 0 ? m->o->beta : 0.1;
    if (m->o->beta > 0 || !m->reference) return RLHF_OK;
    RLHF_TRY(rlhf__command_setup_run_config(w, dir, &run, err));
    const json_t *algo = json_object_get(run, "algo"), *beta = json_object_get(algo, "beta");
    const char *plugin = json_string_value(json_object_get(algo, "plugin"));
    const char *file = plugin ? rlhf__path_base(plugin) : "";
    if (json_number_value(beta) > 0 && (!strcmp(file, "dpo.so") || !strcmp(file, "kto.so"))) {
        m->beta = json_number_value(beta);
        rlhf__logf(w->env->log, RLHF_LOG_INFO,
                   "eval: beta %g, as in the run (algo.beta of %s); --beta sets another", m->beta,
                   file);
    }
    json_decref(run);
    return RLHF_OK;
}

static rlhf_status check_bos(const struct policy_measured *m, struct rlhf__error *err) {
    const struct rlhf__flag_idle bos = {"--bos", m->o->bos};
    if (rlhf__tokenizer_info(m->policy->tok)->bos < 0)
        return rlhf__flags_idle(&bos, 1, "eval", "here: the model's tokenizer has no BOS token",
                                err);
    return RLHF_OK;
}

// Cuts rows to the context length of the model with the shorter context.
static rlhf_status open_policy(struct rlhf__command_setup *w, const char *dir,
                               struct policy_measured *m, struct rlhf__error *err) {
    const struct rlhf__eval_options *o = m->o;
    w->all_rows = 1; // as in dpo.so and kto.so
    RLHF_TRY(rlhf__command_setup_writer(w, o->model ? dir : NULL, &m->policy, err));
    if (o->reference)
        RLHF_TRY(rlhf__command_setup_reference(w, o->reference, m->policy, &m->reference, err));
    if (!m->completions) RLHF_TRY(choose_beta(w, dir, m, err));
    const int other = m->reference && m->reference->info.n_ctx < m->policy->info.n_ctx;
    const struct rlhf__model *shortest = other ? m->reference : m->policy;
    RLHF_TRY(check_bos(m, err));
    RLHF_TRY(open_rows(w, o, m->policy, shortest, o->bos || rlhf__tokenizer_has_bos(m->policy->tok),
                       m->completions, &m->set, err));
    if (rlhf__preferences_chats(m->set) < rlhf__preferences_count(m->set)) return RLHF_OK;
    return rlhf__flags_idle(&(struct rlhf__flag_idle){"--bos", o->bos}, 1, "eval",
                            "here: all rows have messages, and the chat template says how they "
                            "begin",
                            err);
}

rlhf_status rlhf__eval_policy_preferences(struct rlhf__command_setup *w, const char *dir,
                                          const struct rlhf__eval_options *o,
                                          struct rlhf__error *err) {
    struct policy_measured m = {.o = o};
    rlhf_status st = open_policy(w, dir, &m, err);
    const struct rlhf__evaluating how = {.cancelled = w->env->cancelled};
    rlhf__progress_note(w->progress, "measuring the rows");
    if (st == RLHF_OK)
        st = rlhf__evaluate_policy_preferences(m.policy, m.reference, m.set, &how, &m.q, err);
    rlhf__progress_hide(w->progress);
    if (st == RLHF_OK) st = print_policy(&m, err);
    rlhf__preferences_close(m.set);
    rlhf__model_close(m.reference);
    rlhf__model_close(m.policy);
    return st;
}

// ---- a policy on labeled completions ----

static rlhf_status print_completions(const struct policy_measured *m,
                                     const struct rlhf__completion_quality *q,
                                     struct rlhf__error *err) {
    static const char *const name[2] = {"unwanted", "wanted"};
    const int both = q->rows[0] && q->rows[1];
    double mean[2] = {0};
    json_t *v = json_pack("{s:s, s:s, s:s, s:s, s:I}", "model", dir_of(m->policy), "data",
                          m->o->rows, "measure", "log_ratio", "reference", dir_of(m->reference),
                          "rows", (json_int_t)q->rows[0] + (json_int_t)q->rows[1]);
    for (int k = 1; v && k >= 0; k--) {
        if (!q->rows[k]) continue;
        mean[k] = q->reward[k] / (double)q->rows[k];
        json_object_set_new(v, name[k], json_real(mean[k]));
        if (!m->o->json)
            printf("%-8s    %.4f nats (%lld row%s)\n", name[k], mean[k], (long long)q->rows[k],
                   q->rows[k] == 1 ? "" : "s");
    }
    if (v && both) json_object_set_new(v, "margin", json_real(mean[1] - mean[0]));
    if (m->o->json) return rlhf__eval_json_new(m->o, v, err);
    json_decref(v);
    if (both)
        printf("margin      %.4f nats (log-probs minus those of the reference %s)\n",
               mean[1] - mean[0], dir_of(m->reference));
    return rlhf__print_flush(err);
}

rlhf_status rlhf__eval_completions(struct rlhf__command_setup *w, const char *dir,
                                   const struct rlhf__eval_options *o, struct rlhf__error *err) {
    struct policy_measured m = {.o = o, .completions = 1};
    struct rlhf__completion_quality q;
    const struct rlhf__flag_idle idle[] = {{"--beta", o->beta > 0},
                                           {"--tokens", o->tokens != NULL}};
    RLHF_TRY(rlhf__flags_idle(idle, 2, "eval", "on labeled completions", err));
    rlhf_status st = open_policy(w, dir, &m, err);
    const struct rlhf__evaluating how = {.cancelled = w->env->cancelled};
    rlhf__progress_note(w->progress, "measuring the rows");
    if (st == RLHF_OK)
        st = rlhf__evaluate_policy_completions(m.policy, m.reference, m.set, &how, &q, err);
    rlhf__progress_hide(w->progress);
    if (st == RLHF_OK) st = print_completions(&m, &q, err);
    rlhf__preferences_close(m.set);
    rlhf__model_close(m.reference);
    rlhf__model_close(m.policy);
    return st;
}
