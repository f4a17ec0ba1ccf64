// alternate.h: the alternate screen of the terminal on standard output. While it is shown, the
// program's output is kept in memory. That output is printed when the screen is closed, even if a
// crash closes it.
//
// Its state is global, because signal handlers need it. Only alternate.c has access to it.
#ifndef RLHF_HOST_ALTERNATE_H
#define RLHF_HOST_ALTERNATE_H

// Show the alternate screen. Returns a descriptor: text written to it is kept in memory. After a
// failure, returns -1 and leaves the screen unchanged. The caller must not close it. [main]
int rlhf__alternate_open(void);

// Close the screen, if it is shown, and print the kept text. Async-signal-safe. [any]
void rlhf__alternate_close(void);

// Append to the kept text. Returns 0 if the alternate screen is not shown. Async-signal-safe.
// [any]
int rlhf__alternate_keep(const char *text);

#endif
