// eval_preferences.c: `rlhf-host eval` of a reward model. See eval_impl.h.
#include "cmd/eval_impl.h"

#include "learn/evaluate.h"

#include <stdio.h>

static rlhf_status print_quality(const struct rlhf__eval_options *o, const char *dir,
                                 const struct rlhf__preference_quality *q,
                                 struct rlhf__error *err) {
    double rows = (double)q->rows, accuracy = (double)q->correct / rows;
    if (o->json)
        return rlhf__print_json_new(json_pack("{s:s, s:I, s:f, s:f, s:f}", "model", dir, "rows",
                                              (json_int_t)q->rows, "accuracy", accuracy, "margin",
                                              q->margin / rows, "loss", q->nats / rows),
                                    err);
    printf("%.4f accuracy (%lld row%s, margin %.4f, loss %.4f)\n", accuracy, (long long)q->rows,
           q->rows == 1 ? "" : "s", q->margin / rows, q->nats / rows);
    return rlhf__print_flush(err);
}

rlhf_status rlhf__eval_preferences(struct rlhf__workplace *w, const char *dir,
                                   const struct rlhf__eval_options *o, struct rlhf__error *err) {
    struct rlhf__reward_model *rm = NULL;
    struct rlhf__preferences *set = NULL;
    struct rlhf__preference_quality q;
    struct rlhf__reward_model_spec spec = {.dir = dir, .adapter = w->adapter};
    struct rlhf__loading loading = rlhf__workplace_loading(w, o->max_mib);
    rlhf_status st = rlhf__reward_model_open(&w->session.models, &spec, &rm, err);
    if (st != RLHF_OK) return rlhf__workplace_opened(o->model, st, err);
    struct rlhf__preference_opts rows = {.paths = &o->data,
                                         .n_paths = 1,
                                         .setting = "--data",
                                         .limit = o->limit,
                                         .prepend_bos = rlhf__tokenizer_has_bos(rm->model->tok),
                                         .max_tokens = o->max_tokens ? (int32_t)o->max_tokens
                                                                     : rm->model->info.n_ctx,
                                         .long_rows = RLHF__PREFERENCE_CUT,
                                         .loading = &loading};
    if (o->max_tokens > rm->model->info.n_ctx)
        st = rlhf__fail(err, RLHF_E_INVALID, "--max-tokens is %lld; the context of '%s' is %d",
                        (long long)o->max_tokens, rm->model->dir, rm->model->info.n_ctx);
    if (st == RLHF_OK) st = rlhf__workplace_template(rm->model, o->template, err);
    if (st == RLHF_OK) st = rlhf__preferences_open(&rows, rm->model->tok, &set, err);
    if (st == RLHF_OK)
        st = rlhf__workplace_template_used("eval", o->template, rlhf__preferences_chats(set), err);
    rlhf__progress_note(w->progress, "scoring the rows");
    if (st == RLHF_OK) st = rlhf__evaluate_preferences(rm, set, &q, err);
    rlhf__progress_hide(w->progress);
    if (st == RLHF_OK) st = print_quality(o, rm->model->dir, &q, err);
    rlhf__preferences_close(set);
    rlhf__reward_model_close(rm);
    return st;
}
