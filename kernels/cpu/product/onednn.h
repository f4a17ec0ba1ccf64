// onednn.h: oneDNN as the library of library.h.
#ifndef RLHF_CPU_ONEDNN_H
#define RLHF_CPU_ONEDNN_H

#include "context.h"

// Set cpu->library, and the state and the name of the library. Fails if RLHF_CPU_ISA asks for a
// lower level than oneDNN already uses in this process. [step]
rlhf_status rlhf__onednn_open(struct rlhf__cpu *cpu);

#endif
