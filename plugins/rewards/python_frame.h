// python_frame.h: an answer of the driver of python.so: a kind, a text and doubles.
#ifndef RLHF_PLUGINS_REWARDS_PYTHON_FRAME_H
#define RLHF_PLUGINS_REWARDS_PYTHON_FRAME_H

#include "process/bytes.h"
#include "process/talk.h"

enum rlhf__frame_kind { RLHF__FRAME_READY = 0, RLHF__FRAME_SCORES = 1, RLHF__FRAME_FAILED = 2 };

struct rlhf__frame {
    struct rlhf__bytes data; // the bytes received so far; the user sets {.host}
    int32_t kind;            // enum rlhf__frame_kind; set when the head is complete
    int32_t whole;
    size_t head, n_text, n_doubles; // bytes of the head; bytes of the text; number of doubles
};

// The `take` function of struct rlhf__exchange; `ctx` is the frame. Returns RLHF__TAKEN_NONE if the
// answer is invalid, if bytes follow its end, or if memory runs out (data.full is then set). [step]
enum rlhf__taken rlhf__frame_take(void *ctx, const char *bytes, size_t n);

// The text of a complete frame, and its i-th double. [step]
rlhf_str rlhf__frame_text(const struct rlhf__frame *);
double rlhf__frame_double(const struct rlhf__frame *, size_t i);

// Moves the first line of text to *line. Returns 0 if text is empty. [any]
int rlhf__frame_line(rlhf_str *text, rlhf_str *line);

#endif
