// rlhf/environment.h: environment plugins. An environment answers the policy between its turns. It
// may be a game, a set of tools or a simulated user.
//
// Plugin contract 1.0, frozen: it only grows.
//
// An episode is one row: a prompt, then turns of the policy, with messages of the environment
// between them. The policy is trained only on the tokens that it sampled. It also reads the
// environment's tokens.
//
// The calls for an episode are: reset; step after each turn until the episode ends; finish; close.
// If one of the first three answers "later", poll follows until the answer is there. Many episodes
// are open at the same time. Each call passes one or more of the episodes that wait for this
// function, in any order.
//
// The messages and rewards of an environment may depend only on its options, the phase, and the
// episode's seed, data row and turns. They must not depend on the other episodes of a call, on
// time, or on earlier calls. So the rows of a run do not depend on timing. After a failure, the
// host can play an episode again: it calls close(), then reset(), and then step() with the turns
// that the policy took before. An environment that breaks this rule must set
// RLHF_ENVIRONMENT_VARIES. [R:episode-repeat]
//
// An environment receives and returns only text. The host is responsible for token ids, chat
// templates, the parsing of tool calls, and all limits on turns and tokens. If text of the
// environment contains a special token, the host encodes it as ordinary tokens; invalid UTF-8
// becomes U+FFFD.
#ifndef RLHF_ENVIRONMENT_H
#define RLHF_ENVIRONMENT_H

#include "plugin.h"
#include "reward.h"
#include "rng.h"

enum rlhf_environment_flag {
    RLHF_ENVIRONMENT_PAYS = 1, // fills out->reward, so a run needs no reward plugin
    // reset() states the whole task, so a run needs no prompts. If a run has prompts, the episode's
    // prompt comes before the task.
    RLHF_ENVIRONMENT_TASKS = 2,
    // The environment breaks the rule above: its answers may differ from one call to the next (a
    // search engine, a model). So a failed episode cannot be played again, and the run cannot be
    // repeated exactly.
    RLHF_ENVIRONMENT_VARIES = 4,
    // The environment keeps the rule above with the same bits on every machine: besides the data
    // named there, it reads only files that the options name. So `rlhf-host verify` may play
    // episodes again. Without this flag, `rlhf-host verify` trusts the recorded answers. The host
    // refuses an environment that sets both this flag and RLHF_ENVIRONMENT_VARIES.
    RLHF_ENVIRONMENT_FUNCTION = 8
};

// Who says a message. The host refuses a role of 0.
enum rlhf_role {
    // Only for reset(), before or after its other messages. The host orders the messages: those
    // with this role, then the prompt, then the others. If the run does not use a chat template,
    // the prompt comes first.
    RLHF_ROLE_SYSTEM = 1,
    RLHF_ROLE_USER = 2,
    RLHF_ROLE_ASSISTANT = 3, // the policy; environments must not use it
    RLHF_ROLE_TOOL = 4       // the k-th such message after a turn answers the turn's k-th call
};

// A call of one of the environment's tools. The host has checked that the tool is declared, and
// that the arguments are a JSON object with all required members. All other calls are answered by
// the host. Frozen.
typedef struct rlhf_tool_call {
    rlhf_str name;
    rlhf_str arguments; // read it with "rlhf.row/1" (service.h)
} rlhf_tool_call;

typedef struct rlhf_episode_in {
    uint32_t size, n; // episodes of this call
    // Only in poll(): how many milliseconds the call may take if none of the episodes has an
    // answer. 0: the call must return at once.
    uint32_t wait_ms, reserved;
    int64_t phase; // the first is 0
    // [n] the states of the episodes: rlhf_environment_ops.state_size bytes each, 16-byte aligned,
    // zero before the first call. They do not move until close(). If state_size is 0, these
    // pointers have no meaning. [R:episode-state]
    void *const *state;
    const uint64_t *episode; // [n] number of the row within the run
    // [n] a seed for rlhf_rng (rng.h). The rows of a group have the same seed, so they begin with
    // the same task. [R:episode-seed]
    const uint64_t *seed;
    const int32_t *turn;  // [n] turns that the policy has taken; 0 in reset()
    const rlhf_str *meta; // [n] the data row as JSON, len 0 without one
    // [n] in reset() the prompt; in step() the policy's turn, without special tokens and without
    // the stop text or token that ended it; empty in poll() and finish()
    const rlhf_str *text;
    // The tool calls in the turn of episode i are call[call_offset[i]] up to, not including,
    // call[call_offset[i + 1]], in the order of the text. Only step() has any.
    const int32_t *call_offset; // [n + 1]
    const rlhf_tool_call *call; // [call_offset[n]]
    // [n] enum rlhf_episode_end: why the episode has ended, in finish() and when poll() follows it;
    // otherwise RLHF_EPISODE_OPEN
    const uint8_t *end;
} rlhf_episode_in;

typedef struct rlhf_message {
    uint32_t size;
    int32_t role; // enum rlhf_role
    rlhf_str text;
} rlhf_message;

