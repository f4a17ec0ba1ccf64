// tracker.c: see tracker.h. Each call is a line of JSON that is sent to driver.py, which answers
// with a line.
#include "tracker.h"

#include "process/bytes.h"
#include "process/talk.h"
#include "process/utf8.h"
#include "tracker_driver.h" // generated: rlhf__tracker_driver

#include <rlhf/log.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// begin() may log in over the network, and end() sends the remaining data. So both get more time
// than other calls.
#define BEGIN_S 120.0
#define END_S   60.0

enum { ANSWER = 1024 };

struct tracker {
    const rlhf_host *host;
    struct rlhf__tracker_spec spec;
    struct rlhf__program program;
    char *argv[5];
    char name[160]; // "wandb (python3)"
};

void rlhf__tracker_close(void *self) {
    struct tracker *t = self;
    if (!t) return;
    rlhf__program_finish(&t->program);
    t->host->free(t->host, t);
}

rlhf_status rlhf__tracker_open(const rlhf_host *host, const struct rlhf__tracker_spec *spec,
                               void **self) {
    struct tracker *t = host->alloc(host, sizeof *t);
    if (!t) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    t->host = host;
    t->spec = *spec;
    const char *python = spec->config->python;
    char *const argv[] = {rlhf__program_word(python), rlhf__program_word("-c"),
                          rlhf__program_word(rlhf__tracker_driver),
                          rlhf__program_word(spec->package), NULL};
    memcpy(t->argv, argv, sizeof argv);
    snprintf(t->name, sizeof t->name, "%s (%.120s)", spec->package, python);
    const rlhf_status st = rlhf__program_init(&t->program, host, t->argv, NULL);
    t->program.name = t->name;
    t->program.limits = NULL; // rewards.timeout_s and rewards.memory_mib do not apply to sinks
    // A sink's program is not confined (docs/sinks.md). program.c would log this at the first
    // start. It logs restrictions only if they differ from `walls`, so setting `walls` to "none"
    // suppresses the message.
    snprintf(t->program.walls, sizeof t->program.walls, "none");
    if (st < 0) {
        rlhf__tracker_close(t);
        return st;
    }
    *self = t;
    return RLHF_OK;
}

// ---- a call ----

struct answer {
    char text[ANSWER];
    size_t n;
};

static enum rlhf__taken take(void *ctx, const char *bytes, size_t n) {
    struct answer *a = ctx;
    if (n >= sizeof a->text - a->n) return RLHF__TAKEN_NONE;
    memcpy(a->text + a->n, bytes, n);
    a->n += n;
    a->text[a->n] = '\0';
    const char *end = strchr(a->text, '\n');
    if (!end) return RLHF__TAKEN_MORE;
    return end == a->text + a->n - 1 ? RLHF__TAKEN_ALL : RLHF__TAKEN_NONE;
}

// Reports why the exchange failed, and ends the program. Later calls do nothing.
static rlhf_status give_up(struct tracker *t, enum rlhf__talk what, const struct answer *a) {
    char text[1024], shown[ANSWER];
    rlhf_status st = RLHF_E_IO;
    if (what == RLHF__TALK_CANCELLED)
        st = (t->host->fail)(t->host, RLHF_E_CANCELLED, "stopped");
    else if (what == RLHF__TALK_DONE) // the answer is "failed <why>"
        st = rlhf_failf(t->host, RLHF_E_IO, "%s: %s", t->name,
                        rlhf__utf8_shown(a->text + 7, a->n - 8, shown, sizeof shown));
    else if (what == RLHF__TALK_REFUSED)
        st = rlhf_failf(t->host, RLHF_E_IO, "%s gave an invalid answer", t->name);
    else
        st = (t->host->fail)(t->host, RLHF_E_IO,
                             rlhf__talk_why(&t->program, what, "", text, sizeof text));
    rlhf__program_kill(&t->program);
    return st;
}

// Send a call, which is a line of JSON, and wait at most `seconds` seconds for the answer. If
// `from_phase` is not NULL, the answer begins with a number, which *from_phase receives.
static rlhf_status call(struct tracker *t, struct rlhf__bytes *line, double seconds, int patient,
                        int64_t *from_phase) {
    struct answer a = {.n = 0};
    if (!t->program.process) return rlhf_failf(t->host, RLHF_E_IO, "%s does not run", t->name);
    rlhf__bytes_text(line, "}\n");
    if (line->full) {
        rlhf__program_kill(&t->program);
        return (t->host->fail)(t->host, RLHF_E_NOMEM, "out of memory");
    }
    t->program.timeout_s = seconds;
    struct rlhf__exchange x = {
        .send = line->data, .n_send = line->len, .patient = patient, .take = take, .ctx = &a};
    const enum rlhf__talk what = rlhf__talk(&t->program, &x);
    if (what == RLHF__TALK_DONE && strncmp(a.text, "ok ", 3) == 0) {
        char shown[ANSWER], *said = a.text + 3;
        if (from_phase) *from_phase = strtoll(said, &said, 10);
        said += from_phase && *said == ' ';
        const size_t n = (size_t)(a.text + a.n - said);
        if (n > 1)
            rlhf_logf(t->host, RLHF_LOG_INFO, "%s",
                      rlhf__utf8_shown(said, n - 1, shown, sizeof shown));
        return RLHF_OK;
    }
    const int failed = what == RLHF__TALK_DONE && strncmp(a.text, "failed ", 7) == 0;
    return give_up(t, what == RLHF__TALK_DONE && !failed ? RLHF__TALK_REFUSED : what, &a);
}

