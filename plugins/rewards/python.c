// python.c: reward functions with TRL's signature, run by the system's python3.
//
// A child process runs a small driver (python/rlhf_host/_driver.py, embedded here as text). The
// driver imports the user's file and calls the functions with the arguments that TRL's GRPO trainer
// passes. If there are several functions, their weighted rewards are added, as in TRL. See
// docs/rewards/python.md. Python is not linked, and Python packages are not needed.
// If the functions run in the process that started the run (docs/python.md), the driver passes
// requests and answers on.
#include "process/tally.h"
#include "process/utf8.h"
#include "python_driver.h" // generated: rlhf__python_driver
#include "python_frame.h"

#include <rlhf/log.h>
#include <rlhf/reward.h>
#include <rlhf/service.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_FUNCTIONS = 32, SHOWN = 800 };

struct python_config {
    const char *file, *function, *weights, *python;
};

struct python {
    const rlhf_host *host;
    const struct python_config *config;
    const rlhf_row_service *rows;
    struct rlhf__program program;
    char *argv[6];
    char *functions;          // "a,b"
    struct rlhf__bytes ready; // text of the driver's first answer
    uint32_t n;               // number of functions
    int32_t noted;            // 1: the driver's note was logged
    int32_t said_unscored;    // 1: a row without a score was reported
    int32_t tried;            // 1: the functions have scored made-up responses
    int64_t phase;            // the phase whose printed lines are shown
    float weight[MOST_FUNCTIONS];
    char name[256]; // "rewards.py (python3)"
};

static const char *const environment[] = {
    "PYTHONHASHSEED=0", // so that sets have the same order when a run is resumed
    NULL,
};

static rlhf_status no_memory(const struct python *p) {
    return (p->host->fail)(p->host, RLHF_E_NOMEM, "out of memory");
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// ---- options ----

// Reads the names: "a, b" or "a+b" becomes "a,b".
static rlhf_status read_functions(struct python *p) {
    const char *from = p->config->function;
    char *to = p->functions = p->host->alloc(p->host, strlen(from) + 1);
    if (!to) return no_memory(p);
    size_t len = 0; // length of the current name
    p->n = 1;
    for (; *from; from++) {
        if (*from == ' ' || *from == '\t') continue;
        if (*from != ',' && *from != '+') {
            *to++ = *from;
            len++;
            continue;
        }
        if (!len || ++p->n > MOST_FUNCTIONS) break;
        *to++ = ',';
        len = 0;
    }
    if (p->n > MOST_FUNCTIONS)
        return rlhf_failf(p->host, RLHF_E_INVALID, "function names over %d functions",
                          MOST_FUNCTIONS);
    if (!len)
        return rlhf_failf(p->host, RLHF_E_INVALID,
                          "function is \"%s\"; expected one name, or several with commas between",
                          p->config->function);
    return RLHF_OK;
}

static rlhf_status read_weights(struct python *p) {
    const char *at = p->config->weights;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++)
        p->weight[i] = 1;
    if (!at) return RLHF_OK;
    for (;;) {
        char *end;
        const double w = strtod(at, &end);
        if (end == at || !isfinite(w) || fabs(w) > 1e6)
            return rlhf_failf(p->host, RLHF_E_INVALID,
                              "weights is \"%s\"; expected numbers from -1e6 to 1e6, with commas "
                              "between",
                              p->config->weights);
        if (n < p->n) p->weight[n] = (float)w;
        n++;
        while (*end == ' ')
            end++;
        if (!*end) break;
        at = end + (*end == ',' || *end == '+');
    }
    if (n == p->n) return RLHF_OK;
    return rlhf_failf(p->host, RLHF_E_INVALID, "weights has %u numbers for %u function%s", n, p->n,
                      p->n > 1 ? "s" : "");
}

static rlhf_status look_at_file(const struct python *p) {
    FILE *f = fopen(p->config->file, "re");
    const int c = f ? fgetc(f) : 0;
    if (f && c == EOF && ferror(f)) {
        fclose(f);
        f = NULL;
    }
    if (!f)
        return rlhf_failf(p->host, RLHF_E_INVALID, "file=%s cannot be read: %s", p->config->file,
                          strerror(errno));
    fclose(f);
    return RLHF_OK;
}

