// tensorboard.c: writes TensorBoard event files: scalars, histograms and texts.
//
// A file is a sequence of TFRecord frames (length, masked CRC-32C, bytes, masked CRC-32C), each
// around a protobuf Event message. A phase is one event, so a file never has a part of a phase. A
// resumed run continues the newest file: it first cuts the file before the first event of a phase
// that was undone, or before the first damaged record.
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
#include "process/bytes.h"
#include "process/utf8.h"

#include <rlhf/log.h>
#include <rlhf/sink.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char prefix[] = "events.out.tfevents.";
enum { PREFIX = sizeof prefix - 1, NAME = 256 };

struct board {
    const rlhf_host *host;
    int fd; // -1: not open
    char name[NAME];
};

static rlhf_status failed(const struct board *t, const char *what) {
    return rlhf_failf(t->host, RLHF_E_IO, "tensorboard/%s: %s: %s", t->name, what, strerror(errno));
}

// ---- protobuf ---------------------------------------------------------------------------------

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

static void put_varint(struct rlhf__bytes *b, uint64_t v) {
    unsigned char byte[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        byte[n++] = (unsigned char)(v | 0x80);
    byte[n++] = (unsigned char)v;
    rlhf__bytes_add(b, byte, n);
}

static void put_le(struct rlhf__bytes *b, uint64_t v, int bytes) {
    unsigned char byte[8];
    for (int i = 0; i < bytes; i++)
        byte[i] = (unsigned char)(v >> (8 * i));
    rlhf__bytes_add(b, byte, (size_t)bytes);
}

static void put_key(struct rlhf__bytes *b, unsigned field, unsigned wire) {
    put_varint(b, field << 3 | wire);
}

static void put_bytes(struct rlhf__bytes *b, unsigned field, const void *bytes, size_t n) {
    put_key(b, field, WIRE_BYTES);
    put_varint(b, n);
    rlhf__bytes_add(b, bytes, n);
}

// Append a field with an inner message, and free the message.
static void put_message(struct rlhf__bytes *b, unsigned field, struct rlhf__bytes *inner) {
    put_bytes(b, field, inner->data, inner->len);
    if (inner->full) b->full = 1;
    rlhf__bytes_finish(inner);
}

static void put_double(struct rlhf__bytes *b, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_le(b, bits, 8);
}

static void put_double_field(struct rlhf__bytes *b, unsigned field, double v) {
    put_key(b, field, WIRE_FIXED64);
    put_double(b, v);
}

static struct rlhf__bytes none(const struct rlhf__bytes *like) {
    return (struct rlhf__bytes){.host = like->host};
}

// ---- values -----------------------------------------------------------------------------------

static void put_scalar(struct rlhf__bytes *summary, const char *tag, double value) {
    struct rlhf__bytes v = none(summary);
    const float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    put_bytes(&v, 1, tag, strlen(tag));
    put_key(&v, 2, WIRE_FIXED32);
    put_le(&v, bits, 4);
    put_message(summary, 1, &v);
}

// If the numbers are counted, each bucket holds one number with its count. Otherwise each bucket
// holds the numbers between two adjacent quantiles, and all buckets have the same count. A bucket
// includes its upper limit, but not the upper limit of the previous bucket.
static void put_histogram(struct rlhf__bytes *summary, const rlhf_spread *s) {
    struct rlhf__bytes v = none(summary), histo = v, limits = v, buckets = v;
    const double n = (double)s->numbers, each = n / (double)(s->n > 1 ? s->n - 1 : 1);
    double squares = 0;
    for (uint32_t i = s->count ? 0 : 1; i < s->n; i++) {
        const double inside = s->count ? (double)s->count[i] : each;
        const double at = s->count ? s->value[i] : (s->value[i - 1] + s->value[i]) / 2;
        squares += inside * at * at;
        put_double(&limits, s->value[i]);
        put_double(&buckets, inside);
    }
    put_double_field(&histo, 1, s->value[0]);
    put_double_field(&histo, 2, s->value[s->n - 1]);
    put_double_field(&histo, 3, n);
    put_double_field(&histo, 4, n * s->mean);
    put_double_field(&histo, 5, squares);
    put_message(&histo, 6, &limits);
    put_message(&histo, 7, &buckets);
    char tag[64];
    put_bytes(&v, 1, tag, (size_t)snprintf(tag, sizeof tag, "spread/%.50s", s->name));
    put_message(&v, 5, &histo);
    put_message(summary, 1, &v);
}

static void put_text(struct rlhf__bytes *summary, const char *tag, const struct rlhf__bytes *text) {
    struct rlhf__bytes v = none(summary), tensor = v, plugin = v, metadata = v;
    put_key(&tensor, 1, WIRE_VARINT);
    put_varint(&tensor, 7);
    put_bytes(&tensor, 2, "", 0); // a scalar's shape: no dimension
    put_bytes(&tensor, 8, text->data, text->len);
    put_bytes(&plugin, 1, "text", 4);
    put_message(&metadata, 1, &plugin);
    put_bytes(&v, 1, tag, strlen(tag));
    put_message(&v, 8, &tensor);
    put_message(&v, 9, &metadata);
    put_message(summary, 1, &v);
}

// ---- samples, as a Markdown table -------------------------------------------------------------

// Append text on one line.
static void put_cell(struct rlhf__bytes *b, rlhf_str text) {
    for (size_t at = 0, n, bad; at < text.len; at += n) {
        uint32_t c = 0;
        n = rlhf__utf8_read(text.ptr + at, (size_t)text.len - at, &c, &bad);
        if (n == 0) {
            n = bad;
            rlhf__bytes_text(b, "\xef\xbf\xbd");
        } else if (c < ' ' || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029) {
            rlhf__bytes_text(b, " ");
        } else {
            if (c == '|') rlhf__bytes_text(b, "\\");
            rlhf__bytes_add(b, text.ptr + at, n);
        }
    }
}

static void put_samples(struct rlhf__bytes *summary, const rlhf_sink_phase *in, int held_out) {
    struct rlhf__bytes table = none(summary);
    char numbers[80];
    for (uint32_t i = 0; i < in->n_samples; i++) {
        if ((in->held_out[i] != 0) != held_out) continue;
        if (!table.len) rlhf__bytes_text(&table, "| reward | ref logp | text |\n|---|---|---|\n");
        snprintf(numbers, sizeof numbers, "| %.4g | %.4g | ", in->score[i], in->ref_logp[i]);
        rlhf__bytes_text(&table, numbers);
        put_cell(&table, in->prompt[i]);
        rlhf__bytes_text(&table, "**");
        put_cell(&table, in->response[i]);
        rlhf__bytes_text(&table, "** |\n");
    }
    if (table.len) put_text(summary, held_out ? "samples/eval" : "samples", &table);
    if (table.full) summary->full = 1;
    rlhf__bytes_finish(&table);
}

// ---- records ----------------------------------------------------------------------------------

#define SHIFT(c)  ((c) >> 1 ^ ((c)&1 ? 0x82f63b78u : 0u))
#define NIBBLE(i) SHIFT(SHIFT(SHIFT(SHIFT((uint32_t)(i)))))

static uint32_t crc32c(uint32_t crc, const void *bytes, size_t n) {
    static const uint32_t table[16] = {NIBBLE(0),  NIBBLE(1),  NIBBLE(2),  NIBBLE(3),
                                       NIBBLE(4),  NIBBLE(5),  NIBBLE(6),  NIBBLE(7),
                                       NIBBLE(8),  NIBBLE(9),  NIBBLE(10), NIBBLE(11),
                                       NIBBLE(12), NIBBLE(13), NIBBLE(14), NIBBLE(15)};
    const uint8_t *p = bytes;
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

static uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

// Append bytes to the file. After a failure, the file is as before.
static rlhf_status append(const struct board *t, const struct rlhf__bytes *b) {
    const off_t start = lseek(t->fd, 0, SEEK_END);
    if (b->full) return (t->host->fail)(t->host, RLHF_E_NOMEM, "out of memory");
    for (size_t done = 0; done < b->len;) {
        const ssize_t n = write(t->fd, b->data + done, b->len - done);
        if (n < 0 && errno == EINTR) continue;
        if (n > 0) {
            done += (size_t)n;
            continue;
        }
        const rlhf_status st = failed(t, "cannot write");
        if (start >= 0 && ftruncate(t->fd, start) != 0) return st; // a half record may remain
        return st;
    }
    return RLHF_OK;
}

static rlhf_status write_record(const struct board *t, const struct rlhf__bytes *event) {
    struct rlhf__bytes record = {.host = t->host, .full = event->full};
    put_le(&record, event->len, 8);
    put_le(&record, masked(record.len == 8 ? crc32c(0, record.data, 8) : 0), 4);
    rlhf__bytes_add(&record, event->data, event->len);
    put_le(&record, masked(crc32c(0, event->data, event->len)), 4);
    const rlhf_status st = append(t, &record);
    rlhf__bytes_finish(&record);
    return st;
}

static struct rlhf__bytes begin_event(const struct board *t) {
    struct rlhf__bytes b = {.host = t->host};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    put_double_field(&b, 1, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    return b;
}

static rlhf_status write_version(const struct board *t) {
    struct rlhf__bytes event = begin_event(t);
    put_bytes(&event, 3, "brain.Event:2", 13);
    const rlhf_status st = write_record(t, &event);
    rlhf__bytes_finish(&event);
    return st;
}

// ---- opening ----------------------------------------------------------------------------------

static uint64_t get_le(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

// Returns the step of an Event that begins with these n bytes, or -1 if it lacks a step. Events of
// this plugin begin with the wall time, followed by the step.
static int64_t step_of(const unsigned char *p, size_t n) {
    uint64_t v = 0;
    if (n < 10 || p[9] != (2 << 3 | WIRE_VARINT)) return -1;
    for (size_t i = 10, shift = 0; i < n && shift < 63; i++, shift += 7) {
        v |= (uint64_t)(p[i] & 0x7f) << shift;
        if (!(p[i] & 0x80)) break;
    }
    return (int64_t)v;
}

enum { START = 32, LONGEST = 1 << 30 };

// Read the next record of a file. Returns its length with the frame, or 0 if the record
// is not whole. Sets *step as step_of() does.
static off_t read_record(FILE *f, int64_t *step) {
    unsigned char head[12], tail[4], start[START], block[4096];
    if (fread(head, 1, sizeof head, f) != sizeof head) return 0;
    const uint64_t n = get_le(head, 8);
    if (n > LONGEST || get_le(head + 8, 4) != masked(crc32c(0, head, 8))) return 0;
    uint32_t crc = 0;
    for (uint64_t at = 0, part; at < n; at += part) {
        part = n - at < sizeof block ? n - at : sizeof block;
        if (fread(block, 1, part, f) != part) return 0;
        crc = crc32c(crc, block, part);
        if (at == 0) memcpy(start, block, part < START ? part : START);
    }
    if (fread(tail, 1, 4, f) != 4 || get_le(tail, 4) != masked(crc)) return 0;
    *step = step_of(start, n < START ? (size_t)n : START);
    return (off_t)n + 16;
}

// Cut the file before the first event after phase `last`, or before the first damaged record. Sets
// *from to the phase after the last one that is left, and *left to the length.
static rlhf_status cut(const struct board *t, int64_t last, int64_t *from, off_t *left) {
    const int fd = dup(t->fd);
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!f && fd >= 0) close(fd);
    *left = 0;
    *from = 0;
    if (!f || fseek(f, 0, SEEK_SET) != 0) {
        if (f) fclose(f);
        return failed(t, "cannot read");
    }
    int64_t step = -1;
    for (off_t n; (n = read_record(f, &step)) > 0 && step <= last; *left += n)
        *from = step + 1;
    fclose(f);
    return ftruncate(t->fd, *left) == 0 ? RLHF_OK : failed(t, "cannot be cut");
}

// Find the event file whose name sorts last; names begin with the time. Returns 0 if no file was
// found.
static int newest(int dir, char best[NAME]) {
    const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    *best = '\0';
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (strncmp(e->d_name, prefix, PREFIX) == 0 && strcmp(e->d_name, best) > 0)
            snprintf(best, NAME, "%s", e->d_name);
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    return *best != '\0';
}

static rlhf_status open_in(struct board *t, int dir, const rlhf_sink_run *run,
                           rlhf_sink_answer *answer) {
    struct timespec now;
    struct stat s;
    off_t left = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    if (!run->resumed || !newest(dir, t->name))
        snprintf(t->name, NAME, "%s%lld.rlhf-host", prefix, (long long)now.tv_sec);
    t->fd = openat(dir, t->name, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                   0666);
    if (t->fd < 0) return failed(t, "cannot be opened");
    if (fstat(t->fd, &s) != 0 || !S_ISREG(s.st_mode))
        return rlhf_failf(t->host, RLHF_E_IO, "tensorboard/%s is not a regular file", t->name);
    const int64_t last = run->resumed ? run->phases_done : -1;
    RLHF_TRY(cut(t, last, &answer->from_phase, &left));
    return left == 0 ? write_version(t) : RLHF_OK;
}

// ---- the sink ---------------------------------------------------------------------------------

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct board *t = host->alloc(host, sizeof *t);
    (void)config;
    if (!t) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    t->host = host;
    t->fd = -1;
    *self = t;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct board *t = self;
    if (!t) return;
    if (t->fd >= 0) close(t->fd);
    t->host->free(t->host, t);
}

static rlhf_status begin(void *self, const rlhf_sink_run *run, rlhf_sink_answer *answer) {
    struct board *t = self;
    if (t->fd >= 0) close(t->fd);
    t->fd = -1;
    const int above = open(run->own_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int dir = -1;
    if (above >= 0 && (mkdirat(above, "tensorboard", 0777) == 0 || errno == EEXIST))
        dir = openat(above, "tensorboard", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const rlhf_status st = dir >= 0 ? open_in(t, dir, run, answer) : failed(t, "cannot be opened");
    if (dir >= 0) close(dir);
    if (above >= 0) close(above);
    return st;
}

// Values that are not finite are left out.
static rlhf_status phase(void *self, const rlhf_sink_phase *in) {
    const struct board *t = self;
    struct rlhf__bytes summary = {.host = t->host}, event = begin_event(t);
    for (uint32_t i = 0; i < in->n_spreads; i++)
        if (in->spread[i]->n) put_histogram(&summary, in->spread[i]);
    put_samples(&summary, in, 0);
    put_samples(&summary, in, 1);
    for (uint32_t i = 0; i < in->n_metrics; i++)
        if (isfinite(in->value[i])) put_scalar(&summary, in->name[i], in->value[i]);
    put_key(&event, 2, WIRE_VARINT);
    put_varint(&event, (uint64_t)in->phases_done);
    put_message(&event, 5, &summary);
    const rlhf_status st = write_record(t, &event);
    rlhf__bytes_finish(&event);
    return st;
}

static const rlhf_sink_ops ops = {.size = sizeof ops, .begin = begin, .phase = phase};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_SINK,
    .id = "org.rlhf-host.tensorboard",
    .version = RLHF_SDK_VERSION,
    .summary = "metrics, samples and spreads as TensorBoard events",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
