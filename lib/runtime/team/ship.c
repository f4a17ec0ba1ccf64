// ship.c: see ship.h.
#include "team/ship.h"

#include "base/file.h"
#include "base/folder.h"
#include "team/parts.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHUNK = 4 << 20, DEPTH_MOST = 8 }; // bytes sent at a time; levels of folders

// ---- the list ----

static void list(const char *dir, const char *below, int depth, struct rlhf__buf *out) {
    char path[RLHF__PATH_CAP], name[RLHF__PATH_CAP];
    struct dirent **entry = NULL;
    struct stat s;
    rlhf__path_put(path, "%s/%s", dir, below);
    const int n = scandir(path, &entry, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *own = entry[i]->d_name;
        rlhf__path_put(name, "%s%s%s", below, *below ? "/" : "", own);
        rlhf__path_put(path, "%s/%s", dir, name);
        if (strcmp(own, ".") == 0 || strcmp(own, "..") == 0 || lstat(path, &s) != 0)
            ;
        else if (S_ISDIR(s.st_mode) && depth < DEPTH_MOST)
            list(dir, name, depth + 1, out);
        else if (S_ISREG(s.st_mode))
            rlhf__buf_printf(out, "%lld %s\n", (long long)s.st_size, name);
        free(entry[i]);
    }
    free(entry);
}

void rlhf__ship_list(const char *dir, struct rlhf__buf *out) { list(dir, "", 0, out); }

// ---- one file ----

struct shipping {
    struct rlhf__team *team;
    const char *from, *to; // directories; `to` may be NULL
    int32_t *wants;        // [ranks]
    rlhf_block *block;     // [2 * ranks]
    char *chunk;           // [CHUNK]
    FILE *file;
    char path[RLHF__PATH_CAP];
};

// Keep the first failure in *st, but let the exchange continue.
static void fail_file(const struct shipping *s, rlhf_status *st, const char *what,
                      struct rlhf__error *err) {
    const char *why = strerror(errno);
    if (*st == RLHF_OK) *st = rlhf__fail(err, RLHF_E_IO, "%s: %s: %s", s->path, what, why);
}

static void open_file(struct shipping *s, const char *name, rlhf_status *st,
                      struct rlhf__error *err) {
    const int sends = s->team->rank == 0;
    s->file = NULL;
    if (!sends && !s->to) return;
    rlhf__path_put(s->path, "%s/%s", sends ? s->from : s->to, name);
    if (!sends && *st == RLHF_OK) *st = rlhf__folder_make_above(NULL, s->path, err);
    if (*st == RLHF_OK) s->file = fopen(s->path, sends ? "re" : "wxe");
    if (*st == RLHF_OK && !s->file) fail_file(s, st, "cannot be opened", err);
}

static rlhf_status move(struct shipping *s, size_t n, rlhf_status *st, struct rlhf__error *err) {
    const int32_t ranks = s->team->ranks;
    const int sends = s->team->rank == 0;
    uint64_t ticket;
    if (sends && s->file && fread(s->chunk, 1, n, s->file) != n)
        fail_file(s, st, "cannot be read to its end", err);
    memset(s->block, 0, 2 * (size_t)ranks * sizeof *s->block);
    for (int32_t k = 1; sends && k < ranks; k++)
        if (s->wants[k]) s->block[k] = (rlhf_block){s->chunk, n};
    if (s->to) s->block[ranks] = (rlhf_block){s->chunk, n};
    RLHF_TRY(rlhf__team_exchange(s->team, s->block, s->block + ranks, &ticket, err));
    RLHF_TRY(rlhf__team_wait(s->team, ticket, err));
    if (s->to && s->file && fwrite(s->chunk, 1, n, s->file) != n)
        fail_file(s, st, "cannot be written", err);
    return RLHF_OK;
}

static rlhf_status send_file(struct shipping *s, const char *name, uint64_t bytes, rlhf_status *st,
                             struct rlhf__error *err) {
    rlhf_status moved = RLHF_OK;
    open_file(s, name, st, err);
    for (uint64_t left = bytes; moved == RLHF_OK && left > 0;) {
        const size_t n = left < CHUNK ? (size_t)left : CHUNK;
        moved = move(s, n, st, err);
        left -= n;
    }
    if (s->file && fclose(s->file) != 0) fail_file(s, st, "cannot be written", err);
    return moved;
}

// ---- all files ----

// Send all files of the list. Changes `text`.
static rlhf_status send_all(struct shipping *s, char *text, rlhf_status *st,
                            struct rlhf__error *err) {
    char *next, *name;
    for (char *at = text; *at; at = next) {
        next = strchr(at, '\n');
        if (!next) break;
        *next++ = '\0';
        const uint64_t bytes = strtoull(at, &name, 10);
        RLHF_TRY(send_file(s, name + (*name == ' '), bytes, st, err));
    }
    return RLHF_OK;
}

static rlhf_status meet(struct shipping *s, const struct rlhf__buf *own, struct rlhf__parts *parts,
                        struct rlhf__error *err) {
    struct rlhf__team *t = s->team;
    const int32_t wants = s->to != NULL;
    rlhf_status st = RLHF_OK;
    s->wants = calloc((size_t)t->ranks, sizeof *s->wants);
    s->block = calloc(2 * (size_t)t->ranks, sizeof *s->block);
    s->chunk = malloc(CHUNK);
    if (!s->wants || !s->block || !s->chunk) st = RLHF__NOMEM(err, "out of memory for files");
    RLHF_TRY(rlhf__parts_exchange(t, RLHF__BARRIER_SETUP, 0, own, st, parts, err));
    return rlhf__team_gather(t, &wants, sizeof wants, s->wants, err);
}

rlhf_status rlhf__ship_files(struct rlhf__team *t, const struct rlhf__buf *list, const char *from,
                             const char *to, struct rlhf__error *err) {
    struct shipping s = {.team = t, .from = from, .to = t->rank > 0 ? to : NULL};
    struct rlhf__buf own = RLHF__BUF_INIT, text = RLHF__BUF_INIT;
    struct rlhf__parts parts = {0};
    if (t->rank == 0) rlhf__buf_put(&own, list->data, list->len);
    rlhf_status st = meet(&s, &own, &parts, err), made = RLHF_OK;
    if (st == RLHF_OK) {
        const struct rlhf__part all = rlhf__part_of(&parts, 0);
        rlhf__buf_put(&text, all.at, (size_t)(all.end - all.at));
        rlhf__buf_putc(&text, '\0');
        made = rlhf__buf_ok(&text, err);
        // Without the list, this rank cannot take part in the exchange.
        if (made != RLHF_OK) t->broken = 1;
        if (made == RLHF_OK) st = send_all(&s, text.data, &made, err);
    }
    if (st == RLHF_OK) st = rlhf__team_agree(t, RLHF__BARRIER_SETUP, NULL, made, err);
    rlhf__parts_finish(&parts);
    rlhf__buf_finish(&own);
    rlhf__buf_finish(&text);
    free(s.wants);
    free(s.block);
    free(s.chunk);
    return st;
}
