// open.c: rlhf__model_open of model.h: a directory is read, its plugin found, its parameters
// filled; or all of it on paper, until rlhf__model_load.
#include "model/open_inner.h"

#include "base/folder.h"
#include "model/adapter.h"
#include "model/parameters.h"
#include "model/room.h"

#include <stdio.h>
#include <stdlib.h>

// Rows of the embedding: what the tokenizer must fit into, however many of them have a logit.
static int32_t embedded(const struct rlhf__model *m) {
    if (m->base) return embedded(m->base);
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if (m->params[i].flags & RLHF_PARAM_EMBED && m->params[i].shape[0] <= INT32_MAX)
            return (int32_t)m->params[i].shape[0];
    return m->info.n_vocab;
}

static rlhf_status check_text(struct rlhf__model *m, struct rlhf__error *err) {
    char what[4200];
    snprintf(what, sizeof what, "%s '%s'", m->role, m->dir);
    RLHF_TRY(rlhf__tokenizer_check_model(m->tok, embedded(m), what, err));
    // A reward model that is trained from a policy writes too: what its scores are set to 0 on.
    const int writes = m->info.heads & RLHF_HEAD_GENERATE;
    return writes ? rlhf__ends_read(m->text_dir, m->config, m->tok, &m->ends, err) : RLHF_OK;
}

static rlhf_status fill(struct rlhf__model *m, int32_t start, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    if (start == RLHF__START_RANDOM)
        st = rlhf__params_draw(m, -1, err);
    else if (start != RLHF__START_EMPTY)
        st = rlhf__params_read(m, start == RLHF__START_HEADS, err);
    rlhf__model_let_go(m);
    return st == RLHF_OK && start != RLHF__START_EMPTY ? rlhf__model_refresh(m, err) : st;
}

// ---- on paper ----

// Values and gradients are allocated by open(), packed weights by then or by the first refresh().
static rlhf_status open_on_paper(struct rlhf__model *m, struct rlhf__paper *paper,
                                 struct rlhf__error *err) {
    m->compute = rlhf__paper_table(paper);
    rlhf__paper_account(paper, m->role, RLHF__USE_WEIGHTS);
    RLHF_TRY(rlhf__model_open_backend(m, &m->spec, err));
    rlhf__paper_retag(paper, m->info.grad_base, RLHF__USE_GRADIENTS);
    for (uint32_t i = 0; !m->info.grad_base && i < m->n_tensors; i++)
        rlhf__paper_retag(paper, m->params[i].grad, RLHF__USE_GRADIENTS);
    rlhf_status st = rlhf__model_refresh(m, err);
    rlhf__paper_account(paper, m->role, RLHF__USE_ACTIVATIONS);
    return st;
}

// One that others use stays: they go before it.
static void drop_instance(struct rlhf__model *m) {
    if (m->users > 1)
        m->was = m->instance;
    else
        rlhf__instance_destroy(m->instance);
    free(m->params);
    m->instance = NULL;
    m->params = NULL;
    m->n_tensors = 0;
}

rlhf_status rlhf__model_weigh(const struct rlhf__model *m, struct rlhf__uses *out,
                              struct rlhf__error *err) {
    struct rlhf__model other = *m;
    struct rlhf__paper *paper = NULL;
    other.instance = NULL;
    other.was = NULL;
    other.users = 1;
    other.params = NULL;
    rlhf_status st = rlhf__paper_create(m->env->compute, 0, &paper, err);
    if (st == RLHF_OK) st = rlhf__model_open_instance(&other, err);
    if (st == RLHF_OK) st = open_on_paper(&other, paper, err);
    if (st == RLHF_OK) *out = *rlhf__paper_peak(paper);
    drop_instance(&other);
    rlhf__paper_destroy(paper);
    return st;
}

static rlhf_status open_for_good(struct rlhf__model *m, struct rlhf__error *err) {
    m->compute = m->env->compute;
    RLHF_TRY(rlhf__model_open_instance(m, err));
    if (!m->tok) RLHF_TRY(rlhf__tokenizer_open(m->text_dir, &m->tok, err));
    return rlhf__model_open_backend(m, &m->spec, err);
}

rlhf_status rlhf__model_load(struct rlhf__model *m, struct rlhf__error *err) {
    if (!m->on_paper) return RLHF_OK;
    if (m->env->paper) RLHF_TRY(rlhf__room_check_model(m, err)); // all else is on paper
    drop_instance(m);
    m->on_paper = 0;
    if (m->base && m->base->on_paper) rlhf__adapter_part(m); // asked before the base is there
    RLHF_TRY(open_for_good(m, err));
    return fill(m, m->spec.start, err);
}

// Find the model's directory and its adapter's, and hold both until the model is filled, so that a
// run that prunes its checkpoints leaves them.
static rlhf_status find(struct rlhf__model *m, struct rlhf__error *err) {
    char real[2][RLHF__PATH_CAP];
    const char **dir[2] = {&m->spec.dir, &m->spec.adapter.dir};
    for (int i = 0; i < 2; i++) {
        if (*dir[i] && **dir[i]) m->held[i] = rlhf__folder_hold(*dir[i], real[i]);
        if (m->held[i] >= 0) *dir[i] = real[i];
    }
    return rlhf__adapter_resolve(m, err);
}

static rlhf_status open_into(struct rlhf__model *m, struct rlhf__error *err) {
    const struct rlhf__model_env *env = m->env;
    RLHF_TRY(find(m, err));
    RLHF_TRY(rlhf__model_read_config(m, &m->spec, err));
    rlhf__adapter_share(m);
    if (env->paper) {
        m->on_paper = 1;
        RLHF_TRY(rlhf__model_open_instance(m, err));
        RLHF_TRY(rlhf__tokenizer_open(m->text_dir, &m->tok, err));
        RLHF_TRY(open_on_paper(m, env->paper, err));
        return check_text(m, err);
    }
    RLHF_TRY(rlhf__room_check_model(m, err));
    RLHF_TRY(open_for_good(m, err));
    RLHF_TRY(check_text(m, err));
    return fill(m, m->spec.start, err);
}

rlhf_status rlhf__model_open(const struct rlhf__model_env *env, const struct rlhf__model_spec *spec,
                             struct rlhf__model **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__model *m = calloc(1, sizeof *m);
    if (!m) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory opening a model");
    m->env = env;
    m->compute = env->compute;
    m->role = spec->role;
    m->trainable = spec->trainable;
    m->frozen = spec->frozen;
    m->spec = *spec;
    m->users = 1;
    m->held[0] = m->held[1] = -1;
    rlhf_status st = open_into(m, err);
    if (st != RLHF_OK) {
        rlhf__model_close(m);
        return st;
    }
    *out = m;
    return RLHF_OK;
}
