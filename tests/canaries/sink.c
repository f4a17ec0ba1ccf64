// sink.c: sinks that each break one rule, chosen by a BREAK_ macro; see reward.c.
#include "support/floats.h"

#include <rlhf/log.h>
#include <rlhf/sink.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

struct sink {
    const rlhf_host *host;
    double sum;
    int64_t phases;
};

#ifdef BREAK_FLOATS_LOAD
__attribute__((constructor)) static void load(void) { change_floats(); }
#endif

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct sink *s = host->alloc(host, sizeof *s);
    (void)config;
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    *self = s;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct sink *s = self;
    if (s) s->host->free(s->host, s);
}

static rlhf_status begin(void *self, const rlhf_sink_run *run, rlhf_sink_answer *answer) {
    struct sink *s = self;
    s->phases = answer->from_phase = run->phases_done;
#ifdef BREAK_WRITES // not an error: a table in the run's directory
    char path[4096];
    snprintf(path, sizeof path, "%s/phases.csv", run->own_dir);
    FILE *f = fopen(path, run->resumed ? "a" : "w");
    if (!f || fprintf(f, "%s\n", run->name) < 0 || fclose(f) != 0)
        return s->host->fail(s->host, RLHF_E_IO, "phases.csv cannot be written");
#endif
#ifdef BREAK_SNEAKS // not an error of the sink: a worker refuses these
    char elsewhere[4096];
    snprintf(elsewhere, sizeof elsewhere, "%s/metrics.jsonl", run->dir);
    const char *files[] = {getenv("CANARY_FILE"), elsewhere};
    for (int i = 0; i < 2; i++)
        if (files[i] && open(files[i], O_WRONLY | O_CREAT, 0600) >= 0) abort();
#endif
#ifdef BREAK_WORDS
    return RLHF_E_IO;
#else
    return run->dir[0] == '/' && strlen(run->name) > 0 && run->config[0] == '{'
               ? RLHF_OK
               : s->host->fail(s->host, RLHF_E_INVALID, "no run");
#endif
}

static rlhf_status phase(void *self, const rlhf_sink_phase *in) {
    struct sink *s = self;
    double *copy = s->host->alloc(s->host, 8 * (uint64_t)(in->n_metrics + 1));
#ifndef BREAK_MEMORY
    if (!copy) return s->host->fail(s->host, RLHF_E_NOMEM, "out of memory");
#endif
    copy[in->n_metrics] = 0;
    for (uint32_t i = 0; i < in->n_metrics; i++)
        s->sum += in->value[i] + (double)strlen(in->name[i]);
    for (uint32_t i = 0; i < in->n_samples; i++)
        s->sum += (double)in->prompt[i].len + (double)in->response[i].len + in->score[i];
    s->host->free(s->host, copy);
#ifdef BREAK_BORROWED
    if (in->n_metrics) ((double *)(uintptr_t)in->value)[0] = 0;
#elif defined BREAK_CRASH
    if (in->n_metrics == 0) abort();
#elif defined BREAK_FLOATS
    change_floats();
#endif
#ifdef BREAK_CHANGES
    ((rlhf_sink_phase *)(uintptr_t)in)->n_samples = 0;
#endif
    s->phases++;
    return RLHF_OK;
}

static rlhf_status end(void *self, const rlhf_sink_end *in) {
    struct sink *s = self;
    if (in->how != RLHF_RUN_DONE) rlhf_logf(s->host, RLHF_LOG_INFO, "it ends: %s", in->why);
    return RLHF_OK;
}

static const rlhf_sink_ops ops = {.size = sizeof ops, .begin = begin, .phase = phase, .end = end};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_SINK,
    .id = "org.example.canary",
    .version = "1",
    .summary = "breaks a rule",
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};

RLHF_DEFINE_PLUGIN(plugin)