// ---- the lines ----

static void add_text(struct rlhf__bytes *b, const char *before, const char *text) {
    rlhf__bytes_text(b, before);
    rlhf__bytes_string(b, (rlhf_str){text, strlen(text)});
}

// Append a number in the form that Python's json module reads.
static void add_number(struct rlhf__bytes *b, double v) {
    if (isfinite(v))
        rlhf__bytes_double(b, v);
    else
        rlhf__bytes_text(b, "NaN");
}

static rlhf_status begin(void *self, const rlhf_sink_run *run, rlhf_sink_answer *answer) {
    struct tracker *t = self;
    const struct rlhf__tracker_config *c = t->spec.config;
    struct rlhf__bytes b = {.host = t->host};
    RLHF_TRY(rlhf__program_start(&t->program));
    add_text(&b, "{\"call\":\"begin\",\"project\":", c->project);
    add_text(&b, ",\"name\":", *c->name ? c->name : run->name);
    add_text(&b, ",\"own_dir\":", run->own_dir);
    rlhf__bytes_text(&b, run->resumed ? ",\"resumed\":true" : ",\"resumed\":false");
    rlhf__bytes_text(&b, ",\"config\":");
    rlhf__bytes_json(&b, (rlhf_str){run->config, strlen(run->config)});
    rlhf__bytes_text(&b, ",\"more\":{");
    const char *comma = "";
    for (int i = 0; i < RLHF__TRACKER_WORDS; i++) {
        const struct rlhf__tracker_word *w = &t->spec.more[i];
        if (!w->key || !w->value) continue;
        add_text(&b, comma, w->key);
        add_text(&b, ":", w->value);
        comma = ",";
    }
    rlhf__bytes_text(&b, "}");
    const rlhf_status st = call(t, &b, BEGIN_S, 0, &answer->from_phase);
    rlhf__bytes_finish(&b);
    return st;
}

static rlhf_status phase(void *self, const rlhf_sink_phase *in) {
    struct tracker *t = self;
    struct rlhf__bytes b = {.host = t->host};
    rlhf__bytes_text(&b, "{\"call\":\"phase\",\"phase\":");
    rlhf__bytes_number(&b, in->phases_done);
    rlhf__bytes_text(&b, ",\"metrics\":{");
    for (uint32_t i = 0; i < in->n_metrics; i++) {
        add_text(&b, i ? "," : "", in->name[i]);
        rlhf__bytes_text(&b, ":");
        add_number(&b, in->value[i]);
    }
    rlhf__bytes_text(&b, "},\"samples\":[");
    const char *comma = "[";
    for (uint32_t i = 0; i < in->n_samples; i++) {
        if (in->held_out[i]) continue;
        rlhf__bytes_text(&b, comma);
        comma = ",[";
        rlhf__bytes_string(&b, in->prompt[i]);
        rlhf__bytes_text(&b, ",");
        rlhf__bytes_string(&b, in->response[i]);
        rlhf__bytes_text(&b, ",");
        add_number(&b, in->score[i]);
        rlhf__bytes_text(&b, "]");
    }
    rlhf__bytes_text(&b, "]");
    // Send the phase even after Ctrl-C, because the time that this takes is limited.
    const rlhf_status st = call(t, &b, t->spec.config->timeout_s, 1, NULL);
    rlhf__bytes_finish(&b);
    return st;
}

static rlhf_status end(void *self, const rlhf_sink_end *in) {
    static const char *const words[] = {"\"done\"", "\"stopped\"", "\"failed\""};
    struct tracker *t = self;
    struct rlhf__bytes b = {.host = t->host};
    if (!t->program.process) return RLHF_OK; // the program was ended by give_up()
    rlhf__bytes_text(&b, "{\"call\":\"end\",\"how\":");
    rlhf__bytes_text(&b,
                     words[in->how >= RLHF_RUN_DONE && in->how <= RLHF_RUN_FAILED ? in->how : 2]);
    add_text(&b, ",\"why\":", in->why);
    const rlhf_status st = call(t, &b, END_S, 1, NULL);
    rlhf__bytes_finish(&b);
    rlhf__program_finish(&t->program);
    return st;
}

const rlhf_sink_ops rlhf__tracker_ops = {
    .size = sizeof rlhf__tracker_ops, .begin = begin, .phase = phase, .end = end};
