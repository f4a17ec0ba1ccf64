// record.c: see record.h.
#include "rubric/record.h"

#include "process/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <rlhf/log.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Returns a hash of 128 bits: FNV-1a with two offsets. It need not resist constructed collisions,
// because the questions come from the user's own run.
struct rlhf__question rlhf__question_of(const char *criterion, const char *text, size_t n) {
    struct rlhf__question q = {{0xcbf29ce484222325u, 0x84222325cbf29ce4u}};
    for (int half = 0; half < 2; half++) {
        for (const char *at = criterion; *at; at++)
            q.word[half] = (q.word[half] ^ (unsigned char)*at) * 0x100000001b3u;
        q.word[half] = (q.word[half] ^ 0x100u) * 0x100000001b3u;
        for (size_t i = 0; i < n; i++)
            q.word[half] =
                (q.word[half] ^ (unsigned char)text[half ? n - 1 - i : i]) * 0x100000001b3u;
    }
    return q;
}

// ---- the table ----

static struct rlhf__recorded_answer *place(const struct rlhf__record *r, struct rlhf__question q) {
    uint64_t at = (q.word[0] ^ q.word[1]) & (r->room - 1);
    while (r->answer[at].question.word[0] || r->answer[at].question.word[1]) {
        if (memcmp(&r->answer[at].question, &q, sizeof q) == 0) break;
        at = (at + 1) & (r->room - 1);
    }
    return &r->answer[at];
}

const struct rlhf__recorded_answer *rlhf__record_find(const struct rlhf__record *r,
                                                      struct rlhf__question q) {
    if (!r->room) return NULL;
    const struct rlhf__recorded_answer *a = place(r, q);
    return a->question.word[0] || a->question.word[1] ? a : NULL;
}

static rlhf_status grow(struct rlhf__record *r) {
    struct rlhf__record wider = *r;
    if (2 * (r->n + 1) < r->room) return RLHF_OK;
    wider.room = r->room ? 2 * r->room : 1024;
    wider.answer = r->host->alloc(r->host, wider.room * sizeof *wider.answer);
    if (!wider.answer) return (r->host->fail)(r->host, RLHF_E_NOMEM, "out of memory for answers");
    for (uint64_t i = 0; i < r->room; i++) {
        const struct rlhf__recorded_answer *a = &r->answer[i];
        if (a->question.word[0] || a->question.word[1]) *place(&wider, a->question) = *a;
    }
    if (r->answer) r->host->free(r->host, r->answer);
    *r = wider;
    return RLHF_OK;
}

// Stores an answer. If the question has an answer already, keeps that answer.
static rlhf_status keep(struct rlhf__record *r, struct rlhf__question q, double score) {
    RLHF_TRY(grow(r));
    struct rlhf__recorded_answer *a = place(r, q);
    if (a->question.word[0] || a->question.word[1]) return RLHF_OK;
    *a = (struct rlhf__recorded_answer){q, score};
    r->n++;
    return RLHF_OK;
}

// ---- the file ----

static int read_question(const json_t *v, struct rlhf__question *q) {
    const char *text = json_string_value(json_object_get(v, "question"));
    unsigned long long a, b;
    char more;
    if (!text || strlen(text) != 32 || sscanf(text, "%16llx%16llx%c", &a, &b, &more) != 2) return 0;
    *q = (struct rlhf__question){{a, b}};
    return 1;
}

static rlhf_status read_line(struct rlhf__record *r, const char *line, size_t n, size_t number) {
    json_t *v = json_loadb(line, n, 0, NULL);
    const json_t *score = json_object_get(v, "score");
    struct rlhf__question q;
    rlhf_status st;
    if (read_question(v, &q) && (json_is_number(score) || json_is_null(score)))
        st = keep(r, q, json_is_null(score) ? (double)NAN : json_number_value(score));
    else
        st = rlhf_failf(r->host, RLHF_E_INVALID,
                        "%s:%zu: it is not a recorded answer, {\"question\": 32 hexadecimal "
                        "digits, \"score\": a number or null}",
                        r->path, number);
    json_decref(v);
    return st;
}

static rlhf_status failed(const struct rlhf__record *r, const char *what) {
    return rlhf_failf(r->host, RLHF_E_IO, "record: %s %s: %s", r->path, what, strerror(errno));
}

static rlhf_status read_file(struct rlhf__record *r, struct rlhf__bytes *text) {
    char part[65536];
    ssize_t n;
    size_t number = 0, from = 0;
    while ((n = read(r->fd, part, sizeof part)) > 0)
        rlhf__bytes_add(text, part, (size_t)n);
    if (n < 0) return failed(r, "cannot be read");
    if (text->full) return (r->host->fail)(r->host, RLHF_E_NOMEM, "out of memory for answers");
    while (from < text->len) {
        const char *end = memchr(text->data + from, '\n', text->len - from);
        if (!end) return write(r->fd, "\n", 1) == 1 ? RLHF_OK : failed(r, "cannot be written");
        const size_t len = (size_t)(end - text->data) - from;
        number++;
        // Skip a line that was cut off when a run ended. The next run that opened the file
        // completed this line with a line end.
        if (len > 0 && text->data[from + len - 1] == '}')
            RLHF_TRY(read_line(r, text->data + from, len, number));
        from += len + 1;
    }
    return RLHF_OK;
}

rlhf_status rlhf__record_open(struct rlhf__record *r) {
    struct rlhf__bytes text = {.host = r->host};
    if (!r->path || r->opened) return RLHF_OK;
    r->fd = open(r->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (r->fd < 0) return failed(r, "cannot be opened");
    r->opened = 1;
    const rlhf_status st = read_file(r, &text);
    rlhf__bytes_finish(&text);
    if (st == RLHF_OK && r->n)
        rlhf_logf(r->host, RLHF_LOG_INFO, "%llu answers are recorded in %s",
                  (unsigned long long)r->n, r->path);
    return st;
}

rlhf_status rlhf__record_add(struct rlhf__record *r, struct rlhf__question q, const char *criterion,
                             double score, const char *why) {
    struct rlhf__bytes line = {.host = r->host};
    char head[160];
    RLHF_TRY(keep(r, q, score));
    if (!r->path) return RLHF_OK;
    snprintf(head, sizeof head, "{\"question\":\"%016llx%016llx\",\"criterion\":\"%s\",\"score\":",
             (unsigned long long)q.word[0], (unsigned long long)q.word[1], criterion);
    rlhf__bytes_text(&line, head);
    snprintf(head, sizeof head, "%.17g", score);
    rlhf__bytes_text(&line, isnan(score) ? "null" : head);
    if (why) rlhf__bytes_text(&line, ",\"lost\":");
    if (why) rlhf__bytes_string(&line, (rlhf_str){why, strlen(why)});
    rlhf__bytes_text(&line, "}\n");
    rlhf_status st = RLHF_OK;
    if (line.full)
        st = (r->host->fail)(r->host, RLHF_E_NOMEM, "out of memory for an answer");
    else if (write(r->fd, line.data, line.len) != (ssize_t)line.len)
        st = failed(r, "cannot be written");
    rlhf__bytes_finish(&line);
    return st;
}

void rlhf__record_finish(struct rlhf__record *r) {
    if (r->opened) close(r->fd);
    if (r->answer) r->host->free(r->host, r->answer);
}
