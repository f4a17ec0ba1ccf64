// sink_events.c: TensorBoard events, one per phase with all scalars; values that are not finite are
// left out. Texts are Markdown.
#include "report/sink.h"

#include "report/events.h"

#include <math.h>
#include <stdlib.h>

static int32_t events_wanted(const struct rlhf__log_config *log) { return log->tensorboard; }

static rlhf_status events_open(const struct rlhf__folder *run, int64_t keep_phase,
                               struct rlhf__log *log, void **self, struct rlhf__error *err) {
    struct rlhf__events *e = *self = calloc(1, sizeof *e);
    (void)log;
    if (!e) return RLHF__NOMEM(err, "%s: out of memory", run->path);
    return rlhf__events_open(run, rlhf__sink_events.name, keep_phase, e, err);
}

static rlhf_status events_row(void *self, const struct rlhf__sink_row *r, struct rlhf__error *err) {
    struct rlhf__buf summary = RLHF__BUF_INIT;
    for (size_t i = 0; i < r->n; i++)
        if (isfinite(r->metric[i].value))
            rlhf__events_scalar(&summary, r->metric[i].name, r->metric[i].value);
    rlhf_status st = rlhf__events_write(self, r->phase, &summary, err);
    rlhf__buf_free(&summary);
    return st;
}

static rlhf_status events_text(void *self, int64_t phase, const char *tag, rlhf_str text,
                               struct rlhf__error *err) {
    struct rlhf__buf summary = RLHF__BUF_INIT;
    rlhf__events_text(&summary, tag, text);
    rlhf_status st = rlhf__events_write(self, phase, &summary, err);
    rlhf__buf_free(&summary);
    return st;
}

static rlhf_status events_sync(void *self, struct rlhf__error *err) {
    return rlhf__events_sync(self, err);
}

static void events_close(void *self) {
    if (self) rlhf__events_close(self);
    free(self);
}

const struct rlhf__sink rlhf__sink_events = {.name = "tensorboard",
                                             .wanted = events_wanted,
                                             .open = events_open,
                                             .row = events_row,
                                             .text = events_text,
                                             .sync = events_sync,
                                             .close = events_close};
