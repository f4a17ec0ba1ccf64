// sink.c: the smallest useful sink. It writes one metric to a file in the run's directory, a line
// for each phase. Things to change: config, begin(), phase(), end(), the id.
#include <rlhf/log.h>
#include <rlhf/sink.h>

#include <errno.h>
#include <stdlib.h>

struct config {
    const char *metric, *file;
};

struct state {
    const rlhf_host *host;
    const struct config *config; // outlives the instance
    FILE *to;
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct state *s = host->alloc(host, sizeof *s); // zeroed
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = config;
    *self = s;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct state *s = self;
    if (!s) return;
    if (s->to) fclose(s->to);
    s->host->free(s->host, s);
}

static rlhf_status failed(const struct state *s, const char *what) {
    return rlhf_failf(s->host, RLHF_E_IO, "%s %s: %s", s->config->file, what, strerror(errno));
}

// In a resumed run, removes the lines of the phases after the checkpoint, because the host reports
// these phases a second time.
static FILE *go_on(const char *path, int64_t phases) {
    char other[4200], line[256];
    FILE *from = fopen(path, "r");
    if (!from) return fopen(path, "w");
    snprintf(other, sizeof other, "%s.new", path);
    FILE *to = fopen(other, "w");
    while (to && fgets(line, sizeof line, from) && strchr(line, '\n') &&
           strtoll(line, NULL, 10) <= phases)
        fputs(line, to);
    fclose(from);
    if (!to || rename(other, path) == 0) return to;
    fclose(to);
    return NULL;
}

static rlhf_status begin(void *self, const rlhf_sink_run *run) {
    struct state *s = self;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", run->dir, s->config->file);
    s->to = run->resumed ? go_on(path, run->phase) : fopen(path, "w");
    return s->to ? RLHF_OK : failed(s, "cannot be opened");
}

// If this function fails, the run continues without the sink.
static rlhf_status phase(void *self, const rlhf_sink_phase *in) {
    struct state *s = self;
    for (uint32_t i = 0; i < in->n_metrics; i++)
        if (strcmp(in->name[i], s->config->metric) == 0)
            fprintf(s->to, "%lld %.9g\n", (long long)in->phase, in->value[i]);
    return fflush(s->to) == 0 ? RLHF_OK : failed(s, "cannot be written");
}

static rlhf_status end(void *self, int32_t how, const char *why) {
    struct state *s = self;
    if (how != RLHF_RUN_DONE) rlhf_logf(s->host, RLHF_LOG_INFO, "the run ended early: %s", why);
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_STR(struct config, metric, "objective/scores", "the metric that is written"),
    RLHF_OPT_STR(struct config, file, "progress.txt", "name of the file in the run's directory"),
};
static const rlhf_sink_ops ops = {
    .size = sizeof ops,
    .begin = begin,
    .phase = phase,
    .end = end,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_SINK,
    .id = "org.example.my_sink", // reverse DNS; must be unique
    .version = "1.0.0",
    .summary = "writes a metric to a file",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
