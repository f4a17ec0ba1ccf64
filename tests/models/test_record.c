// test_record.c: decoding on a backend that can record its calls. Sampling gives the same tokens as
// on other backends, and decoding follows the rules of `record`.
#include "decoders.h"
#include "recorder.h"
#include "rollout.h"

#include <string.h>

static const struct kind {
    const char *plugin;
    const struct setting *settings;
} kinds[] = {{"gpt2", tiny_gpt2},
             {"qwen3", tiny_qwen3},
             {"mistral", tiny_window},
             {"lfm2", biased_lfm2},
             {"qwen3_5_text", tiny_qwen3_5}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

// Opens a tiny model on the table `c`.
static struct model open_on(const struct kind *k, const rlhf_compute *c, int32_t dtype) {
    rlhf_model_open o = {.size = sizeof o, .dtype = dtype, .compute = c};
    struct model m = model_open(k->plugin, k->settings, &o);
    model_fill(&m, 0.3);
    return m;
}

struct shape {
    int32_t dtype, keep;
    rlhf_dist dist, logp_dist;
};

static const struct shape shapes[] = {
    {RLHF_F32, 0, RLHF_DIST_WHOLE, RLHF_DIST_WHOLE},
    {RLHF_BF16, 0, RLHF_DIST(1.3, 0.9, 20, 0), RLHF_DIST(1.3, 0.9, 20, 0)},
    {RLHF_BF16, 1, RLHF_DIST(1.0, 0.8, 0, 0), RLHF_DIST_WHOLE},
    {RLHF_F32, 1, RLHF_DIST(1.0, 1.0, 0, 1), RLHF_DIST_WHOLE}};

static void draws_the_same_as(const struct backend *b, const struct kind *kind) {
    if (!plugin_fits(b->compute, kind->plugin)) return;
    static const uint32_t slots[] = {1, 5, 9, 13};
    struct rollout *plain = test_calloc(1, sizeof *plain), *got = test_calloc(1, sizeof *got);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < sizeof slots / sizeof *slots; k++) {
            const struct shape *s = &shapes[i];
            struct recorder r;
            struct model m = open_on(kind, b->compute, s->dtype);
            rollout_init(plain, m.info.n_vocab, 9, 20);
            *got = *plain;
            rollout_run(plain, &m, slots[k], 1, &s->dist, &s->logp_dist, s->keep);
            model_close(&m);
            recorder_init(&r, b->compute);
            m = open_on(kind, &r.table, s->dtype);
            rollout_run(got, &m, slots[k], 1, &s->dist, &s->logp_dist, s->keep);
            assert_string_equal(r.broken, "");
            assert_memory_equal(got, plain, sizeof *got);
            assert_true(r.captures > 0);
            assert_true(r.replays > r.captures); // with few buckets
            model_close(&m);
            recorder_finish(&r);
        }
    test_free(plain);
    test_free(got);
}

static void draws_the_same(void **state) {
    for (int i = 0; i < N_KINDS; i++)
        draws_the_same_as(*state, &kinds[i]);
}

enum { ROWS = 11, FILL = ROWS, STEPS = 12, LEN = 24 };

// A prompt is stored silently in slot FILL, and ROWS rows continue it. Then each row samples STEPS
// tokens. Every step has all rows, except the third step, which has one row.
static void shared_prompt(struct model *m, int32_t ids[ROWS][STEPS], float logp[ROWS][STEPS]) {
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    const int32_t fill[] = {5, 3, 8, 1, 7, 2};
    int32_t slot[ROWS], start[ROWS], offset[ROWS + 1], prefix[ROWS], next[ROWS], in[ROWS];
    uint64_t counter[ROWS];
    uint8_t silent[ROWS] = {1};
    float lp[ROWS];
    rlhf_gen *g = NULL;
    must(m, m->ops->gen_open(m->self, ROWS + 1, LEN, &g));
    rlhf_gen_step s = {.size = sizeof s, .n = 1, .slot = slot, .start = start, .ids = fill};
    s.offset = offset;
    s.dist = &dist;
    s.logp_dist = &dist;
    s.seed = 4;
    s.stream = 9;
    s.counter = counter;
    s.next = next;
    s.logp = lp;
    s.prefix = prefix;
    s.silent = silent;
    slot[0] = FILL;
    prefix[0] = -1;
    start[0] = offset[0] = 0;
    offset[1] = 6;
    must(m, m->ops->gen_step(m->self, g, &s));
    silent[0] = 0;
    s.ids = in;
    int32_t made[ROWS] = {0};
    for (int step = 0; step < STEPS; step++) {
        s.n = 0;
        for (int i = 0; i < ROWS; i++) {
            if (step == 2 && i != 4) continue;
            slot[s.n] = i;
            start[s.n] = made[i];
            prefix[s.n] = FILL;
            in[s.n] = made[i] ? ids[i][made[i] - 1] : 6;
            counter[s.n] = (uint64_t)(100 * i + made[i]);
            offset[s.n + 1] = offset[s.n] + 1;
            s.n++;
        }
        must(m, m->ops->gen_step(m->self, g, &s));
        for (uint32_t k = 0; k < s.n; k++) {
            const int32_t i = slot[k];
            ids[i][made[i]] = next[k];
            logp[i][made[i]++] = lp[k];
        }
    }
    m->ops->gen_close(m->self, g);
}

