// words.h: splits a command line into words as a POSIX shell does, without running a shell.
#ifndef RLHF_PLUGINS_PROCESS_WORDS_H
#define RLHF_PLUGINS_PROCESS_WORDS_H

#include <rlhf/host.h>

// Spaces, tabs and line breaks separate words. Within '...' every character is literal. Within
// "..." a backslash makes only the characters " \ $ and ` literal; elsewhere it makes any character
// literal. Unquoted characters on which a shell would act (| & ; < > ( ) $ `) are refused, so that
// users do not expect a pipe that is not there.
//
// *out = the words, NULL-terminated, in one block of the host's memory. RLHF_E_INVALID: an open
// quote, a refused character, or a command without words; RLHF_E_NOMEM. [any]
rlhf_status rlhf__words_split(const rlhf_host *host, const char *command, char ***out);

#endif
