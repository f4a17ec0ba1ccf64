// generate_stop.c: see generate_stop.h.
#include "cmd/generate_stop.h"

#include <stdlib.h>

static const struct rlhf__response_config no_rule = {.period_token = ""};

static rlhf_status add_text(json_t *list, const char *text, struct rlhf__error *err) {
    if (!*text) return rlhf__fail(err, RLHF_E_INVALID, "--stop must be a text that is not empty");
    json_t *v = json_string(text);
    if (!v) return rlhf__fail(err, RLHF_E_INVALID, "--stop must be UTF-8 text, found other bytes");
    if (json_array_append_new(list, v) == 0) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for --stop");
}

static rlhf_status add_id(json_t *list, const char *text, int32_t n_vocab,
                          struct rlhf__error *err) {
    int64_t id;
    if (!rlhf__typed_integer(text, &id) || id < 0 || id >= n_vocab)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--stop-id must be a token id, an integer from 0 to %d, found %s",
                          n_vocab - 1, text);
    if (json_array_append_new(list, json_integer(id)) == 0) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for --stop-id");
}

rlhf_status rlhf__typed_stops(const struct rlhf__flag_list *texts,
                              const struct rlhf__flag_list *ids, const struct rlhf__tokenizer *tok,
                              struct rlhf__response_rules **out, struct rlhf__error *err) {
    *out = NULL;
    json_t *list = json_array();
    rlhf_status st = list ? RLHF_OK : RLHF__NOMEM(err, "out of memory for --stop");
    for (size_t i = 0; st == RLHF_OK && i < texts->n; i++)
        st = add_text(list, texts->item[i], err);
    for (size_t i = 0; st == RLHF_OK && i < ids->n; i++)
        st = add_id(list, ids->item[i], rlhf__tokenizer_info(tok)->n_vocab, err);
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (st == RLHF_OK) rlhf__json_write(&text, list, 0);
    json_decref(list);
    if (st == RLHF_OK) st = rlhf__buf_ok(&text, err);
    const struct rlhf__sampling_config sampling = {.stop = rlhf__buf_text(&text)};
    if (st == RLHF_OK) st = rlhf__response_rules_create(&sampling, &no_rule, tok, out, err);
    rlhf__buf_free(&text);
    return st;
}
