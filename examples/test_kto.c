// test_kto.c: the loss, the reference point and the derivative against numbers of TRL's KTO trainer
// (in float64), finite differences, and the split into microbatches: test_kto path/to/kto.so
#include <rlhf/algo.h>
#include <rlhf/test.h>

enum { N = 8, TOTAL = 32, OWN = 4, CASES = 4 };

static struct rlhf_test_host host;

// Four prompts, each with a completion of its own and one of another row.
static const int32_t offset[N + 1] = {0, 4, 7, 10, 15, 20, 23, 27, 32};
static const int32_t prompt_len[N] = {2, 2, 1, 1, 2, 2, 2, 2};
static const int32_t label[N] = {1, -1, 0, -1, 1, -1, 0, -1};
static const int32_t group[N] = {0, 0, 1, 1, 2, 2, 3, 3};
static const float ref[TOTAL] = {0,  0,  -1.25, -2.5,  0,  0, -3,    0,      -0.75, -1.5, 0,
                                 -2, -1, -0.5,  -2.25, 0,  0, -1.75, -0.125, -3.5,  0,    0,
                                 -2, 0,  0,     -0.25, -1, 0, 0,     -1,     -1.5,  -2};
static const float logp[TOTAL] = {0,    0,  -1,    -2,    0,      0, -2.5,  0,     -0.5, -2.25, 0,
                                  -1.5, -1, -0.25, -2,    0,      0, -1.25, -0.25, -3,   0,     0,
                                  -2.5, 0,  0,     -0.75, -0.875, 0, 0,     -0.5,  -1,   -1.75};
// Where the policy is below the reference on other rows' completions: z is 0.
static const float logp_below[TOTAL] = {
    0, 0,     -1,    -2, 0, 0, -3.5, 0, -0.5, -2.25, 0,      -2.5, -1, -0.75, -2.5, 0,
    0, -1.25, -0.25, -3, 0, 0, -2.5, 0, 0,    -0.75, -0.875, 0,    0,  -1.5,  -2,   -2.75};
// beta, desirable_weight, undesirable_weight; the last case is of logp_below.
static const double config[CASES][3] = {{0.1, 1, 1}, {0.5, 1.5, 0.75}, {5, 1, 0}, {0.3, 1, 2}};
// What TRL 1.16 computes: the loss, z, and the derivative at a token of each row's own completion.
static const double want[CASES][2 + OWN] = {
    {0.484385721185283, 0.5625, -0.00624945071577866, 0.00623239397510781, -0.00624847436941208,
     0.00623628718139252},
    {0.493186949593407, 0.5625, -0.0467721538604439, 0.0218586141818466, -0.0465900578446529,
     0.0221957611418168},
    {0.113673453339618, 0.5625, -0.252770614420723, 0, -0.179074254518902, 0},
    {0.686921230596002, 0, -0.0185146833049541, 0.0372898510016314, -0.0184306754956451,
     0.0373815974905279}};

static const rlhf_plugin *plugin;
static double options[8]; // the plugin's config
static float policy[TOTAL], d_logp[TOTAL], unused[TOTAL];
static uint8_t use[N];

// Rows from to to - 1 without those that are masked, as the host asks for them.
static double loss_of(const rlhf_algo_ops *ops, void *self, uint32_t from, uint32_t to) {
    int32_t own[N + 1] = {0}, prompt[N], labels[N], groups[N];
    float x[TOTAL], f[TOTAL], d[TOTAL] = {0};
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++) {
        if (use[i] == RLHF_ROW_MASKED) continue;
        const size_t len = (size_t)(offset[i + 1] - offset[i]) * sizeof *x;
        memcpy(x + own[n], policy + offset[i], len);
        memcpy(f + own[n], ref + offset[i], len);
        own[n + 1] = own[n] + offset[i + 1] - offset[i];
        prompt[n] = prompt_len[i];
        labels[n] = label[i];
        groups[n++] = group[i];
    }
    const rlhf_heads heads = {.size = sizeof heads, .logp = x};
    rlhf_heads slopes = {.size = sizeof slopes, .logp = d};
    const rlhf_loss_in in = {.size = sizeof in,
                             .n = n,
                             .total = (uint32_t)own[n],
                             .batch_sequences = N,
                             .offset = own,
                             .prompt_len = prompt,
                             .group = groups,
                             .label = labels,
                             .heads = &heads,
                             .logp_ref = f};
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &slopes};
    RLHF_TEST_CHECK(&host, ops->loss(self, &in, &out) == RLHF_OK);
    n = 0;
    for (uint32_t i = from; i < to; i++)
        if (use[i] != RLHF_ROW_MASKED) {
            memcpy(d_logp + offset[i], d + own[n], (size_t)(offset[i + 1] - offset[i]) * sizeof *d);
            n++;
        }
    return out.loss;
}

