// log.c: see log.h.
#include "base/log.h"

#include "base/printable.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SHOWN_BYTES 8192 // of a line: a text of 2 KiB, some of it spelt out

void rlhf__log_init(struct rlhf__log *log) {
    memset(log, 0, sizeof *log);
    log->out = stderr;
    log->level = RLHF_LOG_INFO;
    const char *no_color = getenv("NO_COLOR");
    log->color = isatty(STDERR_FILENO) && !(no_color && *no_color);
    pthread_mutex_init(&log->lock, NULL);
}

void rlhf__log_finish(struct rlhf__log *log) { pthread_mutex_destroy(&log->lock); }

static void put_line(struct rlhf__log *log, int32_t level, const char *word, const char *text) {
    const char *color = "";
    if (log->color && level >= RLHF_LOG_WARN)
        color = level == RLHF_LOG_WARN ? "\033[33m" : "\033[31m";
    char when[16] = "", shown[SHOWN_BYTES];
    time_t now = time(NULL);
    struct tm tm;
    if (localtime_r(&now, &tm)) strftime(when, sizeof when, "%H:%M:%S", &tm);
    pthread_mutex_lock(&log->lock);
    if (log->before) log->before(log->hook_arg);
    fprintf(log->out, "%s %s%s%s%s\n", when, color, word,
            rlhf__printable(text, shown, sizeof shown), *color ? "\033[0m" : "");
    fflush(log->out);
    if (log->after) log->after(log->hook_arg);
    pthread_mutex_unlock(&log->lock);
}

void rlhf__logf(struct rlhf__log *log, int32_t level, const char *fmt, ...) {
    static const char *const words[] = {"debug: ", "", "warning: ", "error: "};
    if (!log || level < log->level) return;
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    put_line(log, level, words[level < 0 ? 0 : level > 3 ? 3 : level], text);
}

void rlhf__log_error(struct rlhf__log *log, const char *text) {
    char shown[SHOWN_BYTES];
    pthread_mutex_lock(&log->lock);
    if (log->before) log->before(log->hook_arg);
    fprintf(log->out, "%srlhf-host: error:%s %s\n", log->color ? "\033[31m" : "",
            log->color ? "\033[0m" : "", rlhf__printable(text, shown, sizeof shown));
    fflush(log->out);
    pthread_mutex_unlock(&log->lock);
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
