// plan.c: see plan.h.
#include "learn/plan.h"

#include "base/printable.h"
#include "batch/row_columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bit {
    uint32_t bit;
    const char *name;
};

static const struct bit heads[] = {{RLHF_HEAD_LOGP, "logp"},
                                   {RLHF_HEAD_ENTROPY, "entropy"},
                                   {RLHF_HEAD_KL, "kl"},
                                   {RLHF_HEAD_VALUE, "value"},
                                   {RLHF_HEAD_SCORE, "score"},
                                   {RLHF_HEAD_HIDDEN, "hidden"},
                                   {RLHF_HEAD_TOKEN_SCORE, "token score"},
                                   {0, NULL}};

static const struct bit flags[] = {{RLHF_PLAN_REFERENCE, "RLHF_PLAN_REFERENCE"},
                                   {RLHF_PLAN_MINIBATCH_SCOPE, "RLHF_PLAN_MINIBATCH_SCOPE"},
                                   {RLHF_PLAN_RECOMPUTE_LOGP, "RLHF_PLAN_RECOMPUTE_LOGP"},
                                   {RLHF_PLAN_FULL_SUPPORT, "RLHF_PLAN_FULL_SUPPORT"},
                                   {RLHF_PLAN_UNIT_TEMPERATURE, "RLHF_PLAN_UNIT_TEMPERATURE"},
                                   {RLHF_PLAN_WHOLE_GROUPS, "RLHF_PLAN_WHOLE_GROUPS"},
                                   {RLHF_PLAN_GROUPS_TOGETHER, "RLHF_PLAN_GROUPS_TOGETHER"},
                                   {RLHF_PLAN_LEAVES_OUT, "RLHF_PLAN_LEAVES_OUT"},
                                   {RLHF_PLAN_MISMATCHED, "RLHF_PLAN_MISMATCHED"},
                                   {RLHF_PLAN_MARGINS, "RLHF_PLAN_MARGINS"},
                                   {RLHF_PLAN_REWARDS_OPTIONAL, "RLHF_PLAN_REWARDS_OPTIONAL"},
                                   {RLHF_PLAN_EACH_REWARD, "RLHF_PLAN_EACH_REWARD"},
                                   {RLHF_PLAN_STALE, "RLHF_PLAN_STALE"},
                                   {0, NULL}};

// Heads that a plan may request. The other heads are for the host itself.
#define TOKEN_HEADS ((uint32_t)RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL)
#define ANY_HEAD    (TOKEN_HEADS | RLHF_HEAD_VALUE | RLHF_HEAD_SCORE)

// The only flags that a plan for rows of a file may have. They match how such rows are always used:
// every row once, in whole groups, with log-probs at temperature 1 over the whole vocabulary.
#define FILE_FLAGS                                                                                 \
    ((uint32_t)RLHF_PLAN_REFERENCE | RLHF_PLAN_RECOMPUTE_LOGP | RLHF_PLAN_FULL_SUPPORT |           \
     RLHF_PLAN_UNIT_TEMPERATURE | RLHF_PLAN_WHOLE_GROUPS | RLHF_PLAN_LEAVES_OUT)

// What each source of rows supports, in the order of enum rlhf_source.
static const struct source {
    const char *rows;
    uint32_t heads, flags;
} sources[] = {
    {"rollouts", TOKEN_HEADS | RLHF_HEAD_VALUE,
     ~((uint32_t)RLHF_PLAN_MISMATCHED | RLHF_PLAN_MARGINS)},
    {"rows of text", TOKEN_HEADS, FILE_FLAGS},
    {"labeled rows", TOKEN_HEADS | RLHF_HEAD_SCORE, FILE_FLAGS},
    {"rows of preferences", TOKEN_HEADS | RLHF_HEAD_SCORE, FILE_FLAGS | RLHF_PLAN_MARGINS},
    {"rows of completions", TOKEN_HEADS, FILE_FLAGS | RLHF_PLAN_MISMATCHED}};

