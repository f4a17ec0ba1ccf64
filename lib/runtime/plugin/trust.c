// trust.c: see trust.h.
#include "plugin/trust.h"

#include "base/file.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Returns 1 if the file's owner is the only member of its group, i.e. the group has the owner's
// name and lists no one else.
static int is_private_group(const struct stat *st) {
    const struct passwd *user = getpwuid(st->st_uid);
    const struct group *group = user ? getgrgid(st->st_gid) : NULL;
    if (!group || user->pw_gid != st->st_gid || strcmp(user->pw_name, group->gr_name) != 0)
        return 0;
    for (char **member = group->gr_mem; *member; member++)
        if (strcmp(*member, user->pw_name) != 0) return 0;
    return 1;
}

static const char *owner_name(uid_t uid, char out[64]) {
    const struct passwd *user = getpwuid(uid);
    if (user)
        snprintf(out, 64, "%s", user->pw_name);
    else
        snprintf(out, 64, "%lu", (unsigned long)uid);
    return out;
}

// Returns what is wrong with a file or directory, or NULL.
static const char *fault(const struct stat *st, const struct rlhf__dirs *dirs, int sticky_ok) {
    struct stat exe;
    int sticky = sticky_ok && S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX);
    int programs = *dirs->exe && stat(dirs->exe, &exe) == 0 && exe.st_uid == st->st_uid;
    if (st->st_uid != 0 && st->st_uid != geteuid() && !programs) return "belongs to another user";
    if ((st->st_mode & S_IWOTH) && !sticky) return "can be written by everybody";
    if ((st->st_mode & S_IWGRP) && !sticky && !is_private_group(st))
        return "can be written by its group";
    return NULL;
}

// Check `path`, which is `code` or a directory above it.
static rlhf_status check(const char *path, const char *code, const struct rlhf__dirs *dirs,
                         int sticky_ok, struct rlhf__error *err) {
    struct stat st;
    char owner[64];
    if (stat(path, &st) != 0)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: cannot look at it: %s", path, strerror(errno));
    const char *why = fault(&st, dirs, sticky_ok);
    if (!why) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s is not opened: %s %s (mode %04o, owner %s); only you, root and the "
                      "owner of this program may be able to change code that it runs",
                      code, path == code ? "it" : path, why, (unsigned)st.st_mode & 07777,
                      owner_name(st.st_uid, owner));
}

static int is_above(const char *dir, const char *path) {
    size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);
    return *path && strncmp(path, dir, n) == 0 && path[n] == '/';
}

// Returns 1 if the program or its plugins are below `dir`. The check of directories stops at such a
// directory, because anyone who may write to it could change the program itself.
static int holds_program(const char *dir, const struct rlhf__dirs *dirs) {
    return is_above(dir, dirs->exe) || is_above(dir, dirs->lib);
}

rlhf_status rlhf__trust_code(const char *path, const struct rlhf__dirs *dirs,
                             struct rlhf__error *err) {
    char *dir = strdup(path);
    if (!dir) return rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", path);
    rlhf_status st = check(path, path, dirs, 1, err);
    while (st == RLHF_OK && dir[1]) {
        char *slash = strrchr(dir, '/');
        slash[slash == dir] = '\0'; // the last one is "/"
        if (holds_program(dir, dirs)) break;
        st = check(dir, path, dirs, 1, err);
    }
    free(dir);
    return st;
}

rlhf_status rlhf__trust_dir(const char *dir, const struct rlhf__dirs *dirs,
                            struct rlhf__error *err) {
    char real[RLHF__PATH_CAP];
    if (!rlhf__path_real(dir, real))
        return rlhf__fail(err, RLHF_E_INVALID, "%s: cannot resolve the path", dir);
    RLHF_TRY(check(real, real, dirs, 0, err));
    return rlhf__trust_code(real, dirs, err);
}
