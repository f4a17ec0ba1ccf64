// words.h: a command line as words, split as a POSIX shell splits one, without running a shell.
#ifndef RLHF_PLUGINS_PROCESS_WORDS_H
#define RLHF_PLUGINS_PROCESS_WORDS_H

#include <rlhf/host.h>

// Blanks, tabs and line breaks separate words. Within '...' every character is itself; within "..."
// a backslash takes the meaning of " \ $ and ` away; outside it takes that of any character. What
// else a shell would act on (| & ; < > ( ) $ `) is refused where it is not quoted, so that nobody
// waits for a pipe that is not there.
//
// *out = the words, NULL-ended, one block of the host's memory. RLHF_E_INVALID: a quote that is not
// closed, such a character, a command without words; RLHF_E_NOMEM. [any]
rlhf_status rlhf__words_split(const rlhf_host *host, const char *command, char ***out);

#endif
