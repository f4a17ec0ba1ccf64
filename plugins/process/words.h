// words.h: splits a command line into words like a POSIX shell, but without running a shell.
#ifndef RLHF_PLUGINS_PROCESS_WORDS_H
#define RLHF_PLUGINS_PROCESS_WORDS_H

#include <rlhf/host.h>

// Spaces, tabs and line breaks separate words. Within '...' every character is literal. Within
// "..." a backslash makes only " \ $ and ` literal; outside of quotes it makes any character
// literal. Unquoted characters that are special to a shell (| & ; < > ( ) $ `) are refused, so that
// users do not expect a pipe that is not there.
//
// Sets *out to a NULL-terminated list of the words, in one block of the host's memory. Errors:
// RLHF_E_INVALID for an open quote, a refused character, or a command without words; RLHF_E_NOMEM.
// [any]
rlhf_status rlhf__words_split(const rlhf_host *host, const char *command, char ***out);

#endif
