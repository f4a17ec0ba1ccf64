// dialogue_models.c: the models and the reward of a dialogue; see dialogue_state.h.
#include "prompt/dialogue_state.h"

#include "base/printable.h"
#include "prompt/generate_prompts.h"
#include "weights/run_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A short name for a directory: the last part of its path.
static char *short_name(const char *given, const char *otherwise) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    size_t n = given ? strlen(given) : 0, from;
    while (n > 1 && given[n - 1] == '/')
        n--;
    for (from = n; from > 0 && given[from - 1] != '/'; from--)
        ;
    if (given && n > from)
        rlhf__put_printable(&out, given + from, n - from, "");
    else
        rlhf__buf_puts(&out, otherwise);
    char *name = strdup(rlhf__buf_text(&out));
    rlhf__buf_finish(&out);
    return name;
}

rlhf_status rlhf__dialogue_model(struct rlhf__dialogue *d, const char *what, const char *given,
                                 struct rlhf__model **out, struct rlhf__error *err) {
    struct rlhf__command_setup *w = d->at.setup;
    char room[RLHF__PATH_CAP];
    const char *dir = rlhf__dirs_shared(w->env->dirs, given, room);
    RLHF_TRY(rlhf__run_model(what, &dir, room, d->log, err));
    const struct rlhf__model_spec spec = {
        .dir = dir, .role = "model", .frozen = 1, .tokens_only = 1, .language = 1};
    *out = NULL;
    rlhf_status st = rlhf__model_open(&w->session.models, &spec, out, err);
    if (st == RLHF_OK) st = rlhf__model_writes(*out, err);
    if (st == RLHF_OK) return st;
    rlhf__model_close(*out);
    *out = NULL;
    return rlhf__error_context(err, "%s", what);
}

rlhf_status rlhf__dialogue_compare(struct rlhf__dialogue *d, const char *given,
                                   struct rlhf__error *err) {
    struct rlhf__model *m = NULL;
    if (given) RLHF_TRY(rlhf__dialogue_model(d, "/compare", given, &m, err));
    if (m && !rlhf__tokenizer_equal(m->tok, d->model->tok)) {
        rlhf__model_close(m);
        return rlhf__fail(err, RLHF_E_INVALID, "/compare: the vocabulary of '%s' is not %s's",
                          given, d->name);
    }
    rlhf__model_close(d->other);
    free(d->other_name);
    d->other = m;
    d->other_name = m ? short_name(given, "") : NULL;
    free(d->under);
    d->under = NULL;
    return m && !d->other_name ? RLHF__NOMEM(err, "out of memory") : RLHF_OK;
}

rlhf_status rlhf__dialogue_score(struct rlhf__dialogue *d, const char *plugin,
                                 struct rlhf__error *err) {
    struct rlhf__dialogue_reward *r = NULL;
    char *name = NULL;
    if (plugin) {
        RLHF_TRY(rlhf__dialogue_reward_open(d->at.setup, d->model, plugin, &r, err));
        name = strdup(plugin);
    }
    if (plugin && !name) {
        rlhf__dialogue_reward_close(r);
        return RLHF__NOMEM(err, "out of memory");
    }
    rlhf__dialogue_reward_close(d->reward);
    free(d->reward_name);
    d->reward = r;
    d->reward_name = name;
    return RLHF_OK;
}

void rlhf__dialogue_forget(struct rlhf__dialogue *d, size_t n) {
    while (d->turns.n > n)
        free((char *)(uintptr_t)d->turns.item[--d->turns.n].content.ptr);
}

// Prepare everything that depends on the model's tokenizer.
static rlhf_status prepare(struct rlhf__dialogue *d, const struct rlhf__model *m,
                           struct rlhf__response_rules **rules, int32_t *chat,
                           struct rlhf__error *err) {
    struct rlhf__buf stops = RLHF__BUF_INIT;
    int32_t texts_alone = 0;
    RLHF_TRY(rlhf__command_setup_template(m, &d->at.chat, err));
    RLHF_TRY(rlhf__texts_alone(m, &texts_alone, err));
    *chat = !d->at.raw && rlhf__chat_known(rlhf__tokenizer_chat(m->tok)) != NULL &&
            (!texts_alone || rlhf__command_setup_chat_given(&d->at.chat));
    rlhf_status st = rlhf__typed_stops(d->at.stop, d->at.stop_id, m->tok, rules, &stops, err);
    rlhf__buf_finish(&stops);
    return st;
}

rlhf_status rlhf__dialogue_use(struct rlhf__dialogue *d, struct rlhf__model *m, const char *given,
                               struct rlhf__error *err) {
    struct rlhf__response_rules *rules = NULL;
    struct rlhf__model_env *env = &d->at.setup->session.models;
    int32_t chat = 0;
    char *name = short_name(given, "policy");
    rlhf_status st = name ? prepare(d, m, &rules, &chat, err) : RLHF__NOMEM(err, "out of memory");
    if (st != RLHF_OK) {
        free(name);
        return st;
    }
    // Close the models and rewards that were opened for the previous tokenizer.
    if (d->model) {
        rlhf__dialogue_compare(d, NULL, err);
        rlhf__dialogue_score(d, NULL, err);
    }
    if (env->shared == d->model && d->model) env->shared = NULL;
    rlhf__response_rules_close(d->rules);
    rlhf__model_close(d->model);
    free(d->name);
    rlhf__dialogue_forget(d, 0);
    d->answer.n = 0;
    d->model = m;
    d->name = name;
    d->rules = rules;
    d->chat = chat;
    return RLHF_OK;
}

void rlhf__dialogue_describe(const struct rlhf__dialogue *d) {
    const struct rlhf__answer_settings *s = &d->settings;
    const double million = (double)d->model->info.n_params / 1e6;
    struct rlhf__buf out = RLHF__BUF_INIT;
    rlhf__buf_printf(&out, "%s, %.*f M parameters, ", d->name, million < 10 ? 1 : 0, million);
    if (s->greedy)
        rlhf__buf_puts(&out, "greedy");
    else
        rlhf__buf_printf(&out, "temperature %g", s->temperature);
    if (!s->greedy && s->top_p < 1) rlhf__buf_printf(&out, ", top-p %g", s->top_p);
    rlhf__buf_printf(&out, ", up to %lld tokens", (long long)s->max_new);
    if (d->n > 1) rlhf__buf_printf(&out, ", %lld texts per line", (long long)d->n);
    if (d->chat) rlhf__buf_puts(&out, ", chat");
    if (d->other) rlhf__buf_printf(&out, ", compared with %s", d->other_name);
    if (d->reward) rlhf__buf_printf(&out, ", scored by %s", d->reward_name);
    printf("%s\n", rlhf__buf_text(&out));
    rlhf__buf_finish(&out);
}
