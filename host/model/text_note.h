// text_note.h: logs in one line the tokens around a run's texts, so that an unexpected or missing
// BOS or EOS is noticed before the first phase.
#ifndef RLHF_HOST_MODEL_TEXT_NOTE_H
#define RLHF_HOST_MODEL_TEXT_NOTE_H

#include "base/log.h"
#include "model/model.h"

// Log `what` ("texts") with the tokens before and after each: flags as the texts are encoded (enum
// rlhf__encode_flag; RLHF__ENCODE_BOS counts where the tokenizer has one), ends: 1 = say what
// follows them, too. texts: how many rows are texts; nothing is logged for 0. [main]
void rlhf__model_text_note(const struct rlhf__model *m, const char *what, int64_t texts,
                           uint32_t flags, int32_t ends, struct rlhf__log *log);

#endif
