// dialogue_state.h: the state of a dialogue and what its commands change. Internal to dialogue*.c.
#ifndef RLHF_TOOLS_PROMPT_DIALOGUE_STATE_H
#define RLHF_TOOLS_PROMPT_DIALOGUE_STATE_H

#include "prompt/dialogue.h"
#include "prompt/dialogue_reward.h"

struct rlhf__dialogue {
    struct rlhf__dialogue_start at;
    struct rlhf__log *log;
    struct rlhf__model *model, *other;     // other: of /compare, or NULL
    char *name, *other_name;               // short names, owned
    char *reward_name;                     // as typed, owned; NULL: none
    struct rlhf__dialogue_reward *reward;  // NULL: none
    struct rlhf__response_rules *rules;    // --stop and --stop-id
    struct rlhf__answer_settings settings; // as changed by commands
    int64_t n;                             // texts for each line
    uint64_t number;                       // texts so far since the seed was set
    int32_t chat;                          // 1: lines are a user's turns
    int32_t quit;                          // 1: /quit was typed
    // The conversation of a chat model; texts owned.
    struct rlhf__messages turns;
    struct rlhf__ids prompt;    // of the last text
    struct rlhf__answer answer; // the last text
    float *under;               // [answer.n] its log-probs under `other`; NULL: not known
    volatile sig_atomic_t *interrupted;
};

// Open the model `given` for the command `what`, which is "/model" or "/compare". Errors:
// RLHF_E_INVALID and those of the model; the messages begin with `what`. [main]
rlhf_status rlhf__dialogue_model(struct rlhf__dialogue *, const char *what, const char *given,
                                 struct rlhf__model **out, struct rlhf__error *err);

// Replace the dialogue's model and forget the conversation. The dialogue then owns the new model,
// which `given` names as in rlhf__dialogue_start. After a failure, the dialogue keeps its old
// model. [main]
rlhf_status rlhf__dialogue_use(struct rlhf__dialogue *, struct rlhf__model *, const char *given,
                               struct rlhf__error *err);

// From now on, compare with the model in the directory or run `given`. If `given` is NULL, stop
// comparing. [main]
rlhf_status rlhf__dialogue_compare(struct rlhf__dialogue *, const char *given,
                                   struct rlhf__error *err);

// From now on, score texts with a reward plugin. If `plugin` is NULL, stop scoring. [main]
rlhf_status rlhf__dialogue_score(struct rlhf__dialogue *, const char *plugin,
                                 struct rlhf__error *err);

// Forget the conversation except its first n turns. [main]
void rlhf__dialogue_forget(struct rlhf__dialogue *, size_t n);

// Print the model and the settings of sampling. [main]
void rlhf__dialogue_describe(const struct rlhf__dialogue *);

// ---- commands (dialogue_commands.c) ----

// Run the command in `line`, which begins with a slash. Returns the command's error. [main]
rlhf_status rlhf__dialogue_command(struct rlhf__dialogue *, const char *line,
                                   struct rlhf__error *err);

// Returns the words that the editor completes. [any]
struct rlhf__completion_words;
struct rlhf__completion_words rlhf__dialogue_words(void);

#endif
