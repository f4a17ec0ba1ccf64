// text_note.h: log lines about a run's texts before its first phase: the chat template, and the
// tokens around each text, so that an unexpected or missing BOS or EOS is noticed.
#ifndef RLHF_HOST_MODEL_TEXT_NOTE_H
#define RLHF_HOST_MODEL_TEXT_NOTE_H

#include "base/log.h"
#include "model/model.h"

// Log `what` ("texts") with the tokens that stand before and after each text. flags: how the texts
// are encoded (enum rlhf__encode_flag; RLHF__ENCODE_BOS has an effect only if the tokenizer has a
// BOS). ends: 1 = also log the tokens after. texts: how many rows are texts; 0 logs nothing. [main]
void rlhf__model_text_note(const struct rlhf__model *m, const char *what, int64_t texts,
                           uint32_t flags, int32_t ends, struct rlhf__log *log);

// Use the template that prompts.template names. Errors: those of rlhf__chat_name. [main]
rlhf_status rlhf__model_name_chat(const struct rlhf__model *m, const char *template,
                                  struct rlhf__error *err);

// Log which template rendered `rows` rows with messages. Warn when a template is named but all
// rows are texts, when the tokenizer lacks the template's special tokens and, for models that
// write, when the token that ends a turn does not end a response. stop: the JSON list of
// sampling.stop where responses are sampled, else NULL. [main]
void rlhf__model_chat_note(const struct rlhf__model *m, int64_t rows, const char *template,
                           const char *stop, struct rlhf__log *log);

// ---- the end of a turn ----

// How a user makes the end of a turn end a response too.
enum rlhf__turn_end_remedy {
    RLHF__REMEDY_SETTING = 0, // sampling.stop
    RLHF__REMEDY_FLAG = 1,    // --stop-id of generate
    RLHF__REMEDY_FILE = 2     // nothing is sampled now: generation_config.json
};

// Warn when the tokenizer lacks the token that ends a turn of the model's chat template, or when
// that token does not end responses: it must be an end token of the model or in stop, a JSON list
// of texts and ids or NULL. [main]
void rlhf__model_turn_end_note(const struct rlhf__model *m, const char *stop,
                               enum rlhf__turn_end_remedy how, struct rlhf__log *log);

// The id of the turn's end token if it does not end responses, and its text; -1 without such a
// token. [any]
int32_t rlhf__model_ignored_turn_end(const struct rlhf__model *m, const char *stop,
                                     const char **text);

#endif
