// safetensors.c: opening weight files; see safetensors.h. One file or the shards of an index.
#include "weights/safetensors.h"

#include "weights/safetensors_header.h"

#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_SHARDS = 4096 };

struct shard {
    char *path;
    void *map;
    size_t len;
    json_t *header;
};

struct rlhf__weights {
    struct shard *shard; // [n_shards]
    size_t n_shards;
    struct rlhf__tensor *tensor; // [n] by name
    size_t n;
};

static rlhf_status map_file(struct shard *s, struct rlhf__error *err) {
    int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe is not waited for
    if (fd < 0)
        return rlhf__fail(err,
                          errno == ENOENT || errno == ENAMETOOLONG ? RLHF_E_INVALID : RLHF_E_IO,
                          "cannot open %s: %s", s->path, strerror(errno));
    struct stat info;
    rlhf_status st = RLHF_OK;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        st = rlhf__fail(err, RLHF_E_INVALID, "%s is no regular file", s->path);
    else if (info.st_size < 8)
        st = rlhf__fail(err, RLHF_E_INVALID, "%s: the file has %lld bytes; no safetensors file",
                        s->path, (long long)info.st_size);
    if (st == RLHF_OK) {
        s->len = (size_t)info.st_size;
        s->map = mmap(NULL, s->len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (s->map == MAP_FAILED) {
            s->map = NULL;
            st = rlhf__fail(err, RLHF_E_IO, "cannot map %s: %s", s->path, strerror(errno));
        }
    }
    close(fd);
    return st;
}

// Append the tensors of one file. Takes over path.
static rlhf_status add_shard(struct rlhf__weights *w, char *path, struct rlhf__error *err) {
    struct shard *s = &w->shard[w->n_shards++];
    struct rlhf__tensor *fresh = NULL;
    size_t n = 0;
    s->path = path;
    if (!path) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a path");
    RLHF_TRY(map_file(s, err));
    rlhf_status st = rlhf__safetensors_parse(s->path, s->map, s->len, &s->header, &fresh, &n, err);
    if (st < 0) {
        rlhf__error_context(err, "%s", s->path);
        return st;
    }
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

// The folder part of a path, "." when it has none. Heap; NULL = out of memory.
static char *dir_of(const char *path) {
    size_t len = (size_t)(rlhf__path_base(path) - path);
    return len ? strndup(path, len > 1 ? len - 1 : 1) : strdup(".");
}

static int known_shard(const struct rlhf__weights *w, const char *name) {
    for (size_t i = 0; i < w->n_shards; i++)
        if (!strcmp(rlhf__path_base(w->shard[i].path), name)) return 1;
    return 0;
}

// Every tensor that the index promises must be in the file it names.
static rlhf_status check_index(struct rlhf__weights *w, json_t *map, struct rlhf__error *err) {
    const char *name;
    json_t *file;
    json_object_foreach(map, name, file) {
        const struct rlhf__tensor *t = rlhf__weights_find(w, name);
        if (!t || strcmp(rlhf__path_base(t->file), json_string_value(file)) != 0)
            return rlhf__fail(err, RLHF_E_INVALID, "tensor '%s' is not in %s", name,
                              json_string_value(file));
    }
    return RLHF_OK;
}

static rlhf_status open_shards(struct rlhf__weights *w, json_t *map, const char *dir,
                               struct rlhf__error *err) {
    const char *name;
    json_t *file;
    if (!json_is_object(map))
        return rlhf__fail(err, RLHF_E_INVALID, "weight_map is missing or no object");
    w->shard = calloc(MAX_SHARDS, sizeof *w->shard);
    if (!w->shard) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the shards");
    json_object_foreach(map, name, file) {
        const char *base = json_string_value(file);
        if (!base || !*base || strchr(base, '/'))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "weight_map: the entry of '%s' is no file name in the same folder",
                              name);
        if (known_shard(w, base)) continue;
        if (w->n_shards == MAX_SHARDS)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED, "more than %d shards", MAX_SHARDS);
        RLHF_TRY(add_shard(w, rlhf__path_join(dir, base), err));
    }
    RLHF_TRY(sort(w, err));
    return check_index(w, map, err);
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

static rlhf_status open_file(struct rlhf__weights *w, const char *path, struct rlhf__error *err) {
    w->shard = calloc(1, sizeof *w->shard);
    if (!w->shard) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for weights");
    RLHF_TRY(add_shard(w, strdup(path), err));
    return sort(w, err);
}

static rlhf_status no_weights(const char *dir, struct rlhf__error *err) {
    char *pickle = rlhf__path_join(dir, "pytorch_model.bin");
    int there = pickle && rlhf__is_file(pickle);
    free(pickle);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s holds no weights; expected model.safetensors or "
                      "model.safetensors.index.json%s",
                      dir,
                      there ? ": pytorch_model.bin is a pickle, which is never read; "
                              "save_pretrained of transformers writes safetensors"
                            : "");
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
        st = no_weights(dir, err);
    free(file);
    free(index);
    return st;
}

rlhf_status rlhf__weights_open(const char *path, struct rlhf__weights **out,
                               struct rlhf__error *err) {
    struct rlhf__weights *w = calloc(1, sizeof *w);
    if (!w) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for weights");
    size_t len = strlen(path);
    int index = len > 5 && !strcmp(path + len - 5, ".json");
    rlhf_status st = rlhf__is_dir(path) ? open_dir(w, path, err)
                     : index            ? open_index(w, path, err)
                                        : open_file(w, path, err);
    if (st < 0) {
        rlhf__weights_close(w);
        return st;
    }
    *out = w;
    return RLHF_OK;
}

void rlhf__weights_close(struct rlhf__weights *w) {
    if (!w) return;
    for (size_t i = 0; i < w->n_shards; i++) {
        if (w->shard[i].map) munmap(w->shard[i].map, w->shard[i].len);
        json_decref(w->shard[i].header);
        free(w->shard[i].path);
    }
    free(w->shard);
    free(w->tensor);
    free(w);
}

size_t rlhf__weights_count(const struct rlhf__weights *w) { return w->n; }

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
