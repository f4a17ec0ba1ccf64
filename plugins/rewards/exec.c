// exec.c: a reward that is computed by a program in any language. The program reads rows on
// standard input and answers each row with a line.
//
// The program is started once and kept running across phases. It fails if it exits, does not answer
// in time, or writes an invalid answer. The rows without an answer then count as failed, and the
// next call starts the program again. docs/rewards/exec.md describes its input and output.
// Checkpoints do not contain the program's own state.
#include "answer_line.h"
#include "process/talk.h"
#include "process/tally.h"
#include "process/utf8.h"
#include "process/words.h"
#include "rows_out.h"

#include <rlhf/reward.h>

#include <math.h>

enum { LONGEST_LINE = 1 << 20, SHOWN = 160 };

struct exec_config {
    const char *command;
    int32_t ids;
};

struct exec {
    const rlhf_host *host;
    const struct exec_config *config;
    char **words;
    struct rlhf__program program;
    int fresh;     // 1: it was started for the current call
    int heard;     // 1: it has answered since its start
    int64_t phase; // the phase whose lines on standard error are shown
};

// ---- answers ----

struct answers {
    const rlhf_host *host;
    const rlhf_reward_out *out;
    uint32_t n, had;         // number of rows, and number of answered rows
    uint32_t sure;           // number of rows at the beginning that were answered with their index
    int wrong;               // 1: an answer had the index of another row
    struct rlhf__bytes rest; // a line without its end
    struct rlhf__tally tally;
    char why[640]; // why the answer is invalid
};

static enum rlhf__taken refuse_line(struct answers *a, const char *line, size_t n,
                                    const char *why) {
    char shown[SHOWN], reason[2 * RLHF__LINE_WHY];
    rlhf__utf8_shown(line, n, shown, sizeof shown);
    rlhf__utf8_shown(why, strlen(why), reason, sizeof reason);
    if (a->had == a->n)
        snprintf(a->why, sizeof a->why,
                 "answered %u rows with more lines, the first of them \"%s\"", a->n, shown);
    else
        snprintf(a->why, sizeof a->why, "answered row %u of %u with \"%s\": %s", a->had, a->n,
                 shown, reason);
    return RLHF__TAKEN_NONE;
}

static enum rlhf__taken refuse_index(struct answers *a, int64_t index) {
    a->wrong = 1;
    snprintf(a->why, sizeof a->why, "answered row %lld where row %u of %u was asked: it %s",
             (long long)index, a->had, a->n,
             index > a->had ? "left one out" : "answered one more than once");
    return RLHF__TAKEN_NONE;
}

static enum rlhf__taken take_line(struct answers *a, const char *line, size_t n) {
    struct rlhf__line read;
    char why[RLHF__LINE_WHY] = "";
    if (a->had == a->n || !rlhf__line_read(line, n, &read, why))
        return refuse_line(a, line, n, why);
    if (read.index >= 0 && read.index != a->had) return refuse_index(a, read.index);
    a->out->seq[a->had] = (float)read.reward;
    a->out->verdict[a->had] = (uint8_t)read.verdict;
    for (uint32_t i = 0; i < read.n_metrics; i++)
        rlhf__tally_add(&a->tally, read.metric[i].name, read.metric[i].value);
    a->had++;
    if (read.index >= 0) a->sure = a->had;
    return a->had == a->n ? RLHF__TAKEN_ALL : RLHF__TAKEN_MORE;
}

