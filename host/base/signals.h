// signals.h: SIGINT and SIGTERM as a flag the loop polls; a second one ends the program at once.
//
// The one piece of mutable state a handler needs lives here and nowhere else.
#ifndef RLHF_HOST_SIGNALS_H
#define RLHF_HOST_SIGNALS_H

#include <signal.h>

// Install the handlers; SIGPIPE is ignored so that a closed pipe is a write error. [main]
void rlhf__signals_install(void);

// Points at 0 until a signal came, then at its number. Valid for the program's life. [any]
const volatile sig_atomic_t *rlhf__signals_flag(void);

#endif
