// sinks.h: the sinks of a run (rlhf/sink.h): plugins that receive what the run reports. If a sink
// fails, the failure is logged and the sink gets no further phases. The run continues.
#ifndef RLHF_HOST_REPORT_SINKS_H
#define RLHF_HOST_REPORT_SINKS_H

#include "base/folder.h"
#include "config/config.h"
#include "plugin/services.h"

#include <rlhf/sink.h>

struct rlhf__sinks;

// Create an instance of each sink. The array `plugin` has c->n_sink entries, then the program's own
// sinks, then NULL; it may be NULL itself. The plugins and the services are borrowed. Errors: those
// of create(), e.g. if the sink rejects an option; RLHF_E_NOMEM. [main]
rlhf_status rlhf__sinks_open(const struct rlhf__config *c, const struct rlhf__plugin *const *plugin,
                             struct rlhf__services *services, struct rlhf__log *log,
                             struct rlhf__sinks **out, struct rlhf__error *err);
void rlhf__sinks_close(struct rlhf__sinks *); // NULL allowed [main]

// Call begin() of each sink with its directory, which is below run->dir. The directory of the
// program's own sinks is run->dir. `root` is the run's
// directory, whose files are read later; it is borrowed. [main]
void rlhf__sinks_begin(struct rlhf__sinks *, struct rlhf__folder *root, const rlhf_sink_run *run);

// Call phase() of each sink for each phase up to phase `last` that it has not got and needs.
// `checkpoint` and `best` describe the checkpoint of phase `last`: its directory, relative to the
// run's (NULL: none), and 1 if it is the best so far. [main]
void rlhf__sinks_report(struct rlhf__sinks *, int64_t last, const char *checkpoint, int best);

// Call end() of every sink whose begin() was called. [main]
void rlhf__sinks_end(struct rlhf__sinks *, const rlhf_sink_end *end);

#endif
