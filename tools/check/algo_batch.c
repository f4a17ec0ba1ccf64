// algo_batch.c: see algo_batch.h.
#include "check/algo_batch.h"

#include "check/guard.h"
#include "learn/plan.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NEW = 6 };

static const char data_row[] = "{\"prompt\": \"a\", \"answer\": \"1\"}";

static const struct {
    uint32_t bit;
    const char *name;
} kinds[RLHF__ALGO_HEADS] = {{RLHF_HEAD_LOGP, "logp"},
                             {RLHF_HEAD_ENTROPY, "entropy"},
                             {RLHF_HEAD_KL, "kl"},
                             {RLHF_HEAD_VALUE, "value"},
                             {RLHF_HEAD_SCORE, "score"}};

uint32_t rlhf__algo_head_bit(int32_t h) { return kinds[h].bit; }

const char *rlhf__algo_head_name(int32_t h) { return kinds[h].name; }

int32_t rlhf__algo_head_len(const struct rlhf__algo_batch *b, int32_t h) {
    if (!(b->plan.heads & kinds[h].bit)) return 0;
    return kinds[h].bit == RLHF_HEAD_SCORE ? b->n * b->n_labels : b->total;
}

// A number from 0 to 1.
static float number(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 16777216.0f;
}

static void make_token(struct rlhf__algo_batch *b, int32_t t, uint32_t *state) {
    const int rollout = b->plan.source == RLHF_SOURCE_ROLLOUT;
    b->head[0][t] = -0.2f - 2.5f * number(state);
    b->head[1][t] = 0.3f + number(state);
    b->head[2][t] = 0.05f + 0.2f * number(state);
    b->head[3][t] = number(state) - 0.5f;
    b->ref[t] = b->head[0][t] + 0.3f * (number(state) - 0.5f);
    for (uint32_t k = 0; k < b->plan.n_named; k++)
        b->named[k][t] = b->head[0][t] + 0.3f * (number(state) - 0.5f);
    b->token_reward[t] = rollout ? 0.1f * number(state) : 0;
    if (!rollout && (b->plan.flags & RLHF_PLAN_RECOMPUTE_LOGP)) b->old[t] = b->head[0][t];
    if (!rollout) return;
    b->old[t] = b->head[0][t] + 0.5f * (number(state) - 0.5f);
    b->sampled[t] = b->old[t];
    b->value_old[t] = b->head[3][t] + 0.3f * (number(state) - 0.5f);
}

static int32_t label_of(const rlhf_plan *plan, int32_t row) {
    switch (plan->source) {
    case RLHF_SOURCE_LABELED:
        return row % 3;
    case RLHF_SOURCE_PREFERENCES:
        return row % 2 == 0;
    case RLHF_SOURCE_COMPLETIONS:
        if (!(plan->flags & RLHF_PLAN_MISMATCHED)) return row % 2;
        return row % 2 ? -1 : row / 2 % 2;
    default:
        return 0;
    }
}

static const double weight[RLHF__ALGO_REWARDS] = {1, 0.5};

// Divide each row's total reward between the rewards, so that the weighted sum is the total.
static void split_rewards(struct rlhf__algo_batch *b, uint32_t *state) {
    for (int32_t i = 0; i < b->n; i++) {
        float *own = b->reward_score + i * RLHF__ALGO_REWARDS, total = b->score[i];
        for (int32_t t = b->offset[i] + b->prompt_len[i]; t < b->offset[i + 1]; t++)
            total += b->token_reward[t];
        own[0] = total * number(state);
        own[1] = (total - own[0]) / (float)weight[1];
    }
}

