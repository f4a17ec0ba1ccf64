// learner_kit.c: see learner_kit.h.
#include "learner_kit.h"

#include "learn/algo_call.h"
#include "learn/shards.h"

#include <math.h>
#include <rlhf/rng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- an algorithm that uses every head and records its inputs ----

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct seen *s = self;
    const rlhf_head_values *h = in->heads;
    double n = (double)in->batch_tokens;
    memcpy(s->logp + s->at, h->logp, in->total * sizeof(float));
    memcpy(s->entropy + s->at, h->entropy, in->total * sizeof(float));
    if (h->kl) memcpy(s->kl + s->at, h->kl, in->total * sizeof(float));
    memcpy(s->value + s->at, h->value, in->total * sizeof(float));
    if (in->logp_sampled) {
        memcpy(s->old + s->at, in->logp_old, in->total * sizeof(float));
        memcpy(s->sampled + s->at, in->logp_sampled, in->total * sizeof(float));
        memcpy(s->version + s->rows, in->version, in->n * sizeof *s->version);
    }
    if (in->logp_ref) memcpy(s->ref + s->at, in->logp_ref, in->total * sizeof(float));
    s->steps = in->steps;
    s->rows += in->n;
    s->at += in->total;
    s->calls++;
    out->loss = s->bad;
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++) {
            double a = (double)in->advantage[t], e = (double)h->value[t] - (double)in->returns[t];
            out->loss += (a * (double)h->logp[t] - 0.3 * (double)h->entropy[t] +
                          0.2 * (h->kl ? (double)h->kl[t] : 0) + 0.5 * e * e) /
                         n;
            out->d_heads->logp[t] = (float)(a / n);
            out->d_heads->entropy[t] = (float)(-0.3 / n);
            if (h->kl) out->d_heads->kl[t] = (float)(0.2 / n);
            out->d_heads->value[t] = (float)(e / n);
        }
    return RLHF_OK;
}

static rlhf_status minibatch_end(void *self, const rlhf_step_info *step, rlhf_step_out *out) {
    struct seen *s = self;
    s->step = *step;
    out->stop = (int32_t)step->skipped;
    return RLHF_OK;
}

// ---- fixture ----

int learner_setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    const char *build = getenv("RLHF_BUILD_DIR");
    if (!f || !build || e2e_setup((void **)&f->files) != 0) {
        free(f);
        return -1;
    }
    snprintf(f->dirs.lib, sizeof f->dirs.lib, "%s/lib/rlhf/1", build);
    snprintf(f->dirs.share, sizeof f->dirs.share, "%s/share/rlhf", build);
    *state = f;
    return rlhf__plugins_open(&f->dirs, &f->plugins, NULL) == RLHF_OK ? 0 : -1;
}

static void fixture_close(struct fixture *f) {
    rlhf__shards_close(&f->learner);
    rlhf__learner_finish(&f->learner);
    rlhf__rows_finish(&f->e);
    rlhf__optim_close(f->optim);
    rlhf__optim_close(f->critic_optim);
    rlhf__model_close(f->reference);
    rlhf__model_close(f->critic);
    rlhf__model_close(f->policy);
    rlhf__session_finish(&f->session);
    f->optim = f->critic_optim = NULL;
    f->reference = f->critic = f->policy = NULL;
}

int learner_teardown(void **state) {
    struct fixture *f = *state;
    fixture_close(f);
    rlhf__plugins_close(f->plugins);
    int failed = e2e_teardown((void **)&f->files);
    free(f);
    return failed;
}

static struct rlhf__model *open_model(struct fixture *f, const char *role, uint64_t seed,
                                      int value) {
    char dir[300];
    struct rlhf__model *m = NULL;
    snprintf(dir, sizeof dir, "%s/model", f->files->dir);
    struct rlhf__model_spec spec = {.dir = dir,
                                    .role = role,
                                    .start = RLHF__START_RANDOM,
                                    .trainable = 1,
                                    .value_kind = value ? RLHF_VALUE_MLP : RLHF_VALUE_NONE,
                                    .value_init = RLHF_VALUE_INIT_NORMAL};
    f->session.models.seed = seed;
    MUST(rlhf__model_open(&f->session.models, &spec, &m, &err));
    assert_true(m->info.caps & RLHF_CAP_PREFIX);
    return m;
}

// Steps have size 0, so a case leaves the weights unchanged for the next case. beta1 is 0, so the
// first moment m is the gradient.
static struct rlhf__optim *open_optim(struct fixture *f, const struct rlhf__model *m) {
    static const struct rlhf__optim_config c = {.beta2 = 0.999, .eps = 1e-8, .max_skipped = 1};
    struct rlhf__optim *o = NULL;
    const struct rlhf__optim_spec spec = {.params = m->params,
                                          .n = m->n_tensors,
                                          .config = f->optim_config ? f->optim_config : &c,
                                          .grads = f->no_range ? NULL : m->info.grad_base,
                                          .grads_bytes = m->info.grad_bytes,
                                          .share = &f->share};
    MUST(rlhf__optim_open(f->session.compute->table, &spec, &o, &err));
    return o;
}

