// csv.c: writes the metrics of a run as a table, metrics.csv: a header "phase,<sorted names>", then
// one line per phase. A cell is empty if the phase lacks the metric, and nan if the value is not
// known.
//
// When a phase has a metric without a column, the file is replaced by one that has this column. A
// resumed run replaces the file, because the host reports all phases again. So the file always
// has the same bytes as that of an uninterrupted run.
#include "process/bytes.h"

#include <rlhf/log.h>
#include <rlhf/sink.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_name[] = "metrics.csv";

// Sorted names, without characters that a header line cannot hold.
struct columns {
    char **name; // [n]
    uint32_t n, cap;
};

struct csv {
    const rlhf_host *host;
    int dir, fd;    // -1: not open
    int32_t headed; // 1: the file has its header
    struct columns columns;
};

static rlhf_status no_memory(const struct csv *c) {
    return (c->host->fail)(c->host, RLHF_E_NOMEM, "out of memory");
}

static rlhf_status failed(const struct csv *c, const char *what) {
    return rlhf_failf(c->host, RLHF_E_IO, "%s: %s: %s", file_name, what, strerror(errno));
}

// ---- columns ----

static unsigned char clean(char c) {
    return c == ',' || c == '"' || (unsigned char)c < ' ' ? '_' : (unsigned char)c;
}

// Compares like strcmp: the result is negative if the column sorts before the name.
static int order(const char *column, const char *name) {
    for (; *name; column++, name++)
        if ((unsigned char)*column != clean(*name))
            return (unsigned char)*column < clean(*name) ? -1 : 1;
    return *column ? 1 : 0;
}

