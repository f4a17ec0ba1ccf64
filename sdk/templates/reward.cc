// reward.cc: the smallest useful reward plugin, in C++20. It counts how often a word occurs in a
// response.
//
// The host is written in C, so no exception may leave a function: score() catches those of
// reward(). Things to change: the option struct and its table, reward(), and the id.
#include <rlhf/reward.h>

#include <exception>
#include <string_view>

namespace {

// Filled by the host from the table below before score() is called.
struct config {
    const char *word;
    double bonus;
};

struct state {
    const rlhf_host *host;
    const config *options; // outlive the instance
};

// A text is a pointer and a length. It may contain any bytes and may be empty.
std::string_view view(const rlhf_str &text) {
    return text.len ? std::string_view(text.ptr, text.len) : std::string_view();
}

double reward(const config &c, std::string_view response) {
    const std::string_view word = c.word;
    double found = 0;
    if (word.empty()) return 0;
    for (auto at = response.find(word); at != response.npos; at = response.find(word, at + 1))
        found++;
    return c.bonus * found;
}

// Writes one number for each sequence.
rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const auto *s = static_cast<const state *>(self);
    try {
        for (uint32_t i = 0; i < in->n; i++)
            out->seq[i] = static_cast<float>(reward(*s->options, view(in->response[i])));
        return RLHF_OK;
    } catch (const std::exception &e) {
        return s->host->fail(s->host, RLHF_E_INTERNAL, e.what());
    }
}

rlhf_status create(const rlhf_host *host, const void *options, void **self) {
    auto *s = static_cast<state *>(host->alloc(host, sizeof(state))); // zeroed
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->options = static_cast<const config *>(options);
    *self = s;
    return RLHF_OK;
}

void destroy(void *self) {
    auto *s = static_cast<state *>(self);
    if (s) s->host->free(s->host, s);
}

const rlhf_opt options[] = {
    RLHF_OPT_STR(config, word, "good", "what to look for, byte for byte"),
    RLHF_OPT_F64(config, bonus, 1, -100, 100, "reward of each occurrence"),
};
const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};
const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.example.my_reward", // reverse DNS; must be unique
    .version = "1.0.0",
    .summary = "counts a word",
    RLHF_OPTIONS(config, options),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};

} // namespace

RLHF_DEFINE_PLUGIN(plugin)