typedef struct rlhf_episode_out rlhf_episode_out;
struct rlhf_episode_out {
    uint32_t size, reserved;
    // All arrays are [n], zeroed by the host. [R:episode-outside]
    // For this turn, at its last token; 0 in the answer of reset(), which the host otherwise
    // refuses. NaN or Inf: see rewards.nan_policy
    float *reward;
    // RLHF_EPISODE_OPEN, RLHF_EPISODE_DONE or RLHF_EPISODE_TRUNCATED; not for reset() and finish()
    uint8_t *end;
    // enum rlhf_verdict, as in rlhf_reward_out: only when `end` is not RLHF_EPISODE_OPEN, and in
    // finish()
    uint8_t *verdict;
    uint8_t *failed; // 1: could not answer this episode, so all else about it is ignored
    // 1: the answer comes later, from poll(). Nothing else may be written or said about the
    // episode. Not allowed if poll is NULL. [R:episode-later]
    uint8_t *later;
    // Add a message for episode i, below n; the struct and its text are copied. If the host refuses
    // a message, the call fails, also if the environment ignores the status. An episode that
    // step() or poll() leaves open needs at least one message. Messages of a step that ends the
    // episode appear in samples, but no policy reads them. A USER message from reset() is appended
    // to the prompt's last message if that is a user's. [call] [R:episode]
    rlhf_status (*say)(const rlhf_episode_out *, uint32_t i, const rlhf_message *);
    // Report a number about episode i, below n: the metric environment/<name>, with the arguments
    // of rlhf_host.metric. If an episode reports a name several times, the last report counts, and
    // a failed episode reports nothing. So the metrics do not depend on the order of answers.
    // [call]
    void (*metric)(const rlhf_episode_out *, uint32_t i, const char *name, double value,
                   double weight, int32_t combine);
};

// Episodes that are over.
typedef struct rlhf_episode_close {
    uint32_t size, n;
    void *const *state; // [n]
} rlhf_episode_close;

typedef struct rlhf_environment_ops {
    uint32_t size, flags; // flags: bits of enum rlhf_environment_flag
    uint64_t state_size;  // bytes of an episode's state; 0: none
    // Returns the tools as a JSON list of {"type": "function", "function": {"name", "description",
    // "parameters"}}, as chat templates take them. The list is valid until destroy(), and is the
    // same in every call. If `tools` or its result is NULL, the policy gets no tools. [main]
    // [R:episode-tools]
    const char *(*tools)(void *self);
    // Like rlhf_reward_ops.check_row. [main]
    rlhf_status (*check_row)(void *self, const rlhf_row_in *);
    // Episodes begin. If `reset` is NULL, the prompt does not change. [step]
    rlhf_status (*reset)(void *self, const rlhf_episode_in *, const rlhf_episode_out *);
    // The policy has taken a turn in each of these episodes. [step]
    //
    // If reset(), step(), poll() or finish() returns a negative status, all episodes of the call
    // have failed, for the reason passed to host->fail. RLHF_E_NOMEM and RLHF_E_CANCELLED end the
    // run.
    rlhf_status (*step)(void *self, const rlhf_episode_in *, const rlhf_episode_out *);
    // Answers some of the episodes whose answer comes later, as the function would have that set
    // out->later, and sets out->later for the others. The host passes all such episodes in each
    // call. Meanwhile it lets the policy go on with other episodes, if it has any; otherwise
    // in->wait_ms is not 0, and poll() waits until an episode has its answer. An answer that takes
    // longer than rewards.timeout_s is a failure. If `poll` is NULL, no answer comes later. [step]
    rlhf_status (*poll)(void *self, const rlhf_episode_in *, const rlhf_episode_out *);
    // Episodes have ended; in->end contains the reasons. out->reward is added to the reward of the
    // last turn, and verdicts may be given. say() must not be called. If `finish` is NULL, nothing
    // is added. [step]
    rlhf_status (*finish)(void *self, const rlhf_episode_in *, const rlhf_episode_out *);
    // Release everything that these states hold. Called once for each state that another function
    // has received, in whatever way the episode ended, also while its answer has not come. If
    // `close` is NULL, states hold nothing. [step]
    void (*close)(void *self, const rlhf_episode_close *);
} rlhf_environment_ops;

// Calls say() with a text. [call]
static inline rlhf_status rlhf_say(const rlhf_episode_out *out, uint32_t i, int32_t role,
                                   rlhf_str text) {
    rlhf_message m;
    memset(&m, 0, sizeof m);
    m.size = (uint32_t)sizeof m;
    m.role = role;
    m.text = text;
    return out->say(out, i, &m);
}

// Calls say() with a formatted text, which is cut after 1,023 bytes. [call]
RLHF_PRINTF(4, 5)
static inline rlhf_status rlhf_sayf(const rlhf_episode_out *out, uint32_t i, int32_t role,
                                    const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0) return RLHF_E_INTERNAL;
    const uint64_t len = (size_t)n < sizeof text ? (uint64_t)n : sizeof text - 1;
    const rlhf_str said = {text, len};
    return rlhf_say(out, i, role, said);
}

#endif
