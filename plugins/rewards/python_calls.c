// python_calls.c: see python_calls.h.
#include "python_calls.h"

#include "process/tally.h"
#include "process/utf8.h"
#include "python_driver.h" // generated: rlhf__python_driver

#include <rlhf/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 800 };

static const char *const environment[] = {
    "PYTHONHASHSEED=0", // so that sets have the same order when a run is resumed
    NULL,
};

static rlhf_status no_memory(const struct rlhf__python *p) {
    return (p->host->fail)(p->host, RLHF_E_NOMEM, "out of memory");
}

const char *rlhf__python_file(const struct rlhf__python *p) {
    const char *slash = strrchr(p->file, '/');
    return slash ? slash + 1 : p->file;
}

// ---- the driver ----

// Sends `send` and reads the driver's answer. If the driver reports a failure, passes it to the
// host with the status `st`; before the run (RLHF_E_INVALID), the message also says `where`. If the
// exchange itself fails, kills the driver and reports the failure with the same status.
static rlhf_status ask(struct rlhf__python *p, const struct rlhf__bytes *send, const char *where,
                       rlhf_status st, struct rlhf__frame *f) {
    struct rlhf__exchange x = {.take = rlhf__frame_take, .ctx = f};
    char text[1024];
    if (send) x.send = send->data;
    if (send) x.n_send = send->len;
    const enum rlhf__talk what = rlhf__talk(&p->program, &x);
    if (what == RLHF__TALK_DONE && f->kind == RLHF__FRAME_FAILED) {
        const rlhf_str why = rlhf__frame_text(f);
        rlhf__utf8_shown(why.ptr, (size_t)why.len, text, SHOWN);
        if (!send || st != RLHF_E_INVALID) return (p->host->fail)(p->host, st, text);
        return rlhf_failf(p->host, st, "%s (%s)", text, where);
    }
    if (what == RLHF__TALK_DONE && (f->kind == RLHF__FRAME_SCORES) == (send != NULL))
        return RLHF_OK;
    if (what == RLHF__TALK_DONE || what == RLHF__TALK_REFUSED)
        snprintf(text, sizeof text, "%s gave an invalid answer %s", p->name, where);
    else if (what != RLHF__TALK_CANCELLED)
        rlhf__talk_why(&p->program, what, where, text, sizeof text);
    rlhf__program_kill(&p->program);
    if (what == RLHF__TALK_CANCELLED) return RLHF_E_CANCELLED;
    if (f->data.full) return no_memory(p);
    return (p->host->fail)(p->host, st, text);
}

// Starts the driver, which imports the file.
static rlhf_status start(struct rlhf__python *p, rlhf_status status) {
    struct rlhf__frame f = {.data = {.host = p->host}};
    RLHF_TRY(rlhf__program_start(&p->program));
    rlhf_status st = ask(p, NULL, "while it imported the file", status, &f);
    if (st == RLHF_OK) {
        const rlhf_str text = rlhf__frame_text(&f);
        p->ready.len = 0;
        rlhf__bytes_add(&p->ready, text.ptr, (size_t)text.len);
        if (p->ready.full) st = no_memory(p);
    }
    if (st < 0) rlhf__program_kill(&p->program);
    rlhf__bytes_finish(&f.data);
    return st;
}

static rlhf_status start_again(struct rlhf__python *p) {
    struct rlhf__program *q = &p->program;
    char text[1024];
    if (q->process && !rlhf__program_has_ended(q)) return RLHF_OK;
    if (q->process) {
        rlhf__said_read(&q->said, q->host, q->process->err);
        rlhf__talk_why(q, RLHF__TALK_ENDED, "between two calls", text, sizeof text);
        p->host->log(p->host, RLHF_LOG_WARN, text);
        rlhf__program_kill(q);
    }
    rlhf_logf(p->host, RLHF_LOG_INFO, "%s is started again", p->name);
    return start(p, RLHF_E_IO);
}