int rlhf__plan_wants_reference(const rlhf_plan *plan) {
    return (plan->flags & RLHF_PLAN_REFERENCE) ||
           ((plan->heads & RLHF_HEAD_KL) && !plan->divergence_from);
}

uint32_t rlhf__plan_columns(const rlhf_plan *plan) {
    uint32_t has = rlhf__plan_wants_reference(plan) ? RLHF__NEEDS_REFERENCE : 0;
    if (plan->heads & RLHF_HEAD_VALUE) has |= RLHF__NEEDS_VALUE;
    return has;
}

uint32_t rlhf__plan_row_flags(const rlhf_plan *plan) {
    return plan->flags & RLHF_PLAN_GROUPS_TOGETHER ? RLHF__WHOLE_GROUPS : 0;
}

int32_t rlhf__plan_named(const rlhf_plan *plan, const char *name) {
    for (uint32_t i = 0; name && i < plan->n_named; i++)
        if (strcmp(plan->named[i], name) == 0) return (int32_t)i;
    return -1;
}

static const char *name_of(const struct rlhf__instance *algo) {
    return rlhf__plugin_name(algo->plugin);
}

static rlhf_status check_known(const char *plugin, const char *what, const struct bit *known,
                               uint32_t set, struct rlhf__error *err) {
    for (; known->name; known++)
        set &= ~known->bit;
    if (!set) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s plans the %s bit %d, which this host does not know", plugin, what,
                      __builtin_ctz(set));
}

static const char *first_name(const struct bit *known, uint32_t set) {
    while (known->name && !(known->bit & set))
        known++;
    return known->name ? known->name : "unknown";
}

static rlhf_status check_heads(const char *plugin, const struct source *s, uint32_t set,
                               struct rlhf__error *err) {
    RLHF_TRY(check_known(plugin, "head", heads, set, err));
    if (!set)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s plans no heads: there would be nothing to learn from", plugin);
    if (set & ~ANY_HEAD)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s: the head '%s' cannot be planned", plugin,
                          first_name(heads, set & ~ANY_HEAD));
    if (set & ~s->heads)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s plans the head '%s', which %s cannot give",
                          plugin, first_name(heads, set & ~s->heads), s->rows);
    return RLHF_OK;
}

// Rows of a file are used once per phase, as one minibatch.
static rlhf_status check_once(const char *plugin, const struct source *s, const rlhf_plan *p,
                              struct rlhf__error *err) {
    if (p->epochs != 1)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s plans %u epochs; with %s it must be 1",
                          plugin, p->epochs, s->rows);
    if (p->minibatches != 1)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s plans %u minibatches; with %s it must be 1",
                          plugin, p->minibatches, s->rows);
    if (p->group_size != 1)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s plans groups of %u; with %s group_size must be 1", plugin,
                          p->group_size, s->rows);
    return RLHF_OK;
}

// ---- named models ----

const char *const *rlhf__plan_roles(void) {
    static const char *const roles[] = {"policy",     "reference", "critic", "judge",
                                        "classifier", "host",      NULL};
    return roles;
}

// A name is also a key of the settings, and the model's role in messages and memory estimates.
static rlhf_status check_name(const char *plugin, const char *name, struct rlhf__error *err) {
    const size_t n = name ? strlen(name) : 0;
    char shown[64];
    if (n < 1 || n > RLHF__NAME_MAX || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != n)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s plans a model named \"%s\"; a name has 1 to %d of the letters a "
                          "to z, digits and '_', and must stay valid until destroy()",
                          plugin, rlhf__printable(name ? name : "", shown, sizeof shown),
                          RLHF__NAME_MAX);
    for (const char *const *role = rlhf__plan_roles(); *role; role++)
        if (strcmp(name, *role) == 0)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "%s plans a model named \"%s\", which is the name of another part "
                              "of a run",
                              plugin, name);
    if (rlhf__is_hosts(name))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s plans a model named \"%s\"; names that begin with \"host_\" are for "
                          "models of later hosts",
                          plugin, name);
    return RLHF_OK;
}

