// symbols.h: the symbols that an opened shared object exports and the objects it needs, from its
// dynamic section. Only for a child process: the object may have damaged it.
#ifndef RLHF_HOST_CHECK_SYMBOLS_H
#define RLHF_HOST_CHECK_SYMBOLS_H

// Call visit with the name of each exported symbol, or of each needed object. object: of dlopen().
// [main]
void rlhf__exports(void *object, void (*visit)(void *arg, const char *name), void *arg);
void rlhf__needs(void *object, void (*visit)(void *arg, const char *name), void *arg);

#endif
