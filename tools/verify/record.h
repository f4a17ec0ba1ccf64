// record.h: checks the files of a run against its hash chain, without computing anything.
#ifndef RLHF_TOOLS_VERIFY_RECORD_H
#define RLHF_TOOLS_VERIFY_RECORD_H

#include "history/chain_file.h"
#include "verify/faults.h"

// Check that each line of the chain follows from the line before it. [main]
rlhf_status rlhf__record_chain(const struct rlhf__chain_file *, struct rlhf__faults *,
                               struct rlhf__error *err);

// Check config.json. [main]
rlhf_status rlhf__record_config(const char *run, const struct rlhf__chain_file *,
                                struct rlhf__faults *, struct rlhf__error *err);

// Check metrics.jsonl. [main]
rlhf_status rlhf__record_metrics(const char *run, const struct rlhf__chain_file *,
                                 struct rlhf__faults *, struct rlhf__error *err);

// Check the rows and scores in rollouts.jsonl, if the run wrote it. [main]
rlhf_status rlhf__record_rollouts(const char *run, const struct rlhf__chain_file *,
                                  struct rlhf__faults *, struct rlhf__error *err);

// Check the files of all checkpoints that are there. [main]
rlhf_status rlhf__record_checkpoints(const char *run, const struct rlhf__chain_file *,
                                     struct rlhf__faults *, struct rlhf__error *err);

#endif
