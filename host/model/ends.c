// ends.c: see ends.h.
#include "model/ends.h"

#include "base/file.h"
#include "base/json.h"

#include <stdlib.h>

int rlhf__ends_has(const struct rlhf__ends *ends, int32_t id) {
    for (int32_t i = 0; ends && i < ends->n; i++)
        if (ends->id[i] == id) return 1;
    return 0;
}

static rlhf_status add(struct rlhf__ends *out, json_int_t id, int32_t n_vocab, const char *dir,
                       struct rlhf__error *err) {
    if (id < 0 || id >= n_vocab || rlhf__ends_has(out, (int32_t)id)) return RLHF_OK;
    if (out->n == RLHF__ENDS_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: more than %d tokens in eos_token_id", dir,
                          RLHF__ENDS_MAX);
    out->id[out->n++] = (int32_t)id;
    return RLHF_OK;
}

static rlhf_status read_ids(const json_t *config, const char *dir, const char *file,
                            int32_t n_vocab, struct rlhf__ends *out, struct rlhf__error *err) {
    const json_t *v = json_object_get(config, "eos_token_id");
    const int list = json_is_array(v);
    if (!v || json_is_null(v)) return RLHF_OK;
    for (size_t i = 0; i < (list ? json_array_size(v) : 1); i++) {
        const json_t *id = list ? json_array_get(v, i) : v;
        if (!json_is_integer(id))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s/%s: eos_token_id %s %s, expected an integer or a list of them",
                              dir, file, list ? "holds" : "is", rlhf__json_kind(id));
        RLHF_TRY(add(out, json_integer_value(id), n_vocab, dir, err));
    }
    return RLHF_OK;
}

static rlhf_status read_goes_on(const json_t *config, const char *dir, struct rlhf__ends *out,
                                struct rlhf__error *err) {
    const json_t *v = json_object_get(config, RLHF__STOP_AT_EOS_KEY);
    if (v && !json_is_boolean(v))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: " RLHF__STOP_AT_EOS_KEY " is %s; true or false is "
                          "allowed",
                          dir, rlhf__json_kind(v));
    out->goes_on = json_is_false(v);
    return RLHF_OK;
}

rlhf_status rlhf__ends_read(const char *dir, const json_t *config,
                            const struct rlhf__tokenizer *tok, struct rlhf__ends *out,
                            struct rlhf__error *err) {
    static const char generation[] = "generation_config.json";
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    *out = (struct rlhf__ends){0};
    RLHF_TRY(add(out, info->eos, info->n_vocab, dir, err));
    RLHF_TRY(read_ids(config, dir, "config.json", info->n_vocab, out, err));
    RLHF_TRY(read_goes_on(config, dir, out, err));
    char *path = rlhf__path_join(dir, generation);
    if (!path) return RLHF__NOMEM(err, "out of memory for a path");
    json_t *own = NULL;
    rlhf_status st = rlhf__is_file(path) ? rlhf__json_load(path, &own, err) : RLHF_OK;
    if (st == RLHF_OK && own && !json_is_object(own))
        st = rlhf__fail(err, RLHF_E_INVALID, "%s: expected an object, found %s", path,
                        rlhf__json_kind(own));
    if (st == RLHF_OK) st = read_ids(own, dir, generation, info->n_vocab, out, err);
    json_decref(own);
    free(path);
    return st;
}
