// links.c: see links.h.
#include "weights/links.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 64

// Returns 1 if the link's target is in the link's directory or below it. Parts of the target's path
// may themselves be links. Following these cannot lead out either, because every link of the tree
// is checked in this way.
static int stays(const char *target) {
    if (*target == '/') return 0;
    for (const char *part = target; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || !part[2])) return 0;
    }
    return 1;
}

static rlhf_status check_link(const char *path, const char *what, struct rlhf__error *err) {
    char target[4096];
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return rlhf__fail(err, RLHF_E_IO, "%s: cannot read the link: %s", path, strerror(errno));
    target[n] = '\0';
    if ((size_t)n < sizeof target - 1 && stays(target)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s is a link to %s, which leads out of %s", path,
                      target, what);
}

static rlhf_status check_below(const char *dir, const char *what, int depth,
                               struct rlhf__error *err) {
    if (depth > MAX_DEPTH)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: more than %d directories deep", dir, MAX_DEPTH);
    DIR *d = opendir(dir);
    if (!d && depth > 0 && errno == ENOENT) return RLHF_OK; // removed in the meantime
    if (!d)
        return rlhf__fail(err, RLHF_E_IO, "%s: cannot read the directory: %s", dir,
                          strerror(errno));
    rlhf_status st = RLHF_OK;
    for (struct dirent *e; st == RLHF_OK && (e = readdir(d)) != NULL;) {
        struct stat s;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        char *path = rlhf__path_join(dir, e->d_name);
        if (!path)
            st = rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", dir);
        else if (lstat(path, &s) != 0)
            st = RLHF_OK; // removed in the meantime
        else if (S_ISLNK(s.st_mode))
            st = check_link(path, what, err);
        else if (S_ISDIR(s.st_mode))
            st = check_below(path, what, depth + 1, err);
        else if (!S_ISREG(s.st_mode))
            st = rlhf__fail(err, RLHF_E_INVALID, "%s is neither a file nor a directory", path);
        free(path);
    }
    closedir(d);
    return st;
}

rlhf_status rlhf__links_stay(const char *dir, const char *what, struct rlhf__error *err) {
    return check_below(dir, what, 0, err);
}
