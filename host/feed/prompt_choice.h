// prompt_choice.h: runs in which the algorithm chooses the prompts (rlhf_algo_ops.choose_prompts).
// Holds what the host tells the algorithm about every prompt, its last score and its uses, and asks
// for the prompts of a phase.
//
// A checkpoint holds both arrays in state/prompts.safetensors.
#ifndef RLHF_HOST_PROMPT_CHOICE_H
#define RLHF_HOST_PROMPT_CHOICE_H

#include "base/folder.h"
#include "batch/rows.h"
#include "data/prompts.h"
#include "plugin/services.h"

struct rlhf__prompt_choice; // opaque

// Start with all prompts unused; both arguments are borrowed. *out = NULL if the algorithm does not
// choose prompts. Release it with destroy. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__prompt_choice_create(const struct rlhf__instance *algo,
                                       const struct rlhf__prompts *prompts,
                                       struct rlhf__prompt_choice **out, struct rlhf__error *err);
void rlhf__prompt_choice_destroy(struct rlhf__prompt_choice *); // NULL allowed [main]

// Let the algorithm choose n prompts, row[n], for a phase (counted from 0), and count them as used.
// Each further sampling round of the phase asks again. Errors: those of the op; RLHF_E_INVALID if
// an index is not that of a prompt. [step]
rlhf_status rlhf__prompt_choice_ask(struct rlhf__prompt_choice *, int64_t phase, uint32_t n,
                                    int64_t *row, struct rlhf__error *err);

// Record the rewards of rows that respond to chosen prompts. Call it before the phase ends; several
// calls in one phase add up. [step]
void rlhf__prompt_choice_scored(struct rlhf__prompt_choice *, int64_t phase,
                                const struct rlhf__rows *);

// A phase boundary: what rlhf__prompt_choice_save writes until the next one. [main]
void rlhf__prompt_choice_note(struct rlhf__prompt_choice *);

// Write to a checkpoint's folder, or read from the checkpoint in `dir`. Reading fails with
// RLHF_E_INVALID if the checkpoint is damaged or has another number of prompts. [main]
rlhf_status rlhf__prompt_choice_save(const struct rlhf__prompt_choice *,
                                     const struct rlhf__folder *checkpoint,
                                     struct rlhf__error *err);
rlhf_status rlhf__prompt_choice_load(struct rlhf__prompt_choice *, const char *dir,
                                     struct rlhf__error *err);

#endif