void rlhf__algo_batch_make(struct rlhf__algo_batch *b, const rlhf_plan *plan, int32_t spread) {
    const int pairs = plan->source == RLHF_SOURCE_PREFERENCES;
    const int answers = plan->source == RLHF_SOURCE_COMPLETIONS;
    const int mismatched = (plan->flags & RLHF_PLAN_MISMATCHED) != 0;
    const int32_t group = pairs || mismatched ? 2 : (int32_t)plan->group_size;
    uint32_t state = 7;
    memset(b, 0, sizeof *b);
    b->plan = *plan;
    b->n = group * (group > 16 ? 2 : 3);
    b->n_labels = !(plan->heads & RLHF_HEAD_SCORE) ? 0 : pairs ? 1 : RLHF__ALGO_LABELS;
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t length = 1 + (int32_t)(MAX_NEW * number(&state));
        b->prompt_len[i] = plan->source == RLHF_SOURCE_ROLLOUT || pairs || answers ? 2 : 1;
        b->offset[i + 1] = b->offset[i] + b->prompt_len[i] + length;
        b->group[i] = i / group;
        b->source[i] = i / group;
        b->row[i] = (uint32_t)i;
        b->finished[i] = i % 3 != 1;
        if (i % 2) b->meta[i] = (rlhf_str){.ptr = data_row, .len = sizeof data_row - 1};
        for (int32_t t = b->offset[i]; t < b->offset[i + 1]; t++)
            b->ids[t] = 10 + t;
        b->score[i] = spread ? 2 * number(&state) - 1 : 0.5f;
        b->label[i] = label_of(plan, i);
        for (int32_t t = b->offset[i] + b->prompt_len[i]; t < b->offset[i + 1]; t++) {
            make_token(b, t, &state);
            if (!spread) b->token_reward[t] = 0;
        }
        for (int32_t k = 0; k < b->n_labels; k++)
            b->head[4][i * b->n_labels + k] = number(&state) - 0.5f;
    }
    b->total = b->offset[b->n];
    split_rewards(b, &state);
}

int rlhf__algo_batch_new(struct rlhf__check *c, const rlhf_plan *plan, int32_t spread,
                         struct rlhf__algo_batch **out) {
    *out = NULL;
    if (plan->group_size > RLHF__ALGO_ROWS / 3) {
        rlhf__child_log_fact(c->log,
                             "groups of %u are more than are made up: give a smaller size "
                             "with --set",
                             plan->group_size);
        return 0;
    }
    *out = malloc(sizeof **out);
    if (*out) rlhf__algo_batch_make(*out, plan, spread);
    return *out != NULL;
}

// ---- calls ----

int rlhf__algo_open(struct rlhf__check *c, uint32_t shards, struct rlhf__probe *t,
                    rlhf_plan *plan) {
    const uint32_t minor = c->plugin->abi_minor;
    rlhf_run_info info = {.phases = 10,
                          .batch_size = 64,
                          .max_new_tokens = 6,
                          .n_labels = RLHF__ALGO_LABELS,
                          .n_rewards = RLHF__ALGO_REWARDS,
                          .max_turns = 1,
                          .shards = shards,
                          .temperature = 1};
    struct rlhf__error err;
    *plan = (rlhf_plan){0};
    struct rlhf__tails tails = {.n = 0};
    if (rlhf__probe_init(c, NULL, 0, t, &err) < 0) return 0;
    struct rlhf__guards *guards = rlhf__guards_open(c->log);
    rlhf_plan *filled = RLHF__GUARDED(rlhf_plan, guards, minor);
    if (!filled) return 0;
    RLHF__LEND(rlhf_run_info, &info, minor, &tails);
    rlhf__probe_begin(t, "plan()");
    rlhf_status st = c->plugin->ops.algo.plan(t->self, &info, filled);
    rlhf__guard_kept(&tails, c->log);
    st = rlhf__probe_end(t, st, &err);
    rlhf__guard_struct_end(RLHF__STRUCT_rlhf_plan, filled, plan, minor, c->log);
    rlhf__guards_close(guards);
    if (st == RLHF_OK) st = rlhf__plan_check(c->plugin, plan, &err);
    if (st < 0) rlhf__child_log_found(c->log, RLHF__CHECK_PLAN, "%s", err.text);
    return st == RLHF_OK;
}

struct maker {
    struct rlhf__guards *guards;
    int32_t side, ok;
};

