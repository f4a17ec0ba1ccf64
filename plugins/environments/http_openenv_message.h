// http_openenv_message.h: the messages of OpenEnv: what is sent for an episode, and what its server
// answers.
#ifndef RLHF_PLUGINS_ENVIRONMENTS_HTTP_OPENENV_MESSAGE_H
#define RLHF_PLUGINS_ENVIRONMENTS_HTTP_OPENENV_MESSAGE_H

#include "http_openenv.h"

// Append the message that resets or steps episode i of a call. [any]
void rlhf__openenv_write(const struct rlhf__openenv *, enum rlhf__asked, const rlhf_episode_in *,
                         uint32_t i, struct rlhf__bytes *out);

// Reads the answer to the request s->asked of episode i. If it is neither an observation nor a
// refused turn, returns 0 with the reason in why[RLHF__SOCKET_WHY]. [call]
int rlhf__openenv_take(const struct rlhf__openenv *, struct rlhf__openenv_state *s,
                       const struct rlhf__bytes *text, const rlhf_episode_out *, uint32_t i,
                       char *why);

// Returns 1 if the answer refuses a further session. [any]
int rlhf__openenv_is_full(const struct rlhf__openenv *, const struct rlhf__bytes *text);

#endif
