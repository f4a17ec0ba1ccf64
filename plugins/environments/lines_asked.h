// lines_asked.h: writes the requests to a program: one line of JSON for each episode.
#ifndef RLHF_PLUGINS_ENVIRONMENTS_LINES_ASKED_H
#define RLHF_PLUGINS_ENVIRONMENTS_LINES_ASKED_H

#include "process/bytes.h"

#include <rlhf/environment.h>

enum rlhf__asked { RLHF__ASKED_RESET = 0, RLHF__ASKED_STEP = 1, RLHF__ASKED_FINISH = 2 };

// "reset", "step", "finish". [any]
const char *rlhf__asked_name(enum rlhf__asked);

// Append the line for episode i, which the program knows by the number `as`:
//   {"reset": 17, "seed": 9731, "phase": 1, "row": {...}, "prompt": "..."}
//   {"step": 17, "turn": 1, "text": "32", "calls": [{"name": "f", "arguments": {}}]}
//   {"finish": 17, "end": "turns"}
// [any]
void rlhf__asked_line(struct rlhf__bytes *, enum rlhf__asked, const rlhf_episode_in *, uint32_t i,
                      uint64_t as);

// Append {"close": 17}, which is not answered. [any]
void rlhf__asked_close(struct rlhf__bytes *, uint64_t as);

#endif
