// upcall_services.c: see upcall_services.h.
#include "worker/upcall_services.h"

#include <rlhf/service.h>

#include <stdlib.h>
#include <string.h>

enum rlhf__handle_kind { CLASSIFIER = 1, TOKENIZER = 2, MODEL = 3 };
enum { MOST_TEXTS = 1 << 24 };
#define MOST_REPLY (RLHF__WIRE_MAX / 4) // maximum bytes of a reply

// ---- the services ----

static const void *table_of(const struct rlhf__ear *e, const char *id) {
    return e->api ? e->api->service(e->api, id) : NULL;
}

// In the order of the RLHF__HAS_* bits.
static const char *const services[] = {RLHF_SVC_CLASSIFIER, RLHF_SVC_TOKENIZER,
                                       RLHF_SVC_REWARD_MODEL, RLHF_SVC_ROW, RLHF_SVC_LIMITS};
enum { N_SERVICES = sizeof services / sizeof *services };

uint32_t rlhf__ear_services(const rlhf_host *api) {
    uint32_t has = 0;
    for (size_t i = 0; i < N_SERVICES; i++)
        if (api->service(api, services[i])) has |= 1u << i;
    return has;
}

// ---- handles ----

// Returns the number of a new handle, from 1, or 0 if there are too many.
static uint32_t keep(struct rlhf__ear *e, int32_t kind, void *object) {
    for (uint32_t i = 0; i < RLHF__HANDLES; i++)
        if (e->handle[i].kind == 0) {
            e->handle[i] = (struct rlhf__handle){kind, object};
            return i + 1;
        }
    return 0;
}

static void *object_of(const struct rlhf__ear *e, uint32_t handle, int32_t kind) {
    if (handle == 0 || handle > RLHF__HANDLES) return NULL;
    const struct rlhf__handle *h = &e->handle[handle - 1];
    return h->kind == kind ? h->object : NULL;
}

static void close_handle(const rlhf_host *api, struct rlhf__handle *h) {
    if (h->kind == CLASSIFIER) {
        const rlhf_classifier_service *s = api->service(api, RLHF_SVC_CLASSIFIER);
        if (s) s->close(api, h->object);
    } else if (h->kind == TOKENIZER) {
        const rlhf_tokenizer_service *s = api->service(api, RLHF_SVC_TOKENIZER);
        if (s) s->close(api, h->object);
    } else if (h->kind == MODEL) {
        const rlhf_reward_model_service *s = api->service(api, RLHF_SVC_REWARD_MODEL);
        if (s) s->close(api, h->object);
    }
    *h = (struct rlhf__handle){0, NULL};
}

void rlhf__handles_close(const rlhf_host *api, struct rlhf__handle handle[RLHF__HANDLES]) {
    for (int i = 0; i < RLHF__HANDLES; i++)
        close_handle(api, &handle[i]);
}

// ---- classifiers and tokenizers ----

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

static rlhf_status too_many(const struct rlhf__ear *e) {
    struct rlhf__error err = {0, ""};
    rlhf__fail(&err, RLHF_E_UNSUPPORTED, "it has more than %d models and tokenizers open",
               RLHF__HANDLES);
    return rlhf__service_failed(e->api, &err);
}

// Write a reply's status. After success the caller appends the results.
static rlhf_status answer(struct rlhf__buf *out, rlhf_status st) {
    rlhf__wire_u32(out, (uint32_t)st);
    return st;
}

static void classifier_open(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const rlhf_classifier_service *s = table_of(e, RLHF_SVC_CLASSIFIER);
    rlhf_classifier *c = NULL;
    const char *path;
    char *room;
    if (!s || !get_path(in, &path, &room)) {
        answer(out, RLHF_E_INVALID);
        return;
    }
    rlhf_status st = s->open(e->api, path, &c);
    const uint32_t handle = st == RLHF_OK ? keep(e, CLASSIFIER, c) : 0;
    free(room);
    if (st == RLHF_OK && !handle) {
        s->close(e->api, c);
        st = too_many(e);
    }
    if (answer(out, st) != RLHF_OK) return;
    const int32_t n = s->n_labels(e->api, c);
    rlhf__wire_u32(out, handle);
    rlhf__wire_u32(out, (uint32_t)n);
    for (int32_t i = 0; i < n; i++)
        rlhf__wire_puts(out, s->label(e->api, c, i));
}

