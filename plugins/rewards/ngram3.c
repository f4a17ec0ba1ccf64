// ngram3.c: the share of repeated n-grams in a response, 1 - distinct / all, with n = 3 by default.
//
// This is seq-rep-n of Welleck et al. 2020 ("Neural text generation with unlikelihood training",
// eq. 11): 0 if every n-gram occurs once, near 1 for a loop. It is positive, so it needs a negative
// weight to be a penalty: --reward ngram3.so:weight=-0.5. A response with fewer than n units scores
// 0. Words are separated by ASCII white space and compared byte by byte, so any bytes are valid.
// The metric completions/distinct_3 measures repetition across responses.
#include <rlhf/reward.h>

#include <string.h>

enum { UNIT_WORDS = 0, UNIT_TOKENS = 1 };

struct ngram_config {
    int64_t n;
    int32_t unit;
};

struct ngram {
    const rlhf_host *host;
    struct ngram_config config;
};

static rlhf_status ngram_create(const rlhf_host *host, const void *config, void **self) {
    struct ngram *g = host->alloc(host, sizeof *g);
    if (!g) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    g->host = host;
    g->config = *(const struct ngram_config *)config;
    *self = g;
    return RLHF_OK;
}

static void ngram_destroy(void *self) {
    struct ngram *g = self;
    if (g) g->host->free(g->host, g);
}

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Splits text into words and returns their number. If out is NULL, only counts them. out[k] borrows
// from text.
static uint64_t split_words(rlhf_str text, rlhf_str *out) {
    uint64_t count = 0, i = 0;
    while (i < text.len) {
        while (i < text.len && is_space(text.ptr[i]))
            i++;
        uint64_t begin = i;
        while (i < text.len && !is_space(text.ptr[i]))
            i++;
        if (i == begin) break;
        if (out) out[count] = (rlhf_str){text.ptr + begin, i - begin};
        count++;
    }
    return count;
}

static uint64_t hash_gram(const rlhf_str *unit, int64_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t k = 0; k < n; k++) {
        for (uint64_t i = 0; i < unit[k].len; i++)
            h = (h ^ (uint8_t)unit[k].ptr[i]) * 0x100000001b3u;
        h = (h ^ 0x100u) * 0x100000001b3u; // separates two units: no byte has this value
    }
    return h ^ (h >> 32);
}

static int same_gram(const rlhf_str *a, const rlhf_str *b, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        if (a[k].len != b[k].len || memcmp(a[k].ptr, b[k].ptr, (size_t)a[k].len) != 0) return 0;
    return 1;
}

// Counts the distinct n-grams in a text of `grams` n-grams, which begin at unit[0], unit[1], and so
// on. table[mask + 1] must be zeroed and have more than `grams` entries.
static uint64_t count_distinct(const rlhf_str *unit, uint64_t grams, int64_t n, uint64_t *table,
                               uint64_t mask) {
    uint64_t distinct = 0;
    for (uint64_t i = 0; i < grams; i++) {
        uint64_t at = hash_gram(unit + i, n) & mask;
        while (table[at] && !same_gram(unit + table[at] - 1, unit + i, n))
            at = (at + 1) & mask;
        if (table[at]) continue;
        table[at] = i + 1;
        distinct++;
    }
    return distinct;
}

// Stores the units of response i in unit[] and returns their number. If unit is NULL, only counts
// them.
static uint64_t take_units(const struct ngram *g, const rlhf_reward_in *in, uint32_t i,
                           rlhf_str *unit) {
    if (g->config.unit == UNIT_WORDS) return split_words(in->response[i], unit);
    const int32_t *ids = in->ids + in->offset[i] + in->prompt_len[i];
    uint64_t count = (uint64_t)(in->offset[i + 1] - in->offset[i] - in->prompt_len[i]);
    for (uint64_t k = 0; unit && k < count; k++)
        unit[k] = (rlhf_str){(const char *)(ids + k), sizeof *ids};
    return count;
}

static rlhf_status score_one(const struct ngram *g, const rlhf_reward_in *in, uint32_t i,
                             float *out) {
    const rlhf_host *h = g->host;
    uint64_t count = take_units(g, in, i, NULL), n = (uint64_t)g->config.n, mask = 1;
    *out = 0;
    if (count < n) return RLHF_OK;
    uint64_t grams = count - n + 1;
    while (mask < 2 * grams)
        mask = 2 * mask + 1;
    rlhf_str *unit = h->alloc(h, count * sizeof *unit + (mask + 1) * sizeof(uint64_t));
    if (!unit) return h->fail(h, RLHF_E_NOMEM, "out of memory");
    take_units(g, in, i, unit);
    uint64_t *table = (uint64_t *)(void *)(unit + count);
    uint64_t distinct = count_distinct(unit, grams, g->config.n, table, mask);
    *out = (float)(1.0 - (double)distinct / (double)grams);
    h->free(h, unit);
    return RLHF_OK;
}

static rlhf_status ngram_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    for (uint32_t i = 0; i < in->n; i++)
        RLHF_TRY(score_one(self, in, i, out->seq + i));
    return RLHF_OK;
}

static const char *const unit_names[] = {"words", "tokens", NULL};
static const rlhf_opt options[] = {
    RLHF_OPT_I64(struct ngram_config, n, 3, 1, 64, "length of the n-grams"),
    RLHF_OPT_ENUM(struct ngram_config, unit, UNIT_WORDS, unit_names,
                  "what an n-gram is made of: words between white space, or policy tokens"),
};
static const rlhf_reward_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_REWARD_FUNCTION,
    .score = ngram_score,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.rlhf-host.ngram3",
    .version = RLHF_SDK_VERSION,
    .summary = "share of repeated n-grams in the response, 0 to 1; a penalty with weight < 0",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct ngram_config, options),
    .create = ngram_create,
    .destroy = ngram_destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