int rlhf__python_ready_line(const struct rlhf__python *p, const char *kind, uint32_t i,
                            rlhf_str *out) {
    rlhf_str text = {p->ready.data, p->ready.len}, line;
    const size_t len = strlen(kind);
    while (rlhf__frame_line(&text, &line)) {
        if (line.len <= len || memcmp(line.ptr, kind, len) != 0 || i--) continue;
        *out = (rlhf_str){line.ptr + len, line.len - len};
        return 1;
    }
    return 0;
}

// ---- a call ----

static void add_texts(struct rlhf__bytes *b, const char *key, const rlhf_str *texts, uint32_t n) {
    rlhf__bytes_text(b, key);
    for (uint32_t i = 0; i < n; i++) {
        rlhf__bytes_text(b, i ? "," : "[");
        rlhf__bytes_string(b, texts[i]);
    }
    rlhf__bytes_text(b, "]");
}

static void add_batch(struct rlhf__bytes *b, const rlhf_reward_in *in) {
    rlhf__bytes_text(b, "{\"step\":");
    rlhf__bytes_number(b, (int64_t)in->phase);
    add_texts(b, ",\"prompts\":", in->prompt, in->n);
    add_texts(b, ",\"completions\":", in->response, in->n);
    rlhf__bytes_text(b, ",\"ids\":");
    for (uint32_t i = 0; i < in->n; i++) {
        const int32_t from = in->offset[i] + in->prompt_len[i];
        rlhf__bytes_text(b, i ? "," : "[");
        rlhf__bytes_list(b, in->ids + from, (size_t)(in->offset[i + 1] - from));
    }
    rlhf__bytes_text(b, "],\"finished\":");
    for (uint32_t i = 0; i < in->n; i++) {
        rlhf__bytes_text(b, i ? "," : "[");
        rlhf__bytes_text(b, !in->finished || in->finished[i] ? "true" : "false");
    }
    rlhf__bytes_text(b, "],\"rows\":");
    for (uint32_t i = 0; i < in->n; i++) {
        rlhf__bytes_text(b, i ? "," : "[");
        rlhf__bytes_json(b, in->meta ? in->meta[i] : (rlhf_str){NULL, 0});
    }
    rlhf__bytes_text(b, "]}");
}

// Writes "BYTES\n" and the request.
static rlhf_status write_batch(struct rlhf__python *p, const rlhf_reward_in *in,
                               struct rlhf__bytes *to) {
    struct rlhf__bytes body = {.host = p->host};
    add_batch(&body, in);
    rlhf__bytes_number(to, (int64_t)body.len);
    rlhf__bytes_text(to, "\n");
    rlhf__bytes_add(to, body.data, body.len);
    const int full = body.full || to->full;
    rlhf__bytes_finish(&body);
    return full ? no_memory(p) : RLHF_OK;
}

// Shows the first printed lines of each phase, because users debug functions with print().
static void show_printed(struct rlhf__python *p, int64_t phase) {
    if (p->phase == phase) return;
    p->phase = phase;
    rlhf__said_show(&p->program.said, p->host, rlhf__python_file(p));
}

rlhf_status rlhf__python_score(struct rlhf__python *p, const rlhf_reward_in *in,
                               struct rlhf__frame *f) {
    struct rlhf__bytes batch = {.host = p->host};
    char where[64];
    snprintf(where, sizeof where, "while it scored %u rows", in->n);
    show_printed(p, in->phase);
    rlhf_status st = write_batch(p, in, &batch);
    if (st == RLHF_OK) st = start_again(p);
    if (st == RLHF_OK) st = ask(p, &batch, where, RLHF_E_IO, f);
    rlhf__bytes_finish(&batch);
    return st;
}