static void classifier_logits(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const rlhf_classifier_service *s = table_of(e, RLHF_SVC_CLASSIFIER);
    rlhf_classifier *c = object_of(e, rlhf__wire_get_u32(in), CLASSIFIER);
    const uint32_t n = rlhf__wire_get_u32(in);
    const int sound = s && c && !in->bad && n <= MOST_TEXTS && n <= (in->end - in->at) / 8;
    rlhf_str *texts = sound ? calloc((size_t)n + 1, sizeof *texts) : NULL;
    const size_t labels = sound ? (size_t)s->n_labels(e->api, c) : 0;
    const int fits = n * (uint64_t)labels <= MOST_REPLY / sizeof(float);
    float *logits = texts && fits ? calloc(n * labels + 1, sizeof *logits) : NULL;
    for (uint32_t i = 0; logits && i < n; i++)
        texts[i] = rlhf__wire_get_text(in);
    rlhf_status st = !sound || in->bad ? RLHF_E_INVALID : !logits ? RLHF_E_NOMEM : RLHF_OK;
    if (st == RLHF_OK) st = s->logits(e->api, c, n, texts, logits);
    if (answer(out, st) == RLHF_OK) rlhf__wire_text(out, logits, n * labels * sizeof *logits);
    free(texts);
    free(logits);
}

static void tokenizer_open(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const rlhf_tokenizer_service *s = table_of(e, RLHF_SVC_TOKENIZER);
    rlhf_tokenizer *t = NULL;
    const char *path;
    char *room;
    if (!s || !get_path(in, &path, &room)) {
        answer(out, RLHF_E_INVALID);
        return;
    }
    rlhf_status st = s->open(e->api, path, &t);
    const uint32_t handle = st == RLHF_OK ? keep(e, TOKENIZER, t) : 0;
    free(room);
    if (st == RLHF_OK && !handle) {
        s->close(e->api, t);
        st = too_many(e);
    }
    if (answer(out, st) != RLHF_OK) return;
    rlhf__wire_u32(out, handle);
    rlhf__wire_u32(out, (uint32_t)s->n_vocab(e->api, t));
}

static void tokenizer_encode(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const rlhf_tokenizer_service *s = table_of(e, RLHF_SVC_TOKENIZER);
    const rlhf_tokenizer *t = object_of(e, rlhf__wire_get_u32(in), TOKENIZER);
    const uint32_t cap = rlhf__wire_get_u32(in);
    const rlhf_str text = rlhf__wire_get_text(in);
    uint32_t n = 0;
    // A token has at least one byte, and the tokenizer may add a few tokens before the text.
    const uint64_t most = text.len + 16 < cap ? text.len + 16 : cap;
    const int fits = most <= MOST_REPLY / sizeof(int32_t);
    int32_t *ids = s && t && !in->bad && fits ? calloc((size_t)most + 1, sizeof *ids) : NULL;
    rlhf_status st = !s || !t || in->bad ? RLHF_E_INVALID : !ids ? RLHF_E_NOMEM : RLHF_OK;
    if (st == RLHF_OK) st = s->encode(e->api, t, text, ids, (uint32_t)most, &n);
    if (answer(out, st) == RLHF_OK) {
        rlhf__wire_u32(out, n);
        rlhf__wire_text(out, ids, (n < most ? n : most) * sizeof *ids);
    }
    free(ids);
}