// Returns a copy of n bytes in guarded memory. If `from` is NULL, the copy is zeroed.
static void *lay(struct maker *m, const void *from, size_t n, int32_t rule, const char *what) {
    char *at = rlhf__guard_take(m->guards, n, m->side, rule, what);
    if (!at) m->ok = 0;
    if (at && from) memcpy(at, from, n);
    return at;
}

#define IN(m, from, n, what) lay(m, from, (size_t)(n) * sizeof *(from), RLHF__CHECK_BORROWED, what)
#define OUT(m, from, n, what)                                                                      \
    lay(m, NULL, (size_t)(n) * sizeof *(from), RLHF__CHECK_LOSS_OUTSIDE, what)

static int64_t count_tokens(const struct rlhf__algo_batch *b, int finished) {
    int64_t n = 0;
    for (int32_t i = 0; i < b->n; i++)
        for (int32_t t = b->offset[i] + b->prompt_len[i]; t < b->offset[i + 1]; t++)
            n += finished ? b->finished[i] != 0
                          : b->use[i] != RLHF_USE_EXCLUDED && !(b->leaves_out && b->left_out[t]);
    return n;
}

static int wants_reference(const rlhf_plan *p) {
    return (p->flags & RLHF_PLAN_REFERENCE) != 0 ||
           ((p->heads & RLHF_HEAD_KL) != 0 && !p->divergence_from);
}

// Returns an array for pointers to the log-probs of the named models, or NULL if the plan names no
// models.
static const float **lay_named(struct maker *m, const struct rlhf__algo_batch *b,
                               const char *what) {
    if (!b->plan.n_named) return NULL;
    return lay(m, NULL, b->plan.n_named * sizeof(float *), RLHF__CHECK_BORROWED, what);
}

// The rewards of the rollout, if the plan asks for each.
static void lay_rewards(struct maker *m, const struct rlhf__algo_batch *b, rlhf_rollout *in) {
    static const char *const name[RLHF__ALGO_REWARDS] = {"first", "second"};
    if (!(b->plan.flags & RLHF_PLAN_EACH_REWARD)) return;
    in->n_rewards = RLHF__ALGO_REWARDS;
    in->reward_score = IN(m, b->reward_score, b->n * RLHF__ALGO_REWARDS, "rollout->reward_score");
    in->reward_weight = IN(m, weight, RLHF__ALGO_REWARDS, "rollout->reward_weight");
    in->reward_name = IN(m, name, RLHF__ALGO_REWARDS, "rollout->reward_name");
}

// Zeroed arrays for the results of advantages().
static rlhf_advantages lay_results(struct maker *m, const struct rlhf__algo_batch *b) {
    const int32_t rows = b->n * (int32_t)b->plan.carry_rows;
    const int32_t tokens = b->total * (int32_t)b->plan.carry_tokens;
    rlhf_advantages out = {0};
    out.advantage = OUT(m, b->advantage, b->total, "out->advantage");
    out.returns = OUT(m, b->returns, b->total, "out->returns");
    out.use = OUT(m, b->use, b->n, "out->use");
    if (rows) out.carry_row = OUT(m, b->carry_row, rows, "out->carry_row");
    if (tokens) out.carry_token = OUT(m, b->carry_token, tokens, "out->carry_token");
    return out;
}

static void take_results(struct rlhf__algo_batch *b, const rlhf_advantages *out) {
    const size_t n = (size_t)b->n, total = (size_t)b->total, number = sizeof(double);
    memcpy(b->advantage, out->advantage, total * sizeof(float));
    memcpy(b->returns, out->returns, total * sizeof(float));
    memcpy(b->use, out->use, n);
    if (out->carry_row) memcpy(b->carry_row, out->carry_row, n * b->plan.carry_rows * number);
    if (out->carry_token)
        memcpy(b->carry_token, out->carry_token, total * b->plan.carry_tokens * number);
}

