// sink.cc: the smallest useful sink, in C++20. It writes one metric to a file, a line
// for each phase. The host is written in C, so no exception may leave a function.
// Things to change: config, begin(), phase(), end(), the id.
#include <rlhf/log.h>
#include <rlhf/sink.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace {

struct config {
    const char *metric, *file;
};

struct state {
    const rlhf_host *host;
    const config *options; // outlive the instance
    std::FILE *to;
};

state &of(void *self) { return *static_cast<state *>(self); }

rlhf_status create(const rlhf_host *host, const void *options, void **self) {
    auto *s = static_cast<state *>(host->alloc(host, sizeof(state))); // zeroed
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->options = static_cast<const config *>(options);
    *self = s;
    return RLHF_OK;
}

void destroy(void *self) {
    auto *s = static_cast<state *>(self);
    if (!s) return;
    if (s->to) std::fclose(s->to);
    s->host->free(s->host, s);
}

rlhf_status failed(const state &s, const char *what) {
    return rlhf_failf(s.host, RLHF_E_IO, "%s %s: %s", s.options->file, what, std::strerror(errno));
}

// After a resume all phases arrive again, so the file is replaced. A sink that keeps or sends
// phases elsewhere answers the first one that it still needs: answer->from_phase.
rlhf_status begin(void *self, const rlhf_sink_run *run, rlhf_sink_answer *answer) noexcept {
    state &s = of(self);
    char path[4096];
    answer->from_phase = 0;
    std::snprintf(path, sizeof path, "%s/%s", run->own_dir, s.options->file);
    s.to = std::fopen(path, "w");
    return s.to ? RLHF_OK : failed(s, "cannot be opened");
}

// If this function fails, the run continues without the sink.
rlhf_status phase(void *self, const rlhf_sink_phase *in) noexcept {
    state &s = of(self);
    for (uint32_t i = 0; i < in->n_metrics; i++)
        if (std::strcmp(in->name[i], s.options->metric) == 0)
            std::fprintf(s.to, "%lld %.9g\n", static_cast<long long>(in->phases_done),
                         in->value[i]);
    return std::fflush(s.to) == 0 ? RLHF_OK : failed(s, "cannot be written");
}

rlhf_status end(void *self, const rlhf_sink_end *in) noexcept {
    state &s = of(self);
    if (in->how != RLHF_RUN_DONE) rlhf_logf(s.host, RLHF_LOG_INFO, "it ends early: %s", in->why);
    return RLHF_OK;
}

const rlhf_opt options[] = {
    RLHF_OPT_STR(config, metric, "objective/scores", "the metric that is written"),
    RLHF_OPT_STR(config, file, "progress.txt", "name of the file in sinks/ of the run"),
};
const rlhf_sink_ops ops = {.size = sizeof ops, .begin = begin, .phase = phase, .end = end};
const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_SINK,
    .id = "org.example.my_sink", // reverse DNS; must be unique
    .version = "1.0.0",
    .summary = "writes a metric to a file",
    RLHF_OPTIONS(config, options),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};

} // namespace

RLHF_DEFINE_PLUGIN(plugin)
