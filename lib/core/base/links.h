// links.h: do the symbolic links below a directory stay in it, and is the rest plain files?
#ifndef RLHF_HOST_LINKS_H
#define RLHF_HOST_LINKS_H

#include "base/error.h"

// Look at everything below dir, which may be a link itself. A link whose target begins with '/' or
// has a ".." in it: RLHF_E_INVALID with its path and target ("... leads out of <what>"), as are
// pipes, sockets, devices and more than 64 levels; RLHF_E_IO when a directory cannot be read. [any]
rlhf_status rlhf__links_stay(const char *dir, const char *what, struct rlhf__error *err);

#endif