// Processes a line "metric VALUE NAME", "note SENTENCE", "unscored SENTENCE" or "invalid
// SENTENCE".
static void take_line(struct rlhf__python *p, rlhf_str line, struct rlhf__tally *tally) {
    char text[512], shown[512], *end;
    const size_t n = line.len < sizeof text ? (size_t)line.len : sizeof text - 1;
    memcpy(text, line.ptr, n);
    text[n] = 0;
    if (n == line.len && strncmp(text, "metric ", 7) == 0) {
        const double value = strtod(text + 7, &end);
        if (*end == ' ' && strlen(end + 1) < RLHF__TALLY_NAME)
            rlhf__tally_add(tally, end + 1, value);
    } else if (strncmp(text, "note ", 5) == 0 && !p->noted) {
        p->noted = 1;
        p->host->log(p->host, RLHF_LOG_INFO, text + 5);
    } else if (strncmp(text, "unscored ", 9) == 0 && !p->said_unscored) {
        p->said_unscored = 1;
        p->host->log(p->host, RLHF_LOG_WARN, text + 9);
    } else if (strncmp(text, "invalid ", 8) == 0 && !p->said_invalid) {
        p->said_invalid = 1;
        p->host->log(p->host, RLHF_LOG_WARN,
                     rlhf__utf8_shown(text + 8, n - 8, shown, sizeof shown)); // an exception's text
    }
}

rlhf_status rlhf__python_report(struct rlhf__python *p, const struct rlhf__frame *f) {
    struct rlhf__tally *tally = p->host->alloc(p->host, sizeof *tally);
    rlhf_str text = rlhf__frame_text(f), line;
    if (!tally) return no_memory(p);
    while (rlhf__frame_line(&text, &line))
        take_line(p, line, tally);
    rlhf__tally_report(tally, p->host);
    p->host->free(p->host, tally);
    return RLHF_OK;
}

rlhf_status rlhf__python_try(struct rlhf__python *p, const rlhf_row_in *row) {
    static const int32_t offset[] = {0, 0, 0}, prompt_len[] = {0, 0};
    const rlhf_str prompt[] = {row->prompt, row->prompt}, meta[] = {row->meta, row->meta};
    const rlhf_str response[] = {{"", 0}, {"Yes.", 4}};
    const rlhf_reward_in in = {.size = sizeof in,
                               .n = 2,
                               .prompt = prompt,
                               .response = response,
                               .meta = meta,
                               .ids = offset, // no token of it is read
                               .offset = offset,
                               .prompt_len = prompt_len};
    struct rlhf__frame f = {.data = {.host = p->host}};
    struct rlhf__bytes batch = {.host = p->host};
    if (p->tried) return RLHF_OK;
    p->tried = 1;
    rlhf_status st = write_batch(p, &in, &batch);
    if (st == RLHF_OK)
        st = ask(p, &batch, "when it scored two made-up responses to the first row, before the run",
                 RLHF_E_INVALID, &f);
    rlhf__bytes_finish(&batch);
    rlhf__bytes_finish(&f.data);
    return st;
}

// ---- opening ----

static rlhf_status look_at_file(const struct rlhf__python *p) {
    FILE *f = fopen(p->file, "re");
    const int c = f ? fgetc(f) : 0;
    if (f && c == EOF && ferror(f)) {
        fclose(f);
        f = NULL;
    }
    if (!f)
        return rlhf_failf(p->host, RLHF_E_INVALID, "file=%s cannot be read: %s", p->file,
                          strerror(errno));
    fclose(f);
    return RLHF_OK;
}

rlhf_status rlhf__python_open(struct rlhf__python *p) {
    p->ready.host = p->host;
    RLHF_TRY(look_at_file(p));
    char *const argv[] = {rlhf__program_word(p->python),
                          rlhf__program_word("-c"),
                          rlhf__program_word(rlhf__python_driver),
                          rlhf__program_word(p->file),
                          rlhf__program_word(p->functions),
                          p->pointer ? rlhf__program_word(p->pointer) : NULL,
                          NULL};
    memcpy(p->argv, argv, sizeof argv);
    snprintf(p->name, sizeof p->name, "%.120s (%.120s)", rlhf__python_file(p), p->python);
    RLHF_TRY(rlhf__program_init(&p->program, p->host, p->argv, environment));
    p->program.name = p->name;
    p->phase = -1; // so that lines printed by the import are shown
    rlhf__said_show(&p->program.said, p->host, rlhf__python_file(p));
    return start(p, RLHF_E_INVALID);
}

void rlhf__python_close(struct rlhf__python *p) {
    if (!p->host) return;
    rlhf__program_finish(&p->program);
    rlhf__said_show(&p->program.said, p->host, NULL);
    rlhf__bytes_finish(&p->ready);
}
