// instance.h: the inside of an instance, shared by services.c and state.c only.
#ifndef RLHF_HOST_PLUGIN_INSTANCE_H
#define RLHF_HOST_PLUGIN_INSTANCE_H

#include "plugin/services.h"

#define RLHF__FAIL_SLOTS 32

// What one thread last said with host->fail.
struct rlhf__fail_note {
    pthread_t thread;
    uint64_t age; // 0 = free; larger = newer
    char text[1024];
};

// The table a plugin sees, with what its functions need behind it.
struct rlhf__host {
    rlhf_host api; // first: the functions cast back
    struct rlhf__instance instance;
    struct rlhf__services *services;
    struct rlhf__strings strings; // of instance.config
    pthread_mutex_t lock;         // of note
    uint64_t clock;
    struct rlhf__fail_note note[RLHF__FAIL_SLOTS];
};

#endif