static enum rlhf__taken take(void *ctx, const char *bytes, size_t n) {
    struct answers *a = ctx;
    enum rlhf__taken taken = a->had == a->n ? RLHF__TAKEN_ALL : RLHF__TAKEN_MORE;
    for (const char *end; taken != RLHF__TAKEN_NONE && (end = memchr(bytes, '\n', n));) {
        const size_t len = (size_t)(end - bytes);
        if (a->rest.len) {
            rlhf__bytes_add(&a->rest, bytes, len);
            taken = a->rest.full ? RLHF__TAKEN_NONE : take_line(a, a->rest.data, a->rest.len);
            a->rest.len = 0;
        } else {
            taken = take_line(a, bytes, len);
        }
        bytes += len + 1;
        n -= len + 1;
    }
    if (taken == RLHF__TAKEN_NONE || n == 0) return taken;
    rlhf__bytes_add(&a->rest, bytes, n);
    if (a->had == a->n || a->rest.len > LONGEST_LINE || a->rest.full)
        return refuse_line(a, a->rest.data, a->rest.len, "it is too long");
    return taken;
}

// ---- a call ----

static rlhf_status start(struct exec *e) {
    struct rlhf__program *p = &e->program;
    char shown[SHOWN], text[1024];
    if (p->process && rlhf__program_has_ended(p)) {
        rlhf__said_read(&p->said, p->host, p->process->err);
        rlhf__talk_why(p, RLHF__TALK_ENDED, "between two calls and is started again", text,
                       sizeof text);
        e->host->log(e->host, RLHF_LOG_WARN, text);
        rlhf__program_kill(p);
    }
    if (!p->process) {
        rlhf_logf(e->host, RLHF_LOG_INFO, "%s is started again", p->argv[0]);
        e->fresh = 1;
        e->heard = 0;
        return rlhf__program_start(p);
    }
    const size_t n = rlhf__talk_unasked(p, text, sizeof text);
    if (!n) return RLHF_OK;
    rlhf__program_kill(p);
    return rlhf_failf(e->host, RLHF_E_IO, "%s wrote \"%s\" before it was given a row to answer",
                      p->argv[0], rlhf__utf8_shown(text, n, shown, sizeof shown));
}

static rlhf_status write_rows(struct exec *e, const rlhf_reward_in *in, struct rlhf__bytes *rows) {
    for (uint32_t i = 0; i < in->n; i++)
        rlhf__row_out(rows, in, i, i, e->config->ids);
    return rows->full ? (e->host->fail)(e->host, RLHF_E_NOMEM, "out of memory for the rows")
                      : RLHF_OK;
}

// Returns 1 if the program still runs but does not answer any more. In this case, the program may
// have skipped a row without noticing.
static int waits(enum rlhf__talk what) {
    return what == RLHF__TALK_LATE || what == RLHF__TALK_CLOSED;
}

static const char *hint(const struct exec *e, const struct answers *a, enum rlhf__talk what) {
    if (waits(what) && a->sure < a->had)
        return "; answers without an \"index\" do not tell which row lacks its own, so they do not "
               "count";
    if (what != RLHF__TALK_LATE || a->had || e->heard) return "";
    return e->fresh ? "; it was started again for this call, had as long again for that, and has "
                      "not answered since"
                    : "; it may not flush its output after each line, or was still starting";
}

// Returns how many rows keep their answers after the program has failed. These are the first rows
// of the call. A row keeps its answer only if the answer certainly belongs to this row.
static uint32_t kept(const struct answers *a, enum rlhf__talk what) {
    // The program wrote too many lines, so it is unknown which line answers which row.
    if (a->had == a->n) return 0;
    return a->wrong || waits(what) ? a->sure : a->had;
}

// Tells the host why the program failed, and kills the program.
static rlhf_status give_up(struct exec *e, const struct answers *a, enum rlhf__talk what) {
    char where[256], text[1024];
    struct rlhf__program *p = &e->program;
    if (what == RLHF__TALK_REFUSED && a->rest.full)
        snprintf(text, sizeof text, "out of memory for the answers");
    else if (what == RLHF__TALK_REFUSED)
        snprintf(text, sizeof text, "%s %s", p->argv[0], a->why);
    else {
        snprintf(where, sizeof where, "at row %u of %u%s", a->had < a->n ? a->had : a->n - 1, a->n,
                 hint(e, a, what));
        rlhf__talk_why(p, what, where, text, sizeof text);
    }
    rlhf__program_kill(p);
    return (e->host->fail)(e->host, a->rest.full ? RLHF_E_NOMEM : RLHF_E_IO, text);
}

