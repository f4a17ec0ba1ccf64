// run_words.h: describes a run in words: the command that repeats the run, and facts from the
// manifest and from events.jsonl.
#ifndef RLHF_TOOLS_PAGE_RUN_WORDS_H
#define RLHF_TOOLS_PAGE_RUN_WORDS_H

#include "history/run_files.h"

struct rlhf__run_words {
    json_t *command; // a string
    json_t *facts;   // [["Policy", "..."], ...]
};

// Sets out->command to the command that the user typed, from events.jsonl. For a run of an older
// version, out->command uses the run's config.json instead. Both members of *out are new
// references, even after a failure. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__run_words_read(struct rlhf__run_files *run, struct rlhf__run_words *out,
                                 struct rlhf__error *err);

#endif
