// given_settings.h: flags of a command that set settings, such as --max-new for
// sampling.max_new_tokens. They join the command's --set assignments.
#ifndef RLHF_TOOLS_CMD_GIVEN_SETTINGS_H
#define RLHF_TOOLS_CMD_GIVEN_SETTINGS_H

#include "base/error.h"
#include "cmd/flags.h"

enum { RLHF__GIVEN_MAX = 12 };

// Zero-initialize; release with rlhf__given_finish.
struct rlhf__given_settings {
    char *own[RLHF__GIVEN_MAX];
    size_t n;
    struct rlhf__flag_list all; // the settings, then the assignments of --set, which win
};

// Add a setting, "PATH=VALUE". [main]
__attribute__((format(printf, 2, 3))) void rlhf__give(struct rlhf__given_settings *,
                                                      const char *format, ...);

// Make the list `all`. `set` may be NULL; its texts are borrowed. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__given_join(struct rlhf__given_settings *, const struct rlhf__flag_list *set,
                             struct rlhf__error *err);
void rlhf__given_finish(struct rlhf__given_settings *); // accepts a zeroed one [main]

// The flags --max-new, --temperature and --greedy of commands that sample with settings. 0 and NaN:
// not given.
struct rlhf__decoding_flags {
    int64_t max_new;
    double temperature;
    int32_t greedy;
};

#define RLHF__DECODING_DEFAULTS                                                                    \
    { 0, 0, 0, 0 }
#define RLHF__DECODING_FLAGS(T)                                                                    \
    RLHF__FLAG_I(T, "--max-new", decoding.max_new, "N", 1, RLHF__MAX_NEW_TOKENS,                   \
                 "longest response in new tokens [sampling.max_new_tokens]"),                      \
        RLHF__FLAG_F(T, "--temperature", decoding.temperature, "T", 1e-6, 100,                     \
                     "logits are divided by it [sampling.temperature]"),                           \
        RLHF__FLAG_SW(T, "--greedy", decoding.greedy, "always the most likely token")

// Add the settings that the flags set. Errors: RLHF_E_INVALID if flags contradict each other.
// [main]
rlhf_status rlhf__give_decoding(struct rlhf__given_settings *, const struct rlhf__decoding_flags *,
                                const char *command, struct rlhf__error *err);

#endif
