// alternate.h: the alternate screen of the terminal on standard output. What the program says while
// it is shown is kept in memory, and printed when it is closed, also by a crash.
//
// Its state is global, because handlers of signals need it, and exists only here.
#ifndef RLHF_HOST_ALTERNATE_H
#define RLHF_HOST_ALTERNATE_H

// Show the alternate screen. Returns a descriptor; text that is written to it is kept.
// Returns -1, and leaves the screen as it is, after a failure. The caller must not close it. [main]
int rlhf__alternate_open(void);

// Close the screen, if it is shown, and print what was kept. Async-signal-safe. [any]
void rlhf__alternate_close(void);

// Write text to what is kept. Returns 0 if the alternate screen is not shown. Async-signal-safe.
// [any]
int rlhf__alternate_keep(const char *text);

#endif
