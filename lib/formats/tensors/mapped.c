// mapped.c: see mapped.h.
#include "tensors/mapped.h"

#include "base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static rlhf_status map(struct rlhf__mapped *m, struct rlhf__error *err) {
    struct stat info;
    if (fstat(m->fd, &info) < 0 || !S_ISREG(info.st_mode))
        return rlhf__fail(err, RLHF_E_INVALID, "%s is not a regular file", m->path);
    if (info.st_size == 0) return RLHF_OK; // nothing to map
    void *at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, m->fd, 0);
    if (at == MAP_FAILED)
        return rlhf__fail(err, RLHF_E_IO, "cannot map %s: %s", m->path, strerror(errno));
    m->bytes = at;
    m->len = (uint64_t)info.st_size;
    madvise(at, (size_t)m->len, MADV_SEQUENTIAL); // ask the system to read ahead
    return RLHF_OK;
}

rlhf_status rlhf__mapped_open(const char *path, struct rlhf__mapped *m, struct rlhf__error *err) {
    *m = (struct rlhf__mapped){.fd = -1, .path = strdup(path)};
    if (!m->path) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a path");
    m->fd = rlhf__regular_open(AT_FDCWD, path, 1);
    if (m->fd < 0) return rlhf__regular_failed(path, err);
    return map(m, err);
}

// A zeroed struct has no path. Its descriptor, 0, is standard input and must stay open.
void rlhf__mapped_close(struct rlhf__mapped *m) {
    if (m->bytes) munmap((void *)(uintptr_t)m->bytes, (size_t)m->len);
    if (m->path && m->fd >= 0) close(m->fd);
    free(m->path);
    *m = (struct rlhf__mapped){0};
}

// ---- reading a file that may be truncated ----

// Where this thread continues after it reads a missing page; NULL outside of rlhf__mapped_read.
static _Thread_local sigjmp_buf *volatile way_out;

static void on_page_gone(int number) {
    sigjmp_buf *to = way_out;
    if (to) siglongjmp(*to, 1);
    signal(number, SIG_DFL); // not from rlhf__mapped_read: the fault repeats and ends the process
}

static int guarded(void (*work)(void *arg), void *arg) {
    struct sigaction mine = {.sa_handler = on_page_gone}, before;
    sigjmp_buf here;
    sigemptyset(&mine.sa_mask);
    if (sigaction(SIGBUS, &mine, &before) != 0) return 0;
    volatile int whole = 0;
    if (sigsetjmp(here, 1) == 0) {
        way_out = &here;
        work(arg);
        whole = 1;
    }
    way_out = NULL;
    sigaction(SIGBUS, &before, NULL);
    return whole;
}

rlhf_status rlhf__mapped_read(const struct rlhf__mapped *m, void (*work)(void *arg), void *arg,
                              struct rlhf__error *err) {
    struct stat info;
    const int whole = guarded(work, arg);
    // If the file was truncated within a page, that page still exists, but its bytes after the new
    // end read as zeros, without a signal. So check the file's size as well.
    if (whole && fstat(m->fd, &info) == 0 && (uint64_t)info.st_size >= m->len) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO,
                      "%s had %llu bytes and became shorter, or unreadable, while it was read",
                      m->path, (unsigned long long)m->len);
}

void rlhf__mapped_used(const struct rlhf__mapped *m, uint64_t from, uint64_t to) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    from -= from % page; // the rest of a partly used page is still needed
    if (to < m->len) to -= to % page;
    if (to > from)
        madvise((void *)(uintptr_t)(m->bytes + from), (size_t)(to - from), MADV_DONTNEED);
}
