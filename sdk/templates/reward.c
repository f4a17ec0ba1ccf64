// reward.c: the smallest useful reward plugin. It counts how often a word occurs in a response.
//
// Things to change: the option struct and its table, score(), and the id.
#include <rlhf/reward.h>

#include <string.h>

// Filled by the host from the table below before score() is called.
struct config {
    const char *word;
    double bonus;
};

static int64_t count(rlhf_str text, const char *word) {
    uint64_t len = strlen(word);
    int64_t found = 0;
    for (uint64_t i = 0; len > 0 && i + len <= text.len; i++)
        found += memcmp(text.ptr + i, word, (size_t)len) == 0;
    return found;
}

// A text is a pointer and a length. It may contain any bytes and may be empty. Writes one number
// for each sequence.
static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct config *c = self; // without create() the instance is the config
    for (uint32_t i = 0; i < in->n; i++)
        out->seq[i] = (float)(c->bonus * (double)count(in->response[i], c->word));
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_STR(struct config, word, "good", "what to look for, byte for byte"),
    RLHF_OPT_F64(struct config, bonus, 1, -100, 100, "reward of each occurrence"),
};
static const rlhf_reward_ops ops = {
    .size = sizeof ops,
    .score = score,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.example.my_reward", // reverse DNS; must be unique
    .version = "1.0.0",
    .summary = "counts a word",
    RLHF_OPTIONS(struct config, options),
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