static void tokenizer_decode(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const rlhf_tokenizer_service *s = table_of(e, RLHF_SVC_TOKENIZER);
    const rlhf_tokenizer *t = object_of(e, rlhf__wire_get_u32(in), TOKENIZER);
    const uint64_t cap = rlhf__wire_get_u64(in);
    size_t n;
    const void *items = rlhf__wire_get_items(in, sizeof(int32_t), &n);
    const int sound = s && t && !in->bad && n < MOST_TEXTS;
    int32_t *ids = sound ? calloc(n + 1, sizeof *ids) : NULL;
    uint64_t len = 0;
    rlhf_status st = !sound ? RLHF_E_INVALID : !ids ? RLHF_E_NOMEM : RLHF_OK;
    char *text = NULL;
    if (st == RLHF_OK) {
        memcpy(ids, items, n * sizeof *ids);
        st = s->decode(e->api, t, ids, (uint32_t)n, NULL, 0, &len);
    }
    const uint64_t fit = len < cap ? len : cap;
    if (fit > MOST_REPLY) st = RLHF_E_NOMEM;
    if (st == RLHF_OK && (text = malloc((size_t)fit + 1)) == NULL) st = RLHF_E_NOMEM;
    if (st == RLHF_OK && fit) st = s->decode(e->api, t, ids, (uint32_t)n, text, fit, &len);
    if (answer(out, st) == RLHF_OK) {
        rlhf__wire_u64(out, len);
        rlhf__wire_text(out, text, fit);
    }
    free(text);
    free(ids);
}

// ---- reward models ----

static void model_open(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const rlhf_reward_model_service *s = table_of(e, RLHF_SVC_REWARD_MODEL);
    rlhf_reward_model *m = NULL;
    const char *path;
    char *room;
    if (!s || !get_path(in, &path, &room)) {
        answer(out, RLHF_E_INVALID);
        return;
    }
    rlhf_status st = s->open(e->api, path, &m);
    const uint32_t handle = st == RLHF_OK ? keep(e, MODEL, m) : 0;
    free(room);
    if (st == RLHF_OK && !handle) {
        s->close(e->api, m);
        st = too_many(e);
    }
    if (answer(out, st) == RLHF_OK) rlhf__wire_u32(out, handle);
}

// Returns the size of the policy's vocabulary, which reward models share, or 0 if there is no
// policy.
static int32_t vocabulary(struct rlhf__ear *e) {
    const rlhf_tokenizer_service *s = table_of(e, RLHF_SVC_TOKENIZER);
    rlhf_tokenizer *t = NULL;
    if (e->vocabulary == 0 && s && s->open(e->api, NULL, &t) == RLHF_OK) {
        e->vocabulary = s->n_vocab(e->api, t);
        s->close(e->api, t);
    }
    return e->vocabulary;
}

// Rows of different lengths from the worker. are_rows() checks them, because the host's services
// expect valid rows.
struct rows {
    int32_t *ids, *offset, *prompt_len;
    size_t n, total;
};

static int are_rows(struct rlhf__ear *e, const struct rows *r) {
    const int32_t tokens = vocabulary(e);
    if (r->offset[0] != 0 || r->offset[r->n] < 0 || (size_t)r->offset[r->n] != r->total) return 0;
    for (size_t i = 0; i < r->n; i++) {
        const int64_t len = (int64_t)r->offset[i + 1] - r->offset[i];
        if (len < 1 || r->prompt_len[i] < 0 || r->prompt_len[i] > len) return 0;
    }
    for (size_t i = 0; i < r->total; i++)
        if (r->ids[i] < 0 || r->ids[i] >= tokens) return 0;
    return 1;
}

