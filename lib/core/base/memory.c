// memory.c: see memory.h.
#include "base/memory.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Nothing here may allocate, and nothing buffered or registered may run: _exit.
static _Noreturn void give_up(size_t n) {
    char text[96];
    int len = snprintf(text, sizeof text, "rlhf-host: error: out of memory (%zu bytes)\n", n);
    if (write(STDERR_FILENO, text, (size_t)len) < 0) _exit(1); // nowhere to say it
    _exit(1);
}

static void *must_allocate(size_t n) {
    void *p = malloc(n ? n : 1);
    if (!p) give_up(n);
    return p;
}

void rlhf__memory_guard_json(void) { json_set_alloc_funcs(must_allocate, free); }
