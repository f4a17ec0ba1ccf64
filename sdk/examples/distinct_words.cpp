// distinct_words.cpp: a reward in C++ (11 and later): the share of a response's words that occur
// for the first time. A repetitive text gets a lower reward.
//
// The tables are constexpr, so the compiler computes them and no constructor runs when the file is
// loaded. Their fields are set by position, because C++11 has no designated initializers. score()
// must not let exceptions escape.
#include <rlhf/log.h>
#include <rlhf/reward.h>

#include <cstddef>
#include <exception>
#include <string>
#include <unordered_set>

namespace {

struct Config {
    double factor;
    std::int64_t at_least;
};

std::size_t word_end(const std::string &text, std::size_t from) {
    while (from < text.size() && text[from] != ' ' && text[from] != '\n')
        from++;
    return from;
}

double share(const std::string &text, std::int64_t at_least) {
    std::unordered_set<std::string> seen;
    std::int64_t words = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = word_end(text, at);
        if (end > at) {
            words++;
            seen.insert(text.substr(at, end - at));
        }
        at = end + 1;
    }
    return words < at_least ? 0.0 : static_cast<double>(seen.size()) / static_cast<double>(words);
}

rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const Config *config = static_cast<const Config *>(self); // no create(): self is the config
    try {
        for (std::uint32_t i = 0; i < in->n; i++) {
            const rlhf_str r = in->response[i]; // ptr may be NULL where len is 0
            const std::string text(r.len ? r.ptr : "", static_cast<std::size_t>(r.len));
            out->seq[i] = static_cast<float>(config->factor * share(text, config->at_least));
        }
    } catch (const std::exception &) {
        return RLHF_E_NOMEM;
    }
    return RLHF_OK;
}

// key, help, type, flags, offset, reserved, i_def, i_min, i_max, f_def, f_min, f_max, s_def,
// choices, l_def, table, n_table: what RLHF_OPT_F64 and RLHF_OPT_I64 expand to.
constexpr rlhf_opt options[] = {
    {"factor", "what a response without a repetition is paid", RLHF_T_F64, 0,
     offsetof(Config, factor), 0, 0, 0, 0, 1.0, -1000.0, 1000.0, nullptr, nullptr, nullptr, nullptr,
     0},
    {"at_least", "words that a response has to have to be paid", RLHF_T_I64, 0,
     offsetof(Config, at_least), 0, 1, 1, 1000000, 0.0, 0.0, 0.0, nullptr, nullptr, nullptr,
     nullptr, 0},
};
const rlhf_reward_ops ops = {sizeof(rlhf_reward_ops), RLHF_REWARD_ROW_ALONE, score, nullptr};
// size, kind, id, version, summary, vendor, url, license, host_minor_min, flags, opts, n_opts,
// opt_stride, config_size, state_version, why_unused, create, destroy, save, load, ops, extension.
const rlhf_plugin plugin = {sizeof(rlhf_plugin),
                            RLHF_KIND_REWARD,
                            "org.example.distinct-words",
                            "1.0.0",
                            "the share of words that are said for the first time",
                            nullptr,
                            nullptr,
                            "Apache-2.0",
                            0,
                            0,
                            options,
                            sizeof options / sizeof *options,
                            sizeof *options,
                            sizeof(Config),
                            0,
                            nullptr,
                            nullptr,
                            nullptr,
                            nullptr,
                            nullptr,
                            &ops,
                            nullptr};

} // namespace

RLHF_DEFINE_PLUGIN(plugin)
