// file_sum.c: see file_sum.h.
#include "weights/file_sum.h"

#include "base/file.h"
#include "base/regular.h"
#include "tensors/gguf_file.h"
#include "weights/wrong_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHOLE_BYTES ((int64_t)64 << 20) // model files up to this size are hashed completely
#define PIECE_BYTES 65536
#define PIECES      64

// Reports an unreadable file as invalid input, as rlhf__weights_open does.
static rlhf_status unreadable(const char *path, struct rlhf__error *err) {
    return rlhf__fail(err, errno == EACCES ? RLHF_E_INVALID : RLHF_E_IO, "%s: cannot read: %s",
                      path, strerror(errno));
}

// Hashes the bytes [from, from + n) of the file, or fewer if the file is shorter.
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

// Add a regular file to the hash. If the path is not a regular file, sets *size to -1 and adds
// nothing.
static rlhf_status put_file(struct rlhf__file_sum *s, const char *path, int64_t whole,
                            int64_t *size, struct rlhf__error *err) {
    struct stat is;
    *size = -1;
    if (!rlhf__is_file(path)) return RLHF_OK;
    const int fd = rlhf__regular_open(AT_FDCWD, path, 1);
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

static rlhf_status put_named(struct rlhf__file_sum *s, const char *dir, const char *name,
                             struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    int64_t size;
    rlhf__path_put(path, "%s/%s", dir, name);
    RLHF_TRY(put_file(s, path, WHOLE_BYTES, &size, err));
    if (size < 0) return RLHF_OK;
    // Hash the size after the bytes, so that the sum depends on where each file ends.
    rlhf__sha256_put(&s->hash, name, strlen(name) + 1);
    rlhf__sha256_put(&s->hash, &size, sizeof size);
    return RLHF_OK;
}

static int is_shard(const struct dirent *e) {
    size_t n = strlen(e->d_name), end = strlen(".safetensors");
    return n > end && strcmp(e->d_name + n - end, ".safetensors") == 0;
}

// If model.safetensors is missing, the shards in its index are the weights.
static rlhf_status put_weights(struct rlhf__file_sum *s, const char *dir, struct rlhf__error *err) {
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

// ---- files and directories ----

rlhf_status rlhf__sum_file(const char *path, struct rlhf__file_sum *out, int *found,
                           struct rlhf__error *err) {
    int64_t size;
    out->bytes = 0;
    rlhf__sha256_init(&out->hash);
    rlhf_status st = put_file(out, path, INT64_MAX, &size, err);
    *found = size >= 0;
    return st;
}

rlhf_status rlhf__sum_model(const char *dir, int tokenizer, int weights, struct rlhf__file_sum *out,
                            struct rlhf__error *err) {
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", "vocab.json",
                                        "merges.txt", "vocab.txt"};
    out->bytes = 0;
    rlhf__sha256_init(&out->hash);
    int64_t size;
    if (access(dir, F_OK) != 0 && errno == ENOENT) return rlhf__wrong_dir(dir, err);
    if (rlhf__gguf_is(dir)) return put_file(out, dir, INT64_MAX, &size, err);
    RLHF_TRY(put_named(out, dir, "config.json", err));
    for (size_t i = 0; tokenizer && i < sizeof files / sizeof *files; i++)
        RLHF_TRY(put_named(out, dir, files[i], err));
    RLHF_TRY(put_named(out, dir, "adapter_config.json", err));
    return weights ? put_weights(out, dir, err) : RLHF_OK;
}
