// free_memory.h: compares the memory that a run or a command needs, as counted on a memory plan
// (memory_plan.h), with the memory that is free: a device's own, or the machine's. Called before
// anything is loaded.
//
// It counts nothing and allocates nothing. With env->unchecked (compute.memory_check=false) the
// checks of a model always succeed.
#ifndef RLHF_HOST_FREE_MEMORY_H
#define RLHF_HOST_FREE_MEMORY_H

#include "model/model.h"

#include "base/buf.h"

// Memory that a run or a command needs, and free memory.
struct rlhf__memory_need {
    struct rlhf__uses uses; // at the peak, RLHF__USE_PROGRAM included
    const char *lower; // the settings that would need less memory, as part of a sentence; borrowed
    // the name of a backend whose workspaces are unknown and therefore not in `uses`, or NULL
    const char *uncounted;
    struct rlhf__free_memory memory; // set by rlhf__free_memory_get
    int32_t own_memory;              // 1: memory is that of a device; 0: of the machine
    int32_t known;                   // 1: memory is set
    uint64_t there;                  // bytes of uses that the backend has already allocated
};

// Sets need->memory, own_memory, known and there for the memory that env's models compute in.
// memory is 0 where it cannot be determined. [any]
void rlhf__free_memory_get(const struct rlhf__model_env *env, struct rlhf__memory_need *need);

// Bytes that are still to be allocated. Of the machine's memory that is everything except what the
// program already holds (RLHF__USE_PROGRAM); of a device's memory, everything. [any]
uint64_t rlhf__memory_needed(const struct rlhf__memory_need *need);

// RLHF_E_INVALID if it does not fit; the sentence says what each role needs, what is free and which
// settings need less. [main]
rlhf_status rlhf__free_memory_check(const struct rlhf__memory_need *need, struct rlhf__error *err);

// The same for one model that will be loaded: values, gradients, packed weights and
// m->spec.moments. RLHF_OK if its size cannot be determined: opening it will say why. [main]
rlhf_status rlhf__free_memory_check_model(const struct rlhf__model *m, struct rlhf__error *err);

// The same for a model that is not open yet, on a device that has its own memory; RLHF_OK on
// other devices. [main]
rlhf_status rlhf__free_memory_check_spec(const struct rlhf__model_env *env,
                                         const struct rlhf__model_spec *spec,
                                         struct rlhf__error *err);

// Append a table: the memory needed by role and use, the total, and the free memory. The second
// function returns the same as one JSON object: {"event": "memory", "buffers": [{"role", "use",
// "bytes"}], "total_bytes", "free_bytes"}. It adds "uncounted": NAME for a backend whose workspaces
// are unknown. NULL: out of memory. [any]
void rlhf__memory_need_table(const struct rlhf__memory_need *need, struct rlhf__buf *out);
json_t *rlhf__memory_need_json(const struct rlhf__memory_need *need);

#endif
