// run_words.h: what was run, in words: the command that does it again, and the facts of the
// manifest and of events.jsonl.
#ifndef RLHF_TOOLS_RUN_WORDS_H
#define RLHF_TOOLS_RUN_WORDS_H

#include "history/run_files.h"

struct rlhf__run_words {
    json_t *command; // a string
    json_t *facts;   // [["Policy", "..."], ...]
};

// The command is the one that was typed, from events.jsonl; of a run of an older version, one with
// its config.json. Errors: RLHF_E_NOMEM. Both are new references, also after a failure. [any]
rlhf_status rlhf__run_words_read(struct rlhf__run_files *run, struct rlhf__run_words *out,
                                 struct rlhf__error *err);

#endif
