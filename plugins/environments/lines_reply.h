// lines_reply.h: reads a line in which a program answers for one episode.
#ifndef RLHF_PLUGINS_ENVIRONMENTS_LINES_REPLY_H
#define RLHF_PLUGINS_ENVIRONMENTS_LINES_REPLY_H

#include "lines_asked.h"

#include <jansson.h>

enum { RLHF__REPLY_WHY = 240, RLHF__REPLY_METRICS = 32 };

struct rlhf__line_reply {
    uint64_t episode; // the number by which the program knows it
    json_t *line;     // the object; says and metrics are read from it
};

// Parses a line of n bytes, without its line break:
//   {"episode": 17, "say": TEXT or LIST, "reward": 1.5, "done": true, "truncated": false,
//    "verdict": "right", "metrics": {"x": 1}}
// Only "episode" is required. A LIST has texts or {"role": "user", "content": "..."} messages.
// {"episode": 17, "failed": "why"} marks the episode as failed. Returns 1, or 0 with the reason in
// why[RLHF__REPLY_WHY], which may quote bytes of the line. Release with rlhf__line_reply_finish.
// [any]
int rlhf__line_reply_read(const char *line, size_t n, enum rlhf__asked,
                          struct rlhf__line_reply *out, char *why);

// Put the reply into entry i of the output. `calls` is the number of tool calls in the episode's
// turn. If the turn has tool calls, the reply must have no text, or one text for each call, which
// is the call's result. Without tool calls, each text is a user's message. Returns RLHF_E_INVALID,
// with the reason in `why`, if the number of texts is wrong. Also returns the errors of say().
// [step]
rlhf_status rlhf__line_reply_put(const struct rlhf__line_reply *, const rlhf_episode_out *,
                                 uint32_t i, enum rlhf__asked, int32_t calls, char *why);

// Why the program gave the episode up; NULL if it did not. [any]
const char *rlhf__line_reply_failed(const struct rlhf__line_reply *);

void rlhf__line_reply_finish(struct rlhf__line_reply *); // [any]

#endif
