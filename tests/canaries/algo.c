// algo.c: algorithms that each break one rule of the contract, chosen by a BREAK_ macro; see
// reward.c. Without a macro, the algorithm is correct: REINFORCE with the group's mean as the
// baseline. Its loss is nonlinear (exp), so that its derivative is not constant.
#include <rlhf/algo.h>
#include <rlhf/shards.h>

#include <math.h>
#include <string.h>

enum { MOST_SHARDS = 2 };

struct algo {
    const rlhf_host *host;
    double losses, seen; // sum of losses in the phase; number of rows ever scored
    double shard[MOST_SHARDS];
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct algo *a = host->alloc(host, sizeof *a);
    (void)config;
    if (!a) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    a->host = host;
    *self = a;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct algo *a = self;
    if (a) a->host->free(a->host, a);
}

static rlhf_status plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    (void)self;
    (void)info;
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP;
    out->epochs = out->minibatches = 1;
    out->group_size = 4;
#if defined BREAK_PLAN
    out->heads |= RLHF_HEAD_SCORE;
#elif defined BREAK_ROOM
    memset((char *)out + out->size, 1, 8); // a member that the host does not know
#elif defined BREAK_ROOM_SIZE
    out->size = 4096;
#elif defined BREAK_LEFT_OUT
    out->source = RLHF_SOURCE_TEXT;
    out->flags = RLHF_PLAN_LEAVES_OUT;
    out->group_size = 1;
#elif defined BREAK_CARRY_OUTSIDE
    out->carry_rows = 1;
#elif defined BREAK_TOGETHER
    out->flags = RLHF_PLAN_GROUPS_TOGETHER;
#endif
    return RLHF_OK;
}

static double mean_of(const rlhf_rollout *r, uint32_t i, double *spread) {
    double sum = 0, squares = 0, n = 0;
    for (uint32_t k = 0; k < r->n; k++) {
        if (r->group[k] != r->group[i]) continue;
        sum += (double)r->score[k];
        squares += (double)r->score[k] * (double)r->score[k];
        n++;
    }
    *spread = sqrt(fmax(squares / n - sum / n * (sum / n), 0));
    return sum / n;
}

static rlhf_status advantages(void *self, const rlhf_rollout *r, rlhf_advantages *out) {
    struct algo *s = self;
    double more = 0;
#if defined BREAK_RUNNING || defined BREAK_FORGETS || defined BREAK_KEPT
    more = s->seen;
    s->seen += r->n;
#endif
    (void)s;
    for (uint32_t i = 0; i < r->n; i++) {
        double spread;
        double a = (double)r->score[i] - mean_of(r, i, &spread) + more;
#ifdef BREAK_ADVANTAGES
        a /= spread; // 0 / 0 if all rewards are equal
#endif
        for (int32_t t = r->offset[i] + r->prompt_len[i]; t < r->offset[i + 1]; t++)
            out->advantage[t] = (float)a;
#ifdef BREAK_NO_GRADIENT
        out->use[i] = RLHF_USE_NO_GRADIENT;
#endif
    }
#if defined BREAK_USE
    out->use[0] = 7;
#elif defined BREAK_CARRY_OUTSIDE
    out->carry_row[r->n] = 1;
#endif
    return RLHF_OK;
}

static void misbehave(struct algo *a, const rlhf_loss_in *in, rlhf_loss_out *out) {
    (void)a;
    (void)in;
    (void)out;
#if defined BREAK_REDUCE
    double sum = 1;
    a->host->reduce(a->host, &sum, 1);
#elif defined BREAK_OUTSIDE
    out->d_heads->logp[in->total] = 1;
#elif defined BREAK_BORROWED
    ((float *)(uintptr_t)in->advantage)[0] = 1;
#elif defined BREAK_FINITE
    out->loss = NAN;
#endif
}

// The share of row i's group of four that this call has. BREAK_GROUP: the loss depends on it;
// BREAK_TOGETHER: it does, too, but the plan makes it 1.
static double share_of_group(const rlhf_loss_in *in, uint32_t i) {
    double n = 4;
#if defined BREAK_GROUP || defined BREAK_TOGETHER
    n = 0;
    for (uint32_t k = 0; k < in->n; k++)
        n += in->group[k] == in->group[i];
#endif
    (void)in;
    (void)i;
    return n / 4;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct algo *a = self;
    double tokens = (double)in->batch_tokens;
#ifdef BREAK_SPLIT
    tokens = (double)in->total;
#elif defined BREAK_MEMORY
    double *scratch = a->host->alloc(a->host, 64);
    scratch[0] = 1;
    a->host->free(a->host, scratch);
#elif defined BREAK_ROOM_LOSS
    memset((char *)out + out->size, 1, 8);
#endif
    out->loss = 0;
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++) {
            const double weight = ((double)in->advantage[t] + 0.25) * share_of_group(in, i),
                         p = exp((double)in->heads->logp[t]);
            out->loss -= weight * p / tokens;
            out->d_heads->logp[t] = (float)(-weight * p / tokens);
#ifdef BREAK_DERIVATIVE
            out->d_heads->logp[t] *= 1.25f;
#endif
        }
    a->losses += out->loss;
