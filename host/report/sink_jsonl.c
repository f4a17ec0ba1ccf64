// sink_jsonl.c: metrics.jsonl, one object per phase: {"phase": n, <names sorted>}. Values that are
// not finite are null.
#include "report/sink.h"

#include "base/json.h"
#include "report/jsonl.h"

#include <stdlib.h>
#include <string.h>

static rlhf_status jsonl_open(const struct rlhf__folder *run, int64_t keep_phase,
                              struct rlhf__log *log, void **self, struct rlhf__error *err) {
    struct rlhf__jsonl *j = *self = calloc(1, sizeof *j);
    if (!j) return RLHF__NOMEM(err, "%s: out of memory", run->path);
    return rlhf__jsonl_open(run, rlhf__sink_jsonl.name, keep_phase, log, j, err);
}

static rlhf_status jsonl_row(void *self, const struct rlhf__sink_row *r, struct rlhf__error *err) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    char number[40];
    rlhf__buf_printf(&line, "{\"phase\": %lld", (long long)r->phase);
    for (size_t i = 0; i < r->n; i++) {
        rlhf__buf_puts(&line, ", ");
        rlhf__json_write_string(&line, r->metric[i].name, strlen(r->metric[i].name));
        rlhf__buf_printf(&line, ": %s", rlhf__format_double(r->metric[i].value, 0, number));
    }
    rlhf__buf_puts(&line, "}\n");
    rlhf_status st = rlhf__jsonl_append(self, &line, err);
    rlhf__buf_free(&line);
    return st;
}

static rlhf_status jsonl_sync(void *self, struct rlhf__error *err) {
    return rlhf__jsonl_sync(self, err);
}

static void jsonl_close(void *self) {
    if (self) rlhf__jsonl_close(self);
    free(self);
}

const struct rlhf__sink rlhf__sink_jsonl = {.name = "metrics.jsonl",
                                            .open = jsonl_open,
                                            .row = jsonl_row,
                                            .sync = jsonl_sync,
                                            .close = jsonl_close};