// ---- the driver ----

// Sends `send` and reads the driver's answer. If the driver reports a failure, passes it to the
// host with the status `st`; before the run (RLHF_E_INVALID), the message also says `where`. If the
// exchange itself fails, kills the driver and reports the failure with the same status.
static rlhf_status ask(struct python *p, const struct rlhf__bytes *send, const char *where,
                       rlhf_status st, struct rlhf__frame *f) {
    struct rlhf__exchange x = {.take = rlhf__frame_take, .ctx = f};
    char text[1024];
    if (send) x.send = send->data;
    if (send) x.n_send = send->len;
    const enum rlhf__talk what = rlhf__talk(&p->program, &x);
    if (what == RLHF__TALK_DONE && f->kind == RLHF__FRAME_FAILED) {
        const rlhf_str why = rlhf__frame_text(f);
        rlhf__utf8_shown(why.ptr, (size_t)why.len, text, SHOWN);
        if (!send || st != RLHF_E_INVALID) return (p->host->fail)(p->host, st, text);
        return rlhf_failf(p->host, st, "%s (%s)", text, where);
    }
    if (what == RLHF__TALK_DONE && (f->kind == RLHF__FRAME_SCORES) == (send != NULL))
        return RLHF_OK;
    if (what == RLHF__TALK_DONE || what == RLHF__TALK_REFUSED)
        snprintf(text, sizeof text, "%s gave an invalid answer %s", p->name, where);
    else if (what != RLHF__TALK_CANCELLED)
        rlhf__talk_why(&p->program, what, where, text, sizeof text);
    rlhf__program_kill(&p->program);
    if (what == RLHF__TALK_CANCELLED) return RLHF_E_CANCELLED;
    if (f->data.full) return no_memory(p);
    return (p->host->fail)(p->host, st, text);
}

// Starts the driver, which imports the file.
static rlhf_status start(struct python *p, rlhf_status status) {
    struct rlhf__frame f = {.data = {.host = p->host}};
    RLHF_TRY(rlhf__program_start(&p->program));
    rlhf_status st = ask(p, NULL, "while it imported the file", status, &f);
    if (st == RLHF_OK) {
        const rlhf_str text = rlhf__frame_text(&f);
        p->ready.len = 0;
        rlhf__bytes_add(&p->ready, text.ptr, (size_t)text.len);
        if (p->ready.full) st = no_memory(p);
    }
    if (st < 0) rlhf__program_kill(&p->program);
    rlhf__bytes_finish(&f.data);
    return st;
}

static rlhf_status start_again(struct python *p) {
    struct rlhf__program *q = &p->program;
    char text[1024];
    if (q->process && !rlhf__program_has_ended(q)) return RLHF_OK;
    if (q->process) {
        rlhf__said_read(&q->said, q->host, q->process->err);
        rlhf__talk_why(q, RLHF__TALK_ENDED, "between two calls", text, sizeof text);
        p->host->log(p->host, RLHF_LOG_WARN, text);
        rlhf__program_kill(q);
    }
    rlhf_logf(p->host, RLHF_LOG_INFO, "%s is started again", p->name);
    return start(p, RLHF_E_IO);
}

// Finds the i-th line of this kind in the driver's ready message. Sets *out to the rest of the
// line. Returns 0 if there are fewer such lines.
static int ready_line(const struct python *p, const char *kind, uint32_t i, rlhf_str *out) {
    rlhf_str text = {p->ready.data, p->ready.len}, line;
    const size_t len = strlen(kind);
    while (rlhf__frame_line(&text, &line)) {
        if (line.len <= len || memcmp(line.ptr, kind, len) != 0 || i--) continue;
        *out = (rlhf_str){line.ptr + len, line.len - len};
        return 1;
    }
    return 0;
}

// ---- a call ----

static void add_texts(struct rlhf__bytes *b, const char *key, const rlhf_str *texts, uint32_t n) {
    rlhf__bytes_text(b, key);
    for (uint32_t i = 0; i < n; i++) {
        rlhf__bytes_text(b, i ? "," : "[");
        rlhf__bytes_string(b, texts[i]);
    }
    rlhf__bytes_text(b, "]");
}