// Two groups of four rows with random numbers from the seed.
static void make_rows(struct fixture *f) {
    rlhf_rng r = {5, rlhf_rng_stream("rows"), 0};
    struct rlhf__rows *e = &f->e;
    MUST(rlhf__rows_init(e, ROWS, TOTAL, &err));
    for (int32_t i = 0; i < ROWS; i++) {
        int32_t at = e->offset[i];
        e->offset[i + 1] = at + PROMPT + RESPONSE;
        e->prompt_len[i] = PROMPT;
        e->group[i] = i / GROUP;
        for (int32_t k = 0; k < PROMPT + RESPONSE; k++)
            e->ids[at + k] = k < PROMPT ? i / GROUP * 40 + k * 3 : (int32_t)rlhf_rng_below(&r, 260);
        for (int32_t k = PROMPT; k < PROMPT + RESPONSE; k++) {
            e->token[RLHF__ADVANTAGE][at + k] = (float)(2 * rlhf_rng_next(&r) - 1);
            e->token[RLHF__RETURNS][at + k] = (float)(2 * rlhf_rng_next(&r) - 1);
        }
    }
}

void learner_open(struct fixture *f, const char *backend, int32_t dtype, int64_t threads,
                  int critic) {
    struct rlhf__compute_config compute = {.backend = backend, .dtype = dtype};
    struct rlhf__run_config run = {.seed = 1, .threads = threads};
    fixture_close(f);
    MUST(rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run, &err));
    if (f->apart) f->session.compute->table->flags &= ~(uint32_t)RLHF_COMPUTE_HOST_MEMORY;
    f->policy = open_model(f, "policy", 1, !critic);
    f->reference = open_model(f, "reference", 2, 0);
    if (critic) f->critic = open_model(f, "critic", 3, 1);
    f->optim = open_optim(f, f->policy);
    if (critic) f->critic_optim = open_optim(f, f->critic);
    make_rows(f);
    f->e.d_hidden = f->reference->info.d_model;
    f->e.ref_hidden = calloc((size_t)TOTAL * (size_t)f->e.d_hidden, sizeof(float));
    assert_non_null(f->e.ref_hidden);
    struct rlhf__pass_out out = {.hidden = f->e.ref_hidden};
    rlhf_dist dist = RLHF_DIST_WHOLE;
    MUST(rlhf__pass(f->reference, &f->e, &dist, 0, &out, &err));
    f->plugin.ops.algo.loss = loss;
    f->plugin.ops.algo.minibatch_end = minibatch_end;
    f->algo = (struct rlhf__instance){.plugin = &f->plugin, .self = &f->seen};
    f->learner = (struct rlhf__learner){
        .model = f->policy,
        .kl_model = f->reference,
        .critic = f->critic,
        .objective = rlhf__algo_objective(&f->algo),
        .optim = f->optim,
        .critic_optim = f->critic_optim,
        .plan = {.heads = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL | RLHF_HEAD_VALUE},
        .dist = dist};
    MUST(rlhf__shards_open(&f->learner, &f->share, &err));
}

// ---- results of a minibatch ----

void learner_collect(struct result *r, const struct fixture *f, const struct rlhf__optim *o) {
    char name[256];
    rlhf_dev dev;
    const rlhf_param *p;
    const rlhf_compute *c = f->session.compute->table;
    for (uint32_t i = 0; rlhf__optim_tensor(o, i, name, sizeof name, &dev, &p) == RLHF_OK; i++) {
        if (strncmp(name, "m.", 2) != 0) continue;
        size_t n = (size_t)p->shape[0] * (size_t)(p->ndim > 1 ? p->shape[1] : 1);
        r->grad = realloc(r->grad, (r->n + n) * sizeof *r->grad);
        assert_non_null(r->grad);
        assert_int_equal(c->download(c->ctx, r->grad + r->n, dev, n * sizeof *r->grad), RLHF_OK);
        r->n += n;
        assert_true(r->tensors < 128);
        r->end[r->tensors++] = r->n;
    }
}

struct result *learner_run(struct fixture *f, int share, int64_t microbatch_tokens, int calls) {
    struct result *r = calloc(1, sizeof *r);
    assert_non_null(r);
    memset(&f->seen, 0, sizeof f->seen);
    f->e.flags = share ? RLHF__SHARE_PROMPTS : 0;
    f->learner.microbatch_tokens = microbatch_tokens;
    f->learner.loss_sum = 0;
    f->learner.tokens = 0;
    MUST(rlhf__minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
    assert_int_equal(f->seen.calls, calls);
    assert_int_equal(f->seen.at, TOTAL);
    r->seen = f->seen;
    r->loss = f->learner.loss_sum;
    r->tokens = f->learner.tokens;
    learner_collect(r, f, f->optim);
    if (f->critic_optim) learner_collect(r, f, f->critic_optim);
    return r;
}

void learner_result_free(struct result *r) {
    free(r->grad);
    free(r);
}

void learner_same_heads(const struct seen *a, const struct seen *b) {
    assert_memory_equal(a->logp, b->logp, sizeof a->logp);
    assert_memory_equal(a->entropy, b->entropy, sizeof a->entropy);
    assert_memory_equal(a->kl, b->kl, sizeof a->kl);
    assert_memory_equal(a->value, b->value, sizeof a->value);
}

void learner_close_gradients(const struct result *a, const struct result *b, double rel) {
    assert_int_equal(a->tensors, b->tensors);
    assert_int_equal(a->n, b->n);
    for (size_t k = 0, at = 0; k < a->tensors; at = a->end[k++]) {
        double max = 0, diff = 0;
        for (size_t i = at; i < a->end[k]; i++) {
            max = fmax(max, fabs((double)a->grad[i]));
            diff = fmax(diff, fabs((double)a->grad[i] - (double)b->grad[i]));
        }
        assert_true(max > 0);
        if (!(diff <= rel * max))
            fail_msg("tensor %zu: gradients differ by %g of %g", k, diff, max);
    }
}
