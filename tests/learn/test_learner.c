// test_learner.c: a minibatch through model, loss and optimiser: the same numbers whether the rows
// of a group share their prompt or not, and however the minibatch is cut into microbatches.
#include "e2e.h"
#include "learn/pass.h"

#include "learn/algo.h"
#include "learn/learner.h"
#include "model/session.h"

#include <math.h>
#include <rlhf/rng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS     8
#define GROUP    4
#define PROMPT   9
#define RESPONSE 6
#define TOTAL    (ROWS * (PROMPT + RESPONSE))

// ---- an algorithm that uses every head and keeps what it saw ----

struct seen {
    int calls;
    uint32_t at; // tokens so far
    float logp[TOTAL], entropy[TOTAL], kl[TOTAL], value[TOTAL];
    float old[TOTAL], sampled[TOTAL]; // of rollouts
    float ref[TOTAL];                 // where the plan asks for it
    int64_t version[ROWS], steps;
    uint32_t rows, reserved;
    double bad; // what loss() adds to its number
    rlhf_step_info step;
};

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct seen *s = self;
    const rlhf_heads *h = in->heads;
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

static rlhf_status minibatch_end(void *self, const rlhf_step_info *step, int32_t *stop) {
    struct seen *s = self;
    s->step = *step;
    *stop = step->skipped;
    return RLHF_OK;
}

// ---- fixture ----

struct fixture {
    struct e2e *files;
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    struct rlhf__session session;
    struct rlhf__model *policy, *reference, *critic;
    struct rlhf__optim *optim, *critic_optim;
    struct rlhf__plugin plugin;
    struct rlhf__instance algo;
    struct seen seen;
    struct rlhf__rows e;
    struct rlhf__learner learner;
    int32_t stop, reserved;
};

#define MUST(call)                                                                                 \
    do {                                                                                           \
        struct rlhf__error err = {0, ""};                                                          \
        if ((call) != RLHF_OK) fail_msg("%s: %s", #call, err.text);                                \
    } while (0)

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    const char *build = getenv("RLHF_BUILD_DIR");
    if (!f || !build || e2e_setup((void **)&f->files) != 0) {
        free(f);
        return -1;
    }
    snprintf(f->dirs.lib, sizeof f->dirs.lib, "%s/lib/rlhf/0", build);
    snprintf(f->dirs.share, sizeof f->dirs.share, "%s/share/rlhf", build);
    *state = f;
    return rlhf__plugins_create(&f->dirs, &f->plugins, NULL) == RLHF_OK ? 0 : -1;
}

static void fixture_close(struct fixture *f) {
    rlhf__learner_finish(&f->learner);
    rlhf__rows_finish(&f->e);
    rlhf__optim_destroy(f->optim);
    rlhf__optim_destroy(f->critic_optim);
    rlhf__model_close(f->reference);
    rlhf__model_close(f->critic);
    rlhf__model_close(f->policy);
    rlhf__session_finish(&f->session);
    f->optim = f->critic_optim = NULL;
    f->reference = f->critic = f->policy = NULL;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    fixture_close(f);
    rlhf__plugins_destroy(f->plugins);
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
    assert_true(m->info.heads & RLHF_HEAD_PREFIX);
    return m;
}

// Steps of size 0, so that one case leaves the weights to the next; m is the gradient.
static struct rlhf__optim *open_optim(struct fixture *f, const struct rlhf__model *m) {
    static const struct rlhf__optim_config c = {.beta2 = 0.999, .eps = 1e-8, .max_skipped = 1};
    struct rlhf__optim *o = NULL;
    MUST(rlhf__optim_create(f->session.compute->table, m->params, m->n_tensors, &c, 0, &o, &err));
    rlhf__optim_range(o, m->info.grad_base, m->info.grad_bytes);
    return o;
}

// Two groups of four rows with numbers drawn from the seed.
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

static void fixture_open(struct fixture *f, const char *backend, int32_t dtype, int64_t threads,
                         int critic) {
    struct rlhf__compute_config compute = {.backend = backend, .dtype = dtype};
    struct rlhf__run_config run = {.seed = 1, .threads = threads};
    fixture_close(f);
    MUST(rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run, &err));
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
        .reference = f->reference,
        .critic = f->critic,
        .objective = rlhf__algo_objective(&f->algo),
        .optim = f->optim,
        .critic_optim = f->critic_optim,
        .plan = {.heads = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL | RLHF_HEAD_VALUE},
        .dist = dist};
}

