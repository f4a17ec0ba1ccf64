// events.c: see events.h.
#include "report/events.h"

#include "base/file.h"
#include "base/host_memory.h"
#include "base/json.h"
#include "report/jsonl.h"

#include <rlhf/base.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <unistd.h>

struct rlhf__events {
    struct rlhf__jsonl file;
    struct rlhf__log *log;
    int32_t failed; // 1: a line was lost, and this has been reported
};

rlhf_status rlhf__events_open(const struct rlhf__folder *run, int64_t keep_phase,
                              struct rlhf__log *log, struct rlhf__events **out,
                              struct rlhf__error *err) {
    struct rlhf__events *e = *out = calloc(1, sizeof *e);
    if (!e) return RLHF__NOMEM(err, "out of memory for %s/events.jsonl", run->path);
    e->log = log;
    const rlhf_status st = rlhf__jsonl_open(run, "events.jsonl", keep_phase, log, &e->file, err);
    if (st == RLHF_OK) return st;
    free(e);
    *out = NULL;
    return st;
}

void rlhf__events_close(struct rlhf__events *e) {
    if (!e) return;
    rlhf__jsonl_close(&e->file);
    free(e);
}

rlhf_status rlhf__events_sync(struct rlhf__events *e, struct rlhf__error *err) {
    return e ? rlhf__jsonl_sync(&e->file, err) : RLHF_OK;
}

// ---- lines ----

static struct rlhf__buf line_of(int64_t phase, const char *event) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    struct timeval now;
    gettimeofday(&now, NULL);
    rlhf__buf_printf(&line, "{\"time\": %lld.%03d, \"phase\": %lld, \"event\": \"%s\"",
                     (long long)now.tv_sec, (int)(now.tv_usec / 1000), (long long)phase, event);
    return line;
}

static void put_text(struct rlhf__buf *line, const char *key, const char *text) {
    rlhf__buf_printf(line, ", \"%s\": ", key);
    if (text)
        rlhf__json_write_string(line, text, strlen(text));
    else
        rlhf__buf_puts(line, "null");
}

static void check(struct rlhf__events *e, rlhf_status st, const struct rlhf__error *err) {
    if (st == RLHF_OK || e->failed) return;
    e->failed = 1;
    rlhf__logf(e->log, RLHF_LOG_WARN, "%s; the run continues", err->text);
}

// Complete the line, write it and free it.
static void write_line(struct rlhf__events *e, struct rlhf__buf *line) {
    struct rlhf__error err;
    rlhf__buf_puts(line, "}\n");
    check(e, rlhf__jsonl_append(&e->file, line, &err), &err);
    rlhf__buf_finish(line);
}

// ---- the machine ----

// Returns the CPU's name: the value of a line "key : value" of /proc/cpuinfo, or NULL.
static const char *cpu_model(char line[256]) {
    static const char key[] = "model name";
    const char *found = NULL;
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && !found && fgets(line, 256, f)) {
        char *at = strchr(line, ':');
        if (strncmp(line, key, sizeof key - 1) != 0 || !at) continue;
        at[strcspn(at, "\n")] = '\0';
        found = at + 1 + strspn(at + 1, " \t");
    }
    if (f) fclose(f);
    return found;
}

static void put_machine(struct rlhf__buf *line) {
    struct utsname u;
    char cpu[256], system[sizeof u.sysname + sizeof u.release + sizeof u.machine + 3];
    const int known = uname(&u) == 0;
    if (known) snprintf(system, sizeof system, "%s %s %s", u.sysname, u.release, u.machine);
    rlhf__buf_puts(line, ", \"machine\": {\"host\": ");
    if (known)
        rlhf__json_write_string(line, u.nodename, strlen(u.nodename));
    else
        rlhf__buf_puts(line, "null");
    put_text(line, "system", known ? system : NULL);
    put_text(line, "cpu", cpu_model(cpu));
    rlhf__buf_printf(line, ", \"cores\": %ld, \"memory_mib\": ", sysconf(_SC_NPROCESSORS_ONLN));
    const uint64_t total = rlhf__host_memory("").total >> 20;
    if (total)
        rlhf__buf_printf(line, "%llu}", (unsigned long long)total);
    else
        rlhf__buf_puts(line, "null}");
}

static void put_argv(struct rlhf__buf *line, const char *const *argv) {
    rlhf__buf_puts(line, ", \"argv\": [");
    for (size_t i = 0; argv && argv[i]; i++) {
        if (i) rlhf__buf_puts(line, ", ");
        rlhf__json_write_string(line, argv[i], strlen(argv[i]));
    }
    rlhf__buf_putc(line, ']');
}

// ---- the events ----

static void put_checkpoint(struct rlhf__buf *line, const char *key, int64_t phase, int best) {
    char path[64];
    snprintf(path, sizeof path, "checkpoints/%06lld", (long long)phase);
    put_text(line, key, path);
    if (best) rlhf__buf_puts(line, ", \"best\": true");
}

void rlhf__events_begin(struct rlhf__events *e, int64_t phase, int best, int64_t phases,
                        const char *const *argv) {
    if (!e) return;
    struct rlhf__buf line = line_of(phase < 0 ? 0 : phase, phase < 0 ? "start" : "resume");
    rlhf__buf_printf(&line, ", \"phases\": %lld", (long long)phases);
    put_argv(&line, argv);
    put_text(&line, "version", RLHF_SDK_VERSION);
    put_machine(&line);
    if (phase >= 0) put_checkpoint(&line, "checkpoint", phase, best);
    write_line(e, &line);
}

void rlhf__events_warning(struct rlhf__events *e, int64_t phase, const char *finding,
                          const char *text) {
    if (!e) return;
    struct rlhf__buf line = line_of(phase, "warning");
    put_text(&line, "finding", finding);
    put_text(&line, "text", text);
    write_line(e, &line);
}

void rlhf__events_checkpoint(struct rlhf__events *e, int64_t phase, int best) {
    if (!e) return;
    struct rlhf__buf line = line_of(phase, "checkpoint");
    put_checkpoint(&line, "path", phase, best);
    write_line(e, &line);
}

void rlhf__events_end(struct rlhf__events *e, int64_t phase, const char *status,
                      const char *reason) {
    if (!e) return;
    struct rlhf__buf line = line_of(phase, "end");
    put_text(&line, "status", status);
    put_text(&line, "reason", reason);
    write_line(e, &line);
    struct rlhf__error err;
    check(e, rlhf__jsonl_sync(&e->file, &err), &err);
}
