// tensorboard.c: see tensorboard.h.
// clang-format off: the lines stay as they are.
// Message fields, as number:type name:
//   Event   1:double wall_time  2:varint step  3:bytes file_version  5:Summary summary
//   Summary 1:Value value
//   Value   1:bytes tag  2:float simple_value  5:HistogramProto histo  8:TensorProto tensor
//           9:SummaryMetadata metadata
//   HistogramProto 1:double min  2:max  3:num  4:sum  5:sum_squares  6:packed bucket_limit
//                  7:packed bucket
//   TensorProto 1:varint dtype (7 = string)  2:TensorShapeProto shape  8:bytes string_val
//   SummaryMetadata 1:PluginData { 1:bytes plugin_name }
// clang-format on
#include "report/tensorboard.h"

#include "base/file.h"
#include "base/hash.h"
#include "report/jsonl.h"
#include "report/metrics_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define MAX_BYTES ((uint64_t)1 << 32)
#define PREFIX    "events.out.tfevents."

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

// ---- protobuf ---------------------------------------------------------------------------------

static void put_varint(struct rlhf__buf *b, uint64_t v) {
    for (; v >= 0x80; v >>= 7)
        rlhf__buf_putc(b, (char)(v | 0x80));
    rlhf__buf_putc(b, (char)v);
}

static void put_key(struct rlhf__buf *b, unsigned field, unsigned wire) {
    put_varint(b, field << 3 | wire);
}

static void put_bytes(struct rlhf__buf *b, unsigned field, const void *bytes, size_t n) {
    put_key(b, field, WIRE_BYTES);
    put_varint(b, n);
    rlhf__buf_put(b, bytes, n);
}

// Append a field with an inner message, and free the message.
static void put_message(struct rlhf__buf *b, unsigned field, struct rlhf__buf *inner) {
    put_bytes(b, field, inner->data, inner->len);
    if (inner->bad) b->bad = 1;
    rlhf__buf_free(inner);
}

void rlhf__tensorboard_scalar(struct rlhf__buf *summary, const char *tag, double value) {
    struct rlhf__buf v = RLHF__BUF_INIT;
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    put_bytes(&v, 1, tag, strlen(tag));
    put_key(&v, 2, WIRE_FIXED32);
    rlhf__buf_u32le(&v, bits);
    put_message(summary, 1, &v);
}

static void put_double(struct rlhf__buf *b, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    rlhf__buf_u64le(b, bits);
}

static void put_double_field(struct rlhf__buf *b, unsigned field, double v) {
    put_key(b, field, WIRE_FIXED64);
    put_double(b, v);
}

// Append a histogram of d. If d counts its values, each bucket holds one value with its count.
// Otherwise each bucket holds the numbers between two adjacent quantiles, and all buckets have the
// same count. A bucket includes its upper limit, but not the upper limit of the previous bucket.
void rlhf__tensorboard_histogram(struct rlhf__buf *summary, const char *tag,
                                 const struct rlhf__distribution *d) {
    struct rlhf__buf v = RLHF__BUF_INIT, histo = RLHF__BUF_INIT, limits = RLHF__BUF_INIT,
                     buckets = RLHF__BUF_INIT;
    const int32_t points = d->counted ? d->counted : RLHF__DISTRIBUTION_QUANTILES + 1;
    const double n = (double)d->n, each = n / RLHF__DISTRIBUTION_QUANTILES;
    double squares = 0;
    for (int32_t i = d->counted ? 0 : 1; i < points; i++) {
        const double inside = d->counted ? (double)d->count[i] : each;
        const double at = d->counted ? d->value[i] : (d->value[i - 1] + d->value[i]) / 2;
        squares += inside * at * at;
        put_double(&limits, d->value[i]);
        put_double(&buckets, inside);
    }
    put_double_field(&histo, 1, d->value[0]);
    put_double_field(&histo, 2, d->value[points - 1]);
    put_double_field(&histo, 3, n);
    put_double_field(&histo, 4, n * d->mean);
    put_double_field(&histo, 5, squares);
    put_message(&histo, 6, &limits);
    put_message(&histo, 7, &buckets);
    put_bytes(&v, 1, tag, strlen(tag));
    put_message(&v, 5, &histo);
    put_message(summary, 1, &v);
}

void rlhf__tensorboard_text(struct rlhf__buf *summary, const char *tag, rlhf_str text) {
    struct rlhf__buf v = RLHF__BUF_INIT, tensor = RLHF__BUF_INIT, plugin = RLHF__BUF_INIT,
                     metadata = RLHF__BUF_INIT;
    put_key(&tensor, 1, WIRE_VARINT);
    put_varint(&tensor, 7);
    put_bytes(&tensor, 2, "", 0); // a scalar's shape: no dimension
    put_bytes(&tensor, 8, text.ptr, (size_t)text.len);
    put_bytes(&plugin, 1, "text", 4);
    put_message(&metadata, 1, &plugin);
    put_bytes(&v, 1, tag, strlen(tag));
    put_message(&v, 8, &tensor);
    put_message(&v, 9, &metadata);
    put_message(summary, 1, &v);
}

