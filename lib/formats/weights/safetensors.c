// safetensors.c: opens weight files, either a single file or the shards of an index; see
// safetensors.h.
#include "weights/safetensors.h"

#include "base/file.h"
#include "base/json.h"
#include "weights/gguf_weights.h"
#include "weights/safetensors_header.h"
#include "weights/text_part.h"
#include "weights/wrong_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- safetensors ----

enum { MAX_SHARDS = 512 }; // each needs a descriptor; the largest checkpoints have about 200

struct shard {
    struct rlhf__mapped file;
    json_t *header;
};

struct rlhf__weights {
    struct shard *shard; // [n_shards]
    size_t n_shards;
    struct rlhf__tensor *tensor; // [n] sorted by name
    size_t n;
    char *names; // of the tensors of a language model inside of a larger model, or NULL
    struct rlhf__gguf_weights gguf; // of a GGUF file; its tensors are in `tensor`
    size_t left_out;                // tensors of the other parts
};

// The arguments of copy_head, which copies the first bytes of a file that may change meanwhile.
struct head {
    const uint8_t *from;
    uint8_t *to;
    size_t n;
};

static void copy_head(void *head) {
    const struct head *h = head;
    memcpy(h->to, h->from, h->n);
}

// Reads the header's text into a new heap buffer.
static rlhf_status read_text(const struct rlhf__mapped *f, uint8_t **text, uint64_t *size,
                             struct rlhf__error *err) {
    uint8_t first[8];
    struct head head = {f->bytes, first, sizeof first};
    if (f->len < sizeof first)
        return rlhf__fail(err, RLHF_E_INVALID, "the file has %llu bytes; no safetensors file",
                          (unsigned long long)f->len);
    RLHF_TRY(rlhf__mapped_read(f, copy_head, &head, err));
    RLHF_TRY(rlhf__safetensors_size(first, f->len, size, err));
    *text = malloc((size_t)*size + 1);
    if (!*text) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the header");
    head = (struct head){f->bytes + sizeof first, *text, (size_t)*size};
    return rlhf__mapped_read(f, copy_head, &head, err);
}

// Reads the descriptions of the tensors in one mapped file.
static rlhf_status read_header(struct shard *s, struct rlhf__tensor **fresh, size_t *n,
                               struct rlhf__error *err) {
    const struct rlhf__mapped *f = &s->file;
    uint8_t *text = NULL;
    uint64_t size = 0;
    rlhf_status st = read_text(f, &text, &size, err);
    if (st == RLHF_OK)
        st = rlhf__safetensors_parse(f->path, (const char *)text, size, f->bytes + 8 + size,
                                     f->len - 8 - size, &s->header, fresh, n, err);
    free(text);
    for (size_t i = 0; st == RLHF_OK && i < *n; i++)
        (*fresh)[i].in = f;
    return st == RLHF_OK ? st : rlhf__error_context(err, "%s", f->path);
}

// Add the tensors of one file.
static rlhf_status add_shard(struct rlhf__weights *w, const char *path, struct rlhf__error *err) {
    struct shard *s = &w->shard[w->n_shards++];
    struct rlhf__tensor *fresh = NULL;
    size_t n = 0;
    RLHF_TRY(rlhf__mapped_open(path, &s->file, err));
    RLHF_TRY(read_header(s, &fresh, &n, err));
    rlhf_status st = RLHF_OK;
    struct rlhf__tensor *all = realloc(w->tensor, (w->n + n + 1) * sizeof *all);
    if (all) {
        w->tensor = all;
        if (n) memcpy(all + w->n, fresh, n * sizeof *all);
        w->n += n;
    } else {
        st = rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu tensors", n);
    }
    free(fresh);
    return st;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct rlhf__tensor *)a)->name, ((const struct rlhf__tensor *)b)->name);
}

static rlhf_status sort(struct rlhf__weights *w, struct rlhf__error *err) {
    if (w->n) qsort(w->tensor, w->n, sizeof *w->tensor, by_name);
    for (size_t i = 1; i < w->n; i++)
        if (!by_name(&w->tensor[i - 1], &w->tensor[i]))
            return rlhf__fail(err, RLHF_E_INVALID, "tensor '%s' is in both %s and %s",
                              w->tensor[i].name, w->tensor[i - 1].file, w->tensor[i].file);
    return RLHF_OK;
}

// The folder part of a path, or ".". The caller frees it. NULL if memory runs out.
static char *dir_of(const char *path) {
    size_t len = (size_t)(rlhf__path_base(path) - path);
    return len ? strndup(path, len > 1 ? len - 1 : 1) : strdup(".");
}

// ---- the index of a sharded checkpoint ----