static void shares_prompts_of(const struct backend *b, const struct kind *kind) {
    if (!plugin_fits(b->compute, kind->plugin)) return;
    for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
        int32_t ids[2][ROWS][STEPS] = {0};
        float logp[2][ROWS][STEPS] = {0};
        struct recorder r;
        struct model m = open_on(kind, b->compute, dtype);
        shared_prompt(&m, ids[0], logp[0]);
        model_close(&m);
        recorder_init(&r, b->compute);
        m = open_on(kind, &r.table, dtype);
        shared_prompt(&m, ids[1], logp[1]);
        assert_string_equal(r.broken, "");
        assert_memory_equal(ids[0], ids[1], sizeof ids[0]);
        assert_memory_equal(logp[0], logp[1], sizeof logp[0]);
        assert_int_equal(r.runs, 2); // one for 16 rows, and one for 8 rows to hold the single row
        assert_int_equal(r.replays, STEPS - 3);
        // A second session has separate memory. So it does not replay recordings of the first
        // session.
        shared_prompt(&m, ids[1], logp[1]);
        assert_memory_equal(ids[0], ids[1], sizeof ids[0]);
        assert_string_equal(r.broken, "");
        model_close(&m);
        recorder_finish(&r);
    }
}

static void shares_prompts(void **state) {
    for (int i = 0; i < N_KINDS; i++)
        shares_prompts_of(*state, &kinds[i]);
}

// One upload and one download per step.
static void a_step_waits_once(void **state) {
    const struct backend *b = *state;
    int32_t ids[ROWS][STEPS];
    float logp[ROWS][STEPS];
    struct recorder r;
    recorder_init(&r, b->compute);
    struct model m = open_on(&kinds[0], &r.table, RLHF_F32);
    r.downloads = r.uploads = r.waits = 0;
    shared_prompt(&m, ids, logp);
    assert_int_equal(r.uploads, STEPS + 1);
    assert_int_equal(r.downloads, STEPS);
    assert_int_equal(r.waits, 0);
    model_close(&m);
    recorder_finish(&r);
}

// Compares the emulated GPU with its recordings against the same table without recordings.
static void on_the_emulated_gpu(void **state) {
    (void)state;
    struct backend b = backend_open("cuda_emu", 1, 0);
    if (!b.compute || !RLHF_COMPUTE_HAS(b.compute, record)) skip();
    rlhf_compute plain = *b.compute;
    plain.record = NULL;
    int32_t ids[2][ROWS][STEPS] = {0};
    float logp[2][ROWS][STEPS] = {0};
    const rlhf_compute *table[] = {&plain, b.compute};
    for (int i = 0; i < 2; i++) {
        struct model m = open_on(&kinds[0], table[i], RLHF_BF16);
        shared_prompt(&m, ids[i], logp[i]);
        model_close(&m);
    }
    assert_memory_equal(ids[0], ids[1], sizeof ids[0]);
    assert_memory_equal(logp[0], logp[1], sizeof logp[0]);
    backend_close(&b);
}

static int setup(void **state) {
    static struct backend b;
    b = backend_open("cpu", 2, 0);
    if (!b.compute) return -1;
    *state = &b;
    return 0;
}

static int teardown(void **state) {
    backend_close(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_the_same), cmocka_unit_test(shares_prompts),
        cmocka_unit_test(a_step_waits_once), cmocka_unit_test(on_the_emulated_gpu)};
    return cmocka_run_group_tests_name("models: recorded decoding", tests, setup, teardown);
}
