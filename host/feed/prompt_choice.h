// prompt_choice.h: prompts that an algorithm chooses (rlhf_algo_ops.choose_prompts): what the host
// keeps of every prompt of a run for it, and the question before a phase.
//
// A checkpoint holds both arrays in state/prompts.safetensors.
#ifndef RLHF_HOST_PROMPT_CHOICE_H
#define RLHF_HOST_PROMPT_CHOICE_H

#include "base/folder.h"
#include "batch/rows.h"
#include "data/prompts.h"
#include "plugin/services.h"

struct rlhf__prompt_choice; // opaque

// For the prompts, both borrowed; none was used yet. *out = NULL if the algorithm does not choose.
// The caller frees *out. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__prompt_choice_create(const struct rlhf__instance *algo,
                                       const struct rlhf__prompts *prompts,
                                       struct rlhf__prompt_choice **out, struct rlhf__error *err);
void rlhf__prompt_choice_destroy(struct rlhf__prompt_choice *); // NULL allowed [main]

// Let the algorithm choose n prompts for a phase (from 0), again for each round of the phase, and
// count them as used by it: row[n]. Errors: those of the op; RLHF_E_INVALID for an index that is
// not one of a prompt. [step]
rlhf_status rlhf__prompt_choice_ask(struct rlhf__prompt_choice *, int64_t phase, uint32_t n,
                                    int64_t *row, struct rlhf__error *err);

// Take the rewards of rows that respond to chosen prompts, before a phase's end; several calls for
// one phase add up. [step]
void rlhf__prompt_choice_scored(struct rlhf__prompt_choice *, int64_t phase,
                                const struct rlhf__rows *);

// A phase boundary: what rlhf__prompt_choice_save writes until the next one. [main]
void rlhf__prompt_choice_note(struct rlhf__prompt_choice *);

// Write to a checkpoint's folder, or read from the checkpoint in `dir`. Errors of reading:
// RLHF_E_INVALID if the checkpoint is of another number of prompts, or damaged. [main]
rlhf_status rlhf__prompt_choice_save(const struct rlhf__prompt_choice *,
                                     const struct rlhf__folder *checkpoint,
                                     struct rlhf__error *err);
rlhf_status rlhf__prompt_choice_load(struct rlhf__prompt_choice *, const char *dir,
                                     struct rlhf__error *err);

#endif
