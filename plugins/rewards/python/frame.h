// frame.h: what the driver (driver.py) answers: a kind, text and doubles.
#ifndef RLHF_PLUGINS_PYTHON_FRAME_H
#define RLHF_PLUGINS_PYTHON_FRAME_H

#include "process/bytes.h"
#include "process/talk.h"

enum rlhf__frame_kind { RLHF__FRAME_READY = 0, RLHF__FRAME_SCORES = 1, RLHF__FRAME_FAILED = 2 };

struct rlhf__frame {
    struct rlhf__bytes data; // the answer so far; {.host} is set by the user
    int32_t kind;            // enum rlhf__frame_kind, once the head has been read
    int32_t whole;
    size_t head, n_text, n_doubles; // bytes of the head; of the text; doubles
};

// Takes bytes of an answer, as struct rlhf__exchange wants it; ctx is the frame. What is no answer,
// or has something behind it, is RLHF__TAKEN_NONE; so is one for which memory runs out
// (data.full). [step]
enum rlhf__taken rlhf__frame_take(void *ctx, const char *bytes, size_t n);

// Of a whole frame: the text; double i. [step]
rlhf_str rlhf__frame_text(const struct rlhf__frame *);
double rlhf__frame_double(const struct rlhf__frame *, size_t i);

// The next line of a text, which becomes what is behind it; 0 when there is none. [any]
int rlhf__frame_line(rlhf_str *text, rlhf_str *line);

#endif
