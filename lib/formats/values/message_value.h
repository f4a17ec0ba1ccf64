// message_value.h: a message as a chat template sees it.
//
// As in transformers, that is the row's object with all its members in their order, without those
// that are null. Thoughts are also copied to the members "thinking" and "reasoning_content", so
// that a template finds them under either name.
#ifndef RLHF_FORMATS_VALUES_MESSAGE_VALUE_H
#define RLHF_FORMATS_VALUES_MESSAGE_VALUE_H

#include "values/jinja_value.h"
#include "values/message.h"

// Makes the value of a message. Texts are borrowed. [any]
rlhf__value rlhf__message_value(struct rlhf__jinja_work *, const struct rlhf__message *);

#endif
