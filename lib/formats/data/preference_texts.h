// preference_texts.h: reads the texts of a preference row (preferences.h lists the forms of rows).
// Internal to data/.
#ifndef RLHF_HOST_DATA_PREFERENCE_TEXTS_H
#define RLHF_HOST_DATA_PREFERENCE_TEXTS_H

#include "data/preferences.h"

#include <jansson.h>

struct rlhf__preference_texts {
    // Borrowed from the row. They are strings or, with is_chat, lists of messages. With is_chat, a
    // response may also be a string, which is the assistant's message.
    const json_t *prompt, *response[RLHF__RESPONSES_MAX];
    const char *prompt_name; // its field
    int32_t n, best;         // number of responses; index of the best, -1 if undesirable
    // shared: used if prompt is NULL. The number of messages at the beginning of chosen and
    // rejected that are equal.
    int32_t is_chat, shared;
    float margin;
    int32_t has_margin;
    const json_t *row; // of messages; its tools are read with rlhf__messages_tools
};

// Check the row and take its texts. The options determine which forms are allowed; with bos, the
// prompt may be empty. path and line are for error messages. Errors: RLHF_E_INVALID; the message
// names the field. [any]
rlhf_status rlhf__preference_texts_read(const json_t *row, const struct rlhf__preference_opts *,
                                        const char *path, int64_t line,
                                        struct rlhf__preference_texts *out,
                                        struct rlhf__error *err);

#endif