rlhf_status rlhf__algo_batch_advantages(struct rlhf__probe *t, struct rlhf__algo_batch *b,
                                        int32_t side, struct rlhf__error *err) {
    struct maker m = {rlhf__guards_open(t->check->log), side, 1};
    const int rollout = b->plan.source == RLHF_SOURCE_ROLLOUT;
    if ((!rollout && !(b->plan.flags & RLHF_PLAN_RECOMPUTE_LOGP)) || !m.guards) {
        rlhf__guards_close(m.guards);
        return RLHF_OK;
    }
    rlhf_rollout in = {.n = (uint32_t)b->n,
                       .total = (uint32_t)b->total,
                       .max_new_tokens = MAX_NEW,
                       .steps = 1,
                       .batch_finished_tokens = count_tokens(b, 1)};
    in.offset = IN(&m, b->offset, b->n + 1, "rollout->offset");
    in.prompt_len = IN(&m, b->prompt_len, b->n, "rollout->prompt_len");
    in.group = IN(&m, b->group, b->n, "rollout->group");
    in.finished = IN(&m, b->finished, b->n, "rollout->finished");
    in.score = IN(&m, b->score, b->n, "rollout->score");
    in.token_reward = IN(&m, b->token_reward, b->total, "rollout->token_reward");
    in.logp_old = IN(&m, b->old, b->total, "rollout->logp_old");
    in.logp_sampled = IN(&m, b->sampled, b->total, "rollout->logp_sampled");
    in.version = IN(&m, b->version, b->n, "rollout->version");
    in.ids = IN(&m, b->ids, b->total, "rollout->ids");
    in.label = IN(&m, b->label, b->n, "rollout->label");
    in.source = IN(&m, b->source, b->n, "rollout->source");
    in.row = IN(&m, b->row, b->n, "rollout->row");
    lay_rewards(&m, b, &in);
    if (rollout) in.meta = IN(&m, b->meta, b->n, "rollout->meta");
    if (wants_reference(&b->plan)) in.logp_ref = IN(&m, b->ref, b->total, "rollout->logp_ref");
    const float **named = lay_named(&m, b, "rollout->logp_named");
    for (uint32_t k = 0; named && k < b->plan.n_named; k++)
        named[k] = IN(&m, b->named[k], b->total, "rollout->logp_named");
    in.logp_named = named;
    if (b->plan.heads & RLHF_HEAD_VALUE)
        in.value_old = IN(&m, b->value_old, b->total, "rollout->value_old");
    rlhf__guards_protect(m.guards);
    rlhf_advantages out = lay_results(&m, b);
    rlhf_advantages took,
        *filled = RLHF__GUARDED(rlhf_advantages, m.guards, t->check->plugin->abi_minor);
    if (filled) {
        const uint32_t size = filled->size;
        memcpy(filled, &out, size);
        filled->size = size;
    }
    rlhf_status st;
    if (!m.ok || !filled) {
        st = RLHF__NOMEM(err, "out of memory");
    } else {
        struct rlhf__tails tails = {.n = 0};
        RLHF__LEND(rlhf_rollout, &in, t->check->plugin->abi_minor, &tails);
        rlhf__probe_begin(t, "advantages()");
        st = t->check->plugin->ops.algo.advantages(t->self, &in, filled);
        rlhf__guard_kept(&tails, t->check->log);
        st = rlhf__probe_end(t, st, err);
        rlhf__guard_struct_end(RLHF__STRUCT_rlhf_advantages, filled, &took,
                               t->check->plugin->abi_minor, t->check->log);
        const struct rlhf__lent lent[] = {{"advantage", out.advantage, took.advantage},
                                          {"returns", out.returns, took.returns},
                                          {"use", out.use, took.use},
                                          {"carry_row", out.carry_row, took.carry_row},
                                          {"carry_token", out.carry_token, took.carry_token}};
        rlhf__guard_lent("rlhf_advantages", lent, sizeof lent / sizeof *lent, t->check->log);
        take_results(b, &out);
    }
    rlhf__guards_close(m.guards);
    return st;
}

// The rows from `from` to `to` - 1, concatenated, without the rows that the algorithm has excluded.
struct part {
    int32_t rows[RLHF__ALGO_ROWS], n, total;
    int32_t offset[RLHF__ALGO_ROWS + 1];
};

