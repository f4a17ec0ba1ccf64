// log.h: log lines on stderr. Results go to stdout, never here. Texts are not trusted, so control
// characters are escaped (printable.h). On a terminal, long texts are wrapped at spaces.
//
// A progress bar shares the terminal. It registers hooks, which clear the bar before a log line is
// printed and draw it again afterwards.
#ifndef RLHF_CORE_BASE_LOG_H
#define RLHF_CORE_BASE_LOG_H

#include <rlhf/host.h>

#include <pthread.h>
#include <stdio.h>

struct rlhf__log {
    FILE *out;
    int32_t level;   // lines below this level are dropped
    int32_t color;   // 1: out is a terminal and NO_COLOR is not set
    int32_t json;    // 1: lines are JSON objects
    int32_t day;     // the day of the last line with a date
    int32_t mute;    // 1: rlhf__log_error prints nothing, because another process prints the errors
    char prefix[96]; // printed before every text, e.g. "rank 2 on b: "; usually ""
    pthread_mutex_t lock;
    void (*before)(void *arg); // may be NULL
    void (*after)(void *arg);
    void *hook_arg;
};

// Start a log to stderr that drops lines below RLHF_LOG_INFO. [main]
void rlhf__log_init(struct rlhf__log *log);
void rlhf__log_finish(struct rlhf__log *log);

// Writes the time of day to `out` as "HH:MM:SS" and returns `out`. If the day differs from *day,
// writes the date before the time and updates *day. [any]
const char *rlhf__clock_text(int32_t *day, char out[32]);

// Print one line "HH:MM:SS level: text". The first line of a day begins with the date, and info
// lines lack the level. If the log is JSON, the line is instead {"time": ISO 8601 in UTC, "event":
// "log", "level", "message"}. If `log` is NULL, prints nothing. [any]
__attribute__((format(printf, 3, 4))) void rlhf__logf(struct rlhf__log *log, int32_t level,
                                                      const char *fmt, ...);

// Print an info line "text command", where the command is a shell command. On a terminal, the
// command gets a separate line without line breaks, so that users can copy it. If `log` is NULL,
// prints nothing. [any]
void rlhf__log_command(struct rlhf__log *log, const char *text, const char *command);

// Print "rlhf-host: error: text", without a time, as the last line of a failing command. If the log
// is JSON, prints a JSON line like that of rlhf__logf. [any]
void rlhf__log_error(struct rlhf__log *log, const char *text);

// Print a JSON line for an event: the time, the event, and the caller's `members`, for example
// "\"phase\": 3, ...". [any]
void rlhf__log_event(struct rlhf__log *log, const char *event, const char *members);

// Set the functions that are called before and after each line (NULL removes them). [main]
void rlhf__log_hooks(struct rlhf__log *log, void (*before)(void *), void (*after)(void *),
                     void *arg);

#endif
