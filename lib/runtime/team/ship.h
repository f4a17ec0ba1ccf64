// ship.h: sends files of rank 0 to ranks that cannot see them, because the machines do not share a
// directory.
#ifndef RLHF_HOST_TEAM_SHIP_H
#define RLHF_HOST_TEAM_SHIP_H

#include "base/buf.h"
#include "team/team.h"

// Append a line "<bytes> <name>" for each regular file below the directory, sorted by name. Appends
// nothing if the directory cannot be read. [main]
void rlhf__ship_list(const char *dir, struct rlhf__buf *out);

// Send the files on rank 0's list, which are below rank 0's directory `from`, to every rank that
// passes a directory `to`. A rank that does not need the files passes NULL. Lists of ranks other
// than 0 are ignored. All ranks must call this function; a rank that fails does not leave the
// others waiting. Errors of any rank: RLHF_E_IO, RLHF_E_INVALID (a file has changed); those of
// rlhf__team_agree. [main]
rlhf_status rlhf__ship_files(struct rlhf__team *t, const struct rlhf__buf *list, const char *from,
                             const char *to, struct rlhf__error *err);

#endif
