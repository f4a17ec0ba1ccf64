// test_reward_properties.c: properties of every shipped reward, on random bytes. Rewards are
// finite. They are the same for a text alone and in any batch, in any order, twice in a row, and
// from two threads if the plugin allows it.
#include "rewards/fixture.h"

#include <math.h>

static const char *const plugins[][2] = {
    {"imdb.so", ""},
    {"imdb.so", "output=logit,text=response,direction=neg"},
    {"period_count.so", "cap=3,per_token=true"},
    {"ngram3.so", ""},
    {"ngram3.so", "unit=tokens,n=2"},
    {"format.so", ""},
    {"format.so", "opened=true,tags=think_once"},
    {"format.so", "pattern=(?:a|b| |.)+$"},
    {"length.so", "max_len=30,cache=20"},
    {"lm_judge.so", "model=m,ask=Is it kind?"},
    {"length.so", "shape=band,min_len=10,max_len=20,margin=9"},
};
enum { N_PLUGINS = sizeof plugins / sizeof *plugins, N_TEXTS = 24 };

static struct reward r;
static struct rlhf_test_language_model model;

// The log-prob of a token, by the bytes before it.
static float opinion(const void *context, const int32_t *before, int32_t n, int32_t id) {
    uint32_t h = (uint32_t)id;
    (void)context;
    for (int32_t t = 0; t < n; t++)
        h = (h ^ (uint32_t)before[t]) * 16777619u;
    return -1.0f - (float)(h >> 16) / 65536.0f;
}
static uint8_t bytes[N_TEXTS][2][48];

// Makes random texts: of plain letters, of bytes of the full range, or empty. Some consist only of
// invalid UTF-8.
static void random_texts(struct texts *t, uint64_t seed) {
    rlhf_rng g = {seed, rlhf_rng_stream("texts"), 0};
    memset(t, 0, sizeof *t);
    for (int i = 0; i < N_TEXTS; i++) {
        size_t len[2];
        for (int part = 0; part < 2; part++) {
            len[part] = (size_t)rlhf_rng_below(&g, 48);
            for (size_t k = 0; k < len[part]; k++)
                bytes[i][part][k] =
                    (uint8_t)(i % 2 ? rlhf_rng_below(&g, 256)
                                    : (uint64_t) "ab .\xc3\xff\n."[rlhf_rng_below(&g, 8)]);
        }
        texts_add(t, bytes[i][0], len[0] ? len[0] : 1, bytes[i][1], i % 7 ? len[1] : 0);
    }
}

static void batch_split_and_order(void **state) {
    (void)state;
    static struct texts t, turned;
    for (int p = 0; p < N_PLUGINS; p++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            float all[N_TEXTS];
            random_texts(&t, seed);
            reward_open(&r, plugins[p][0], plugins[p][1]);
            assert_int_equal(texts_score(&r, &t, 0, t.n), RLHF_OK);
            memcpy(all, t.seq, sizeof all);
            for (uint32_t i = 0; i < t.n; i++)
                assert_true(isfinite(all[i]));
            for (uint32_t i = 0; i < t.n; i++)
                assert_int_equal(texts_score(&r, &t, i, i + 1), RLHF_OK);
            assert_memory_equal(t.seq, all, sizeof all); // alone
            memset(&turned, 0, sizeof turned);
            for (uint32_t i = t.n; i-- > 0;)
                texts_add(&turned, t.prompt[i].ptr, t.prompt[i].len, t.response[i].ptr,
                          t.response[i].len);
            assert_int_equal(texts_score(&r, &turned, 0, t.n), RLHF_OK);
            for (uint32_t i = 0; i < t.n; i++)
                assert_true(turned.seq[t.n - 1 - i] == all[i]);   // in reverse order
            assert_int_equal(texts_score(&r, &t, 0, 0), RLHF_OK); // nothing to score
            reward_close(&r);
        }
}

// Descriptors have unique ids, help for each option, and defaults inside their range.
static void descriptors(void **state) {
    (void)state;
    for (int p = 0; p < N_PLUGINS; p++) {
        reward_open(&r, plugins[p][0], plugins[p][1]);
        const rlhf_plugin *d = r.plugin;
        assert_int_equal(d->kind, RLHF_KIND_REWARD);
        assert_int_equal(strncmp(d->id, "org.rlhf-host.", 14), 0);
        rlhf_opt o;
        for (uint32_t i = 0; rlhf_test_opt(d, i, &o); i++) {
            assert_true(strlen(o.help) > 10);
            if (o.flags & RLHF_OPT_REQUIRED) continue; // without a default
            if (o.type == RLHF_T_I64) assert_in_range(o.i_def, o.i_min, o.i_max);
            if (o.type == RLHF_T_F64) assert_true(o.f_def >= o.f_min && o.f_def <= o.f_max);
        }
        reward_close(&r);
    }
}

int main(void) {
    rlhf_test_language_model_init(&model);
    model.logp = opinion;
    r.language_model = &model.table;
    const struct CMUnitTest tests[] = {cmocka_unit_test(batch_split_and_order),
                                       cmocka_unit_test(descriptors)};
    return cmocka_run_group_tests_name("rewards/properties", tests, NULL, NULL);
}
