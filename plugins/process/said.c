// said.c: see said.h.
#include "process/said.h"

#include "process/utf8.h"

#include <rlhf/log.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { LAST_LINES = 3, LAST_BYTES = 300, READS = 64 };

void rlhf__said_forget(struct rlhf__program_said *s) { s->n = s->line = 0; }

void rlhf__said_show(struct rlhf__program_said *s, const rlhf_host *host, const char *name) {
    if (s->hidden)
        rlhf_logf(host, RLHF_LOG_INFO, "%s: %u more line%s printed, shown at log.level=debug",
                  s->shown_as, s->hidden, s->hidden == 1 ? "" : "s");
    s->shown_as = name;
    s->shown = s->hidden = 0;
}

static void log_line(struct rlhf__program_said *s, const rlhf_host *host, const char *line,
                     size_t n) {
    char text[512];
    const char *shown = rlhf__utf8_shown(line, n, text, sizeof text);
    if (!s->shown_as || s->shown == RLHF__SAID_SHOWN) {
        s->hidden += s->shown_as && s->hidden < UINT32_MAX;
        rlhf_logf(host, RLHF_LOG_DEBUG, "%s", shown);
    } else {
        s->shown++;
        rlhf_logf(host, RLHF_LOG_INFO, "%s: %s", s->shown_as, shown);
    }
}

static void log_lines(struct rlhf__program_said *s, const rlhf_host *host) {
    for (;;) {
        const char *from = s->tail + s->line;
        const char *end = memchr(from, '\n', s->n - s->line);
        if (!end) return;
        log_line(s, host, from, (size_t)(end - from));
        s->line = (size_t)(end + 1 - s->tail);
    }
}

// Appends n bytes; n is at most half of the tail.
static void add(struct rlhf__program_said *s, const char *bytes, size_t n) {
    if (s->n + n > sizeof s->tail) {
        const size_t cut = s->n + n - sizeof s->tail;
        memmove(s->tail, s->tail + cut, s->n - cut);
        s->n -= cut;
        s->line = s->line > cut ? s->line - cut : 0;
    }
    memcpy(s->tail + s->n, bytes, n);
    s->n += n;
}

static int read_chunks(struct rlhf__program_said *s, const rlhf_host *host, int fd, int most) {
    char chunk[RLHF__SAID_TAIL / 2];
    for (int i = 0; fd >= 0 && i < most; i++) {
        const ssize_t n = read(fd, chunk, sizeof chunk);
        if (n == 0) return 0;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return 1;
        add(s, chunk, (size_t)n);
        log_lines(s, host);
    }
    return fd >= 0;
}

int rlhf__said_read(struct rlhf__program_said *s, const rlhf_host *host, int fd) {
    // The number of reads is limited: even if a program prints without end, its answer is read
    // soon.
    return read_chunks(s, host, fd, READS);
}

int rlhf__said_drain(struct rlhf__program_said *s, const rlhf_host *host, int fd) {
    const int holds = fd >= 0 ? fcntl(fd, F_GETPIPE_SZ) : 0;
    const int chunks = holds > 0 ? holds / (RLHF__SAID_TAIL / 2) + 1 : 0;
    return read_chunks(s, host, fd, chunks > READS ? chunks : READS);
}

const char *rlhf__said_last(const struct rlhf__program_said *s, char *out, size_t cap) {
    size_t to = s->n, lines = 0;
    while (to && (s->tail[to - 1] == '\n' || s->tail[to - 1] == '\r'))
        to--;
    size_t from = to;
    while (from && to - from < LAST_BYTES) {
        if (s->tail[from - 1] == '\n' && ++lines == LAST_LINES) break;
        from--;
    }
    *out = 0;
    if (from == to) return out;
    char shown[2 * LAST_BYTES + 16];
    snprintf(out, cap, "; it said: \"%s\"",
             rlhf__utf8_shown(s->tail + from, to - from, shown, sizeof shown));
    return out;
}
