// answer.c: checks whether the answer of a response equals the answer in its data row.
//
// answer/checker.h finds and compares answers; docs/rewards/answer.md describes the rules. Numbers
// are compared by value, all other answers as text. This is not an algebra system.
#include "answer/checker.h"

#include <rlhf/log.h>
#include <rlhf/reward.h>

struct answer_config {
    struct rlhf__answer_options check;
    double right, wrong, format_weight;
};

struct answer {
    const rlhf_host *host;
    const struct answer_config *config;
    struct rlhf__checker checker;
    int32_t said; // 1: the warning that all responses lack an answer was logged
};

enum { MANY = 8 }; // if fewer responses lack an answer, that may be chance

static void answer_destroy(void *self) {
    struct answer *a = self;
    if (!a) return;
    rlhf__checker_finish(&a->checker);
    a->host->free(a->host, a);
}

static rlhf_status answer_create(const rlhf_host *host, const void *config, void **self) {
    struct answer *a = host->alloc(host, sizeof *a);
    if (!a) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    a->host = host;
    a->config = config;
    const rlhf_status st = rlhf__checker_init(&a->checker, host, &a->config->check);
    if (st < 0) {
        answer_destroy(a);
        return st;
    }
    *self = a;
    return RLHF_OK;
}

static void see_found(struct answer *a, uint32_t n, double found) {
    const int32_t where = a->config->check.where;
    if (a->said || found > 0 || n < MANY) return;
    a->said = 1;
    rlhf_logf(a->host, RLHF_LOG_WARN,
              "none of %u responses has an answer where 'where=%s' looks for one%s, so none is "
              "right; try another place (where=, marker=), prompts that ask for that form, a "
              "supervised stage that shows it, or more room (sampling.max_new_tokens)",
              n, rlhf__answer_where_name(where),
              a->config->check.after ? " after the text of 'after'" : "");
}

static rlhf_status answer_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct answer *a = self;
    const struct answer_config *c = a->config;
    const rlhf_host *h = a->host;
    double correct = 0, found = 0, marked = 0;
    rlhf__checker_forget(&a->checker);
    for (uint32_t i = 0; i < in->n; i++) {
        struct rlhf__answer_verdict v;
        RLHF_TRY(rlhf__checker_judge(&a->checker, in->meta[i], in->response[i], &v));
        out->seq[i] = (float)((v.correct ? c->right : c->wrong) + c->format_weight * v.marked);
        out->verdict[i] = v.correct ? RLHF_VERDICT_RIGHT : RLHF_VERDICT_WRONG;
        correct += v.correct;
        found += v.found;
        marked += v.marked;
    }
    if (!in->n) return RLHF_OK;
    see_found(a, in->n, found);
    rlhf_metric_mean(h, "correct", correct / in->n, in->n);
    rlhf_metric_mean(h, "found", found / in->n, in->n);
    rlhf_metric_mean(h, "marked", marked / in->n, in->n);
    return RLHF_OK;
}

static rlhf_status answer_check_row(void *self, const rlhf_row_in *in) {
    struct answer *a = self;
    rlhf__checker_forget(&a->checker);
    return rlhf__checker_gold(&a->checker, in->meta);
}

static const char *answer_why_unused(const rlhf_option_in *in) {
    const struct answer_config *c = in->config;
    const char *key = in->key;
    if (strcmp(key, "format_weight") == 0 && c->check.where >= RLHF__WHERE_LAST_NUMBER)
        return "where names a place that needs no mark";
    return rlhf__answer_why_unused(&c->check, key);
}

static const rlhf_opt options[] = {
    RLHF_OPT_TABLE(struct answer_config, check, rlhf__answer_opts, RLHF__N_ANSWER_OPTIONS),
    RLHF_OPT_F64(struct answer_config, right, 1, -1000, 1000, "reward of a right answer"),
    RLHF_OPT_F64(struct answer_config, wrong, 0, -1000, 1000, "reward of a wrong or missing one"),
    RLHF_OPT_F64(struct answer_config, format_weight, 0, -1000, 1000,
                 "added to that reward, right or wrong, when the answer is after the marker, in "
                 "\\boxed{} or after ####"),
};
static const rlhf_reward_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_REWARD_FUNCTION,
    .score = answer_score,
    .check_row = answer_check_row,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.rlhf-host.answer",
    .version = RLHF_SDK_VERSION,
    .summary = "whether a response's answer is the one of its data row, by number or text",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct answer_config, options),
    .create = answer_create,
    .destroy = answer_destroy,
    .ops = &ops,
    .why_unused = answer_why_unused,
};
RLHF_DEFINE_PLUGIN(plugin)
