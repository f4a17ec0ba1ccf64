// length.c: a reward for the length of a response. There are three functions of the number of
// tokens (the stop token included):
//
//   overlong: DAPO's soft punishment (Yu et al. 2025, 2503.14476, eq. 13)
//   cosine: the reward of Yeo et al. 2025 (2502.03373, appendix C.1); it depends on whether the
//       answer is right, which is decided as in answer.so
//   band: a target range, our own function
#include "answer/checker.h"

#include <rlhf/exact.h>
#include <rlhf/reward.h>

#include <math.h>

enum { SHAPE_OVERLONG = 0, SHAPE_COSINE = 1, SHAPE_BAND = 2 };

struct length_config {
    struct rlhf__answer_options check;
    int64_t max_len, cache, min_len, margin;
    double right_short, right_long, wrong_short, wrong_long, exceed;
    int32_t shape;
};

struct length {
    const rlhf_host *host;
    const struct length_config *config;
    struct rlhf__checker checker; // used by cosine
};

static void length_destroy(void *self) {
    struct length *l = self;
    if (!l) return;
    rlhf__checker_finish(&l->checker);
    l->host->free(l->host, l);
}

static rlhf_status length_open(struct length *l) {
    const struct length_config *c = l->config;
    const rlhf_host *h = l->host;
    if (c->shape == SHAPE_OVERLONG && c->cache > c->max_len)
        return rlhf_failf(h, RLHF_E_INVALID, "cache is %lld, more than max_len, %lld",
                          (long long)c->cache, (long long)c->max_len);
    if (c->shape == SHAPE_BAND && c->min_len > c->max_len)
        return rlhf_failf(h, RLHF_E_INVALID, "min_len is %lld, more than max_len, %lld",
                          (long long)c->min_len, (long long)c->max_len);
    return c->shape == SHAPE_COSINE ? rlhf__checker_init(&l->checker, h, &c->check) : RLHF_OK;
}

static rlhf_status length_create(const rlhf_host *host, const void *config, void **self) {
    struct length *l = host->alloc(host, sizeof *l);
    if (!l) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    l->host = host;
    l->config = config;
    const rlhf_status st = length_open(l);
    if (st < 0) {
        length_destroy(l);
        return st;
    }
    *self = l;
    return RLHF_OK;
}

// 0 up to max_len - cache tokens, then a linear fall to -1 at max_len, and -1 beyond.
static double overlong(const struct length_config *c, int64_t n) {
    const int64_t soft = c->max_len - c->cache;
    if (n <= soft) return 0;
    return n <= c->max_len ? (double)(soft - n) / (double)c->cache : -1;
}

// Returns the cosine reward. It changes along half a cosine, from the reward at length 0 to the
// reward at max_len tokens.
static double cosine(const struct length_config *c, int64_t n, int right) {
    const double share = fmin((double)n / (double)c->max_len, 1.0);
    const double at_once = right ? c->right_short : c->wrong_short;
    const double at_last = right ? c->right_long : c->wrong_long;
    if (c->exceed != 0 && n >= c->max_len) return c->exceed;
    return at_last + 0.5 * (at_once - at_last) * (1.0 + rlhf_cos(share * 3.14159265358979323846));
}

// Returns 1 inside the range. Outside, the reward falls to 0 over `margin` tokens.
static double band(const struct length_config *c, int64_t n) {
    const int64_t off = n < c->min_len ? c->min_len - n : n > c->max_len ? n - c->max_len : 0;
    return off == 0 ? 1 : off < c->margin ? 1 - (double)off / (double)c->margin : 0;
}

static rlhf_status score_one(struct length *l, const rlhf_reward_in *in, uint32_t i,
                             const rlhf_reward_out *out) {
    const struct length_config *c = l->config;
    const int64_t n = (int64_t)in->offset[i + 1] - in->offset[i] - in->prompt_len[i];
    struct rlhf__answer_verdict v;
    if (c->shape == SHAPE_COSINE) {
        RLHF_TRY(rlhf__checker_judge(&l->checker, in->meta[i], in->response[i], &v));
        out->verdict[i] = v.correct ? RLHF_VERDICT_RIGHT : RLHF_VERDICT_WRONG;
        out->seq[i] = (float)cosine(c, n, v.correct);
    } else {
        out->seq[i] = (float)(c->shape == SHAPE_BAND ? band(c, n) : overlong(c, n));
    }
    return RLHF_OK;
}

// 1 if the shape lowers the reward at this length.
static int is_outside(const struct length_config *c, int64_t n) {
    if (c->shape == SHAPE_BAND) return n < c->min_len || n > c->max_len;
    return c->shape == SHAPE_COSINE ? n >= c->max_len : n > c->max_len - c->cache;
}

