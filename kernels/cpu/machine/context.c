// context.c: sets the error texts of the CPU backend, and reads the caller's structs.
#include "context.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

rlhf_status rlhf__cpu_fail(struct rlhf__cpu *cpu, rlhf_status code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(cpu->error, sizeof cpu->error, fmt, ap);
    va_end(ap);
    return cpu->host ? cpu->host->fail(cpu->host, code, cpu->error) : code;
}

rlhf_status rlhf__cpu_copy_in(struct rlhf__cpu *cpu, const char *op, void *dst, uint32_t own,
                              const void *src, uint32_t first) {
    uint32_t size;
    memcpy(&size, src, sizeof size);
    rlhf_status st = rlhf_copy_in(dst, own, src, first);
    if (st == RLHF_E_UNSUPPORTED)
        return rlhf__cpu_fail(cpu, st,
                              "%s: the arguments set a field that this backend does not know (%u "
                              "bytes, known are %u)",
                              op, size, own);
    if (st < 0)
        return rlhf__cpu_fail(cpu, st, "%s: the arguments say %u bytes, at least %u are needed", op,
                              size, first);
    return RLHF_OK;
}
