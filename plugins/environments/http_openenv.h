// http_openenv.h: the client's side of OpenEnv (openenv-core): a WebSocket for each episode, with
// messages {"type": "reset" | "step" | "close", "data": {...}}.
#ifndef RLHF_PLUGINS_ENVIRONMENTS_HTTP_OPENENV_H
#define RLHF_PLUGINS_ENVIRONMENTS_HTTP_OPENENV_H

#include "http_socket.h"
#include "lines_asked.h"

#include <rlhf/service.h>

// The wait for a server that is down. A call that finds the server down waits until patience_s are
// over; the calls that repeat it in the same phase have only the rest of this time. When it is
// over, the server is tried again at most every ten seconds. A call in which all connections
// succeed ends the wait.
struct rlhf__openenv_wait {
    double until;     // when patience ends; 0: the server is not known to be down
    double tried;     // when the last attempt failed
    int64_t phase;    // the phase in which the wait began
    int32_t sessions; // open connections
    int32_t failed;   // 1: a connection failed in this call
    int32_t gone;     // 1: patience ended in this call, or before and the server is not tried again
};

// All members are borrowed.
struct rlhf__openenv {
    const rlhf_host *host;
    const rlhf_row_service *rows; // reads JSON
    struct rlhf__socket_target target;
    const char *shown;       // the target, for messages
    const char *action;      // the action's member for the turn; "json": the turn is the action
    const char *observation; // JSON pointer into the observation, for the policy; NULL: the whole
                             // observation
    double timeout_s;        // time limit of an answer; 0 = none
    double patience_s;       // how long to wait for a server that is down
    size_t longest;          // maximum number of bytes of a message
    int32_t reads_errors;    // 1: the policy reads an EXECUTION_ERROR; 0: it is a failure
    struct rlhf__openenv_wait *wait; // zeroed at the start
};

// The state of an episode.
struct rlhf__openenv_state {
    struct rlhf__socket *socket; // NULL: none
    double until;                // an answer that comes later is a failure; 0 = no limit
    double again,
        full;         // when a reset that was refused is sent again, and until when; 0: it was not
    uint64_t refused; // turns that the server refused
    uint64_t asked;   // enum rlhf__asked: the request whose answer is missing
};

// Send the requests of a call, to reset or step its episodes, and take the answers that are there.
// The other answers come later. If the server
// refuses a turn that is not a valid action (VALIDATION_ERROR), the policy reads the server's
// reason. With `reads_errors`, it also reads why an action failed (EXECUTION_ERROR). Errors:
// RLHF_E_IO if no episode has an answer; RLHF_E_CANCELLED; RLHF_E_NOMEM. [step]
rlhf_status rlhf__openenv_ask(const struct rlhf__openenv *, enum rlhf__asked,
                              const rlhf_episode_in *, const rlhf_episode_out *);

// Take the answers that come later, and wait up to in->wait_ms for one. Errors: those of
// rlhf__openenv_ask. [step]
rlhf_status rlhf__openenv_poll(const struct rlhf__openenv *, const rlhf_episode_in *,
                               const rlhf_episode_out *);

// Close the WebSocket of an episode. [step]
void rlhf__openenv_close(const struct rlhf__openenv *, struct rlhf__openenv_state *);

#endif
