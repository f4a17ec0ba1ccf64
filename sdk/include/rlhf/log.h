// rlhf/log.h: printf-style forms of host->log and host->fail. Text is cut to 1,023 bytes.
//
// Plugin contract 1.0, frozen: it only grows.
#ifndef RLHF_LOG_H
#define RLHF_LOG_H

#include "host.h"

#include <stdarg.h>
#include <stdio.h>

// Log a formatted line. [any]
RLHF_PRINTF(3, 4)
static inline void rlhf_logf(const rlhf_host *host, int32_t level, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (host->log)(host, level, text); // <tgmath.h> has a macro log()
}

// Record a formatted failure; returns code. [any]
RLHF_PRINTF(3, 4)
static inline rlhf_status rlhf_failf(const rlhf_host *host, rlhf_status code, const char *fmt,
                                     ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return (host->fail)(host, code, text); // CMocka has a macro fail()
}

#endif
