// links.h: checks that a directory that may come from a stranger leads to no file outside of it.
#ifndef RLHF_FORMATS_WEIGHTS_LINKS_H
#define RLHF_FORMATS_WEIGHTS_LINKS_H

#include "base/error.h"

// Check everything below `dir`, which may itself be a link. Rejects links whose target begins with
// '/' or contains ".." (RLHF_E_INVALID with path and target, "... leads out of <what>"). Also
// rejects pipes, sockets, devices and more than 64 levels. If a directory cannot be read, returns
// RLHF_E_IO. [any]
rlhf_status rlhf__links_stay(const char *dir, const char *what, struct rlhf__error *err);

#endif
