// print.c: see print.h.
#include "cmd/print.h"

#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

rlhf_status rlhf__print_flush(struct rlhf__error *err) {
    if (fflush(stdout) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO, "cannot write to standard output: %s", strerror(errno));
}

rlhf_status rlhf__print_json_new(json_t *v, struct rlhf__error *err) {
    if (!v) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory printing");
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__json_write(&line, v, 0);
    rlhf_status st = rlhf__buf_ok(&line, err);
    if (st == RLHF_OK) puts(rlhf__buf_text(&line));
    rlhf__buf_free(&line);
    json_decref(v);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}