static void look(const rlhf_algo_ops *ops, void *self) {
    const rlhf_rollout batch = {.size = sizeof batch,
                                .n = N,
                                .total = TOTAL,
                                .offset = offset,
                                .prompt_len = prompt_len,
                                .group = group,
                                .label = label,
                                .logp_old = policy,
                                .logp_ref = ref,
                                .advantage = unused,
                                .returns = unused,
                                .use = use};
    RLHF_TEST_CHECK(&host, ops->advantages(self, &batch) == RLHF_OK);
    for (int i = 0; i < N; i++)
        RLHF_TEST_CHECK(&host, use[i] == (label[i] < 0 ? RLHF_ROW_MASKED : RLHF_ROW_TRAINS));
}

// The derivative by differences of the loss; z stays what it was.
static void check_slopes(const rlhf_algo_ops *ops, void *self) {
    float given[TOTAL];
    memcpy(given, d_logp, sizeof given);
    for (int i = 0; i < N; i++)
        for (int32_t t = offset[i]; label[i] >= 0 && t < offset[i + 1]; t++) {
            const float was = policy[t], step = 0x1p-8f;
            policy[t] = was + step;
            const double up = loss_of(ops, self, 0, N);
            policy[t] = was - step;
            const double down = loss_of(ops, self, 0, N);
            policy[t] = was;
            RLHF_TEST_NEAR(&host, (double)given[t], (up - down) / (2 * (double)step), 2e-5);
        }
}

// A loss and its parts, as TRL has them.
static void check_case(const rlhf_algo_ops *ops, void *self, const double *w) {
    double z = -1, parts = 0;
    int row = 0;
    memset(d_logp, 0, sizeof d_logp);
    look(ops, self);
    const double whole = loss_of(ops, self, 0, N);
    RLHF_TEST_NEAR(&host, whole, w[0], 1e-12);
    for (int i = 0; i < N; i++) {
        if (label[i] < 0) continue;
        for (int32_t t = offset[i]; t < offset[i + 1]; t++)
            RLHF_TEST_NEAR(&host, (double)d_logp[t], t < offset[i] + prompt_len[i] ? 0 : w[2 + row],
                           1e-7);
        row++;
    }
    check_slopes(ops, self);
    RLHF_TEST_CHECK(&host, ops->phase_end(self, 0) == RLHF_OK);
    RLHF_TEST_CHECK(&host, rlhf_test_metric(&host, "kto/kl", &z));
    RLHF_TEST_NEAR(&host, z, w[1], 1e-12);
    look(ops, self);
    for (uint32_t i = 0; i < N; i += 2) // a group at a time
        parts += loss_of(ops, self, i, i + 2);
    RLHF_TEST_NEAR(&host, parts, whole, 1e-12);
    RLHF_TEST_CHECK(&host, ops->phase_end(self, 1) == RLHF_OK);
}

static rlhf_status begin_and_end(struct rlhf_test_host *t, void *arg) {
    void *self = NULL;
    (void)arg;
    rlhf_status st = plugin->create(&t->table, options, &self);
    plugin->destroy(self);
    return st;
}

int main(int argc, char **argv) {
    static const char *const key[] = {"beta", "desirable_weight", "undesirable_weight"};
    plugin = argc == 2 ? rlhf_test_open(argv[1], 0) : NULL;
    if (!plugin) return 2;
    rlhf_test_init(&host, 1);
    if (!RLHF_TEST_CHECK(&host, plugin->config_size <= sizeof options)) return rlhf_test_end(&host);
    for (int k = 0; k < CASES; k++) {
        void *self = NULL;
        char value[32];
        rlhf_test_config(plugin, options);
        for (int i = 0; i < 3; i++) {
            snprintf(value, sizeof value, "%g", config[k][i]);
            RLHF_TEST_CHECK(&host, rlhf_test_set(plugin, options, key[i], value));
        }
        memcpy(policy, k < CASES - 1 ? logp : logp_below, sizeof policy);
        if (!RLHF_TEST_CHECK(&host, plugin->create(&host.table, options, &self) == RLHF_OK)) break;
        check_case(plugin->ops, self, want[k]);
        plugin->destroy(self);
    }
    RLHF_TEST_CHECK(&host, rlhf_test_alloc_sweep(&host, begin_and_end, NULL) >= 0);
    return rlhf_test_end(&host);
}
