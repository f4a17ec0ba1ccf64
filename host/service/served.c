// served.c: see served.h.
#include "service/served.h"

#include "base/file.h"
#include "weights/run_checkpoint.h"

#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__served_init(struct rlhf__served_list *l, const struct rlhf__served_kind *kind,
                              const struct rlhf__model_env *env, const char *default_dir,
                              struct rlhf__error *err) {
    *l = (struct rlhf__served_list){kind, env, strdup(default_dir), NULL};
    return l->default_dir ? RLHF_OK : RLHF__NOMEM(err, "out of memory for services");
}

static void destroy(struct rlhf__served *o) {
    o->list->kind->close(o);
    free(o->dir);
    free(o);
}

void rlhf__served_finish(struct rlhf__served_list *l) {
    for (struct rlhf__served *o = l->first, *next; o; o = next) {
        next = o->next;
        destroy(o);
    }
    free(l->default_dir);
    memset(l, 0, sizeof *l);
}

// ---- opening and closing ----

static rlhf_status open_fresh(struct rlhf__served_list *l, const char *path, const char *real,
                              const void *how, struct rlhf__served **out, struct rlhf__error *err) {
    struct rlhf__served *o = calloc(1, l->kind->size), **end = &l->first;
    if (o) o->dir = strdup(real);
    if (!o || !o->dir) {
        free(o);
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory opening the %s '%s'", l->kind->name,
                          path);
    }
    o->list = l;
    o->users = 1;
    const rlhf_status st = l->kind->open(o, path, how, err);
    if (st != RLHF_OK) {
        destroy(o);
        return st;
    }
    while (*end)
        end = &(*end)->next;
    *end = *out = o;
    return RLHF_OK;
}

rlhf_status rlhf__served_open(struct rlhf__served_list *l, const rlhf_host *host, const char *path,
                              const void *how, struct rlhf__served **out) {
    char real[RLHF__PATH_CAP], checkpoint[RLHF__PATH_CAP];
    struct rlhf__error err = {0, ""};
    *out = NULL;
    if (!path || strcmp(path, "default") == 0) path = l->default_dir;
    rlhf_status st = rlhf__run_model(l->kind->name, &path, checkpoint, l->env->services->log, &err);
    if (st == RLHF_OK) {
        struct rlhf__served *o = rlhf__path_real(path, real) ? l->first : NULL;
        while (o && strcmp(o->dir, real) != 0)
            o = o->next;
        if (o) o->users++;
        *out = o;
        if (!o) st = open_fresh(l, path, rlhf__path_real(path, real) ? real : path, how, out, &err);
    }
    return st == RLHF_OK ? st : rlhf__service_failed(host, &err);
}

void rlhf__served_close(struct rlhf__served_list *l, struct rlhf__served *o) {
    if (!o || --o->users > 0) return;
    struct rlhf__served **at = &l->first;
    while (*at && *at != o)
        at = &(*at)->next;
    if (*at) *at = o->next;
    destroy(o);
}

struct rlhf__served *rlhf__served_at(const struct rlhf__served_list *l, size_t i) {
    struct rlhf__served *o = l->first;
    while (o && i-- > 0)
        o = o->next;
    return o;
}

// ---- calls that several services have ----

rlhf_status rlhf__served_ids(const rlhf_host *host, const struct rlhf__ids *found,
                             rlhf_encode_out *to) {
    rlhf_encode_out out;
    RLHF_TRY(RLHF__TAKE(host, rlhf_encode_out, &out, to, reserved));
    RLHF_TRY(rlhf__service_needs(host, out.ids || !out.cap, "encode()", "ids"));
    const size_t fit = found->n < out.cap ? found->n : out.cap;
    if (fit) memcpy(out.ids, found->data, fit * sizeof *out.ids);
    to->n = (uint32_t)found->n;
    return RLHF_OK;
}

rlhf_status rlhf__served_encode(const rlhf_host *host, const struct rlhf__tokenizer *tok,
                                rlhf_str text, uint32_t flags, rlhf_encode_out *to) {
    struct rlhf__ids found = {0};
    struct rlhf__error err = {0, ""};
    rlhf_status st = rlhf__tokenizer_encode(tok, text, flags, 0, &found, &err);
    st = st == RLHF_OK ? rlhf__served_ids(host, &found, to) : rlhf__service_failed(host, &err);
    rlhf__ids_finish(&found);
    return st;
}

rlhf_status rlhf__served_decode(const rlhf_host *host, const struct rlhf__tokenizer *tok,
                                const rlhf_decode_in *how, rlhf_decode_out *to) {
    rlhf_decode_in q;
    rlhf_decode_out out;
    size_t found = 0;
    RLHF_TRY(RLHF__TAKE(host, rlhf_decode_in, &q, how, ids));
    RLHF_TRY(RLHF__TAKE(host, rlhf_decode_out, &out, to, len));
    RLHF_TRY(rlhf__service_needs(host, (q.ids || !q.n) && (out.utf8 || !out.cap), "decode()",
                                 "ids and utf8"));
    char *text = rlhf__tokenizer_text(tok, q.ids, q.n, 0, &found);
    if (!text) {
        struct rlhf__error err = {0, ""};
        rlhf__fail(&err, RLHF_E_NOMEM, "out of memory for the text of %u tokens", q.n);
        return rlhf__service_failed(host, &err);
    }
    const size_t fit = found < out.cap ? found : (size_t)out.cap;
    if (fit) memcpy(out.utf8, text, fit);
    to->len = found;
    free(text);
    return RLHF_OK;
}

rlhf_status rlhf__served_check_ids(const struct rlhf__served *o, uint32_t n, const int32_t *ids,
                                   const int32_t *offset, struct rlhf__error *err) {
    const int32_t n_vocab = o->model->info.n_vocab;
    for (uint32_t i = 0; i < n; i++)
        for (int32_t t = offset[i]; t < offset[i + 1]; t++)
            if (ids[t] < 0 || ids[t] >= n_vocab)
                return rlhf__fail(err, RLHF_E_INVALID,
                                  "row %u has the token %d; 0 to %d are allowed", i, ids[t],
                                  n_vocab - 1);
    return RLHF_OK;
}