// ---- what a minibatch gives ----

struct result {
    struct seen seen;
    double loss;
    float *grad; // of all parameters, one after another
    size_t n, tensors, end[128];
    int64_t tokens;
};

static void collect(struct result *r, const struct fixture *f, const struct rlhf__optim *o) {
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

static struct result *run(struct fixture *f, int share, int64_t microbatch_tokens, int calls) {
    struct result *r = calloc(1, sizeof *r);
    assert_non_null(r);
    memset(&f->seen, 0, sizeof f->seen);
    f->e.flags = share ? RLHF__SHARE_PROMPTS : 0;
    f->learner.microbatch_tokens = microbatch_tokens;
    f->learner.loss_sum = 0;
    f->learner.tokens = 0;
    MUST(rlhf__learner_minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
    assert_int_equal(f->seen.calls, calls);
    assert_int_equal(f->seen.at, TOTAL);
    r->seen = f->seen;
    r->loss = f->learner.loss_sum;
    r->tokens = f->learner.tokens;
    collect(r, f, f->optim);
    if (f->critic_optim) collect(r, f, f->critic_optim);
    return r;
}

static void result_free(struct result *r) {
    free(r->grad);
    free(r);
}

static void same_heads(const struct seen *a, const struct seen *b) {
    assert_memory_equal(a->logp, b->logp, sizeof a->logp);
    assert_memory_equal(a->entropy, b->entropy, sizeof a->entropy);
    assert_memory_equal(a->kl, b->kl, sizeof a->kl);
    assert_memory_equal(a->value, b->value, sizeof a->value);
}

// Each tensor within `rel` of its largest element; every one has a gradient.
static void close_gradients(const struct result *a, const struct result *b, double rel) {
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

// ---- tests ----

// A group of 4 costs 9 + 6 + 3 * 7 = 36 tokens with a shared prompt, 60 without.
static void sharing_gives_the_same(void **state) {
    struct fixture *f = *state;
    for (int critic = 0; critic < 2; critic++) {
        fixture_open(f, "cpu", RLHF__DTYPE_F32, 2, critic);
        struct result *off = run(f, 0, 0, 1), *on = run(f, 1, 0, 1);
        assert_int_equal(off->tokens, TOTAL);
        assert_int_equal(on->tokens, 72);
        same_heads(&off->seen, &on->seen);
        assert_true(off->loss == on->loss);
        close_gradients(off, on, 1e-6);
        result_free(off);
        result_free(on);
    }
}

static void heads_have_the_same_bits(void **state) {
    struct fixture *f = *state;
    static const char *const backends[] = {"cpu", "reference"};
    for (int k = 0; k < 4; k++) {
        fixture_open(f, backends[k / 2], k % 2 ? RLHF__DTYPE_BF16 : RLHF__DTYPE_F32, 1 + k % 2, 0);
        struct result *off = run(f, 0, 0, 1), *on = run(f, 1, 0, 1), *two = run(f, 1, 36, 2);
        same_heads(&off->seen, &on->seen);
        same_heads(&off->seen, &two->seen);
        result_free(off);
        result_free(on);
        result_free(two);
    }
}

static void microbatches_do_not_matter(void **state) {
    struct fixture *f = *state;
    static const struct {
        int share, calls;
        int64_t tokens;
    } cases[] = {{1, 2, 36}, {1, 8, 15}, {1, 4, 22}, {1, 3, 30}, {0, 1, 0}, {0, 2, 60}, {0, 8, 15}};
    fixture_open(f, "cpu", RLHF__DTYPE_F32, 2, 0);
    struct result *whole = run(f, 1, 72, 1);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct result *r = run(f, cases[k].share, cases[k].tokens, cases[k].calls);
        same_heads(&whole->seen, &r->seen);
        assert_true(fabs(whole->loss - r->loss) <= 1e-12 * fabs(whole->loss));
        close_gradients(whole, r, 1e-6);
        result_free(r);
    }
    result_free(whole);
}

static void threads_do_not_matter(void **state) {
    struct fixture *f = *state;
    static const int32_t dtypes[] = {RLHF__DTYPE_F32, RLHF__DTYPE_BF16};
    for (int k = 0; k < 2; k++) {
        fixture_open(f, "cpu", dtypes[k], 1, 0);
        struct result *one = run(f, 1, 36, 2);
        fixture_open(f, "cpu", dtypes[k], 2, 0);
        struct result *two = run(f, 1, 36, 2);
        assert_int_equal(one->n, two->n);
        assert_memory_equal(one->grad, two->grad, one->n * sizeof *one->grad);
        result_free(one);
        result_free(two);
    }
}

// Values and hidden states of prompt tokens too: the reference's feed the full KL.
static void passes_have_the_same_bits(void **state) {
    struct fixture *f = *state;
    static const int32_t dtypes[] = {RLHF__DTYPE_F32, RLHF__DTYPE_BF16};
    for (int k = 0; k < 2; k++) {
        fixture_open(f, "cpu", dtypes[k], 2, 0);
        size_t d = (size_t)f->policy->info.d_model, cells = TOTAL * (2 + d);
        float *x[3];
        for (int i = 0; i < 3; i++) {
            x[i] = calloc(cells, sizeof **x);
            assert_non_null(x[i]);
            struct rlhf__pass_out out = {
                .logp = x[i], .value = x[i] + TOTAL, .hidden = x[i] + 2 * TOTAL};
            f->e.flags = i > 0 ? RLHF__SHARE_PROMPTS : 0;
            MUST(rlhf__pass(f->policy, &f->e, &f->learner.dist, i == 2 ? 23 : 0, &out, &err));
        }
        assert_memory_equal(x[0], x[1], cells * sizeof **x);
        assert_memory_equal(x[0], x[2], cells * sizeof **x);
        for (int i = 0; i < 3; i++)
            free(x[i]);
    }
}

// ---- the reference's states ----

// Numbers of transfers and bytes, through the table that all models of the fixture use.
static struct transfers {
    rlhf_status (*upload)(void *, rlhf_dev, const void *, uint64_t);
    rlhf_status (*download)(void *, void *, rlhf_dev, uint64_t);
    int up, down;
} transfers;

static rlhf_status counted_upload(void *ctx, rlhf_dev dst, const void *src, uint64_t bytes) {
    transfers.up++;
    return transfers.upload(ctx, dst, src, bytes);
}

static rlhf_status counted_download(void *ctx, void *dst, rlhf_dev src, uint64_t bytes) {
    transfers.down++;
    return transfers.download(ctx, dst, src, bytes);
}

static void count_transfers(struct fixture *f) {
    rlhf_compute *t = f->session.compute->table;
    transfers.upload = t->upload;
    transfers.download = t->download;
    t->upload = counted_upload;
    t->download = counted_download;
    transfers.up = transfers.down = 0;
}

// Rows 5, 2, 3, 0 as a minibatch of its own: the loss and gradient of that.
static struct result *run_part(struct fixture *f, int share, int64_t microbatch_tokens) {
    static const uint32_t pick[] = {5, 2, 3, 0};
    struct result *r = calloc(1, sizeof *r);
    struct rlhf__rows part = {0};
    assert_non_null(r);
    f->e.flags = share ? RLHF__SHARE_PROMPTS : 0;
    MUST(rlhf__rows_pick(&part, &f->e, pick, 4, &err));
    memset(&f->seen, 0, sizeof f->seen);
    f->learner.microbatch_tokens = microbatch_tokens;
    f->learner.loss_sum = 0;
    MUST(rlhf__learner_minibatch(&f->learner, &part, 0, 0, 0, &f->stop, &err));
    r->seen = f->seen;
    r->loss = f->learner.loss_sum;
    collect(r, f, f->optim);
    rlhf__rows_finish(&part);
    return r;
}

static void same_results(struct result *a, struct result *b) {
    same_heads(&a->seen, &b->seen);
    assert_true(a->seen.kl[TOTAL / 2 - 1] != 0);
    assert_true(a->loss == b->loss);
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->grad, b->grad, a->n * sizeof *a->grad);
    result_free(a);
    result_free(b);
}

// On the device they give the numbers that they give through the host, whole or picked, with shared
// prompts or without, in microbatches or at once; and nothing of them is sent or read.
static void states_stay_on_the_device(void **state) {
    struct fixture *f = *state;
    static const int32_t dtypes[] = {RLHF__DTYPE_F32, RLHF__DTYPE_BF16};
    for (int k = 0; k < 2; k++) {
        struct result *whole[2][2], *part[2][2];
        int up[2][2];
        fixture_open(f, "cpu", dtypes[k], 2, 0);
        count_transfers(f);
        for (int device = 0; device < 2; device++)
            for (int share = 0; share < 2; share++) {
                const rlhf_compute *c = f->session.compute->table;
                rlhf_dev dev = NULL;
                if (device) {
                    struct rlhf__rows *e = &f->e;
                    free(e->ref_hidden);
                    e->ref_hidden = NULL;
                    free(e->ref_row);
                    uint64_t bytes = (uint64_t)(ROWS * RESPONSE) * rlhf__state_bytes(f->reference);
                    assert_int_equal(c->alloc(c->ctx, bytes, &dev), RLHF_OK);
                    MUST(rlhf__rows_refer(e, dev, &err));
                    e->flags = share ? RLHF__SHARE_PROMPTS : 0;
                    struct rlhf__pass_out out = {.dev_hidden = dev};
                    transfers.down = 0;
                    MUST(rlhf__pass(f->reference, e, &f->learner.dist, 50, &out, &err));
                    assert_int_equal(transfers.down, 0);
                }
                transfers.up = 0;
                whole[device][share] = run(f, share, share ? 36 : 60, 2);
                up[device][share] = transfers.up;
                part[device][share] = run_part(f, share, 50);
                c->release(c->ctx, dev);
            }
        for (int share = 0; share < 2; share++) {
            assert_int_equal(up[0][share] - up[1][share], 2); // one a microbatch
            same_results(whole[0][share], whole[1][share]);
            same_results(part[0][share], part[1][share]);
        }
    }
}

static void a_model_that_cannot_share_gets_full_rows(void **state) {
    struct fixture *f = *state;
    fixture_open(f, "cpu", RLHF__DTYPE_F32, 1, 1);
    f->critic->info.heads &= ~(uint32_t)RLHF_HEAD_PREFIX;
    result_free(run(f, 1, 60, 2));
    assert_int_equal(f->learner.tokens, TOTAL);
    f->critic->info.heads |= RLHF_HEAD_PREFIX;
    f->policy->info.heads &= ~(uint32_t)RLHF_HEAD_PREFIX;
    result_free(run(f, 1, 60, 2));
    assert_int_equal(f->learner.tokens, TOTAL);
}

// ---- what the algorithm is told ----

// What the sampler gave is there beside what the updates compare with, and whose weights drew it;
// rows of a file were drawn by nobody.
static void who_drew_the_rows(void **state) {
    struct fixture *f = *state;
    fixture_open(f, "cpu", RLHF__DTYPE_F32, 1, 0);
    f->e.flags = RLHF__DRAWN;
    f->learner.microbatch_tokens = 60;
    f->optim->count.step = 7;
    for (int32_t t = 0; t < TOTAL; t++) {
        f->e.token[RLHF__LOGP_OLD][t] = (float)-t;
        f->e.token[RLHF__LOGP_SAMPLED][t] = (float)(-t - 1000);
    }
    for (int32_t i = 0; i < ROWS; i++)
        f->e.version[i] = i / 2;
    memset(&f->seen, 0, sizeof f->seen);
    MUST(rlhf__learner_minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
    assert_memory_equal(f->seen.old, f->e.token[RLHF__LOGP_OLD], sizeof f->seen.old);
    assert_memory_equal(f->seen.sampled, f->e.token[RLHF__LOGP_SAMPLED], sizeof f->seen.sampled);
    assert_memory_equal(f->seen.version, f->e.version, sizeof f->seen.version);
    assert_int_equal(f->seen.steps, 7);
    uint32_t pick[] = {5, 2};
    struct rlhf__rows part = {0};
    MUST(rlhf__rows_pick(&part, &f->e, pick, 2, &err));
    assert_true(part.flags & RLHF__DRAWN);
    assert_int_equal(part.version[0], 2);
    assert_int_equal(part.version[1], 1);
    rlhf__rows_finish(&part);
    f->e.flags = 0;
    memset(&f->seen, 0, sizeof f->seen);
    MUST(rlhf__learner_minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
    assert_int_equal(f->seen.steps, 0);
    assert_true(f->seen.sampled[TOTAL - 1] == 0);
}

// The reference's log-probs are there with its flag and with the exact KL, which needs it too.
static void what_the_reference_says(void **state) {
    struct fixture *f = *state;
    static const struct {
        uint32_t without, flags; // heads that are not planned
        int there;
    } cases[] = {{0, 0, 1},
                 {RLHF_HEAD_KL, 0, 0},
                 {RLHF_HEAD_KL, RLHF_PLAN_REFERENCE, 1},
                 {0, RLHF_PLAN_REFERENCE, 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fixture_open(f, "cpu", RLHF__DTYPE_F32, 1, 0);
        f->learner.plan.heads &= ~cases[k].without;
        f->learner.plan.flags = cases[k].flags;
        for (int32_t t = 0; t < TOTAL; t++)
            f->e.token[RLHF__LOGP_REF][t] = (float)(-t - 1);
        memset(&f->seen, 0, sizeof f->seen);
        MUST(rlhf__learner_minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
        assert_int_equal(f->seen.at, TOTAL);
        assert_true(f->seen.ref[TOTAL - 1] == (float)(cases[k].there ? -TOTAL : 0));
    }
}

static void the_step_is_told(void **state) {
    struct fixture *f = *state;
    fixture_open(f, "cpu", RLHF__DTYPE_F32, 1, 0);
    f->optim->config.lr = 0.5;
    f->optim->config.max_grad_norm = 1e-3;
    memset(&f->seen, 0, sizeof f->seen);
    MUST(rlhf__learner_minibatch(&f->learner, &f->e, 3, 4, 0.25, &f->stop, &err));
    const rlhf_step_info *s = &f->seen.step;
    assert_int_equal(s->size, sizeof *s);
    assert_true(s->epoch == 3 && s->minibatch == 4 && s->steps == 1 && !s->skipped && !f->stop);
    assert_true(s->loss == f->learner.last_loss && s->loss != 0);
    assert_true(s->grad_norm > 1e-3 && fabs(s->grad_norm_clipped - 1e-3) < 1e-9);
    assert_true(s->lr == 0.125 && s->lr_factor == 0.25);
    f->optim->config.max_skipped = 0;
    f->seen.bad = NAN;
    f->seen.at = f->seen.rows = 0;
    MUST(rlhf__learner_minibatch(&f->learner, &f->e, 3, 5, 0.25, &f->stop, &err));
    assert_true(s->minibatch == 5 && s->steps == 1 && s->skipped && f->stop);
    assert_true(isnan(s->loss) && s->grad_norm_clipped == 0);
}

// ---- the work of a minibatch ----

// Forward and backward of the layers (12 d^2 products a layer and token here) and of the language
// model's head (response tokens), its forward for the reference, and the critic's layers.
static void counts_the_products(void **state) {
    struct fixture *f = *state;
    const double d = 32, layers = 2 * 2 * 12 * d * d, head = 2 * d * 260;
    for (int critic = 0; critic < 2; critic++) {
        fixture_open(f, "cpu", RLHF__DTYPE_F32, 1, critic);
        double flops = 0;
        memset(&f->seen, 0, sizeof f->seen);
        MUST(rlhf__learner_minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
        double want = 3 * (layers * TOTAL + head * ROWS * RESPONSE) + head * ROWS * RESPONSE;
        if (critic) want += 3 * layers * TOTAL;
        assert_true(fabs(f->learner.flops - want) < 0.5);
        // A shared prompt's last token stands in each row, the others in one of the group.
        f->e.flags |= RLHF__SHARE_PROMPTS;
        f->learner.flops = 0;
        memset(&f->seen, 0, sizeof f->seen);
        MUST(rlhf__learner_minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
        const int copies = ROWS - ROWS / GROUP;
        double saved = (double)copies * (PROMPT - 1);
        want -= (critic ? 6 : 3) * layers * saved;
        assert_true(fabs(f->learner.flops - want) < 0.5);
        // Values alone need no head.
        float value[TOTAL];
        struct rlhf__pass_out out = {.value = value, .flops = &flops};
        f->e.flags &= ~(uint32_t)RLHF__SHARE_PROMPTS;
        MUST(rlhf__pass(critic ? f->critic : f->policy, &f->e, &f->learner.dist, 0, &out, &err));
        assert_true(fabs(flops - layers * TOTAL) < 0.5);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sharing_gives_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(heads_have_the_same_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(microbatches_do_not_matter, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_do_not_matter, setup, teardown),
        cmocka_unit_test_setup_teardown(passes_have_the_same_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(states_stay_on_the_device, setup, teardown),
        cmocka_unit_test_setup_teardown(a_model_that_cannot_share_gets_full_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(who_drew_the_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_reference_says, setup, teardown),
        cmocka_unit_test_setup_teardown(the_step_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_the_products, setup, teardown),
    };
    return cmocka_run_group_tests_name("learner", tests, NULL, NULL);
}
