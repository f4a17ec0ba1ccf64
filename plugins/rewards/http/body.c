// body.c: see body.h.
#include "http/body.h"

#include <jansson.h>
#include <rlhf/log.h>
#include <stdio.h>

// ---- our own form ----

static void put_number(struct rlhf__text *out, long long v) {
    char text[24];
    const int len = snprintf(text, sizeof text, "%lld", v);
    rlhf__text_put(out, text, (size_t)len);
}

static void put_ids(struct rlhf__text *out, const rlhf_reward_in *in, uint32_t i) {
    rlhf__text_puts(out, ", \"ids\": [");
    for (int32_t k = in->offset[i]; k < in->offset[i + 1]; k++) {
        if (k > in->offset[i]) rlhf__text_puts(out, ", ");
        put_number(out, in->ids[k]);
    }
    rlhf__text_puts(out, "], \"prompt_len\": ");
    put_number(out, in->prompt_len[i]);
}

static void put_row(struct rlhf__text *out, const struct rlhf__http_options *o,
                    const rlhf_reward_in *in, uint32_t i) {
    rlhf__text_puts(out, "{\"prompt\": ");
    rlhf__text_json(out, in->prompt[i]);
    rlhf__text_puts(out, ", \"response\": ");
    rlhf__text_json(out, in->response[i]);
    rlhf__text_puts(out, ", \"row\": ");
    if (in->meta && in->meta[i].len)
        rlhf__text_put(out, in->meta[i].ptr, (size_t)in->meta[i].len); // JSON as it is
    else
        rlhf__text_puts(out, "null");
    if (o->ids) put_ids(out, in, i);
    rlhf__text_puts(out, "}");
}

static void put_rows(struct rlhf__text *out, const struct rlhf__http_options *o,
                     const rlhf_reward_in *in, uint32_t first, uint32_t n) {
    rlhf__text_puts(out, "{\"phase\": ");
    put_number(out, (long long)in->phase);
    rlhf__text_puts(out, ", \"rows\": [");
    for (uint32_t i = first; i < first + n; i++) {
        if (i > first) rlhf__text_puts(out, ", ");
        put_row(out, o, in, i);
    }
    rlhf__text_puts(out, "]}");
}

// ---- OpenRLHF's ----

// The row as a JSON object; integers of more than 64 bits become the nearest double. New reference.
static json_t *read_row(rlhf_str row) {
    json_t *v = row.len ? json_loadb(row.ptr, (size_t)row.len, 0, NULL) : NULL;
    if (!v && row.len) v = json_loadb(row.ptr, (size_t)row.len, JSON_DECODE_INT_AS_REAL, NULL);
    return v;
}

// The label as it stands in the row; without the option it is "", as OpenRLHF has it.
static rlhf_status put_label(struct rlhf__text *out, const rlhf_host *host, const char *key,
                             rlhf_str row) {
    if (!key) {
        rlhf__text_puts(out, "\"\"");
        return RLHF_OK;
    }
    json_t *object = read_row(row);
    const json_t *label = json_object_get(object, key);
    char *text = label ? json_dumps(label, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    if (text) rlhf__text_puts(out, text);
    json_decref(object);
    free(text);
    if (text) return RLHF_OK;
    if (label) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    if (!row.len)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "there is no data row to take the label \"%s\" from", key);
    return rlhf_failf(host, RLHF_E_INVALID, "the data row has no \"%s\", which label names", key);
}

static void put_query(struct rlhf__text *out, const rlhf_reward_in *in, uint32_t i,
                      struct rlhf__text *both) {
    rlhf__text_clear(both);
    rlhf__text_put(both, in->prompt[i].ptr, (size_t)in->prompt[i].len);
    rlhf__text_put(both, in->response[i].ptr, (size_t)in->response[i].len);
    rlhf__text_json(out, (rlhf_str){both->at, both->len});
    out->failed |= both->failed;
}

static rlhf_status put_openrlhf(struct rlhf__text *out, const struct rlhf__http_options *o,
                                const rlhf_reward_in *in, uint32_t first, uint32_t n) {
    struct rlhf__text both = {.host = out->host};
    rlhf_status st = RLHF_OK;
    rlhf__text_puts(out, "{\"query\": [");
    for (uint32_t i = first; i < first + n; i++) {
        if (i > first) rlhf__text_puts(out, ", ");
        put_query(out, in, i, &both);
    }
    rlhf__text_finish(&both);
    rlhf__text_puts(out, "], \"prompts\": [");
    for (uint32_t i = first; i < first + n; i++) {
        if (i > first) rlhf__text_puts(out, ", ");
        rlhf__text_json(out, in->prompt[i]);
    }
    rlhf__text_puts(out, "], \"labels\": [");
    for (uint32_t i = first; st == RLHF_OK && i < first + n; i++) {
        if (i > first) rlhf__text_puts(out, ", ");
        st = put_label(out, out->host, o->label, in->meta ? in->meta[i] : (rlhf_str){NULL, 0});
    }
    rlhf__text_puts(out, "]}");
    return st;
}

rlhf_status rlhf__body_write(struct rlhf__text *out, const struct rlhf__http_options *o,
                             const rlhf_reward_in *in, uint32_t first, uint32_t n) {
    if (o->form == RLHF__FORM_OPENRLHF)
        RLHF_TRY(put_openrlhf(out, o, in, first, n));
    else
        put_rows(out, o, in, first, n);
    if (out->failed) return out->host->fail(out->host, RLHF_E_NOMEM, "out of memory");
    return RLHF_OK;
}

rlhf_status rlhf__body_check_row(const rlhf_host *host, const struct rlhf__http_options *o,
                                 rlhf_str row) {
    if (o->form != RLHF__FORM_OPENRLHF || !o->label) return RLHF_OK;
    struct rlhf__text scratch = {.host = host};
    rlhf_status st = put_label(&scratch, host, o->label, row);
    if (st == RLHF_OK && scratch.failed) st = host->fail(host, RLHF_E_NOMEM, "out of memory");
    rlhf__text_finish(&scratch);
    return st;
}
