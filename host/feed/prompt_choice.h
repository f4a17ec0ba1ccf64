// prompt_choice.h: asks an algorithm that chooses its prompts (rlhf_algo_ops.choose_prompts) for
// the prompts of a phase. Stores what the algorithm receives about every prompt: the prompt's last
// score, and how often the prompt was used.
//
// A checkpoint contains these scores and counts in state/prompts.safetensors.
#ifndef RLHF_HOST_FEED_PROMPT_CHOICE_H
#define RLHF_HOST_FEED_PROMPT_CHOICE_H

#include "base/folder.h"
#include "batch/rows.h"
#include "data/prompts.h"
#include "plugin/services.h"

struct rlhf__prompt_choice; // opaque

// Start with all prompts unused. Both arguments are borrowed. *out is NULL if the algorithm does
// not choose prompts; otherwise release it with rlhf__prompt_choice_close. Errors: RLHF_E_NOMEM.
// [main]
rlhf_status rlhf__prompt_choice_open(const struct rlhf__instance *algo,
                                     const struct rlhf__prompts *prompts,
                                     struct rlhf__prompt_choice **out, struct rlhf__error *err);
void rlhf__prompt_choice_close(struct rlhf__prompt_choice *); // NULL allowed [main]

// Let the algorithm choose n prompts for a phase (counted from 0). Sets row[n] to the prompts'
// indices, and counts these prompts as used. Call this again for each further sampling round of the
// phase. Errors: those of the algorithm's function; RLHF_E_INVALID if one of the indices does not
// belong to a prompt. [step]
rlhf_status rlhf__prompt_choice_ask(struct rlhf__prompt_choice *, int64_t phase, uint32_t n,
                                    int64_t *row, struct rlhf__error *err);

// Call this for rows that were sampled ahead for the phase. Marks their prompts as prompts of the
// phase. Does not count these prompts as used, because they were counted when the algorithm chose
// them, perhaps in an earlier process of the run. [step]
void rlhf__prompt_choice_chosen(struct rlhf__prompt_choice *, int64_t phase,
                                const struct rlhf__rows *);

// Record the rewards of rows that respond to chosen prompts, before the phase ends. A prompt's last
// score becomes the mean reward of all responses to it in the phase, including those of earlier
// calls. [step]
void rlhf__prompt_choice_scored(struct rlhf__prompt_choice *, int64_t phase,
                                const struct rlhf__rows *);

// Call this at each phase boundary. It copies the state. rlhf__prompt_choice_save writes the copy,
// even when the next phase has begun. [main]
void rlhf__prompt_choice_note(struct rlhf__prompt_choice *);

// rlhf__prompt_choice_save writes the state to a checkpoint's folder. rlhf__prompt_choice_load
// reads it from the checkpoint in `dir`, and returns RLHF_E_INVALID if the checkpoint is damaged or
// has a different number of prompts. [main]
rlhf_status rlhf__prompt_choice_save(const struct rlhf__prompt_choice *,
                                     const struct rlhf__folder *checkpoint,
                                     struct rlhf__error *err);
rlhf_status rlhf__prompt_choice_load(struct rlhf__prompt_choice *, const char *dir,
                                     struct rlhf__error *err);

#endif
