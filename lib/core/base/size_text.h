// size_text.h: a number of bytes for messages.
#ifndef RLHF_CORE_BASE_SIZE_TEXT_H
#define RLHF_CORE_BASE_SIZE_TEXT_H

#include <stdint.h>

// A size as a string: "1.20 GiB", "3.4 MiB" or "120 KiB".
struct rlhf__size_text {
    char text[32];
};

struct rlhf__size_text rlhf__size_text(uint64_t bytes); // [any]

#endif