static void add_batch(struct rlhf__bytes *b, const rlhf_reward_in *in) {
    rlhf__bytes_text(b, "{\"step\":");
    rlhf__bytes_number(b, (int64_t)in->phase);
    add_texts(b, ",\"prompts\":", in->prompt, in->n);
    add_texts(b, ",\"completions\":", in->response, in->n);
    rlhf__bytes_text(b, ",\"ids\":");
    for (uint32_t i = 0; i < in->n; i++) {
        const int32_t from = in->offset[i] + in->prompt_len[i];
        rlhf__bytes_text(b, i ? "," : "[");
        rlhf__bytes_list(b, in->ids + from, (size_t)(in->offset[i + 1] - from));
    }
    rlhf__bytes_text(b, "],\"rows\":");
    for (uint32_t i = 0; i < in->n; i++) {
        rlhf__bytes_text(b, i ? "," : "[");
        rlhf__bytes_json(b, in->meta ? in->meta[i] : (rlhf_str){NULL, 0});
    }
    rlhf__bytes_text(b, "]}");
}

// Writes "BYTES\n" and the request.
static rlhf_status write_batch(struct python *p, const rlhf_reward_in *in, struct rlhf__bytes *to) {
    struct rlhf__bytes body = {.host = p->host};
    add_batch(&body, in);
    rlhf__bytes_number(to, (int64_t)body.len);
    rlhf__bytes_text(to, "\n");
    rlhf__bytes_add(to, body.data, body.len);
    const int full = body.full || to->full;
    rlhf__bytes_finish(&body);
    return full ? no_memory(p) : RLHF_OK;
}

// Returns the weighted sum of the functions' rewards for row i, in f32. As in TRL (torch's nansum),
// a NaN reward is left out. If all rewards are NaN, returns NaN.
static float sum_of(const struct python *p, const struct rlhf__frame *f, uint32_t i, uint32_t n) {
    float sum = 0;
    int any = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const float pays = (float)rlhf__frame_double(f, (size_t)k * n + i);
        const float part = p->n > 1 || p->config->weights ? pays * p->weight[k] : pays;
        any |= !isnan(pays);
        if (!isnan(part)) sum += part;
    }
    return any ? sum : NAN;
}

// Reports the share of rows that no function scores. If there are several functions, also reports
// the mean of each (NAME/mean) over the rows that it scores.
static void report(const struct python *p, const struct rlhf__frame *f, uint32_t n) {
    uint32_t unscored = 0;
    for (uint32_t i = 0; i < n; i++)
        unscored += isnan(sum_of(p, f, i, n)) != 0;
    rlhf_metric_mean(p->host, "unscored", (double)unscored / n, n);
    for (uint32_t k = 0; p->n > 1 && k < p->n; k++) {
        char name[RLHF__TALLY_NAME];
        rlhf_str function = {"", 0};
        double sum = 0, count = 0;
        for (uint32_t i = 0; i < n; i++) {
            const double pays = rlhf__frame_double(f, (size_t)k * n + i);
            if (isnan(pays)) continue;
            sum += pays;
            count++;
        }
        ready_line(p, "name ", k, &function);
        snprintf(name, sizeof name, "%.*s/mean", (int)(function.len < 80 ? function.len : 80),
                 function.ptr);
        if (count > 0) rlhf_metric_mean(p->host, name, sum / count, count);
    }
}

// Shows the first printed lines of each phase, because users debug functions with print().
static void show_printed(struct python *p, int64_t phase) {
    if (p->phase == phase) return;
    p->phase = phase;
    rlhf__said_show(&p->program.said, p->host, base_name(p->config->file));
}

// Processes a line "metric VALUE NAME", "note SENTENCE" or "unscored SENTENCE".
static void take_line(struct python *p, rlhf_str line, struct rlhf__tally *tally) {
    char text[512], *end;
    if (line.len >= sizeof text) return;
    memcpy(text, line.ptr, (size_t)line.len);
    text[line.len] = 0;
    if (strncmp(text, "metric ", 7) == 0) {
        const double value = strtod(text + 7, &end);
        if (*end == ' ' && strlen(end + 1) < RLHF__TALLY_NAME)
            rlhf__tally_add(tally, end + 1, value);
    } else if (strncmp(text, "note ", 5) == 0 && !p->noted) {
        p->noted = 1;
        p->host->log(p->host, RLHF_LOG_INFO, text + 5);
    } else if (strncmp(text, "unscored ", 9) == 0 && !p->said_unscored) {
        p->said_unscored = 1;
        p->host->log(p->host, RLHF_LOG_WARN, text + 9);
    }
}

