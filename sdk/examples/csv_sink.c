// csv_sink.c: a sink that writes the metrics of a run as a table for a spreadsheet: metrics.csv in
// the run's directory, with a line for each phase. The columns are the metrics of the first phase.
// If a later phase lacks a metric, its cell is empty; new metrics of later phases are left out. A
// resumed run continues the table with the same columns. It first removes the rows of phases after
// its checkpoint, since those phases arrive again.
//
// The sink copies the names of the columns, because the arguments of a call are valid only until
// the call returns.
#include <rlhf/log.h>
#include <rlhf/sink.h>

#include <errno.h>
#include <stdlib.h>

enum { COLUMNS = 512, NAME = 128, LINE = COLUMNS * NAME + 64 };

struct state {
    const rlhf_host *host;
    FILE *to;
    uint32_t n;
    char name[COLUMNS][NAME];
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct state *s = host->alloc(host, sizeof *s); // zeroed
    (void)config;
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    *self = s;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct state *s = self;
    if (!s) return;
    if (s->to) fclose(s->to);
    s->host->free(s->host, s);
}

// Reads the names of the columns of an existing table. Skips the first three: phase, steps and
// elapsed.
static void read_head(struct state *s, const char *line) {
    for (int k = 0; *line; k++) {
        const size_t n = strcspn(line, ",\n");
        if (k > 2 && s->n < COLUMNS) snprintf(s->name[s->n++], NAME, "%.*s", (int)n, line);
        line += n + (line[n] != 0);
    }
}

static FILE *go_on(struct state *s, const char *path, int64_t phases) {
    char other[4200], line[LINE];
    FILE *from = fopen(path, "r");
    if (!from) return fopen(path, "w");
    snprintf(other, sizeof other, "%s.new", path);
    FILE *to = fopen(other, "w");
    while (to && fgets(line, sizeof line, from) && strchr(line, '\n') &&
           strtoll(line, NULL, 10) <= phases) {
        if (s->n == 0) read_head(s, line);
        fputs(line, to);
    }
    fclose(from);
    if (!to || rename(other, path) == 0) return to;
    fclose(to);
    return NULL;
}

static rlhf_status begin(void *self, const rlhf_sink_run *run) {
    struct state *s = self;
    char path[4096];
    snprintf(path, sizeof path, "%s/metrics.csv", run->dir);
    s->to = run->resumed ? go_on(s, path, run->phase) : fopen(path, "w");
    if (s->to) return RLHF_OK;
    return rlhf_failf(s->host, RLHF_E_IO, "%s cannot be opened: %s", path, strerror(errno));
}

static void head(struct state *s, const rlhf_sink_phase *in) {
    fputs("phase,steps,elapsed", s->to);
    for (uint32_t i = 0; i < in->n_metrics && s->n < COLUMNS; i++) {
        snprintf(s->name[s->n], NAME, "%s", in->name[i]);
        fprintf(s->to, ",%s", s->name[s->n++]);
    }
    fputc('\n', s->to);
}

static rlhf_status phase(void *self, const rlhf_sink_phase *in) {
    struct state *s = self;
    if (s->n == 0) head(s, in);
    fprintf(s->to, "%lld,%lld,%.3f", (long long)in->phase, (long long)in->steps, in->elapsed);
    for (uint32_t k = 0; k < s->n; k++) {
        uint32_t i = 0;
        while (i < in->n_metrics && strcmp(in->name[i], s->name[k]) != 0)
            i++;
        fputc(',', s->to);
        if (i < in->n_metrics) fprintf(s->to, "%.9g", in->value[i]);
    }
    fputc('\n', s->to);
    if (fflush(s->to) == 0) return RLHF_OK;
    return rlhf_failf(s->host, RLHF_E_IO, "metrics.csv cannot be written: %s", strerror(errno));
}

static const rlhf_sink_ops ops = {.size = sizeof ops, .begin = begin, .phase = phase};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_SINK,
    .id = "org.example.csv-sink",
    .version = "1.0.0",
    .summary = "metrics as a table, metrics.csv",
    .license = "Apache-2.0",
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
