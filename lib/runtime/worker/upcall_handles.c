// upcall_handles.c: see upcall_handles.h.
#include "worker/upcall_handles.h"

#include <rlhf/service.h>

#include <stdlib.h>
#include <string.h>

const void *rlhf__ear_table(const struct rlhf__ear *e, const char *id) {
    return e->api ? e->api->service(e->api, id) : NULL;
}

void *rlhf__ear_object(const struct rlhf__ear *e, uint32_t handle, int32_t kind) {
    if (handle == 0 || handle > RLHF__HANDLES) return NULL;
    const struct rlhf__handle *h = &e->handle[handle - 1];
    return h->kind == kind ? h->object : NULL;
}

rlhf_status rlhf__ear_answer(struct rlhf__buf *out, rlhf_status st) {
    rlhf__wire_u32(out, (uint32_t)st);
    return st;
}

// ---- closing ----

static void close_object(const rlhf_host *api, int32_t kind, void *object) {
    if (kind == RLHF__HANDLE_CLASSIFIER) {
        const rlhf_classifier_service *s = api->service(api, RLHF_SVC_CLASSIFIER);
        if (s) s->close(api, object);
    } else if (kind == RLHF__HANDLE_TOKENIZER) {
        const rlhf_tokenizer_service *s = api->service(api, RLHF_SVC_TOKENIZER);
        if (s) s->close(api, object);
    } else if (kind == RLHF__HANDLE_MODEL) {
        const rlhf_reward_model_service *s = api->service(api, RLHF_SVC_REWARD_MODEL);
        if (s) s->close(api, object);
    } else if (kind == RLHF__HANDLE_LANGUAGE) {
        const rlhf_language_model_service *s = api->service(api, RLHF_SVC_LANGUAGE_MODEL);
        if (s) s->close(api, object);
    }
}

static void close_handle(const rlhf_host *api, struct rlhf__handle *h) {
    close_object(api, h->kind, h->object);
    *h = (struct rlhf__handle){0, NULL};
}

int rlhf__ear_close(struct rlhf__ear *e, uint32_t handle) {
    if (handle == 0 || handle > RLHF__HANDLES) return 0;
    close_handle(e->api, &e->handle[handle - 1]);
    return 1;
}

void rlhf__handles_close(const rlhf_host *api, struct rlhf__handle handle[RLHF__HANDLES]) {
    for (int i = 0; i < RLHF__HANDLES; i++)
        close_handle(api, &handle[i]);
}

// ---- opening ----

// Read an optional path. *path and *room receive the same copy, which the caller frees through
// *room; both are NULL if the path is missing. Returns 0 if the text is not a valid path.
static int get_path(struct rlhf__wire *in, const char **path, char **room) {
    const uint32_t given = rlhf__wire_get_u32(in);
    const rlhf_str s = rlhf__wire_get_text(in);
    *room = NULL;
    *path = NULL;
    if (in->bad || s.len > 4096 || memchr(s.ptr, '\0', (size_t)s.len)) return 0;
    if (!given) return 1;
    *path = *room = strndup(s.ptr, (size_t)s.len);
    return *room != NULL;
}

static rlhf_status open_language(const rlhf_host *api, const rlhf_language_model_service *s,
                                 const char *path, struct rlhf__wire *in, void **out) {
    rlhf_language_model *lm = NULL;
    rlhf_language_open how = {.size = sizeof how, .path = path};
    how.longest = (int32_t)rlhf__wire_get_u32(in);
    how.slots = (int32_t)rlhf__wire_get_u32(in);
    const rlhf_status st = in->bad ? RLHF_E_INVALID : s->open(api, &how, &lm);
    *out = lm;
    return st;
}

static rlhf_status open_object(struct rlhf__ear *e, int32_t kind, const char *path,
                               struct rlhf__wire *in, void **out) {
    static const char *const id[] = {NULL, RLHF_SVC_CLASSIFIER, RLHF_SVC_TOKENIZER,
                                     RLHF_SVC_REWARD_MODEL, RLHF_SVC_LANGUAGE_MODEL};
    const void *table = rlhf__ear_table(e, id[kind]);
    rlhf_status st = RLHF_E_INVALID;
    if (!table) return st;
    if (kind == RLHF__HANDLE_CLASSIFIER) {
        rlhf_classifier *c = NULL;
        const rlhf_classifier_open how = {.size = sizeof how, .path = path};
        st = ((const rlhf_classifier_service *)table)->open(e->api, &how, &c);
        *out = c;
    } else if (kind == RLHF__HANDLE_TOKENIZER) {
        rlhf_tokenizer *t = NULL;
        const rlhf_tokenizer_open how = {.size = sizeof how, .path = path};
        st = ((const rlhf_tokenizer_service *)table)->open(e->api, &how, &t);
        *out = t;
    } else if (kind == RLHF__HANDLE_MODEL) {
        rlhf_reward_model *m = NULL;
        const rlhf_reward_model_open how = {.size = sizeof how, .path = path};
        st = ((const rlhf_reward_model_service *)table)->open(e->api, &how, &m);
        *out = m;
    } else {
        st = open_language(e->api, table, path, in, out);
    }
    return st;
}

static rlhf_status too_many(const struct rlhf__ear *e) {
    struct rlhf__error err = {0, ""};
    rlhf__fail(&err, RLHF_E_UNSUPPORTED, "it has more than %d models and tokenizers open",
               RLHF__HANDLES);
    return rlhf__service_failed(e->api, &err);
}

// Returns the number of a new handle, from 1, or 0 if there are too many.
static uint32_t keep(struct rlhf__ear *e, int32_t kind, void *object) {
    for (uint32_t i = 0; i < RLHF__HANDLES; i++)
        if (e->handle[i].kind == 0) {
            e->handle[i] = (struct rlhf__handle){kind, object};
            return i + 1;
        }
    return 0;
}

void *rlhf__ear_open(struct rlhf__ear *e, int32_t kind, struct rlhf__wire *in,
                     struct rlhf__buf *out) {
    const char *path;
    char *room;
    void *object = NULL;
    rlhf_status st = RLHF_E_INVALID;
    if (get_path(in, &path, &room)) st = open_object(e, kind, path, in, &object);
    free(room);
    const uint32_t handle = st == RLHF_OK ? keep(e, kind, object) : 0;
    if (st == RLHF_OK && !handle) {
        close_object(e->api, kind, object);
        st = too_many(e);
    }
    if (rlhf__ear_answer(out, st) != RLHF_OK) return NULL;
    rlhf__wire_u32(out, handle);
    return object;
}