static void part_of(const struct rlhf__algo_batch *b, int32_t from, int32_t to, struct part *p) {
    p->n = p->total = p->offset[0] = 0;
    for (int32_t i = from; i < to; i++) {
        if (b->use[i] == RLHF_USE_EXCLUDED) continue;
        p->rows[p->n++] = i;
        p->total += b->offset[i + 1] - b->offset[i];
        p->offset[p->n] = p->total;
    }
}

// Copy the numbers of each row to guarded memory: `stride` numbers per row, or one number per token
// if `stride` is 0.
static void *gather(struct maker *m, const struct rlhf__algo_batch *b, const struct part *p,
                    const void *from, size_t item, int32_t stride, const char *what) {
    const size_t n = (size_t)(stride ? p->n * stride : p->total) * item;
    char *to = lay(m, NULL, n, RLHF__CHECK_BORROWED, what);
    for (int32_t k = 0; to && k < p->n; k++) {
        const int32_t i = p->rows[k];
        const size_t src = (size_t)(stride ? i * stride : b->offset[i]) * item;
        const size_t dst = (size_t)(stride ? k * stride : p->offset[k]) * item;
        const size_t len = (size_t)(stride ? stride : b->offset[i + 1] - b->offset[i]) * item;
        memcpy(to + dst, (const char *)from + src, len);
    }
    return to;
}

#define ROWS(m, b, p, f)   gather(m, b, p, (b)->f, sizeof *(b)->f, 1, "loss->" #f)
#define TOKENS(m, b, p, f) gather(m, b, p, (b)->f, sizeof *(b)->f, 0, "loss->" #f)

static const float **value_field(rlhf_head_values *x, int32_t i) {
    const float **const field[RLHF__ALGO_HEADS] = {&x->logp, &x->entropy, &x->kl, &x->value,
                                                   &x->score};
    return field[i];
}
static float **slope_field(rlhf_head_gradients *d, int32_t i) {
    float **const field[RLHF__ALGO_HEADS] = {&d->logp, &d->entropy, &d->kl, &d->value, &d->score};
    return field[i];
}

static void lay_heads(struct maker *m, const struct rlhf__algo_batch *b, const struct part *p,
                      rlhf_head_values *x) {
    for (int32_t h = 0; h < RLHF__ALGO_HEADS; h++)
        if (rlhf__algo_head_len(b, h))
            *value_field(x, h) =
                gather(m, b, p, b->head[h], sizeof(float),
                       kinds[h].bit == RLHF_HEAD_SCORE ? b->n_labels : 0, "loss->heads");
}

static void lay_slopes(struct maker *m, const struct rlhf__algo_batch *b, const struct part *p,
                       rlhf_head_gradients *d) {
    for (int32_t h = 0; h < RLHF__ALGO_HEADS; h++) {
        const int score = kinds[h].bit == RLHF_HEAD_SCORE;
        if (rlhf__algo_head_len(b, h))
            *slope_field(d, h) =
                OUT(m, b->d[h], score ? p->n * b->n_labels : p->total, "loss_out->d_heads");
    }
}

static void take_slopes(struct rlhf__algo_batch *b, const struct part *p, rlhf_head_gradients *d) {
    for (int32_t h = 0; h < RLHF__ALGO_HEADS; h++) {
        const int score = kinds[h].bit == RLHF_HEAD_SCORE;
        for (int32_t k = 0; *slope_field(d, h) && k < p->n; k++) {
            const int32_t i = p->rows[k], to = score ? i * b->n_labels : b->offset[i];
            const int32_t n = score ? b->n_labels : b->offset[i + 1] - b->offset[i];
            memcpy(&b->d[h][to], *slope_field(d, h) + (score ? k * b->n_labels : p->offset[k]),
                   (size_t)n * sizeof(float));
        }
    }
}

