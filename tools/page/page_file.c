// page_file.c: see page_file.h.
#include "page/page_file.h"

#include "base/file.h"
#include "base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

// Returns 1 if the file at `path` begins like a page of this program.
static int begins_as_page(const char *path) {
    char start[64];
    const int fd = rlhf__regular_open(AT_FDCWD, path, 0);
    ssize_t n;
    if (fd < 0) return 0;
    while ((n = read(fd, start, sizeof start)) < 0 && errno == EINTR) {
    }
    close(fd);
    return n > 0 && rlhf__page_is_ours(start, (size_t)n);
}

static rlhf_status may_make(const char *command, const char *path, struct rlhf__error *err) {
    struct rlhf__error why = {0, ""};
    const rlhf_status st = rlhf__file_may_make(path, &why);
    return st == RLHF_OK ? st : rlhf__fail(err, st, "%s: %s", command, why.text);
}

rlhf_status rlhf__page_file_check(const char *command, const char *path, struct rlhf__error *err) {
    struct stat st;
    if (lstat(path, &st) < 0) return may_make(command, path, err);
    if (S_ISREG(st.st_mode) && begins_as_page(path)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: '%s' exists and is not a page of this program; choose another name with "
                      "--out FILE",
                      command, path);
}
