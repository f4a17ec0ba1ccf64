// export_own.c: see export_own.h.
#include "export/export_own.h"

#include "weights/hf_dir.h"
#include "weights/peft.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Returns 1 for model-00001-of-00003.safetensors.
static int is_shard(const char *name) {
    static const char form[] = "model-#####-of-#####.safetensors";
    size_t i = 0;
    for (; name[i] && form[i]; i++)
        if (form[i] == '#' ? name[i] < '0' || name[i] > '9' : name[i] != form[i]) return 0;
    return !name[i] && !form[i];
}

// Returns 1 if an export writes files of this name. A GGUF file has the name that --gguf gives it,
// so only the export that writes it knows.
static int is_exported(const char *name) {
    static const char *const names[] = {
        "config.json", "model.safetensors", "model.safetensors.index.json",
        "README.md",   RLHF__PEFT_CONFIG,   RLHF__PEFT_WEIGHTS};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return 1;
    return is_shard(name) || rlhf__hf_copies(name);
}

static rlhf_status link_file(DIR *from, const char *name, const struct rlhf__folder *to,
                             struct rlhf__export_own *own, struct rlhf__error *err) {
    struct stat st;
    if (is_exported(name) || rlhf__folder_has(to, name)) return RLHF_OK;
    if (fstatat(dirfd(from), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return RLHF_OK;
    if (linkat(dirfd(from), name, to->fd, name, 0) != 0)
        return rlhf__fail(err, RLHF_E_IO,
                          "export: cannot keep '%s' in '%s': %s; the directory was not replaced. "
                          "Move the file away, or choose another name",
                          name, to->path, strerror(errno));
    if (own->n++ == 0) snprintf(own->first, sizeof own->first, "%s", name);
    return RLHF_OK;
}

rlhf_status rlhf__export_own_link(const char *from, const struct rlhf__folder *to,
                                  struct rlhf__export_own *own, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    DIR *d = opendir(from);
    if (!d && errno == ENOENT) return RLHF_OK;
    if (!d)
        return rlhf__fail(err, RLHF_E_IO, "export: cannot read '%s': %s", from, strerror(errno));
    for (struct dirent *e; st == RLHF_OK && (e = readdir(d)) != NULL;)
        st = link_file(d, e->d_name, to, own, err);
    closedir(d);
    return st;
}
