// memory.h: what happens when the JSON library gets no memory.
//
// Jansson 2.14 dereferences NULL after some failed allocations, and reports others as wrong input;
// its setters would have to be checked at a hundred places. So its allocations do not fail: the
// program ends with one sentence and status 1, as a kill at that instant would, and files are
// written so that a run survives that. Everything else of the host reports RLHF_E_NOMEM.
#ifndef RLHF_HOST_MEMORY_H
#define RLHF_HOST_MEMORY_H

// From now on Jansson's allocations succeed or end the program. Before its first use. [main]
void rlhf__memory_guard_json(void);

#endif
