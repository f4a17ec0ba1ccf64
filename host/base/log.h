// log.h: log lines on stderr. Results go to stdout, never here. Texts may be anybody's: a line
// shows what no terminal should obey as printable.h spells it.
//
// A progress bar shares the terminal: it registers hooks that take it off the screen before a line
// and put it back after.
#ifndef RLHF_HOST_LOG_H
#define RLHF_HOST_LOG_H

#include <rlhf/host.h>

#include <pthread.h>
#include <stdio.h>

struct rlhf__log {
    FILE *out;
    int32_t level; // lines below it are dropped
    int32_t color; // 1: out is a terminal and NO_COLOR is not set
    pthread_mutex_t lock;
    void (*before)(void *arg); // may be NULL
    void (*after)(void *arg);
    void *hook_arg;
};

// stderr at RLHF_LOG_INFO. [main]
void rlhf__log_init(struct rlhf__log *log);
void rlhf__log_finish(struct rlhf__log *log);

// One line "HH:MM:SS level text"; info lines carry no level word. log may be NULL (drops). [any]
__attribute__((format(printf, 3, 4))) void rlhf__logf(struct rlhf__log *log, int32_t level,
                                                      const char *fmt, ...);

// "error: text" without a time, the last thing a failing command says. [any]
void rlhf__log_error(struct rlhf__log *log, const char *text);

// Set hooks around lines (NULLs take them away). [main]
void rlhf__log_hooks(struct rlhf__log *log, void (*before)(void *), void (*after)(void *),
                     void *arg);

#endif
