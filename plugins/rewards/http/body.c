// body.c: see body.h.
#include "http/body.h"

#include "process/row_text.h"
#include "rows_out.h"

#include <rlhf/log.h>

// ---- our own format ----

static void put_rows(struct rlhf__bytes *out, const struct rlhf__http_options *o,
                     const rlhf_reward_in *in, uint32_t first, uint32_t n) {
    rlhf__bytes_text(out, "{\"rows\": [\n");
    for (uint32_t i = first; i < first + n; i++) {
        if (i > first) rlhf__bytes_text(out, ",");
        rlhf__row_out(out, in, i, i - first, o->ids);
    }
    rlhf__bytes_text(out, "]}");
}

// ---- OpenRLHF's format ----

// Write the row's label. If the user did not name a label, write "", as OpenRLHF does.
static rlhf_status put_label(struct rlhf__bytes *out, const rlhf_host *host, const char *key,
                             rlhf_str row) {
    if (!key) {
        rlhf__bytes_text(out, "\"\"");
        return RLHF_OK;
    }
    if (rlhf__row_member(row, key, 0, out)) return RLHF_OK;
    if (!row.len)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "the prompt has no data row, so no \"%s\", which label names", key);
    return rlhf_failf(host, RLHF_E_INVALID, "the data row has no \"%s\", which label names", key);
}

static void put_query(struct rlhf__bytes *out, const rlhf_reward_in *in, uint32_t i,
                      struct rlhf__bytes *both) {
    both->len = 0;
    rlhf__bytes_add(both, in->prompt[i].ptr, (size_t)in->prompt[i].len);
    rlhf__bytes_add(both, in->response[i].ptr, (size_t)in->response[i].len);
    rlhf__bytes_string(out, (rlhf_str){both->data, both->len});
    out->full |= both->full;
}

static rlhf_status put_openrlhf(struct rlhf__bytes *out, const struct rlhf__http_options *o,
                                const rlhf_reward_in *in, uint32_t first, uint32_t n) {
    struct rlhf__bytes both = {.host = out->host};
    rlhf_status st = RLHF_OK;
    rlhf__bytes_text(out, "{\"query\": [");
    for (uint32_t i = first; i < first + n; i++) {
        if (i > first) rlhf__bytes_text(out, ", ");
        put_query(out, in, i, &both);
    }
    rlhf__bytes_finish(&both);
    rlhf__bytes_text(out, "], \"prompts\": [");
    for (uint32_t i = first; i < first + n; i++) {
        if (i > first) rlhf__bytes_text(out, ", ");
        rlhf__bytes_string(out, in->prompt[i]);
    }
    rlhf__bytes_text(out, "], \"labels\": [");
    for (uint32_t i = first; st == RLHF_OK && i < first + n; i++) {
        if (i > first) rlhf__bytes_text(out, ", ");
        st = put_label(out, out->host, o->label, in->meta ? in->meta[i] : (rlhf_str){NULL, 0});
    }
    rlhf__bytes_text(out, "]}");
    return st;
}

rlhf_status rlhf__body_write(struct rlhf__bytes *out, const struct rlhf__http_options *o,
                             const rlhf_reward_in *in, uint32_t first, uint32_t n) {
    if (o->form == RLHF__FORM_OPENRLHF)
        RLHF_TRY(put_openrlhf(out, o, in, first, n));
    else
        put_rows(out, o, in, first, n);
    if (out->full) return out->host->fail(out->host, RLHF_E_NOMEM, "out of memory");
    return RLHF_OK;
}

rlhf_status rlhf__body_check_row(const rlhf_host *host, const struct rlhf__http_options *o,
                                 rlhf_str row) {
    if (o->form != RLHF__FORM_OPENRLHF || !o->label) return RLHF_OK;
    struct rlhf__bytes scratch = {.host = host};
    rlhf_status st = put_label(&scratch, host, o->label, row);
    if (st == RLHF_OK && scratch.full) st = host->fail(host, RLHF_E_NOMEM, "out of memory");
    rlhf__bytes_finish(&scratch);
    return st;
}
