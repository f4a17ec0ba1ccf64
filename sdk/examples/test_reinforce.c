// test_reinforce.c: checks advantages, the derivative (by finite differences), and the split into
// microbatches. Needs only <rlhf/test.h>.
// Usage: test_reinforce path/to/reinforce.so
#include <rlhf/algo.h>
#include <rlhf/test.h>

#include <math.h>

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                     \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

// Two rows: prompts of 1 token, responses of 2 and 3 tokens.
static const int32_t offset[] = {0, 3, 7}, prompt_len[] = {1, 1};
static const float score[] = {1, 0};
static float advantage[7], returns[7];

// Returns the loss of rows [from, to) of the minibatch, and adds their derivatives to d_logp [7].
static double loss(const rlhf_algo_ops *ops, uint32_t from, uint32_t to, float *logp,
                   float *d_logp) {
    const int32_t base = offset[from];
    int32_t own[3];
    for (uint32_t i = from; i <= to; i++)
        own[i - from] = offset[i] - base;
    const rlhf_head_values heads = {.size = sizeof heads, .logp = logp + base};
    rlhf_head_gradients grad = {.size = sizeof grad, .logp = d_logp + base};
    const rlhf_loss_in in = {.size = sizeof in,
                             .n = to - from,
                             .total = (uint32_t)own[to - from],
                             .batch_sequences = 2,
                             .batch_tokens = 5,
                             .offset = own,
                             .prompt_len = prompt_len + from,
                             .heads = &heads,
                             .advantage = advantage + base};
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &grad};
    return ops->loss(NULL, &in, &out) == RLHF_OK ? out.loss : NAN;
}

int main(int argc, char **argv) {
    const rlhf_plugin *p = argc == 2 ? rlhf_test_open(argv[1], 0) : NULL;
    CHECK(p && p->kind == RLHF_KIND_ALGO);
    const rlhf_algo_ops *ops = (const rlhf_algo_ops *)p->ops;
    const rlhf_rollout batch = {.size = sizeof batch,
                                .n = 2,
                                .total = 7,
                                .offset = offset,
                                .prompt_len = prompt_len,
                                .score = score};
    rlhf_advantages out = {.size = sizeof out, .advantage = advantage, .returns = returns};
    CHECK(ops->advantages(NULL, &batch, &out) == RLHF_OK);
    const float want[7] = {0, 0.5f, 0.5f, 0, -0.5f, -0.5f, -0.5f};
    CHECK(memcmp(advantage, want, sizeof want) == 0);

    float logp[7] = {0, -1, -2, 0, -1, -0.5f, -3}, whole[7] = {0}, parts[7] = {0}, none[7];
    const double l = loss(ops, 0, 2, logp, whole);
    CHECK(fabs(l - (0.5 * 3 - 0.5 * 4.5) / 5) < 1e-6);
    CHECK(fabs(loss(ops, 0, 1, logp, parts) + loss(ops, 1, 2, logp, parts) - l) < 1e-12);
    CHECK(memcmp(whole, parts, sizeof whole) == 0);
    for (int t = 0; t < 7; t++) {
        const float before = logp[t], step = 0x1p-10f;
        logp[t] = before + step;
        const double up = loss(ops, 0, 2, logp, none);
        logp[t] = before - step;
        const double down = loss(ops, 0, 2, logp, none);
        logp[t] = before;
        CHECK(fabs((up - down) / (2 * (double)step) - (double)whole[t]) < 1e-5);
    }
    return 0;
}
