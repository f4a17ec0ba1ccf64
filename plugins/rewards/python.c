// python.c: reward functions with TRL's signature, run by the system's python3.
//
// A child process runs a small driver (python/rlhf_host/_driver.py, embedded as text). The driver
// imports the user's file and calls the functions with the arguments that TRL's GRPO trainer
// passes. If there are several functions, their weighted rewards are added, as in TRL. See
// docs/rewards/python.md. Python is not linked, and Python packages are not needed.
// If the functions run in the process that started the run (docs/python.md), the driver passes
// requests and answers on.
//
// This file reads the options and combines the rewards; python_calls.c calls the functions.
#include "python_calls.h"

#include "process/tally.h"

#include <rlhf/log.h>
#include <rlhf/service.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FUNCTIONS = 32 };

struct python_config {
    const char *file, *function, *weights, *python;
};

struct python {
    const rlhf_host *host;
    const struct python_config *config;
    const rlhf_row_service *rows;
    char *functions; // "a,b"
    struct rlhf__python calls;
    uint32_t n; // number of functions
    float weight[MOST_FUNCTIONS];
};

// ---- options ----

// Reads the names: "a, b" or "a+b" becomes "a,b".
static rlhf_status read_functions(struct python *p) {
    const char *from = p->config->function;
    char *to = p->functions = p->host->alloc(p->host, strlen(from) + 1);
    if (!to) return (p->host->fail)(p->host, RLHF_E_NOMEM, "out of memory");
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

// ---- a call ----

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
        rlhf__python_ready_line(&p->calls, "name ", k, &function);
        snprintf(name, sizeof name, "%.*s/mean", (int)(function.len < 80 ? function.len : 80),
                 function.ptr);
        if (count > 0) rlhf_metric_mean(p->host, name, sum / count, count);
    }
}

static rlhf_status take_scores(struct python *p, const struct rlhf__frame *f, uint32_t n,
                               const rlhf_reward_out *out) {
    if (f->n_doubles != (size_t)p->n * n)
        return rlhf_failf(p->host, RLHF_E_IO, "%s answered %zu rewards for %u rows", p->calls.name,
                          f->n_doubles, n);
    for (uint32_t i = 0; i < n; i++)
        out->seq[i] = sum_of(p, f, i, n);
    report(p, f, n);
    return rlhf__python_report(&p->calls, f);
}

static rlhf_status python_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct python *p = self;
    struct rlhf__frame f = {.data = {.host = p->host}};
    if (!in->n) return RLHF_OK;
    rlhf_status st = rlhf__python_score(&p->calls, in, &f);
    if (st == RLHF_OK) st = take_scores(p, &f, in->n, out);
    rlhf__bytes_finish(&f.data);
    return st;
}

// Copies the name of the i-th required column to `column`, and the name of the first function that
// requires this column to `function`. Returns 0 if there are fewer required columns.
static int needed(const struct python *p, uint32_t i, char column[256], char function[256]) {
    rlhf_str line;
    if (!rlhf__python_ready_line(&p->calls, "needs ", i, &line)) return 0;
    const char *blank = memchr(line.ptr, ' ', (size_t)line.len);
    const uint64_t n = blank ? (uint64_t)(blank - line.ptr) : line.len, from = blank ? n + 1 : n;
    const uint64_t rest = line.len - from;
    snprintf(column, 256, "%.*s", (int)(n < 255 ? n : 255), line.ptr);
    snprintf(function, 256, "%.*s", (int)(rest < 255 ? rest : 255), line.ptr + from);
    return 1;
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
            column, function, rlhf__python_file(&p->calls));
    RLHF_TRY(p->rows->open(p->host, in->meta, &read));
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; st == RLHF_OK && needed(p, i, column, function); i++)
        if (p->rows->type(p->host, read, column) == RLHF_JSON_ABSENT)
            st = rlhf_failf(p->host, RLHF_E_INVALID,
                            "the data row has no \"%s\", which %s of %s is called with", column,
                            function, rlhf__python_file(&p->calls));
    p->rows->close(p->host, read);
    return st;
}

static rlhf_status python_check_row(void *self, const rlhf_row_in *in) {
    struct python *p = self;
    RLHF_TRY(check_columns(p, in));
    return rlhf__python_try(&p->calls, in);
}

// ---- the plugin ----

static void python_destroy(void *self) {
    struct python *p = self;
    if (!p) return;
    rlhf__python_close(&p->calls);
    p->host->free(p->host, p->functions);
    p->host->free(p->host, p);
}

static rlhf_status open_python(struct python *p) {
    const struct python_config *c = p->config;
    RLHF_TRY(read_functions(p));
    RLHF_TRY(read_weights(p));
    p->calls = (struct rlhf__python){
        .host = p->host, .file = c->file, .functions = p->functions, .python = c->python};
    return rlhf__python_open(&p->calls);
}

static rlhf_status python_create(const rlhf_host *host, const void *config, void **self) {
    struct python *p = host->alloc(host, sizeof *p);
    if (!p) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    p->host = host;
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