static rlhf_status take_scores(struct python *p, const struct rlhf__frame *f, uint32_t n,
                               const rlhf_reward_out *out) {
    if (f->n_doubles != (size_t)p->n * n)
        return rlhf_failf(p->host, RLHF_E_IO, "%s answered %zu rewards for %u rows", p->name,
                          f->n_doubles, n);
    struct rlhf__tally *tally = p->host->alloc(p->host, sizeof *tally);
    if (!tally) return no_memory(p);
    for (uint32_t i = 0; i < n; i++)
        out->seq[i] = sum_of(p, f, i, n);
    rlhf_str text = rlhf__frame_text(f), line;
    while (rlhf__frame_line(&text, &line))
        take_line(p, line, tally);
    report(p, f, n);
    rlhf__tally_report(tally, p->host);
    p->host->free(p->host, tally);
    return RLHF_OK;
}

static rlhf_status python_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct python *p = self;
    struct rlhf__frame f = {.data = {.host = p->host}};
    struct rlhf__bytes batch = {.host = p->host};
    char where[64];
    if (!in->n) return RLHF_OK;
    snprintf(where, sizeof where, "while it scored %u rows", in->n);
    show_printed(p, in->phase);
    rlhf_status st = write_batch(p, in, &batch);
    if (st == RLHF_OK) st = start_again(p);
    if (st == RLHF_OK) st = ask(p, &batch, where, RLHF_E_IO, &f);
    if (st == RLHF_OK) st = take_scores(p, &f, in->n, out);
    rlhf__bytes_finish(&batch);
    rlhf__bytes_finish(&f.data);
    return st;
}

// Copies the name of the i-th required column to `column`, and the name of the first function that
// requires this column to `function`. Returns 0 if there are fewer required columns.
static int needed(const struct python *p, uint32_t i, char column[256], char function[256]) {
    rlhf_str line;
    if (!ready_line(p, "needs ", i, &line)) return 0;
    const char *blank = memchr(line.ptr, ' ', (size_t)line.len);
    const uint64_t n = blank ? (uint64_t)(blank - line.ptr) : line.len, from = blank ? n + 1 : n;
    const uint64_t rest = line.len - from;
    snprintf(column, 256, "%.*s", (int)(n < 255 ? n : 255), line.ptr);
    snprintf(function, 256, "%.*s", (int)(rest < 255 ? rest : 255), line.ptr + from);
    return 1;
}

// Lets the functions score two made-up responses to the first row, so that a function that fails on
// them is refused before models are loaded. A model may respond anything, also nothing.
static rlhf_status try_functions(struct python *p, const rlhf_row_in *row) {
    static const int32_t offset[] = {0, 0, 0}, prompt_len[] = {0, 0};
    const rlhf_str prompt[] = {row->prompt, row->prompt}, meta[] = {row->meta, row->meta};
    const rlhf_str response[] = {{"", 0}, {"Yes.", 4}};
    const rlhf_reward_in in = {.size = sizeof in,
                               .n = 2,
                               .prompt = prompt,
                               .response = response,
                               .meta = meta,
                               .ids = offset, // no token of it is read
                               .offset = offset,
                               .prompt_len = prompt_len};
    struct rlhf__frame f = {.data = {.host = p->host}};
    struct rlhf__bytes batch = {.host = p->host};
    p->tried = 1;
    rlhf_status st = write_batch(p, &in, &batch);
    if (st == RLHF_OK)
        st = ask(p, &batch, "when it scored two made-up responses to the first row, before the run",
                 RLHF_E_INVALID, &f);
    rlhf__bytes_finish(&batch);
    rlhf__bytes_finish(&f.data);
    return st;
}

