// log.c: see log.h.
#include "base/log.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/printable.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SHOWN_BYTES 8192 // of a line: a text of 2 KiB, in which some characters are escaped

void rlhf__log_init(struct rlhf__log *log) {
    memset(log, 0, sizeof *log);
    log->out = stderr;
    log->level = RLHF_LOG_INFO;
    const char *no_color = getenv("NO_COLOR");
    log->color = isatty(STDERR_FILENO) && !(no_color && *no_color);
    pthread_mutex_init(&log->lock, NULL);
}

void rlhf__log_finish(struct rlhf__log *log) { pthread_mutex_destroy(&log->lock); }

const char *rlhf__clock_text(int32_t *day, char out[32]) {
    time_t now = time(NULL);
    struct tm tm;
    out[0] = '\0';
    if (!localtime_r(&now, &tm)) return out;
    int32_t today = (tm.tm_year + 1900) * 366 + tm.tm_yday;
    strftime(out, 32, today == *day ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &tm);
    *day = today;
    return out;
}

// ---- JSON ----

static void put_time(struct rlhf__buf *b) {
    char now[RLHF__UTC_BYTES];
    rlhf__utc(now);
    rlhf__buf_printf(b, "{\"time\": \"%s\"", now);
}

// The caller holds the lock. Returns 0 when memory runs out.
static int put_json(struct rlhf__log *log, const char *event, const char *members) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    put_time(&line);
    rlhf__buf_printf(&line, ", \"event\": \"%s\", %s}\n", event, members);
    int good = !line.bad;
    if (good) fputs(rlhf__buf_text(&line), log->out);
    rlhf__buf_finish(&line);
    return good;
}

static int put_json_text(struct rlhf__log *log, const char *level, const char *text) {
    struct rlhf__buf members = RLHF__BUF_INIT;
    rlhf__buf_printf(&members, "\"level\": \"%s\", \"message\": ", level);
    rlhf__json_write_string(&members, text, strlen(text));
    int good = !members.bad && put_json(log, "log", rlhf__buf_text(&members));
    rlhf__buf_finish(&members);
    return good;
}

// ---- lines ----

static void begin(struct rlhf__log *log) {
    pthread_mutex_lock(&log->lock);
    if (log->before) log->before(log->hook_arg);
}

static void end(struct rlhf__log *log) {
    fflush(log->out);
    if (log->after) log->after(log->hook_arg);
    pthread_mutex_unlock(&log->lock);
}

void rlhf__log_event(struct rlhf__log *log, const char *event, const char *members) {
    if (!log) return;
    begin(log);
    put_json(log, event, members);
    end(log);
}

// If the output is not a terminal, print one line, because programs may read it. On a terminal,
// break the text into lines at spaces. On the first line, `used` columns are already taken.
static void add_text(const struct rlhf__log *log, struct rlhf__buf *out, const char *text,
                     int used) {
    enum { INDENT = 4 };
    char shown[SHOWN_BYTES];
    struct rlhf__buf lines = RLHF__BUF_INIT;
    const int columns = rlhf__terminal_width(fileno(log->out), 0);
    rlhf__printable(text, shown, sizeof shown);
    if (columns > 0)
        rlhf__put_wrapped(&lines, (rlhf_str){shown, strlen(shown)}, columns, used, INDENT);
    rlhf__buf_printf(out, "%s", columns > 0 && !lines.bad ? rlhf__buf_text(&lines) : shown);
    rlhf__buf_finish(&lines);
}

// Print `head`, the text, `tail` and a line feed in one write, so that the output of other
// processes, such as a launcher, does not come in between. If memory runs out, use several writes.
static void put(const struct rlhf__log *log, const char *head, const char *text, const char *tail,
                int used) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    char shown[SHOWN_BYTES];
    rlhf__buf_printf(&line, "%s", head);
    add_text(log, &line, text, used);
    rlhf__buf_printf(&line, "%s\n", tail);
    if (!line.bad) {
        fwrite(line.data, 1, line.len, log->out);
    } else {
        rlhf__printable(text, shown, sizeof shown);
        fprintf(log->out, "%s%s%s\n", head, shown, tail);
    }
    rlhf__buf_finish(&line);
}

static void put_line(struct rlhf__log *log, int32_t level, const char *text) {
    static const char *const words[] = {"debug: ", "", "warning: ", "error: "};
    static const char *const names[] = {"debug", "info", "warn", "error"};
    char when[32];
    char begins[64];
    const char *color = "";
    if (log->color && level >= RLHF_LOG_WARN)
        color = level == RLHF_LOG_WARN ? "\033[33m" : "\033[31m";
    begin(log);
    if (!log->json || !put_json_text(log, names[level], text)) {
        rlhf__clock_text(&log->day, when);
        snprintf(begins, sizeof begins, "%s %s%s", when, color, words[level]);
        put(log, begins, text, *color ? "\033[0m" : "",
            (int)(strlen(when) + 1 + strlen(words[level])));
    }
    end(log);
}

void rlhf__logf(struct rlhf__log *log, int32_t level, const char *fmt, ...) {
    if (!log || level < log->level) return;
    char text[2048];
    va_list ap;
    const size_t at = (size_t)snprintf(text, sizeof text, "%s", log->prefix);
    va_start(ap, fmt);
    vsnprintf(text + at, sizeof text - at, fmt, ap);
    va_end(ap);
    put_line(log, level < 0 ? 0 : level > 3 ? 3 : level, text);
}

// Print the command as one line. The terminal wraps a long line itself, so a user who copies the
// command does not copy line breaks.
static void put_command(struct rlhf__log *log, const char *text, const char *command) {
    struct rlhf__buf shown = RLHF__BUF_INIT;
    char when[32];
    rlhf__clock_text(&log->day, when);
    rlhf__buf_printf(&shown, "%s ", when);
    add_text(log, &shown, text, (int)strlen(when) + 1);
    rlhf__buf_printf(&shown, "\n");
    rlhf__put_printable(&shown, command, strlen(command), "");
    rlhf__buf_printf(&shown, "\n");
    fputs(rlhf__buf_text(&shown), log->out);
    rlhf__buf_finish(&shown);
}

void rlhf__log_command(struct rlhf__log *log, const char *text, const char *command) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    if (!log || RLHF_LOG_INFO < log->level) return;
    if (!log->json && rlhf__terminal_width(fileno(log->out), 0) > 0) {
        begin(log);
        put_command(log, text, command);
        end(log);
        return;
    }
    rlhf__buf_printf(&line, "%s %s", text, command);
    if (!line.bad) put_line(log, RLHF_LOG_INFO, rlhf__buf_text(&line));
    rlhf__buf_finish(&line);
}

void rlhf__log_error(struct rlhf__log *log, const char *text) {
    static const char who[] = "rlhf-host: error:";
    char begins[64];
    if (log->mute) return;
    begin(log);
    if (!log->json || !put_json_text(log, "error", text)) {
        snprintf(begins, sizeof begins, "%s%s%s ", log->color ? "\033[31m" : "", who,
                 log->color ? "\033[0m" : "");
        put(log, begins, text, "", (int)strlen(who) + 1);
    }
    end(log);
}

void rlhf__log_hooks(struct rlhf__log *log, void (*before)(void *), void (*after)(void *),
                     void *arg) {
    if (!log) return;
    pthread_mutex_lock(&log->lock);
    log->before = before;
    log->after = after;
    log->hook_arg = arg;
    pthread_mutex_unlock(&log->lock);
}