static rlhf_status check_named(const char *plugin, const rlhf_plan *p, struct rlhf__error *err) {
    if (p->n_named > RLHF_NAMED_MAX || (p->n_named && !p->named))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s plans %u named models%s; at most %d", plugin,
                          p->n_named, p->named ? "" : " without their names", RLHF_NAMED_MAX);
    if (!p->n_named && p->named)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s plans `named` with n_named 0; set n_named to the number of names, or "
                          "`named` to NULL",
                          plugin);
    for (uint32_t i = 0; i < p->n_named; i++) {
        RLHF_TRY(check_name(plugin, p->named[i], err));
        if (rlhf__plan_named(p, p->named[i]) != (int32_t)i)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s plans two models named \"%s\"", plugin,
                              p->named[i]);
    }
    return RLHF_OK;
}

static rlhf_status check_divergence(const char *plugin, const rlhf_plan *p,
                                    struct rlhf__error *err) {
    if (!(p->heads & RLHF_HEAD_KL) && (p->divergence || p->divergence_from))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s plans a divergence of the head 'kl', but not that head", plugin);
    if (p->divergence < RLHF_DIVERGENCE_REVERSE || p->divergence > RLHF_DIVERGENCE_JS)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s plans the divergence %d, which this host does not know", plugin,
                          p->divergence);
    if (p->divergence == RLHF_DIVERGENCE_JS && !(p->divergence_beta > 0 && p->divergence_beta < 1))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s plans divergence_beta %g; it must be above 0 and below 1", plugin,
                          p->divergence_beta);
    if (p->divergence != RLHF_DIVERGENCE_JS && fpclassify(p->divergence_beta) != FP_ZERO)
        return rlhf__fail(
            err, RLHF_E_UNSUPPORTED,
            "%s plans divergence_beta %g without RLHF_DIVERGENCE_JS, which alone uses "
            "it; it must be 0",
            plugin, p->divergence_beta);
    char shown[64];
    if (p->divergence_from && rlhf__plan_named(p, p->divergence_from) < 0)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s plans the divergence from \"%s\", which is not one of its named "
                          "models",
                          plugin, rlhf__printable(p->divergence_from, shown, sizeof shown));
    return RLHF_OK;
}

static rlhf_status check_carry(const char *plugin, const rlhf_plan *p, int looks,
                               struct rlhf__error *err) {
    const uint32_t most = p->carry_rows > p->carry_tokens ? p->carry_rows : p->carry_tokens;
    if (most > RLHF_CARRY_MAX)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s plans carry_rows %u and carry_tokens %u; at most %d each", plugin,
                          p->carry_rows, p->carry_tokens, RLHF_CARRY_MAX);
    if (most == 0 || looks) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s plans carry_rows or carry_tokens, but advantages(), which fills them, is "
                      "not called: rows of a file need RLHF_PLAN_RECOMPUTE_LOGP",
                      plugin);
}

