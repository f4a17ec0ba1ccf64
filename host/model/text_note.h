// text_note.h: logs, before the first phase, the chat template and the tokens around each text.
// Users can then notice a wrong template, or an unexpected or missing BOS or EOS.
#ifndef RLHF_HOST_MODEL_TEXT_NOTE_H
#define RLHF_HOST_MODEL_TEXT_NOTE_H

#include "base/log.h"
#include "config/config.h"
#include "model/model.h"

// Log which special tokens come before each text and, if `ends` is 1, after it. `what` is a word
// for the texts, e.g. "texts". `flags` says how the texts are encoded (enum rlhf__encode_flag);
// RLHF__ENCODE_BOS is ignored if the tokenizer lacks a BOS. `texts` is the number of rows that are
// texts. If `texts` is 0, nothing is logged. [main]
void rlhf__model_text_note(const struct rlhf__model *m, const char *what, int64_t texts,
                           uint32_t flags, int32_t ends, struct rlhf__log *log);

// Use the template, the variables and the date that the settings choose. Errors: those of
// rlhf__chat_choose. [main]
rlhf_status rlhf__model_choose_chat(const struct rlhf__model *m,
                                    const struct rlhf__prompts_config *, struct rlhf__error *err);

// Set what the model's tokenizer puts before texts. `choice` is prompts.prepend_bos (enum
// rlhf__prepend_bos). The tokenizer's files in checkpoints then say the same. [main]
void rlhf__model_prepend_bos(const struct rlhf__model *m, int32_t choice);

// Log which template rendered the rows with messages; `rows` is their number. Warns in three cases:
// - a template is named, but all rows are texts;
// - the tokenizer lacks the template's special tokens;
// - the model can generate text, but the template's end-of-turn token does not end a response.
//
// `stop` is the JSON list of sampling.stop if responses are sampled, otherwise NULL. If `c` is
// NULL, the settings of the template are not for these rows. [main]
void rlhf__model_chat_note(const struct rlhf__model *m, int64_t rows,
                           const struct rlhf__prompts_config *, const char *stop,
                           struct rlhf__log *log);

// ---- the end of a turn ----

// How a user can make the end-of-turn token end responses.
enum rlhf__turn_end_remedy {
    RLHF__REMEDY_SETTING = 0, // sampling.stop
    RLHF__REMEDY_FLAG = 1,    // --stop-id of generate
    RLHF__REMEDY_FILE = 2     // nothing is sampled now: generation_config.json
};

// Warn if the tokenizer lacks the end-of-turn token of the model's chat template, or if that token
// does not end responses. The token ends responses if it is an end token of the model, or if it is
// in `stop` (a JSON list of strings and ids, or NULL). [main]
void rlhf__model_turn_end_note(const struct rlhf__model *m, const char *stop,
                               enum rlhf__turn_end_remedy how, struct rlhf__log *log);

// If the end-of-turn token does not end responses, returns its id and sets *text to its text.
// Otherwise returns -1. [any]
int32_t rlhf__model_ignored_turn_end(const struct rlhf__model *m, const char *stop,
                                     const char **text);

#endif
