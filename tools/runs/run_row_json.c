// run_row_json.c: see run_row_json.h.
#include "runs/run_row_json.h"

#include "base/json.h"

#include <math.h>

static json_t *number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *text_or_null(const char *text) {
    return *text ? rlhf__json_text(text) : json_null();
}

static json_t *resume_of(const struct rlhf__run_row *r) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (rlhf__run_row_resumes(r)) rlhf__run_row_put_resume(r, &text);
    json_t *v = text_or_null(rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
    return v;
}

json_t *rlhf__run_row_json(const struct rlhf__run_row *r) {
    return json_pack(
        "{so,so,ss,sI,so,so,so,so,so,so,so,sI,so,so,so,sb,so,so,sO}", "run",
        rlhf__json_text(r->name), "path", rlhf__json_text(r->path), "state",
        rlhf__run_state_name(r->state), "phase", (json_int_t)r->phase, "phases",
        r->wanted > 0 ? json_integer((json_int_t)r->wanted) : json_null(), "metric",
        r->headline.metric ? json_string(r->headline.metric) : json_null(), "first",
        number(r->first), "last", number(r->last), "kl", number(r->kl), "seconds",
        number(r->seconds), "eta_s", number(r->left), "bytes", (json_int_t)r->bytes, "started",
        isfinite(r->started) ? json_integer((json_int_t)r->started) : json_null(), "checkpoint",
        r->checkpoint > 0 ? json_integer((json_int_t)r->checkpoint) : json_null(), "resume",
        resume_of(r), "resume_needs_code", r->names_code, "reason", text_or_null(r->reason),
        "version", text_or_null(r->version), "trouble", r->trouble);
}