static void begin_event(struct rlhf__buf *b) {
    struct timeval now;
    gettimeofday(&now, NULL);
    double seconds = (double)now.tv_sec + 1e-6 * (double)now.tv_usec;
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    put_key(b, 1, WIRE_FIXED64);
    rlhf__buf_u64le(b, bits);
}

// ---- records ----------------------------------------------------------------------------------

static rlhf_status write_record(struct rlhf__tensorboard *e, const struct rlhf__buf *event,
                                struct rlhf__error *err) {
    struct rlhf__buf record = RLHF__BUF_INIT;
    rlhf__buf_u64le(&record, event->len);
    uint32_t head = record.bad ? 0 : rlhf__crc32c(0, record.data, 8);
    rlhf__buf_u32le(&record, rlhf__crc32c_mask(head));
    rlhf__buf_put(&record, event->data, event->len);
    rlhf__buf_u32le(&record, rlhf__crc32c_mask(rlhf__crc32c(0, event->data, event->len)));
    if (event->bad) record.bad = 1;
    rlhf_status st = rlhf__append_buf(e->fd, e->path, &record, err);
    rlhf__buf_free(&record);
    return st;
}

rlhf_status rlhf__tensorboard_write(struct rlhf__tensorboard *e, int64_t step,
                                    const struct rlhf__buf *summary, struct rlhf__error *err) {
    struct rlhf__buf event = RLHF__BUF_INIT;
    begin_event(&event);
    put_key(&event, 2, WIRE_VARINT);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, 5, summary->data, summary->len);
    if (summary->bad) event.bad = 1;
    rlhf_status st = write_record(e, &event, err);
    rlhf__buf_free(&event);
    return st;
}

static rlhf_status write_version(struct rlhf__tensorboard *e, struct rlhf__error *err) {
    struct rlhf__buf event = RLHF__BUF_INIT;
    begin_event(&event);
    put_bytes(&event, 3, "brain.Event:2", 13);
    rlhf_status st = write_record(e, &event, err);
    rlhf__buf_free(&event);
    return st;
}

rlhf_status rlhf__tensorboard_sync(struct rlhf__tensorboard *e, struct rlhf__error *err) {
    return rlhf__append_sync(e->fd, e->path, err);
}

// ---- opening ----------------------------------------------------------------------------------

static uint64_t get_le(const char *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)(uint8_t)p[i] << (8 * i);
    return v;
}

// Returns the step of an n-byte Event that this program wrote, or 0 if the step is missing. Such an
// Event begins with the wall time, followed by the step.
static int64_t step_of(const char *p, size_t n) {
    uint64_t v = 0;
    if (n < 10 || p[9] != (2 << 3 | WIRE_VARINT)) return 0;
    for (size_t i = 10, shift = 0; i < n && shift < 64; i++, shift += 7) {
        v |= (uint64_t)(p[i] & 0x7f) << shift;
        if (!(p[i] & 0x80)) break;
    }
    return (int64_t)v;
}

static size_t kept(const struct rlhf__buf *file, int64_t keep_phase) {
    size_t at = 0;
    while (file->len - at >= 16) {
        const char *p = file->data + at;
        uint64_t n = get_le(p, 8);
        if (n > file->len - at - 16) break;
        uint32_t head = rlhf__crc32c_mask(rlhf__crc32c(0, p, 8));
        uint32_t body = rlhf__crc32c_mask(rlhf__crc32c(0, p + 12, (size_t)n));
        if (get_le(p + 8, 4) != head || get_le(p + 12 + n, 4) != body) break;
        if (step_of(p + 12, (size_t)n) > keep_phase) break;
        at += 16 + (size_t)n;
    }
    return at;
}

// Find the event file whose name sorts last; names begin with the time. Returns 0 if there is no
// event file.
static int newest(const struct rlhf__folder *dir, char best[256]) {
    *best = '\0';
    int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0 && strcmp(e->d_name, best) > 0)
            snprintf(best, 256, "%s", e->d_name);
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    return *best != '\0';
}

static rlhf_status cut(const struct rlhf__tensorboard *e, int64_t keep_phase, size_t *left,
                       struct rlhf__error *err) {
    struct rlhf__buf file = RLHF__BUF_INIT;
    rlhf_status st = rlhf__file_read_fd(e->fd, e->path, MAX_BYTES, &file, err);
    if (st == RLHF_OK) {
        *left = kept(&file, keep_phase);
        if (ftruncate(e->fd, (off_t)*left) != 0)
            st =
                rlhf__fail(err, RLHF_E_IO, "%s: cannot cut the file: %s", e->path, strerror(errno));
    }
    rlhf__buf_free(&file);
    return st;
}

