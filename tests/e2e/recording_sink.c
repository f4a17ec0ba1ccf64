// recording_sink.c: a sink that writes every call to a file as a JSON line, and fails on request.
// RLHF_TEST_FLOATS names the function that changes the floating-point environment: load, create,
// begin or phase.
#include "support/floats.h"
#include "support/plugin.h"

#include <rlhf/log.h>
#include <rlhf/sink.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct config {
    const char *file, *fail;
    int64_t at, from;
    int32_t interrupt, own;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_STR(struct config, file, "calls.jsonl", "where the lines go"),
    RLHF_OPT_STR(
        struct config, fail, "",
        "the function that fails: create, begin, phase or end; crash: phase() crashes; more: "
        "begin() returns 1; change_begin, change_phase, change_spread, change_end: changes a "
        "struct "
        "of the host"),
    RLHF_OPT_I64(struct config, at, 2, 0, 1000, "the phase in which phase() fails"),
    RLHF_OPT_I64(struct config, from, 0, 0, 1000, "the first phase that it needs"),
    RLHF_OPT_BOOL(struct config, interrupt, 0, "press Ctrl-C in that phase"),
    RLHF_OPT_BOOL(struct config, own, 0, "the file is in the sink's own directory"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
    char path[4096];
};

static void may_change_floats(const char *function) {
    const char *in = getenv("RLHF_TEST_FLOATS");
    if (in && strcmp(in, function) == 0) change_floats();
}

__attribute__((constructor)) static void load(void) { may_change_floats("load"); }

static FILE *open_file(const struct self *s) {
    FILE *f = fopen(s->path[0] ? s->path : s->config->file, "ae");
    if (!f) abort();
    return f;
}

static void put_text(FILE *f, const char *text, size_t n) {
    putc('"', f);
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\' || c < 32)
            fprintf(f, "\\u%04x", c);
        else
            putc(c, f);
    }
    putc('"', f);
}

static void put_number(FILE *f, double v) {
    if (isfinite(v))
        fprintf(f, "%.17g", v);
    else
        fputs("null", f);
}

static void put_or_null(FILE *f, const char *text) {
    if (text)
        put_text(f, text, strlen(text));
    else
        fputs("null", f);
}

static rlhf_status end_call(const struct self *s, FILE *f, const char *name) {
    fputs("}\n", f);
    fclose(f);
    rlhf_metric_last(s->host, "observed", 1); // must not reach the run
    may_change_floats(name);
    if (strcmp(s->config->fail, "more") == 0 && strcmp(name, "begin") == 0) return 1;
    if (strcmp(s->config->fail, name) != 0) return RLHF_OK;
    return rlhf_failf(s->host, RLHF_E_IO, "no %s today", name);
}

static int changes(const struct self *s, const char *what) {
    return strcmp(s->config->fail, what) == 0;
}

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct self *s = host->alloc(host, sizeof *s);
    if (!s) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = config;
    *self = s;
    if (s->config->own) return RLHF_OK; // its directory is not known yet
    FILE *f = open_file(s);
    fputs("{\"call\": \"create\"", f);
    const rlhf_status st = end_call(s, f, "create");
    if (st < 0) host->free(host, s);
    return st;
}

static void destroy(void *self) {
    struct self *s = self;
    if (s) s->host->free(s->host, s);
}

static rlhf_status begin(void *self, const rlhf_sink_run *run, rlhf_sink_answer *answer) {
    struct self *s = self;
    if (s->config->own)
        snprintf(s->path, sizeof s->path, "%.3000s/%.1000s", run->own_dir, s->config->file);
    FILE *f = open_file(s);
    answer->from_phase = s->config->from;
    fprintf(f,
            "{\"call\": \"begin\", \"resumed\": %u, \"phase\": %lld, \"phases\": %lld, \"dir\": ",
            run->resumed, (long long)run->phases_done, (long long)run->phases);
    put_text(f, run->dir, strlen(run->dir));
    fputs(", \"name\": ", f);
    put_text(f, run->name, strlen(run->name));
    fprintf(f, ", \"config\": ");
    for (const char *c = run->config; *c; c++)
        putc(*c == '\n' ? ' ' : *c, f);
    if (changes(s, "change_begin")) ((rlhf_sink_run *)(uintptr_t)run)->phases = 7;
    return end_call(s, f, "begin");
}