// Read rows and copy them, because frames are not aligned. Returns 0 if they are not valid or if
// memory runs out.
static int get_rows(struct rlhf__ear *e, struct rlhf__wire *in, struct rows *r) {
    size_t offsets, lens;
    const void *ids = rlhf__wire_get_items(in, sizeof(int32_t), &r->total);
    const void *offset = rlhf__wire_get_items(in, sizeof(int32_t), &offsets);
    const void *prompt_len = rlhf__wire_get_items(in, sizeof(int32_t), &lens);
    if (in->bad || offsets != lens + 1 || r->total > MOST_REPLY / sizeof(float)) return 0;
    r->n = lens;
    r->ids = calloc(r->total + 1, sizeof(int32_t));
    r->offset = calloc(offsets, sizeof(int32_t));
    r->prompt_len = calloc(lens + 1, sizeof(int32_t));
    if (!r->ids || !r->offset || !r->prompt_len) return 0;
    memcpy(r->ids, ids, r->total * sizeof(int32_t));
    memcpy(r->offset, offset, offsets * sizeof(int32_t));
    memcpy(r->prompt_len, prompt_len, lens * sizeof(int32_t));
    return are_rows(e, r);
}

static void model_score(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const rlhf_reward_model_service *s = table_of(e, RLHF_SVC_REWARD_MODEL);
    rlhf_reward_model *m = object_of(e, rlhf__wire_get_u32(in), MODEL);
    const int32_t pooling = (int32_t)rlhf__wire_get_u32(in);
    const uint32_t wanted = rlhf__wire_get_u32(in);
    struct rows r = {0};
    const int sound = s && m && get_rows(e, in, &r);
    float *seq = sound ? calloc(r.n + 1, sizeof *seq) : NULL;
    float *token = sound ? calloc(r.total + 1, sizeof *token) : NULL;
    rlhf_status st = !sound ? RLHF_E_INVALID : !seq || !token ? RLHF_E_NOMEM : RLHF_OK;
    if (st == RLHF_OK && r.n)
        st = s->score(e->api, m, (uint32_t)r.n, r.ids, r.offset, r.prompt_len, pooling, seq,
                      wanted ? token : NULL);
    if (answer(out, st) == RLHF_OK) {
        rlhf__wire_text(out, seq, r.n * sizeof *seq);
        rlhf__wire_text(out, token, wanted ? r.total * sizeof *token : 0);
    }
    free(r.ids);
    free(r.offset);
    free(r.prompt_len);
    free(seq);
    free(token);
}

// ---- calls ----

static void call_close(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const uint32_t handle = rlhf__wire_get_u32(in);
    const int known = !in->bad && handle > 0 && handle <= RLHF__HANDLES;
    if (known) close_handle(e->api, &e->handle[handle - 1]);
    answer(out, known ? RLHF_OK : RLHF_E_INVALID);
}

// Refuse a call while responses are being sampled, because the call would use the host's models.
static void not_beside(const struct rlhf__ear *e, struct rlhf__buf *out) {
    struct rlhf__error err = {0, ""};
    rlhf__fail(&err, RLHF_E_UNSUPPORTED,
               "models are not there, and nothing is opened, while responses are drawn "
               "(rewards.overlap)");
    answer(out, rlhf__service_failed(e->api, &err));
}

int rlhf__ear_serve(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *reply) {
    static void (*const calls[])(struct rlhf__ear *, struct rlhf__wire *, struct rlhf__buf *) = {
        [RLHF__CALL_CLASSIFIER_OPEN] = classifier_open,
        [RLHF__CALL_CLASSIFIER_LOGITS] = classifier_logits,
        [RLHF__CALL_TOKENIZER_OPEN] = tokenizer_open,
        [RLHF__CALL_TOKENIZER_ENCODE] = tokenizer_encode,
        [RLHF__CALL_TOKENIZER_DECODE] = tokenizer_decode,
        [RLHF__CALL_MODEL_OPEN] = model_open,
        [RLHF__CALL_MODEL_SCORE] = model_score,
        [RLHF__CALL_CLOSE] = call_close};
    if (in->kind >= sizeof calls / sizeof *calls || !calls[in->kind] || !e->api) return -1;
    rlhf__wire_begin(reply, in->kind);
    if (e->beside && in->kind != RLHF__CALL_TOKENIZER_ENCODE &&
        in->kind != RLHF__CALL_TOKENIZER_DECODE)
        not_beside(e, reply);
    else
        calls[in->kind](e, in, reply);
    rlhf__wire_end(reply);
    return reply->bad ? -1 : 0;
}
