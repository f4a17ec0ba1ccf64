// size_text.c: see size_text.h.
#include "base/size_text.h"

#include <stdio.h>

struct rlhf__size_text rlhf__size_text(uint64_t bytes) {
    struct rlhf__size_text t;
    if (bytes >= (uint64_t)1 << 30)
        snprintf(t.text, sizeof t.text, "%.2f GiB", (double)bytes / (1 << 30));
    else if (bytes >= (uint64_t)1 << 20)
        snprintf(t.text, sizeof t.text, "%.1f MiB", (double)bytes / (1 << 20));
    else
        snprintf(t.text, sizeof t.text, "%.0f KiB", (double)bytes / (1 << 10));
    return t;
}
