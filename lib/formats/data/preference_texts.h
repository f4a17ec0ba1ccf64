// preference_texts.h: reads the texts of a preference row (preferences.h lists the forms of rows).
// Internal to data/.
#ifndef RLHF_FORMATS_DATA_PREFERENCE_TEXTS_H
#define RLHF_FORMATS_DATA_PREFERENCE_TEXTS_H

#include "data/preferences.h"

#include <jansson.h>

struct rlhf__preference_texts {
    // The texts of the row, borrowed from it. They are strings or, if is_chat is set, lists of
    // messages. With is_chat, a response may also be a string: the text of the assistant's message.
    const json_t *prompt, *response[RLHF__RESPONSES_MAX];
    const char *prompt_name; // the field that holds the prompt
    int32_t n, best;         // number of responses; index of the best response, -1 if undesirable
    // If `prompt` is NULL, the prompt is the first `shared` messages, with which both the chosen
    // and the rejected response begin.
    int32_t is_chat, shared;
    float margin;
    int32_t has_margin;
    uint8_t cut[RLHF__RESPONSES_MAX]; // 1: the response was cut off, so its turn did not end there
    const json_t *row; // for messages: the row, from which rlhf__messages_tools reads the tools
};

// Check the row and take its texts. The options determine which forms of rows are allowed. If they
// prepend bos, the prompt may be empty. `path` and `line` are for error messages. Errors:
// RLHF_E_INVALID, with the field's name in the message. [any]
rlhf_status rlhf__preference_texts_read(const json_t *row, const struct rlhf__preference_opts *,
                                        const char *path, int64_t line,
                                        struct rlhf__preference_texts *out,
                                        struct rlhf__error *err);

#endif
