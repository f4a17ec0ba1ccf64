// error.c: see error.h.
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

rlhf_status rlhf__fail(struct rlhf__error *err, rlhf_status code, const char *fmt, ...) {
    if (!err) return code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    err->code = code;
    return code;
}

rlhf_status rlhf__error_context(struct rlhf__error *err, const char *fmt, ...) {
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int used = vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    size_t at = used < 0 ? 0 : (size_t)used;
    size_t room = at < sizeof err->text ? sizeof err->text - at : 0;
    if (room > 3) snprintf(err->text + at, room, ": %.*s", (int)(room - 3), old);
    return err->code;
}

const char *rlhf__status_text(rlhf_status code) {
    switch ((enum rlhf_status_code)code) {
    case RLHF_OK:
        return "success";
    case RLHF_E_INVALID:
        return "invalid input";
    case RLHF_E_NOMEM:
        return "out of memory";
    case RLHF_E_UNSUPPORTED:
        return "not supported";
    case RLHF_E_IO:
        return "input/output error";
    case RLHF_E_NUMERIC:
        return "not a finite number";
    case RLHF_E_DEVICE:
        return "device error";
    case RLHF_E_CANCELLED:
        return "cancelled";
    case RLHF_E_INTERNAL:
        break;
    }
    return "internal error";
}

int rlhf__exit_status(rlhf_status code) {
    if (code == RLHF_OK) return 0;
    return code == RLHF_E_INVALID || code == RLHF_E_UNSUPPORTED ? 2 : 1;
}
