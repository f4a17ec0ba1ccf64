// free_memory.h: checks, before anything is loaded, that a run or a command fits the free memory of
// the device or the machine. A memory plan (memory_plan.h) has counted the bytes that are needed.
//
// Nothing is counted or allocated here. With env->unchecked (compute.memory_check=false) the checks
// of a model always succeed.
#ifndef RLHF_HOST_MODEL_FREE_MEMORY_H
#define RLHF_HOST_MODEL_FREE_MEMORY_H

#include "model/model.h"

#include "base/buf.h"

// The memory that a run or a command needs, and the free memory.
struct rlhf__memory_need {
    struct rlhf__uses uses; // at the peak, including RLHF__USE_PROGRAM
    const char *lower;      // for messages: the settings to change for less memory; borrowed
    // name of a backend whose workspaces are unknown and therefore missing from `uses`; otherwise
    // NULL
    const char *uncounted;
    struct rlhf__free_memory memory; // set by rlhf__free_memory_get
    int32_t own_memory;              // 1: `memory` is that of a device; 0: that of the machine
    int32_t known;                   // 1: `memory` is set
    uint64_t there;                  // bytes of `uses` that are already allocated
};

// Sets need->memory, need->own_memory, need->known and need->there for the memory in which env's
// models compute. need->memory is 0 if the free memory cannot be determined. [any]
void rlhf__free_memory_get(const struct rlhf__model_env *env, struct rlhf__memory_need *need);

// Returns the bytes that are still to be allocated. On a device with its own memory, host memory is
// left out. The program's own memory (RLHF__USE_PROGRAM) is always left out. [any]
uint64_t rlhf__memory_needed(const struct rlhf__memory_need *need);

// Returns RLHF_E_INVALID if less memory is free than is needed. The message says what each role
// needs, how much is free, and which settings to change. [main]
rlhf_status rlhf__free_memory_check(const struct rlhf__memory_need *need, struct rlhf__error *err);

// Like rlhf__free_memory_check, for one model that is about to be loaded: its values, gradients,
// packed weights and m->spec.moments. Returns RLHF_OK if the size of m cannot be determined,
// because opening m will report why. [main]
rlhf_status rlhf__free_memory_check_model(const struct rlhf__model *m, struct rlhf__error *err);

// Like rlhf__free_memory_check, for a model that is not open yet, on a device with its own memory.
// Returns RLHF_OK on other devices. [main]
rlhf_status rlhf__free_memory_check_spec(const struct rlhf__model_env *env,
                                         const struct rlhf__model_spec *spec,
                                         struct rlhf__error *err);

// rlhf__memory_need_table appends a table with the memory that each role needs for each use, the
// total, and the free memory. rlhf__memory_need_json returns the same as a JSON object, or NULL if
// out of memory: {"event": "memory", "buffers": [{"role", "use", "bytes"}], "total_bytes",
// "free_bytes"}. If a backend's workspaces are not known, the object also has "uncounted": the
// backend's name. [any]
void rlhf__memory_need_table(const struct rlhf__memory_need *need, struct rlhf__buf *out);
json_t *rlhf__memory_need_json(const struct rlhf__memory_need *need);

#endif