static void lay_loss(struct maker *m, const struct rlhf__algo_batch *b, const struct part *p,
                     rlhf_loss_in *in) {
    const int rollout = b->plan.source == RLHF_SOURCE_ROLLOUT;
    in->n = (uint32_t)p->n;
    in->total = (uint32_t)p->total;
    in->offset = IN(m, p->offset, p->n + 1, "loss->offset");
    in->prompt_len = ROWS(m, b, p, prompt_len);
    in->group = ROWS(m, b, p, group);
    in->label = ROWS(m, b, p, label);
    in->source = ROWS(m, b, p, source);
    in->row = ROWS(m, b, p, row);
    if (b->plan.carry_rows)
        in->carry_row = gather(m, b, p, b->carry_row, sizeof(double), (int32_t)b->plan.carry_rows,
                               "loss->carry_row");
    if (b->plan.carry_tokens)
        in->carry_token = gather(m, b, p, b->carry_token, b->plan.carry_tokens * sizeof(double), 0,
                                 "loss->carry_token");
    in->ids = TOKENS(m, b, p, ids);
    in->logp_old = TOKENS(m, b, p, old);
    in->advantage = TOKENS(m, b, p, advantage);
    in->returns = TOKENS(m, b, p, returns);
    if (wants_reference(&b->plan)) in->logp_ref = TOKENS(m, b, p, ref);
    const float **named = lay_named(m, b, "loss->logp_named");
    for (uint32_t k = 0; named && k < b->plan.n_named; k++)
        named[k] = gather(m, b, p, b->named[k], sizeof(float), 0, "loss->logp_named");
    in->logp_named = named;
    if (b->plan.heads & RLHF_HEAD_VALUE) in->value_old = TOKENS(m, b, p, value_old);
    if (rollout) in->logp_sampled = TOKENS(m, b, p, sampled);
    if (rollout) in->version = ROWS(m, b, p, version);
    if (b->leaves_out) in->left_out = TOKENS(m, b, p, left_out);
}

rlhf_status rlhf__algo_batch_loss(struct rlhf__probe *t, struct rlhf__algo_batch *b, int32_t from,
                                  int32_t to, int32_t side, double *loss, struct rlhf__error *err) {
    struct part p;
    const uint32_t minor = t->check->plugin->abi_minor;
    rlhf_head_values x = {0};
    rlhf_head_gradients d = {0};
    rlhf_loss_in in = {.batch_sequences = b->n,
                       .max_new_tokens = MAX_NEW,
                       .heads = &x,
                       .n_labels = (uint32_t)b->n_labels,
                       .minibatches = b->plan.minibatches,
                       .shard = (uint32_t)b->shard,
                       .steps = 1};
    rlhf_loss_out result = {0};
    part_of(b, from, to, &p);
    if (p.n == 0) return RLHF_OK;
    struct maker m = {rlhf__guards_open(t->check->log), side, 1};
    if (!m.guards) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    in.batch_tokens = count_tokens(b, 0);
    lay_heads(&m, b, &p, &x);
    lay_loss(&m, b, &p, &in);
    rlhf__guards_protect(m.guards);
    lay_slopes(&m, b, &p, &d);
    rlhf_loss_out *out = RLHF__GUARDED(rlhf_loss_out, m.guards, minor);
    if (out) out->d_heads = &d;
    rlhf_status st = m.ok && out ? RLHF_OK : rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    if (st == RLHF_OK) {
        struct rlhf__tails tails = {.n = 0};
        RLHF__LEND(rlhf_loss_in, &in, minor, &tails);
        RLHF__LEND(rlhf_head_values, &x, minor, &tails);
        RLHF__LEND(rlhf_head_gradients, &d, minor, &tails);
        rlhf__probe_begin(t, "loss()");
        st = t->check->plugin->ops.algo.loss(t->self, &in, out);
        rlhf__guard_kept(&tails, t->check->log);
        st = rlhf__probe_end(t, st, err);
        rlhf__guard_struct_end(RLHF__STRUCT_rlhf_loss_out, out, &result, minor, t->check->log);
        const struct rlhf__lent lent = {"d_heads", &d, result.d_heads};
        rlhf__guard_lent("rlhf_loss_out", &lent, 1, t->check->log);
        *loss += result.loss;
        take_slopes(b, &p, &d);
    }
    rlhf__guards_close(m.guards);
    return st;
}
