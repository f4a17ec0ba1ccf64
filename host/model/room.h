// room.h: is there memory for what is going to be opened? Asked before anything of it is loaded,
// by what was counted on paper (paper.h), of a device with memory of its own or of the machine.
//
// It counts nothing and allocates nothing. env->unchecked (compute.memory_check off) answers yes.
#ifndef RLHF_HOST_ROOM_H
#define RLHF_HOST_ROOM_H

#include "model/model.h"

#include "base/buf.h"

// What a run or a command is going to take, and what there is.
struct rlhf__room_need {
    struct rlhf__uses uses; // at the time when it is most, RLHF__USE_PROGRAM included
    const char *lower;      // what of the settings takes less, as part of a sentence; borrowed
    struct rlhf__room room; // rlhf__room_look
    int32_t own_memory;     // 1: room is that of a device; 0: of the machine
    int32_t known;          // 1: it has been looked at
    uint64_t there;         // bytes of uses that the backend has already
};

// Fill in the memory that env's models compute in: what is left for us, and all of it; zeros:
// nobody knows. [any]
void rlhf__room_look(const struct rlhf__model_env *env, struct rlhf__room_need *need);

// Bytes of it that are wanted: in the machine's memory all that is not there yet
// (RLHF__USE_PROGRAM is), else what is the device's. [any]
uint64_t rlhf__room_wanted(const struct rlhf__room_need *need);

// RLHF_E_INVALID, with what it takes by role, what there is and what takes less, when it does not
// fit. [main]
rlhf_status rlhf__room_check(const struct rlhf__room_need *need, struct rlhf__error *err);

// The same of one model alone that is going to be opened: values, gradients, packed weights and
// m->spec.moments. One that cannot be weighed is let through: whoever opens it says why. [main]
rlhf_status rlhf__room_check_model(const struct rlhf__model *m, struct rlhf__error *err);

// The same of one that is not opened yet, on a device with memory of its own; elsewhere it is let
// through. [main]
rlhf_status rlhf__room_check_spec(const struct rlhf__model_env *env,
                                  const struct rlhf__model_spec *spec, struct rlhf__error *err);

// Lines of all that is needed, by role and use, their sum and what is left; or as one JSON object:
// {"event": "memory", "buffers": [{"role", "use", "bytes"}], "total_bytes", "free_bytes"}. NULL:
// out of memory. [any]
void rlhf__room_table(const struct rlhf__room_need *need, struct rlhf__buf *out);
json_t *rlhf__room_json(const struct rlhf__room_need *need);

#endif