// Opens one entry of weight_map. The first entry of a shard opens the shard; `seen` has the names
// of the shards so far. A name must not lead out of the index's folder. Links are followed, because
// all files in the cache of huggingface_hub are links.
static rlhf_status open_entry(struct rlhf__weights *w, const char *dir, const char *name,
                              const json_t *file, json_t *seen, struct rlhf__error *err) {
    const char *base = json_string_value(file);
    if (!base)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "weight_map: the entry of '%s' is %s, expected the name of a file", name,
                          rlhf__json_kind(file));
    if (!*base || strchr(base, '/'))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "weight_map: the entry of '%s', '%s', is not the name of a file in the "
                          "same folder",
                          name, base);
    if (json_object_get(seen, base)) return RLHF_OK;
    if (w->n_shards == MAX_SHARDS)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "more than %d shards", MAX_SHARDS);
    char *path = rlhf__path_join(dir, base);
    if (!path || json_object_set_new(seen, base, json_true()) != 0) {
        free(path);
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a path");
    }
    const int there = access(path, F_OK) == 0;
    const rlhf_status st = there ? add_shard(w, path, err) : RLHF_E_INVALID;
    free(path);
    if (there) return st;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the shard %s, which weight_map names for '%s', is not there; was all of the "
                      "checkpoint copied?",
                      base, name);
}

// weight_map only tells which shards there are, as in transformers: tensors are found by their
// names in the shards.
static rlhf_status open_shards(struct rlhf__weights *w, json_t *map, const char *dir,
                               struct rlhf__error *err) {
    const char *name;
    json_t *file;
    if (!json_is_object(map))
        return rlhf__fail(err, RLHF_E_INVALID, "weight_map is %s, expected an object",
                          rlhf__json_kind(map));
    w->shard = calloc(MAX_SHARDS, sizeof *w->shard);
    if (!w->shard) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the shards");
    json_t *seen = json_object();
    rlhf_status st = seen ? RLHF_OK : rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the shards");
    json_object_foreach(map, name, file) {
        if (st == RLHF_OK) st = open_entry(w, dir, name, file, seen, err);
    }
    json_decref(seen);
    return st == RLHF_OK ? sort(w, err) : st;
}

static rlhf_status open_index(struct rlhf__weights *w, const char *path, struct rlhf__error *err) {
    json_t *index = NULL;
    RLHF_TRY(rlhf__json_load(path, &index, err));
    char *dir = dir_of(path);
    rlhf_status st = dir ? open_shards(w, json_object_get(index, "weight_map"), dir, err)
                         : rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a path");
    if (st < 0) rlhf__error_context(err, "%s", path);
    free(dir);
    json_decref(index);
    return st;
}

// ---- opening ----

static rlhf_status open_file(struct rlhf__weights *w, const char *path, struct rlhf__error *err) {
    w->shard = calloc(1, sizeof *w->shard);
    if (!w->shard) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for weights");
    RLHF_TRY(add_shard(w, path, err));
    return sort(w, err);
}

// Keeps the tensors of the language model, with the names that they have without the other parts.
static rlhf_status keep_text(struct rlhf__weights *w, struct rlhf__error *err) {
    const char *front;
    size_t skip, bytes = 1, kept = 0;
    for (size_t i = 0; i < w->n; i++)
        bytes += strlen(w->tensor[i].name) + 1;
    char *at = w->names = malloc(bytes);
    if (!at) return RLHF__NOMEM(err, "out of memory for the names of tensors");
    const char *end = at + bytes;
    for (size_t i = 0; i < w->n; i++) {
        struct rlhf__tensor t = w->tensor[i];
        if (!rlhf__text_part_name(t.name, &front, &skip)) continue;
        t.name = at; // the name does not get longer
        at += snprintf(at, (size_t)(end - at), "%s%s", front, w->tensor[i].name + skip) + 1;
        w->tensor[kept++] = t;
    }
    w->left_out = w->n - kept;
    w->n = kept;
    return sort(w, err);
}

// If the directory's config.json is not readable, other functions report it.
static rlhf_status find_text(struct rlhf__weights *w, const char *dir, struct rlhf__error *err) {
    json_t *config = NULL;
    const rlhf_status st = rlhf__json_load_any(dir, "config.json", &config, NULL);
    const int inside = st == RLHF_OK && rlhf__text_part_is(config);
    json_decref(config);
    return inside ? keep_text(w, err) : RLHF_OK;
}

static rlhf_status open_dir(struct rlhf__weights *w, const char *dir, struct rlhf__error *err) {
    char *file = rlhf__path_join(dir, "model.safetensors");
    char *index = rlhf__path_join(dir, "model.safetensors.index.json");
    rlhf_status st;
    if (!file || !index)
        st = rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a path");
    else if (rlhf__is_file(file))
        st = open_file(w, file, err);
    else if (rlhf__is_file(index))
        st = open_index(w, index, err);
    else
        st = rlhf__wrong_weights(dir, err);
    if (st == RLHF_OK) st = find_text(w, dir, err);
    free(file);
    free(index);
    return st;
}