static rlhf_status length_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct length *l = self;
    double outside = 0;
    rlhf__checker_forget(&l->checker);
    for (uint32_t i = 0; i < in->n; i++) {
        RLHF_TRY(score_one(l, in, i, out));
        outside +=
            is_outside(l->config, (int64_t)in->offset[i + 1] - in->offset[i] - in->prompt_len[i]);
    }
    if (in->n) rlhf_metric_mean(l->host, "outside", outside / in->n, in->n);
    return RLHF_OK;
}

static rlhf_status length_check_row(void *self, const rlhf_row_in *in) {
    struct length *l = self;
    if (l->config->shape != SHAPE_COSINE) return RLHF_OK;
    rlhf__checker_forget(&l->checker);
    return rlhf__checker_gold(&l->checker, in->meta);
}

static const char *const shape_names[] = {"overlong", "cosine", "band", NULL};
static const rlhf_opt options[] = {
    RLHF_OPT_ENUM(
        struct length_config, shape, SHAPE_OVERLONG, shape_names,
        "overlong: 0, and down to -1 over the last tokens; cosine: right answers get more "
        "when short, wrong ones when long; band: 1 from min_len to max_len"),
    {.key = "max_len",
     .help =
         "overlong and cosine: the longest that a response may be, in tokens; band: the longest "
         "with the full reward",
     .type = RLHF_T_I64,
     .flags = RLHF_OPT_REQUIRED,
     .offset = offsetof(struct length_config, max_len),
     .i_min = 1,
     .i_max = 1 << 30},
    RLHF_OPT_I64(struct length_config, cache, 0, 0, 1 << 30,
                 "overlong: over how many tokens before max_len it goes down to -1; 0: at once"),
    RLHF_OPT_I64(struct length_config, min_len, 0, 0, 1 << 30,
                 "band: the shortest length with the full reward"),
    RLHF_OPT_I64(struct length_config, margin, 0, 0, 1 << 30,
                 "band: over how many tokens outside it goes down to 0; 0: at once"),
    RLHF_OPT_F64(struct length_config, right_short, 1, -1000, 1000,
                 "cosine: reward of a right answer at length 0"),
    RLHF_OPT_F64(struct length_config, right_long, 0.5, -1000, 1000,
                 "cosine: reward of a right answer at max_len and beyond"),
    RLHF_OPT_F64(struct length_config, wrong_short, -1, -1000, 1000,
                 "cosine: reward of a wrong answer at length 0"),
    RLHF_OPT_F64(struct length_config, wrong_long, -0.5, -1000, 1000,
                 "cosine: reward of a wrong answer at max_len and beyond"),
    RLHF_OPT_F64(struct length_config, exceed, 0, -1000, 1000,
                 "cosine: another reward for responses of max_len tokens or more; 0: as the cosine "
                 "ends"),
    RLHF_OPT_TABLE(struct length_config, check, rlhf__answer_opts, RLHF__N_ANSWER_OPTIONS),
};

// Returns why the shape does not use the option `key`, or NULL if it does. `of` lists options, each
// with the index of the only shape that uses it. The options that decide whether an answer is right
// are not in the list; only cosine uses them.
static const char *length_why_unused(const rlhf_option_in *in) {
    static const char *const of[][2] = {
        {"cache", "0"},      {"min_len", "2"},     {"margin", "2"},     {"right_short", "1"},
        {"right_long", "1"}, {"wrong_short", "1"}, {"wrong_long", "1"}, {"exceed", "1"}};
    static const char *const why[] = {"shape is overlong", "shape is cosine", "shape is band"};
    const struct length_config *c = in->config;
    const char *key = in->key;
    if (strcmp(key, "shape") == 0 || strcmp(key, "max_len") == 0) return NULL;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (strcmp(key, of[i][0]) == 0) return *of[i][1] - '0' == c->shape ? NULL : why[c->shape];
    return c->shape == SHAPE_COSINE ? rlhf__answer_why_unused(&c->check, key) : why[c->shape];
}

static const rlhf_reward_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_REWARD_FUNCTION,
    .score = length_score,
    .check_row = length_check_row,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.rlhf-host.length",
    .version = RLHF_SDK_VERSION,
    .summary = "length in tokens: DAPO's overlong shaping, the cosine reward, or a target band",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct length_config, options),
    .create = length_create,
    .destroy = length_destroy,
    .ops = &ops,
    .why_unused = length_why_unused,
};
RLHF_DEFINE_PLUGIN(plugin)
