// alternate.h: the alternate screen of the terminal on standard output. While it is shown, the
// program's output is kept in memory. Closing the screen prints that output, even if the program
// closes the screen because of a crash.
//
// The state is global, because signal handlers need it. Only alternate.c has access to it.
#ifndef RLHF_CORE_BASE_ALTERNATE_H
#define RLHF_CORE_BASE_ALTERNATE_H

// Show the alternate screen. Returns a descriptor for the program's output, which is kept in
// memory. The caller must not close the descriptor. On failure, returns -1 and leaves the screen
// unchanged. [main]
int rlhf__alternate_open(void);

// Close the screen, if it is shown, and print the kept text. Async-signal-safe. [any]
void rlhf__alternate_close(void);

// Append text to the output that is kept while the alternate screen is shown. Returns 1, or 0 if
// the screen is not shown. Async-signal-safe. [any]
int rlhf__alternate_keep(const char *text);

#endif