static rlhf_status open_gguf(struct rlhf__weights *w, const char *path, struct rlhf__error *err) {
    const rlhf_status st = rlhf__gguf_weights_open(path, &w->gguf, err);
    w->tensor = w->gguf.tensor;
    w->n = w->gguf.n;
    w->left_out = w->gguf.left_out;
    w->gguf.tensor = NULL; // w owns it now
    return st == RLHF_OK ? sort(w, err) : st;
}

rlhf_status rlhf__weights_open(const char *path, struct rlhf__weights **out,
                               struct rlhf__error *err) {
    struct rlhf__weights *w = calloc(1, sizeof *w);
    if (!w) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for weights");
    size_t len = strlen(path);
    int index = len > 5 && !strcmp(path + len - 5, ".json");
    rlhf_status st = rlhf__is_dir(path)    ? open_dir(w, path, err)
                     : rlhf__gguf_is(path) ? open_gguf(w, path, err)
                     : index               ? open_index(w, path, err)
                                           : open_file(w, path, err);
    if (st < 0) {
        rlhf__weights_close(w);
        return st;
    }
    *out = w;
    return RLHF_OK;
}

int rlhf__weights_exist(const char *dir) {
    char path[RLHF__PATH_CAP];
    return rlhf__gguf_is(dir) || rlhf__is_file(rlhf__path_put(path, "%s/model.safetensors", dir)) ||
           rlhf__is_file(rlhf__path_put(path, "%s/model.safetensors.index.json", dir));
}

void rlhf__weights_close(struct rlhf__weights *w) {
    if (!w) return;
    for (size_t i = 0; i < w->n_shards; i++) {
        rlhf__mapped_close(&w->shard[i].file);
        json_decref(w->shard[i].header);
    }
    free(w->shard);
    free(w->tensor);
    free(w->names);
    rlhf__gguf_weights_finish(&w->gguf);
    free(w);
}

size_t rlhf__weights_count(const struct rlhf__weights *w) { return w->n; }

size_t rlhf__weights_left_out(const struct rlhf__weights *w) { return w->left_out; }

const struct rlhf__tensor *rlhf__weights_at(const struct rlhf__weights *w, size_t i) {
    return &w->tensor[i];
}

const struct rlhf__tensor *rlhf__weights_find(const struct rlhf__weights *w, const char *name) {
    struct rlhf__tensor key = {.name = name};
    return w->n ? bsearch(&key, w->tensor, w->n, sizeof key, by_name) : NULL;
}

const char *rlhf__weights_metadata(const struct rlhf__weights *w, const char *key) {
    const char *value = NULL;
    for (size_t i = 0; i < w->n_shards && !value; i++)
        value = json_string_value(
            json_object_get(json_object_get(w->shard[i].header, "__metadata__"), key));
    return value;
}

// ---- unexpected tensors ----

#define CHUNK ((int64_t)1 << 18) // floats read at once

static const char *const buffers[] = {"attn.bias", "attn.masked_bias", "rotary_emb.inv_freq",
                                      "embeddings.position_ids"};

int rlhf__tensor_is_buffer(const char *name) {
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        const size_t m = strlen(buffers[i]);
        if (n >= m && !strcmp(name + n - m, buffers[i]) && (n == m || name[n - m - 1] == '.'))
            return 1;
    }
    return 0;
}

int rlhf__tensor_is_value_head(const char *name) { return strncmp(name, "v_head.", 7) == 0; }

rlhf_status rlhf__tensor_same(const struct rlhf__tensor *a, const struct rlhf__tensor *b, int *same,
                              struct rlhf__error *err) {
    float *x = malloc(2 * CHUNK * sizeof *x), *y = x ? x + CHUNK : NULL;
    rlhf_status st = x ? RLHF_OK : RLHF__NOMEM(err, "out of memory comparing %s", a->name);
    *same = a->ndim == b->ndim && !memcmp(a->shape, b->shape, sizeof a->shape);
    for (int64_t at = 0; st == RLHF_OK && *same && at < a->count; at += CHUNK) {
        const int64_t left = a->count - at, n = left < CHUNK ? left : CHUNK;
        st = rlhf__tensor_read_f32(a, at, n, x, err);
        if (st == RLHF_OK) st = rlhf__tensor_read_f32(b, at, n, y, err);
        if (st == RLHF_OK) *same = !memcmp(x, y, (size_t)n * sizeof *x);
    }
    free(x);
    return st;
}