// Checks that the row has the columns that the functions require.
static rlhf_status check_columns(const struct python *p, const rlhf_row_in *in) {
    char column[256], function[256];
    rlhf_row *read = NULL;
    if (!p->rows || !needed(p, 0, column, function)) return RLHF_OK;
    if (!in->meta.len)
        return rlhf_failf(
            p->host, RLHF_E_INVALID,
            "the prompt has no data row, so no \"%s\", which %s of %s is called with; "
            "use prompts in a .jsonl file",
            column, function, base_name(p->config->file));
    RLHF_TRY(p->rows->open(p->host, in->meta, &read));
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; st == RLHF_OK && needed(p, i, column, function); i++)
        if (p->rows->type(p->host, read, column) == RLHF_JSON_ABSENT)
            st = rlhf_failf(p->host, RLHF_E_INVALID,
                            "the data row has no \"%s\", which %s of %s is called with", column,
                            function, base_name(p->config->file));
    p->rows->close(p->host, read);
    return st;
}

static rlhf_status python_check_row(void *self, const rlhf_row_in *in) {
    struct python *p = self;
    RLHF_TRY(check_columns(p, in));
    return p->tried ? RLHF_OK : try_functions(p, in);
}

// ---- the plugin ----

static void python_destroy(void *self) {
    struct python *p = self;
    if (!p) return;
    rlhf__program_finish(&p->program);
    rlhf__said_show(&p->program.said, p->host, NULL);
    rlhf__bytes_finish(&p->ready);
    if (p->functions) p->host->free(p->host, p->functions);
    p->host->free(p->host, p);
}

static rlhf_status open_python(struct python *p) {
    const struct python_config *c = p->config;
    RLHF_TRY(read_functions(p));
    RLHF_TRY(read_weights(p));
    RLHF_TRY(look_at_file(p));
    char *const argv[] = {rlhf__program_word(c->python),
                          rlhf__program_word("-c"),
                          rlhf__program_word(rlhf__python_driver),
                          rlhf__program_word(c->file),
                          p->functions,
                          NULL};
    memcpy(p->argv, argv, sizeof argv);
    snprintf(p->name, sizeof p->name, "%.120s (%.120s)", base_name(c->file), c->python);
    RLHF_TRY(rlhf__program_init(&p->program, p->host, p->argv, environment));
    p->program.name = p->name;
    p->phase = -1; // so that lines printed by the import are shown
    rlhf__said_show(&p->program.said, p->host, base_name(c->file));
    return start(p, RLHF_E_INVALID);
}

static rlhf_status python_create(const rlhf_host *host, const void *config, void **self) {
    struct python *p = host->alloc(host, sizeof *p);
    if (!p) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    p->host = p->ready.host = host;
    p->config = config;
    p->rows = host->service(host, RLHF_SVC_ROW);
    const rlhf_status st = open_python(p);
    if (st < 0) {
        python_destroy(p);
        return st;
    }
    *self = p;
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    {.key = "file",
     .help = "the Python file with the reward functions",
     .type = RLHF_T_PATH,
     .flags = RLHF_OPT_REQUIRED | RLHF_OPT_TRUSTED,
     .offset = offsetof(struct python_config, file)},
    {.key = "function",
     .help = "name of a function in it, or several with commas or + between, to add up",
     .type = RLHF_T_STR,
     .flags = RLHF_OPT_REQUIRED,
     .offset = offsetof(struct python_config, function)},
    RLHF_OPT_STR(struct python_config, weights, NULL,
                 "weight of each function, with commas between; 1 when not given"),
    {.key = "python",
     .help = "the interpreter, found on PATH or given by path, as one of a venv is",
     .type = RLHF_T_STR,
     .flags = RLHF_OPT_TRUSTED,
     .offset = offsetof(struct python_config, python),
     .s_def = "python3"},
};
static const rlhf_reward_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_REWARD_EXTERNAL,
    .score = python_score,
    .check_row = python_check_row,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.rlhf-host.python",
    .version = RLHF_SDK_VERSION,
    .summary = "rewards from functions in Python, with the signature that TRL calls",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct python_config, options),
    .create = python_create,
    .destroy = python_destroy,
    .ops = &ops,
    .extension = rlhf__program_extension,
};
RLHF_DEFINE_PLUGIN(plugin)
