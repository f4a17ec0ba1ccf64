// leftover.c: see leftover.h.
#include "keep/leftover.h"

#include "keep/checkpoint_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The files that a run creates before its first checkpoint. Row files are empty until a phase ends;
// TensorBoard's files repeat metrics.jsonl.
static const struct made {
    const char *name;
    enum { WRITTEN, ROWS, FOLDER, CHECKPOINTS } is;
} made[] = {{"config.json", WRITTEN},     {"manifest.json", WRITTEN}, {"lock", WRITTEN},
            {"metrics.jsonl", ROWS},      {"samples.jsonl", ROWS},    {"rollouts.jsonl", ROWS},
            {"checkpoints", CHECKPOINTS}, {"tensorboard", FOLDER},    {"metrics.csv", WRITTEN}};
enum { MADE = sizeof made / sizeof *made };

// 1 if `name` below the directory contains only unfinished checkpoints, or nothing.
static int unfinished_only(int dir, const char *name) {
    const int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    int n = 0;
    if (!d) {
        if (fd >= 0) close(fd);
        return 0;
    }
    for (const struct dirent *e; n == 0 && (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
             strcmp(e->d_name, ".latest") != 0 && // link to a checkpoint without its final name
             strncmp(e->d_name, RLHF__CHECKPOINT_WRITING, strlen(RLHF__CHECKPOINT_WRITING)) != 0;
    closedir(d);
    return n == 0;
}

static int is_worthless(int dir, const char *name, int rows) {
    struct stat s;
    size_t i = 0;
    while (i < MADE && strcmp(made[i].name, name) != 0)
        i++;
    if (i == MADE || fstatat(dir, name, &s, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    if (made[i].is == FOLDER) return S_ISDIR(s.st_mode);
    if (made[i].is == CHECKPOINTS) return S_ISDIR(s.st_mode) && unfinished_only(dir, name);
    return S_ISREG(s.st_mode) && (made[i].is == WRITTEN || rows || s.st_size == 0);
}

int rlhf__leftover_is_all(const struct rlhf__folder *run, int rows) {
    const int fd = openat(run->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    int all = d != NULL;
    if (!d) {
        if (fd >= 0) close(fd);
        return 0;
    }
    for (const struct dirent *e; all && (e = readdir(d)) != NULL;)
        all = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
              is_worthless(run->fd, e->d_name, rows);
    closedir(d);
    return all;
}

rlhf_status rlhf__leftover_remove(const struct rlhf__folder *run, struct rlhf__error *err) {
    for (size_t i = 0; i < MADE; i++)
        if (strcmp(made[i].name, "lock") != 0)
            RLHF_TRY(rlhf__folder_remove(run, made[i].name, err));
    return RLHF_OK;
}