rlhf_status rlhf__plan_check(const struct rlhf__plugin *algo, const rlhf_plan *p,
                             struct rlhf__error *err) {
    const char *plugin = rlhf__plugin_name(algo);
    if (p->source < RLHF_SOURCE_ROLLOUT || p->source > RLHF_SOURCE_COMPLETIONS)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s plans the source %d, which this host does not know", plugin,
                          p->source);
    const struct source *s = &sources[p->source - RLHF_SOURCE_ROLLOUT];
    RLHF_TRY(check_heads(plugin, s, p->heads, err));
    RLHF_TRY(check_known(plugin, "flag", flags, p->flags, err));
    if (p->flags & ~s->flags)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s plans %s, which %s cannot give", plugin,
                          first_name(flags, p->flags & ~s->flags), s->rows);
    if (p->epochs < 1 || p->minibatches < 1 || p->group_size < 1)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "%s plans %u epochs, %u minibatches and groups of %u; all must be 1 or more", plugin,
            p->epochs, p->minibatches, p->group_size);
    if (p->resample_rounds > 0 && (p->source != RLHF_SOURCE_ROLLOUT || p->group_size < 2))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s plans resample_rounds, which replace groups of two or more "
                          "responses; it has %s in groups of %u",
                          plugin, s->rows, p->group_size);
    const int rollout = p->source == RLHF_SOURCE_ROLLOUT;
    const int looks = rollout || (p->flags & RLHF_PLAN_RECOMPUTE_LOGP);
    if (!rollout) RLHF_TRY(check_once(plugin, s, p, err));
    RLHF_TRY(check_named(plugin, p, err));
    RLHF_TRY(check_divergence(plugin, p, err));
    RLHF_TRY(check_carry(plugin, p, looks, err));
    if (!looks || algo->ops.algo.advantages) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s plans %s, but lacks the function advantages()",
                      plugin, rollout ? "rollouts" : "RLHF_PLAN_RECOMPUTE_LOGP");
}

rlhf_status rlhf__plan_ask(const struct rlhf__instance *algo, const rlhf_run_info *info,
                           rlhf_plan *out, struct rlhf__error *err) {
    const uint32_t minor = algo->plugin->abi_minor;
    struct rlhf__filled filled;
    rlhf_run_info passed = *info;
    rlhf_plan *plan = RLHF__FILLED(rlhf_plan, &filled, minor);
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_run_info, &passed, minor, &tails);
    struct rlhf__call call = rlhf__call_begin(algo, "plan()");
    rlhf_status st = algo->plugin->ops.algo.plan(algo->self, &passed, plan);
    st = rlhf__call_kept(&call, &tails, st);
    st = rlhf__call_end_filled(&call, st, &filled, out, err);
    if (st == RLHF_OK) st = rlhf__plan_check(algo->plugin, out, err);
    if (st != RLHF_OK) {
        *out = (rlhf_plan){0}; // a rejected plan is not used at all
        return st;
    }
    if (out->flags & RLHF_PLAN_GROUPS_TOGETHER) out->flags |= RLHF_PLAN_WHOLE_GROUPS;
    return RLHF_OK;
}

rlhf_status rlhf__plan_iteration(const struct rlhf__instance *algo, const rlhf_plan *plan,
                                 rlhf_iteration *out, struct rlhf__error *err) {
    const void *table = rlhf__plugin_extension(algo->plugin, algo->self, RLHF_EXT_ITERATION);
    *out = (rlhf_iteration){.size = sizeof *out};
    if (!table) return RLHF_OK;
    if (rlhf__copy_in(out, sizeof *out, table, RLHF_SIZE_TO(rlhf_iteration, moves_reference),
                      "rlhf_iteration", err) < 0)
        return rlhf__error_context(err, "%s", name_of(algo));
    const int used = out->reward_model || out->moves_reference;
    if (!used || plan->source == RLHF_SOURCE_ROLLOUT) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s has the extension %s, which %s cannot give",
                      name_of(algo), RLHF_EXT_ITERATION,
                      sources[plan->source - RLHF_SOURCE_ROLLOUT].rows);
}

