// leftover.c: see leftover.h.
#include "keep/leftover.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// What a run makes before its first phase ends. Rows are appended to files that are empty till
// then; what TensorBoard reads says in other words what metrics.jsonl says.
static const struct made {
    const char *name;
    enum { WRITTEN, ROWS, FOLDER, EMPTY_FOLDER } is;
} made[] = {{"config.json", WRITTEN},      {"manifest.json", WRITTEN}, {"lock", WRITTEN},
            {"metrics.jsonl", ROWS},       {"samples.jsonl", ROWS},    {"rollouts.jsonl", ROWS},
            {"checkpoints", EMPTY_FOLDER}, {"tensorboard", FOLDER},    {"metrics.csv", WRITTEN}};
enum { MADE = sizeof made / sizeof *made };

// 1 when `name` below the directory has no entries.
static int no_entries(int dir, const char *name) {
    const int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    int n = 0;
    if (!d) {
        if (fd >= 0) close(fd);
        return 0;
    }
    for (const struct dirent *e; n == 0 && (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n == 0;
}

static int is_worthless(int dir, const char *name) {
    struct stat s;
    size_t i = 0;
    while (i < MADE && strcmp(made[i].name, name) != 0)
        i++;
    if (i == MADE || fstatat(dir, name, &s, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    if (made[i].is == FOLDER) return S_ISDIR(s.st_mode);
    if (made[i].is == EMPTY_FOLDER) return S_ISDIR(s.st_mode) && no_entries(dir, name);
    return S_ISREG(s.st_mode) && (made[i].is == WRITTEN || s.st_size == 0);
}

int rlhf__leftover_is_all(const struct rlhf__folder *run) {
    const int fd = openat(run->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    int all = d != NULL;
    if (!d) {
        if (fd >= 0) close(fd);
        return 0;
    }
    for (const struct dirent *e; all && (e = readdir(d)) != NULL;)
        all = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
              is_worthless(run->fd, e->d_name);
    closedir(d);
    return all;
}

rlhf_status rlhf__leftover_remove(const struct rlhf__folder *run, struct rlhf__error *err) {
    for (size_t i = 0; i < MADE; i++)
        if (strcmp(made[i].name, "lock") != 0)
            RLHF_TRY(rlhf__folder_remove(run, made[i].name, err));
    return RLHF_OK;
}
