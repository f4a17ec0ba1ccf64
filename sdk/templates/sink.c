// sink.c: the smallest useful sink. It writes one metric to a file, a line for each phase. Things
// to change: config, begin(), phase(), end(), the id.
#include <rlhf/log.h>
#include <rlhf/sink.h>

#include <errno.h>

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

// After a resume all phases arrive again, so the file is replaced. A sink that keeps or sends
// phases elsewhere answers the first one that it still needs: answer->from_phase.
static rlhf_status begin(void *self, const rlhf_sink_run *run, rlhf_sink_answer *answer) {
    struct state *s = self;
    char path[4096];
    answer->from_phase = 0;
    snprintf(path, sizeof path, "%s/%s", run->own_dir, s->config->file);
    s->to = fopen(path, "w");
    return s->to ? RLHF_OK : failed(s, "cannot be opened");
}

// If this function fails, the run continues without the sink.
static rlhf_status phase(void *self, const rlhf_sink_phase *in) {
    struct state *s = self;
    for (uint32_t i = 0; i < in->n_metrics; i++)
        if (strcmp(in->name[i], s->config->metric) == 0)
            fprintf(s->to, "%lld %.9g\n", (long long)in->phases_done, in->value[i]);
    return fflush(s->to) == 0 ? RLHF_OK : failed(s, "cannot be written");
}

static rlhf_status end(void *self, const rlhf_sink_end *in) {
    struct state *s = self;
    if (in->how != RLHF_RUN_DONE) rlhf_logf(s->host, RLHF_LOG_INFO, "it ends early: %s", in->why);
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_STR(struct config, metric, "objective/scores", "the metric that is written"),
    RLHF_OPT_STR(struct config, file, "progress.txt", "name of the file in sinks/ of the run"),
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