rlhf_status rlhf__plan_same(const struct rlhf__instance *algo, const rlhf_plan *was,
                            const rlhf_plan *is, struct rlhf__error *err) {
    const struct {
        const char *name;
        int64_t was, is;
    } field[] = {{"source", was->source, is->source},
                 {"heads", was->heads, is->heads},
                 {"flags", was->flags, is->flags},
                 {"epochs", was->epochs, is->epochs},
                 {"minibatches", was->minibatches, is->minibatches},
                 {"group_size", was->group_size, is->group_size},
                 {"resample_rounds", was->resample_rounds, is->resample_rounds},
                 {"carry_rows", was->carry_rows, is->carry_rows},
                 {"carry_tokens", was->carry_tokens, is->carry_tokens},
                 {"n_named", was->n_named, is->n_named},
                 {"divergence", was->divergence, is->divergence},
                 {"divergence_from", rlhf__plan_named(was, was->divergence_from),
                  rlhf__plan_named(is, is->divergence_from)}};
    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        if (field[i].was != field[i].is)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "%s changes its plan when the rows are known: %s was %lld, is %lld",
                              name_of(algo), field[i].name, (long long)field[i].was,
                              (long long)field[i].is);
    if (was->divergence_beta < is->divergence_beta || was->divergence_beta > is->divergence_beta)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s changes its plan when the rows are known: divergence_beta was %g, is "
                          "%g",
                          name_of(algo), was->divergence_beta, is->divergence_beta);
    for (uint32_t i = 0; i < is->n_named; i++)
        if (rlhf__plan_named(was, is->named[i]) != (int32_t)i)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "%s changes its plan when the rows are known: the named model %u is "
                              "\"%s\"",
                              name_of(algo), i, is->named[i]);
    return RLHF_OK;
}

// Returns the multiple of the group size that is nearest to `size`, but has at least one row per
// minibatch.
static int64_t nearest_batch(const rlhf_plan *p, int64_t size) {
    const int64_t g = p->group_size, least = (p->minibatches + g - 1) / g * g;
    const int64_t near = (size + g / 2) / g * g;
    return near < least ? least : near;
}

// An algorithm that uses each reward's own score does not see what the host does to their sum.
static rlhf_status check_each_reward(const struct rlhf__plugin *algo, const struct rlhf__config *c,
                                     struct rlhf__error *err) {
    const char *set = c->mixing.normalize != RLHF__NORMALIZE_NONE     ? "rewards.normalize"
                      : c->mixing.clip > 0                            ? "rewards.clip"
                      : c->response.non_stop != RLHF__NON_STOP_NONE   ? "response.non_stop"
                      : c->response.truncate == RLHF__TRUNCATE_PERIOD ? "response.truncate=period"
                                                                      : NULL;
    if (!set) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s changes the sum of the rewards, but %s trains on each reward's own score "
                      "here; leave it out, or use a reward for it, such as length.so",
                      set, algo->file);
}

rlhf_status rlhf__plan_check_batch(const struct rlhf__plugin *algo, const rlhf_plan *p,
                                   const struct rlhf__config *c, struct rlhf__error *err) {
    if (p->resample_rounds > 0 && c->mixing.normalize != RLHF__NORMALIZE_NONE)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "algo.dynamic_sampling draws the responses of a phase in rounds, and "
                          "rewards.normalize=%s needs all of them at once; rewards.normalize "
                          "must be none",
                          c->mixing.normalize == RLHF__NORMALIZE_BEFORE ? "before" : "after");
    if (p->flags & RLHF_PLAN_EACH_REWARD) RLHF_TRY(check_each_reward(algo, c, err));
    if (c->batch.size % p->group_size != 0 || c->batch.size < p->minibatches)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "batch.size is %lld; it must be a multiple of the group size %u and at "
                          "least the number of minibatches %u; the nearest is %lld",
                          (long long)c->batch.size, p->group_size, p->minibatches,
                          (long long)nearest_batch(p, c->batch.size));
    if ((p->flags & RLHF_PLAN_WHOLE_GROUPS) && c->batch.size / p->group_size < p->minibatches)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "batch.size %lld is %lld groups of %u, fewer than the %u minibatches, "
                          "and %s does not split a group: at least %lld is needed",
                          (long long)c->batch.size, (long long)(c->batch.size / p->group_size),
                          p->group_size, p->minibatches, algo->file,
                          (long long)p->minibatches * p->group_size);
    return RLHF_OK;
}