static rlhf_status open_file(const struct rlhf__folder *dir, int64_t keep_phase,
                             struct rlhf__tensorboard *out, struct rlhf__error *err) {
    struct timeval now;
    size_t left = 0;
    char name[256];
    gettimeofday(&now, NULL);
    if (keep_phase < 0 || !newest(dir, name))
        snprintf(name, sizeof name, PREFIX "%lld.rlhf-host", (long long)now.tv_sec);
    out->path = rlhf__path_join(dir->path, name);
    if (!out->path) return RLHF__NOMEM(err, "%s: out of memory", dir->path);
    RLHF_TRY(rlhf__folder_append(dir, name, 0, &out->fd, err));
    RLHF_TRY(cut(out, keep_phase, &left, err));
    return left == 0 ? write_version(out, err) : RLHF_OK;
}

rlhf_status rlhf__tensorboard_open(const struct rlhf__folder *run, const char *name,
                                   int64_t keep_phase, struct rlhf__tensorboard *out,
                                   struct rlhf__error *err) {
    struct rlhf__folder *dir = NULL;
    memset(out, 0, sizeof *out);
    out->fd = -1;
    RLHF_TRY(rlhf__folder_make(run, name, NULL, &dir, err));
    rlhf_status st = open_file(dir, keep_phase, out, err);
    rlhf__folder_close(dir);
    if (st < 0) rlhf__tensorboard_close(out);
    return st;
}

void rlhf__tensorboard_close(struct rlhf__tensorboard *e) {
    if (e->path && e->fd >= 0) close(e->fd);
    free(e->path);
    e->path = NULL;
    e->fd = -1;
}

// ---- the metrics file: one event per phase; values that are not finite are left out ----

static int32_t tensorboard_wanted(const struct rlhf__log_config *log) { return log->tensorboard; }

static rlhf_status tensorboard_open(const struct rlhf__folder *run, int64_t keep_phase,
                                    struct rlhf__log *log, void **self, struct rlhf__error *err) {
    struct rlhf__tensorboard *e = *self = calloc(1, sizeof *e);
    (void)log;
    if (!e) return RLHF__NOMEM(err, "%s: out of memory", run->path);
    return rlhf__tensorboard_open(run, rlhf__metrics_file_tensorboard.name, keep_phase, e, err);
}

static rlhf_status tensorboard_row(void *self, const struct rlhf__metrics_row *r,
                                   struct rlhf__error *err) {
    struct rlhf__buf summary = RLHF__BUF_INIT;
    for (size_t i = 0; i < r->n; i++)
        if (isfinite(r->metric[i].value))
            rlhf__tensorboard_scalar(&summary, r->metric[i].name, r->metric[i].value);
    rlhf_status st = rlhf__tensorboard_write(self, r->phase, &summary, err);
    rlhf__buf_free(&summary);
    return st;
}

static rlhf_status tensorboard_text(void *self, int64_t phase, const char *tag, rlhf_str text,
                                    struct rlhf__error *err) {
    struct rlhf__buf summary = RLHF__BUF_INIT;
    rlhf__tensorboard_text(&summary, tag, text);
    rlhf_status st = rlhf__tensorboard_write(self, phase, &summary, err);
    rlhf__buf_free(&summary);
    return st;
}

static rlhf_status tensorboard_histogram(void *self, int64_t phase, const char *tag,
                                         const struct rlhf__distribution *d,
                                         struct rlhf__error *err) {
    struct rlhf__buf summary = RLHF__BUF_INIT;
    rlhf__tensorboard_histogram(&summary, tag, d);
    rlhf_status st = rlhf__tensorboard_write(self, phase, &summary, err);
    rlhf__buf_free(&summary);
    return st;
}

static rlhf_status tensorboard_sync(void *self, struct rlhf__error *err) {
    return rlhf__tensorboard_sync(self, err);
}

static void tensorboard_close(void *self) {
    if (self) rlhf__tensorboard_close(self);
    free(self);
}

const struct rlhf__metrics_file rlhf__metrics_file_tensorboard = {.name = "tensorboard",
                                                                  .wanted = tensorboard_wanted,
                                                                  .open = tensorboard_open,
                                                                  .row = tensorboard_row,
                                                                  .text = tensorboard_text,
                                                                  .histogram =
                                                                      tensorboard_histogram,
                                                                  .sync = tensorboard_sync,
                                                                  .close = tensorboard_close};