#ifdef BREAK_SHARDS
    *rlhf_shard_sums(a->shard, in->shard, 1) += out->loss;
#endif
    misbehave(a, in, out);
    return RLHF_OK;
}

static rlhf_status phase_end(void *self, const rlhf_phase_info *info) {
    struct algo *a = self;
    (void)info;
#ifdef BREAK_METRIC
    rlhf_metric_last(a->host, "episode", 1);
#endif
#if defined BREAK_SUMS // reduced, but not shard by shard
    RLHF_TRY(a->host->reduce(a->host, &a->losses, 1));
#elif defined BREAK_SHARDS // this is not an error: the sums are as they should be
    double total;
    RLHF_TRY(rlhf_shards_total(a->host, a->shard, MOST_SHARDS, 1, &total));
    a->losses = total;
    memset(a->shard, 0, sizeof a->shard);
#elif defined BREAK_ODD    // a call that only some processes make
    if (a->losses < -0.05) RLHF_TRY(a->host->reduce(a->host, &a->losses, 1));
#endif
    rlhf_metric_last(a->host, "reinforce/loss", a->losses);
    a->losses = 0;
    return RLHF_OK;
}

// ---- the choice of prompts: one after the other ----

#if defined BREAK_CHOOSE_FORGETS || defined BREAK_CHOOSE_UNSAVED || defined BREAK_CHOOSE_KEPT
#define CHOOSE_RUNNING
#endif
#if defined CHOOSE_RUNNING || defined BREAK_CHOOSE_RANGE || defined BREAK_CHOOSE_UNWRITTEN ||      \
    defined BREAK_CHOOSE_OUTSIDE || defined BREAK_CHOOSE_BORROWED ||                               \
    defined BREAK_CHOOSE_MEMORY || defined BREAK_CHOOSE_ROOM || defined BREAK_CHOOSE_REPLACES
#define CHOOSE choose_prompts
static rlhf_status choose_prompts(void *self, const rlhf_prompts *in, rlhf_choice *out) {
    struct algo *a = self;
    uint32_t n = in->n_choose;
#ifdef BREAK_CHOOSE_UNWRITTEN
    if ((int64_t)n > in->n) n = (uint32_t)in->n; // each prompt once
#elif defined BREAK_CHOOSE_OUTSIDE
    n++;
#elif defined BREAK_CHOOSE_ROOM
    memset((char *)out + out->size, 1, 8);
#elif defined BREAK_CHOOSE_BORROWED
    ((int64_t *)(uintptr_t)in->seen)[0]++;
#elif defined BREAK_CHOOSE_MEMORY
    double *scratch = a->host->alloc(a->host, 64);
    scratch[0] = 1;
    a->host->free(a->host, scratch);
#endif
    for (uint32_t k = 0; k < n; k++) {
        out->prompt[k] = (int64_t)a->seen % in->n;
#ifdef BREAK_CHOOSE_RANGE
        if (isnan(in->last_score[k % in->n])) out->prompt[k] = in->n;
#endif
#ifdef CHOOSE_RUNNING
        a->seen++;
#endif
    }
#ifdef BREAK_CHOOSE_REPLACES
    static int64_t own[16];
    memcpy(own, out->prompt, n * sizeof *own);
    out->prompt = own;
#endif
    return RLHF_OK;
}
#else
#define CHOOSE NULL
#endif

#if defined BREAK_FORGETS || defined BREAK_KEPT || defined BREAK_CHOOSE_FORGETS ||                 \
    defined BREAK_CHOOSE_KEPT
#define STATE 1
#define SAVE  save
#define LOAD  load
static rlhf_status save(void *self, const rlhf_ostream *out) {
    const struct algo *a = self;
    const double kept[] = {a->losses, a->seen};
    return out->write(out, kept, sizeof kept);
}

static rlhf_status load(void *self, const rlhf_istream *in, uint32_t version) {
    struct algo *a = self;
    double kept[2];
    if (version != 1) return a->host->fail(a->host, RLHF_E_INVALID, "a state of another version");
    const rlhf_status st = in->read(in, kept, sizeof kept);
    if (st != RLHF_OK) return st;
    a->losses = kept[0];
    a->seen = kept[1];
#if defined BREAK_FORGETS || defined BREAK_CHOOSE_FORGETS
    a->seen = floor(a->seen / 2);
#endif
    return RLHF_OK;
}
#else
#define STATE 0
#define SAVE  NULL
#define LOAD  NULL
#endif

static const rlhf_algo_ops ops = {.size = sizeof ops,
                                  .plan = plan,
                                  .advantages = advantages,
                                  .loss = loss,
                                  .phase_end = phase_end,
                                  .choose_prompts = CHOOSE};

static const rlhf_plugin plugin = {.size = sizeof plugin,
                                   .kind = RLHF_KIND_ALGO,
                                   .id = "org.example.canary-algo",
                                   .version = "1",
                                   .summary = "breaks a rule",
                                   .state_version = STATE,
                                   .create = create,
                                   .destroy = destroy,
                                   .save = SAVE,
                                   .load = LOAD,
                                   .ops = &ops};

RLHF_DEFINE_PLUGIN(plugin)
