// text_lines.c: see text_lines.h.
#include "history/text_lines.h"

#include "base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK ((size_t)1 << 16)

rlhf_status rlhf__text_lines_open(const char *path, struct rlhf__text_lines *out,
                                  struct rlhf__error *err) {
    *out = (struct rlhf__text_lines){.fd = -1};
    rlhf__path_put(out->path, "%s", path);
    const int fd = rlhf__regular_open(AT_FDCWD, path, 1);
    if (fd < 0 && errno == ENOENT) return RLHF_OK;
    if (fd < 0) return rlhf__regular_failed(path, err);
    out->block = malloc(BLOCK);
    if (out->block) {
        out->fd = fd;
        return RLHF_OK;
    }
    close(fd);
    return RLHF__NOMEM(err, "%s: out of memory", path);
}

void rlhf__text_lines_close(struct rlhf__text_lines *l) {
    if (l->block) close(l->fd);
    free(l->block);
    rlhf__buf_finish(&l->line);
    l->block = NULL;
    l->fd = -1;
}

void rlhf__text_lines_rewind(struct rlhf__text_lines *l) {
    if (l->fd >= 0) lseek(l->fd, 0, SEEK_SET);
    l->at = l->have = 0;
    l->number = 0;
}

// Read the next block. At the end of the file, l->have is 0.
static rlhf_status fill(struct rlhf__text_lines *l, struct rlhf__error *err) {
    ssize_t n;
    while ((n = read(l->fd, l->block, BLOCK)) < 0 && errno == EINTR) {
    }
    if (n < 0)
        return rlhf__fail(err, RLHF_E_IO, "%s: cannot read the file: %s", l->path, strerror(errno));
    l->at = 0;
    l->have = (size_t)n;
    if (!memchr(l->block, '\0', l->have)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s: it is not a text, because a byte in it is 0",
                      l->path);
}

rlhf_status rlhf__text_lines_next(struct rlhf__text_lines *l, int *more, struct rlhf__error *err) {
    rlhf__buf_clear(&l->line);
    l->whole = 0;
    *more = 0;
    while (l->fd >= 0 && !l->whole) {
        if (l->at == l->have) RLHF_TRY(fill(l, err));
        if (l->have == 0) break;
        const char *from = l->block + l->at, *end = memchr(from, '\n', l->have - l->at);
        const size_t n = end ? (size_t)(end - from) : l->have - l->at;
        rlhf__buf_put(&l->line, from, n);
        RLHF_TRY(rlhf__buf_ok(&l->line, err));
        l->at += n + (end != NULL);
        l->whole = end != NULL;
        *more = 1;
        if (l->line.len > RLHF__TEXT_LINE_MAX)
            return rlhf__fail(err, RLHF_E_INVALID, "%s:%lld: the line has more than %zu bytes",
                              l->path, (long long)l->number + 1, RLHF__TEXT_LINE_MAX);
    }
    l->number += *more;
    return RLHF_OK;
}
