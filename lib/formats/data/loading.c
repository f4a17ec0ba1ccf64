// loading.c: see loading.h.
#include "data/loading.h"

#include <stdio.h>
#include <sys/stat.h>

static rlhf_status too_much(int64_t max_mib, const char *setting, const char *path, int64_t line,
                            struct rlhf__error *err) {
    char where[32] = "", size[64] = "";
    struct stat st;
    if (line > 0) snprintf(where, sizeof where, ":%lld", (long long)line);
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        snprintf(size, sizeof size, " (the file has %.1f MiB)", (double)st.st_size / (1 << 20));
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s%s: the rows and their tokens take more memory than the %lld MiB that %s "
                      "allows%s; raise it or use fewer rows",
                      path, where, (long long)max_mib, setting, size);
}

rlhf_status rlhf__loading_check(const struct rlhf__loading *l, uint64_t bytes, const char *path,
                                int64_t line, struct rlhf__error *err) {
    int64_t max_mib = l && l->max_mib > 0 ? l->max_mib : RLHF__DATA_MAX_MIB;
    if (l && l->cancelled && *l->cancelled)
        return rlhf__fail(err, RLHF_E_CANCELLED, "%s: stopped while its rows were loaded", path);
    if (bytes <= (uint64_t)max_mib << 20) return RLHF_OK;
    return too_much(max_mib, l && l->setting ? l->setting : "data.max_mib", path, line, err);
}

void rlhf__loading_seen(const struct rlhf__loading *l, const char *what, int64_t done, int64_t of) {
    if (l && done % 256 == 0) rlhf__watch_seen(l->watch, what, done, of);
}
