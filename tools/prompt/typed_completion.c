// typed_completion.c: see typed_completion.h.
#include "prompt/typed_completion.h"

#include "base/file.h"
#include "base/printable.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LISTED 200 // maximum number of candidates in a list

// The candidates so far. `n` is their number, and `common` is the text that all of them have after
// the typed part.
struct found {
    const char *typed; // the word
    size_t len, n;
    struct rlhf__buf common, list;
    int32_t folder; // 1: the last candidate is a directory
};

static void offer(struct found *f, const char *name, int folder) {
    if (strncmp(name, f->typed, f->len) != 0) return;
    const char *rest = name + f->len;
    size_t same = 0;
    f->folder = folder;
    if (f->n++ == 0) rlhf__buf_puts(&f->common, rest);
    while (same < f->common.len && rest[same] == f->common.data[same])
        same++;
    if (f->common.data) f->common.data[f->common.len = same] = '\0';
    if (f->n > LISTED) return;
    if (f->list.len) rlhf__buf_puts(&f->list, "  ");
    rlhf__put_printable(&f->list, name, strlen(name), "");
    if (folder) rlhf__buf_putc(&f->list, '/');
}

static int is_folder(const char *dir, const char *name) {
    char path[RLHF__PATH_CAP];
    struct stat s;
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path) return 0;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

// Split `path` at its last slash into a directory and the typed part of a name, and offer the
// directory's entries that begin with this part. Hidden files are offered only if the typed part
// begins with a dot.
static void offer_paths(struct found *f, const char *path) {
    char dir[RLHF__PATH_CAP];
    const char *slash = strrchr(path, '/');
    f->typed = slash ? slash + 1 : path;
    f->len = strlen(f->typed);
    if (!slash)
        snprintf(dir, sizeof dir, ".");
    else if (snprintf(dir, sizeof dir, "%.*s", (int)(slash - path + 1), path) >= (int)sizeof dir)
        return;
    DIR *d = opendir(dir);
    for (struct dirent *at; d && (at = readdir(d)) != NULL;)
        if (at->d_name[0] != '.' || f->typed[0] == '.')
            offer(f, at->d_name, is_folder(dir, at->d_name));
    if (d) closedir(d);
}

// If the line is a command that takes a path, returns where the path begins. Otherwise returns 0.
static size_t argument_at(const struct rlhf__completion_words *w, const char *line) {
    const size_t n = strcspn(line, " ");
    for (size_t i = 0; line[n] && w->with_path[i]; i++)
        if (strlen(w->with_path[i]) == n && strncmp(w->with_path[i], line, n) == 0)
            return n + strspn(line + n, " ");
    return 0;
}

size_t rlhf__complete(const struct rlhf__completion_words *w, rlhf_str typed, struct rlhf__buf *add,
                      struct rlhf__buf *list) {
    struct found f = {.common = RLHF__BUF_INIT, .list = RLHF__BUF_INIT};
    char line[RLHF__PATH_CAP];
    if (typed.len == 0 || typed.len >= sizeof line || typed.ptr[0] != '/') return 0;
    memcpy(line, typed.ptr, (size_t)typed.len);
    line[typed.len] = '\0';
    const size_t at = argument_at(w, line);
    if (at) {
        offer_paths(&f, line + at);
    } else if (!strchr(line, ' ')) {
        f.typed = line;
        f.len = strlen(line);
        for (size_t i = 0; w->commands[i]; i++)
            offer(&f, w->commands[i], 0);
    }
    rlhf__buf_put(add, rlhf__buf_text(&f.common), f.common.len);
    if (f.n == 1) rlhf__buf_putc(add, f.folder ? '/' : ' ');
    if (f.n > 1 && add->len == 0) rlhf__buf_put(list, rlhf__buf_text(&f.list), f.list.len);
    rlhf__buf_finish(&f.common);
    rlhf__buf_finish(&f.list);
    return f.n;
}