static rlhf_status phase(void *self, const rlhf_sink_phase *in) {
    const struct self *s = self;
    FILE *f = open_file(s);
    fprintf(f, "{\"call\": \"phase\", \"phase\": %lld, \"elapsed\": %.9g, \"metrics\": {",
            (long long)in->phases_done, in->elapsed);
    for (uint32_t i = 0; i < in->n_metrics; i++) {
        fputs(i ? ", " : "", f);
        put_text(f, in->name[i], strlen(in->name[i]));
        fputs(": ", f);
        put_number(f, in->value[i]);
    }
    fputs("}, \"samples\": [", f);
    for (uint32_t i = 0; i < in->n_samples; i++) {
        fputs(i ? ", [" : "[", f);
        put_text(f, in->prompt[i].ptr, (size_t)in->prompt[i].len);
        fputs(", ", f);
        put_text(f, in->response[i].ptr, (size_t)in->response[i].len);
        fputs(", ", f);
        put_number(f, in->score[i]);
        fputs(in->held_out[i] ? ", true" : "", f);
        fputs("]", f);
    }
    fputs("], \"spread\": [", f);
    for (uint32_t i = 0; i < in->n_spreads; i++)
        fprintf(f, "%s\"%s %u %lld%s\"", i ? ", " : "", in->spread[i]->name, in->spread[i]->n,
                (long long)in->spread[i]->numbers, in->spread[i]->count ? "" : " q");
    fputs("], \"warnings\": [", f);
    for (uint32_t i = 0; i < in->n_warnings; i++) {
        fputs(i ? ", " : "", f);
        put_text(f, in->warning_id[i], strlen(in->warning_id[i]));
    }
    fputs("], \"checkpoint\": ", f);
    put_or_null(f, in->checkpoint);
    fprintf(f, ", \"best\": %u", in->flags & RLHF_SINK_PHASE_BEST);
    if (in->phases_done == s->config->at && s->config->interrupt) raise(SIGINT);
    if (in->phases_done == s->config->at && strcmp(s->config->fail, "crash") == 0) abort();
    if (changes(s, "change_phase")) ((rlhf_sink_phase *)(uintptr_t)in)->n_metrics = 0;
    if (changes(s, "change_spread")) ((rlhf_spread *)(uintptr_t)in->spread[1])->mean = 0.1;
    may_change_floats("phase");
    return end_call(s, f, in->phases_done == s->config->at ? "phase" : "another phase");
}

static rlhf_status end(void *self, const rlhf_sink_end *in) {
    const struct self *s = self;
    FILE *f = open_file(s);
    fprintf(f, "{\"call\": \"end\", \"how\": %d, \"phase\": %lld, \"kind\": %d, \"found\": %u",
            in->how, (long long)in->phases_done, in->verdict_kind, in->n_findings);
    fputs(", \"why\": ", f);
    put_text(f, in->why, strlen(in->why));
    fputs(", \"verdict\": ", f);
    put_text(f, in->verdict, strlen(in->verdict));
    fputs(", \"last\": ", f);
    put_or_null(f, in->last_checkpoint);
    fputs(", \"best\": ", f);
    put_or_null(f, in->best_checkpoint);
    if (changes(s, "change_end")) ((rlhf_sink_end *)(uintptr_t)in)->n_findings = 1000;
    return end_call(s, f, "end");
}

static const rlhf_sink_ops ops = {.size = sizeof ops, .begin = begin, .phase = phase, .end = end};

TEST_PLUGIN(RLHF_KIND_SINK, "recording_sink", .summary = "writes down what it gets",
            TEST_OPTIONS(opts), .create = create, .destroy = destroy)
