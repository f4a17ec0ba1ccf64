// inputs.c: see inputs.h.
#include "keep/inputs.h"

#include "base/file.h"
#include "base/sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHOLE_BYTES ((int64_t)64 << 20) // a model's file up to this is read whole
#define PIECE_BYTES 65536
#define PIECES      64

struct sum {
    struct rlhf__sha256 hash;
    int64_t bytes; // of the files
};

static rlhf_status unreadable(const char *path, struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_IO, "%s: cannot read: %s", path, strerror(errno));
}

// `n` bytes at `from`; fewer where the file ends.
static int put_range(struct rlhf__sha256 *s, int fd, int64_t from, int64_t n) {
    static const size_t chunk = PIECE_BYTES;
    uint8_t bytes[PIECE_BYTES];
    while (n > 0) {
        ssize_t got = pread(fd, bytes, n < (int64_t)chunk ? (size_t)n : chunk, from);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        rlhf__sha256_put(s, bytes, (size_t)got);
        from += got;
        n -= got;
    }
    return 0;
}

static int put_pieces(struct rlhf__sha256 *s, int fd, int64_t size) {
    int bad = 0;
    for (int64_t i = 0; i < PIECES && !bad; i++)
        bad = put_range(s, fd, (size - PIECE_BYTES) / (PIECES - 1) * i, PIECE_BYTES);
    return bad;
}

// A regular file into the sum; *size = -1 and nothing for anything else.
static rlhf_status put_file(struct sum *s, const char *path, int64_t whole, int64_t *size,
                            struct rlhf__error *err) {
    struct stat is;
    *size = -1;
    if (!rlhf__is_file(path)) return RLHF_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &is) != 0) {
        rlhf_status st = unreadable(path, err);
        if (fd >= 0) close(fd);
        return st;
    }
    *size = is.st_size;
    s->bytes += is.st_size;
    int bad = is.st_size > whole ? put_pieces(&s->hash, fd, is.st_size)
                                 : put_range(&s->hash, fd, 0, is.st_size);
    rlhf_status st = bad ? unreadable(path, err) : RLHF_OK;
    close(fd);
    return st;
}

static rlhf_status append(json_t *list, const char *setting, const char *path, struct sum *s,
                          struct rlhf__error *err) {
    char hex[65], real[RLHF__PATH_CAP];
    rlhf__sha256_hex(&s->hash, hex);
    if (rlhf__path_real(path, real)) path = real;
    json_t *entry = json_pack("{s:s, s:s, s:I, s:s}", "setting", setting, "path", path, "bytes",
                              (json_int_t)s->bytes, "sha256", hex);
    if (json_array_append_new(list, entry) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the list of inputs");
}

rlhf_status rlhf__inputs_add_file(json_t *list, const char *setting, const char *path,
                                  struct rlhf__error *err) {
    struct sum s = {.bytes = 0};
    int64_t size;
    rlhf__sha256_init(&s.hash);
    RLHF_TRY(put_file(&s, path, INT64_MAX, &size, err));
    return size < 0 ? RLHF_OK : append(list, setting, path, &s, err);
}

// ---- model directories ------------------------------------------------------------------------

static rlhf_status put_named(struct sum *s, const char *dir, const char *name,
                             struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    int64_t size;
    rlhf__path_put(path, "%s/%s", dir, name);
    RLHF_TRY(put_file(s, path, WHOLE_BYTES, &size, err));
    if (size < 0) return RLHF_OK;
    // After the bytes: where a file ends and the next begins shows in the sum.
    rlhf__sha256_put(&s->hash, name, strlen(name) + 1);
    rlhf__sha256_put(&s->hash, &size, sizeof size);
    return RLHF_OK;
}

static int is_shard(const struct dirent *e) {
    size_t n = strlen(e->d_name), end = strlen(".safetensors");
    return n > end && strcmp(e->d_name + n - end, ".safetensors") == 0;
}

// Where model.safetensors is missing, the shards beside its index are the weights.
static rlhf_status put_weights(struct sum *s, const char *dir, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    if (rlhf__is_file(rlhf__path_put(path, "%s/model.safetensors", dir)))
        return put_named(s, dir, "model.safetensors", err);
    struct dirent **names = NULL;
    int n = scandir(dir, &names, is_shard, alphasort);
    rlhf_status st = n < 0 ? unreadable(dir, err) : RLHF_OK;
    if (st == RLHF_OK) st = put_named(s, dir, "model.safetensors.index.json", err);
    for (int i = 0; i < n; i++) {
        if (st == RLHF_OK) st = put_named(s, dir, names[i]->d_name, err);
        free(names[i]);
    }
    free(names);
    return st;
}

rlhf_status rlhf__inputs_add_model(json_t *list, const char *setting, const char *dir, int weights,
                                   struct rlhf__error *err) {
    static const char *const files[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                        "vocab.json",  "merges.txt",     "vocab.txt"};
    struct sum s = {.bytes = 0};
    rlhf__sha256_init(&s.hash);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        RLHF_TRY(put_named(&s, dir, files[i], err));
    if (weights) RLHF_TRY(put_weights(&s, dir, err));
    return append(list, setting, dir, &s, err);
}

// ---- what changed -----------------------------------------------------------------------------

static const char *field(const json_t *o, const char *key) {
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static const json_t *twin(const json_t *now, size_t i, const json_t *before) {
    const char *setting = field(json_array_get(now, i), "setting");
    size_t place = 0, k;
    const json_t *e;
    for (size_t j = 0; j < i; j++)
        place += strcmp(field(json_array_get(now, j), "setting"), setting) == 0;
    json_array_foreach(before, k, e) {
        if (strcmp(field(e, "setting"), setting) == 0 && place-- == 0) return e;
    }
    return NULL;
}

void rlhf__inputs_compare(const json_t *before, const json_t *now, struct rlhf__buf *out) {
    size_t i, start = out->len;
    const json_t *is;
    json_array_foreach(now, i, is) {
        const json_t *was = twin(now, i, before);
        json_int_t a = json_integer_value(json_object_get(was, "bytes"));
        json_int_t b = json_integer_value(json_object_get(is, "bytes"));
        const char *old = field(was, "sha256"), *new = field(is, "sha256");
        if (!was || (a == b && strcmp(old, new) == 0)) continue;
        rlhf__buf_printf(out, "%s%s %s (", out->len > start ? ", " : "", field(is, "setting"),
                         field(is, "path"));
        if (a != b)
            rlhf__buf_printf(out, "bytes %lld is now %lld)", (long long)a, (long long)b);
        else
            rlhf__buf_printf(out, "sha256 %.12s is now %.12s)", old, new);
    }
}