// Returns the index of the column, or the index at which to insert it. Sets *there to 1 if the
// column exists, and to 0 otherwise.
static uint32_t place(const struct columns *c, const char *name, int *there) {
    uint32_t lo = 0, hi = c->n;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (order(c->name[mid], name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *there = lo < c->n && order(c->name[lo], name) == 0;
    return lo;
}

static int make_room(const rlhf_host *host, struct columns *c) {
    if (c->n < c->cap) return 1;
    const uint32_t cap = c->cap ? 2 * c->cap : 64;
    char **all = host->alloc(host, cap * sizeof *all);
    if (!all) return 0;
    if (c->n) memcpy(all, c->name, c->n * sizeof *all);
    host->free(host, c->name);
    c->name = all;
    c->cap = cap;
    return 1;
}

// Add a column with that name unless it exists. Returns 0 if memory runs out.
static int add(const rlhf_host *host, struct columns *c, const char *name) {
    int there;
    const uint32_t at = place(c, name, &there);
    if (there) return 1;
    const size_t n = strlen(name);
    char *copy = make_room(host, c) ? host->alloc(host, n + 1) : NULL;
    if (!copy) return 0;
    for (size_t i = 0; i < n; i++)
        copy[i] = (char)clean(name[i]);
    memmove(c->name + at + 1, c->name + at, (c->n - at) * sizeof *c->name);
    c->name[at] = copy;
    c->n++;
    return 1;
}

static void columns_finish(const rlhf_host *host, struct columns *c) {
    for (uint32_t i = 0; i < c->n; i++)
        host->free(host, c->name[i]);
    host->free(host, c->name);
    *c = (struct columns){NULL, 0, 0};
}

// ---- the file ----

// Append a line. After a failure, the file is as before.
static rlhf_status put_line(const struct csv *c, int fd, struct rlhf__bytes *line) {
    const off_t start = lseek(fd, 0, SEEK_END);
    rlhf__bytes_text(line, "\n");
    if (line->full) return no_memory(c);
    for (size_t done = 0; done < line->len;) {
        const ssize_t n = write(fd, line->data + done, line->len - done);
        if (n < 0 && errno == EINTR) continue;
        if (n > 0) {
            done += (size_t)n;
            continue;
        }
        const rlhf_status st = failed(c, "cannot write");
        if (start >= 0 && ftruncate(fd, start) != 0) return st; // a half line may remain
        return st;
    }
    line->len = 0;
    return RLHF_OK;
}

static rlhf_status put_header(const struct csv *c, int fd, const struct columns *columns) {
    struct rlhf__bytes line = {.host = c->host};
    rlhf__bytes_text(&line, "phase");
    for (uint32_t i = 0; i < columns->n; i++) {
        rlhf__bytes_text(&line, ",");
        rlhf__bytes_text(&line, columns->name[i]);
    }
    const rlhf_status st = put_line(c, fd, &line);
    rlhf__bytes_finish(&line);
    return st;
}

// Copy a row of the file, whose cells are those of c->columns, to a file with the columns `to`,
// which include them.
static rlhf_status copy_row(const struct csv *c, const char *row, int fd, const struct columns *to,
                            struct rlhf__bytes *line) {
    const char *at = row + strcspn(row, ",\n");
    rlhf__bytes_add(line, row, (size_t)(at - row));
    for (uint32_t i = 0, k = 0; i < to->n; i++) {
        rlhf__bytes_text(line, ",");
        if (k == c->columns.n || order(to->name[i], c->columns.name[k]) != 0) continue;
        at += *at == ',';
        const size_t n = strcspn(at, ",\n");
        rlhf__bytes_add(line, at, n);
        at += n;
        k++;
    }
    return put_line(c, fd, line);
}

static rlhf_status copy_rows(const struct csv *c, int fd, const struct columns *to) {
    struct rlhf__bytes line = {.host = c->host};
    char *row = NULL;
    size_t cap = 0;
    int first = 1;
    const int from = dup(c->fd);
    FILE *f = from >= 0 ? fdopen(from, "r") : NULL;
    if (!f && from >= 0) close(from);
    if (!f || fseek(f, 0, SEEK_SET) != 0) {
        if (f) fclose(f);
        return failed(c, "cannot read");
    }
    rlhf_status st = RLHF_OK;
    while (st == RLHF_OK && getline(&row, &cap, f) > 0) {
        if (!first) st = copy_row(c, row, fd, to, &line);
        first = 0;
    }
    free(row);
    fclose(f);
    rlhf__bytes_finish(&line);
    return st;
}

static int open_file(const struct csv *c, const char *name) {
    const int fd =
        openat(c->dir, name, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    struct stat s;
    if (fd < 0 || (fstat(fd, &s) == 0 && S_ISREG(s.st_mode))) return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

// Replace the file by one that has the columns *to, and take *to.
static rlhf_status rewrite(struct csv *c, struct columns *to) {
    char name[64];
    snprintf(name, sizeof name, "%s.tmp-%ld", file_name, (long)getpid());
    const int fd = open_file(c, name);
    if (fd < 0) return failed(c, "cannot be replaced");
    rlhf_status st = put_header(c, fd, to);
    if (st == RLHF_OK && c->headed) st = copy_rows(c, fd, to);
    if (st == RLHF_OK && fsync(fd) != 0) st = failed(c, "cannot be written to the disk");
    if (st == RLHF_OK && renameat(c->dir, name, c->dir, file_name) != 0)
        st = failed(c, "cannot be replaced");
    if (st != RLHF_OK) {
        close(fd);
        unlinkat(c->dir, name, 0);
        return st;
    }
    close(c->fd);
    c->fd = fd;
    c->headed = 1;
    columns_finish(c->host, &c->columns);
    c->columns = *to;
    *to = (struct columns){NULL, 0, 0};
    return RLHF_OK;
}

// ---- the sink ----

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct csv *c = host->alloc(host, sizeof *c);
    (void)config;
    if (!c) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    c->host = host;
    c->dir = c->fd = -1;
    *self = c;
    return RLHF_OK;
}

static void close_files(struct csv *c) {
    if (c->fd >= 0) close(c->fd);
    if (c->dir >= 0) close(c->dir);
    c->fd = c->dir = -1;
}

static void destroy(void *self) {
    struct csv *c = self;
    if (!c) return;
    close_files(c);
    columns_finish(c->host, &c->columns);
    c->host->free(c->host, c);
}

static rlhf_status begin(void *self, const rlhf_sink_run *run, rlhf_sink_answer *answer) {
    struct csv *c = self;
    answer->from_phase = 0;
    c->headed = 0;
    close_files(c);
    columns_finish(c->host, &c->columns);
    c->dir = open(run->own_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    c->fd = c->dir >= 0 ? open_file(c, file_name) : -1;
    return c->fd >= 0 ? RLHF_OK : failed(c, "cannot be opened");
}

// Add a column for each name that does not have one yet.
static rlhf_status widen(struct csv *c, const rlhf_sink_phase *in) {
    struct columns all = {NULL, 0, 0};
    int fits = 1, there = c->headed;
    for (uint32_t i = 0; there && i < in->n_metrics; i++)
        (void)place(&c->columns, in->name[i], &there);
    if (there) return RLHF_OK;
    for (uint32_t i = 0; fits && i < c->columns.n; i++)
        fits = add(c->host, &all, c->columns.name[i]);
    for (uint32_t i = 0; fits && i < in->n_metrics; i++)
        fits = add(c->host, &all, in->name[i]);
    rlhf_status st = fits ? RLHF_OK : no_memory(c);
    if (st == RLHF_OK) st = rewrite(c, &all);
    columns_finish(c->host, &all);
    return st;
}

static rlhf_status put_row(const struct csv *c, const rlhf_sink_phase *in, const double **value) {
    struct rlhf__bytes line = {.host = c->host};
    int there;
    for (uint32_t i = 0; i < in->n_metrics; i++)
        value[place(&c->columns, in->name[i], &there)] = &in->value[i];
    rlhf__bytes_number(&line, in->phases_done);
    for (uint32_t i = 0; i < c->columns.n; i++) {
        rlhf__bytes_text(&line, ",");
        if (value[i] && isfinite(*value[i])) rlhf__bytes_double(&line, *value[i]);
        if (value[i] && !isfinite(*value[i])) rlhf__bytes_text(&line, "nan");
    }
    const rlhf_status st = put_line(c, c->fd, &line);
    rlhf__bytes_finish(&line);
    return st;
}

static rlhf_status phase(void *self, const rlhf_sink_phase *in) {
    struct csv *c = self;
    RLHF_TRY(widen(c, in));
    const double **value = c->host->alloc(c->host, (c->columns.n + 1) * sizeof *value);
    if (!value) return no_memory(c);
    const rlhf_status st = put_row(c, in, value);
    c->host->free(c->host, value);
    return st;
}

static const rlhf_sink_ops ops = {.size = sizeof ops, .begin = begin, .phase = phase};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_SINK,
    .id = "org.rlhf-host.csv",
    .version = RLHF_SDK_VERSION,
    .summary = "metrics as a table, metrics.csv",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