static rlhf_status ask(struct exec *e, struct answers *a, const struct rlhf__bytes *rows) {
    struct rlhf__exchange x = {.send = rows->data, .n_send = rows->len, .take = take, .ctx = a};
    if (e->fresh) x.start_s = rlhf__program_timeout(&e->program);
    const enum rlhf__talk what = rlhf__talk(&e->program, &x);
    e->heard = e->heard || a->had > 0;
    if (what == RLHF__TALK_DONE) return RLHF_OK;
    if (what == RLHF__TALK_CANCELLED) {
        rlhf__program_kill(&e->program);
        return RLHF_E_CANCELLED;
    }
    const rlhf_status st = give_up(e, a, what);
    const uint32_t stand = kept(a, what);
    if (!stand || !a->out->failed) return st;
    for (uint32_t i = stand; i < a->n; i++)
        a->out->failed[i] = 1;
    return RLHF_OK;
}

static rlhf_status exec_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct exec *e = self;
    struct rlhf__bytes rows = {.host = e->host};
    if (!in->n) return RLHF_OK;
    struct answers *a = e->host->alloc(e->host, sizeof *a);
    if (!a) return (e->host->fail)(e->host, RLHF_E_NOMEM, "out of memory");
    a->host = a->rest.host = e->host;
    a->out = out;
    a->n = in->n;
    e->fresh = 0;
    if (e->phase != in->phase) rlhf__said_show(&e->program.said, e->host, e->program.name);
    e->phase = in->phase;
    rlhf_status st = write_rows(e, in, &rows);
    if (st == RLHF_OK) st = start(e);
    if (st == RLHF_OK) st = ask(e, a, &rows);
    if (st == RLHF_OK) rlhf__tally_report(&a->tally, e->host);
    rlhf__bytes_finish(&rows);
    rlhf__bytes_finish(&a->rest);
    e->host->free(e->host, a);
    return st;
}

// ---- the plugin ----

static void exec_destroy(void *self) {
    struct exec *e = self;
    if (!e) return;
    rlhf__program_finish(&e->program);
    if (e->words) e->host->free(e->host, e->words);
    e->host->free(e->host, e);
}

static rlhf_status open_program(struct exec *e) {
    RLHF_TRY(rlhf__words_split(e->host, e->config->command, &e->words));
    RLHF_TRY(rlhf__program_init(&e->program, e->host, e->words, NULL));
    return rlhf__program_start(&e->program);
}

static rlhf_status exec_create(const rlhf_host *host, const void *config, void **self) {
    struct exec *e = host->alloc(host, sizeof *e);
    if (!e) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    e->host = host;
    e->config = config;
    e->phase = -1;
    const rlhf_status st = open_program(e);
    if (st < 0) {
        exec_destroy(e);
        return st;
    }
    *self = e;
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    {.key = "command",
     .help = "the program and its arguments, split into words as a shell does, which none runs",
     .type = RLHF_T_STR,
     .flags = RLHF_OPT_REQUIRED | RLHF_OPT_TRUSTED,
     .offset = offsetof(struct exec_config, command)},
    RLHF_OPT_BOOL(struct exec_config, ids, 0,
                  "rows have token ids too: prompt_ids, and ids of the response"),
};
static const rlhf_reward_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_REWARD_EXTERNAL,
    .score = exec_score,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.rlhf-host.exec",
    .version = RLHF_SDK_VERSION,
    .summary =
        "rewards from a program, which reads rows of JSON and writes a number or an object per "
        "line, preferably with the row's index",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct exec_config, options),
    .create = exec_create,
    .destroy = exec_destroy,
    .ops = &ops,
    .extension = rlhf__program_extension,
};
RLHF_DEFINE_PLUGIN(plugin)
