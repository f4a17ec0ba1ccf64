// grader.c: the reward plugin grader.so: graders of the hosted service for reinforcement
// fine-tuning, from their JSON (docs/rewards/grader.md).
#include "grader/grades.h"
#include "http/service.h"

#include <rlhf/log.h>
#include <rlhf/reward.h>

#include <math.h>

struct config {
    struct rlhf__http_service service;
    const char *file, *python;
};

struct grader {
    const rlhf_host *host;
    const struct config *config;
    struct rlhf__grader_spec spec;
    struct rlhf__http_options client; // options of the service
    struct rlhf__grader_judge judge;
    struct rlhf__python *python; // [spec.n]
    char (*pointer)[RLHF__MEMBERS_PATH + 8];
    int32_t asks; // 1: a grader asks a model
};

static void destroy(void *self) {
    struct grader *g = self;
    if (!g) return;
    for (uint32_t k = 0; g->python && k < g->spec.n; k++)
        rlhf__python_close(&g->python[k]);
    rlhf__grader_judge_close(&g->judge);
    rlhf__grader_spec_finish(&g->spec);
    g->host->free(g->host, g->python);
    g->host->free(g->host, g->pointer);
    g->host->free(g->host, g);
}

static rlhf_status open_judge(struct grader *g, const struct rlhf__grader *of) {
    const struct config *c = g->config;
    if (g->asks) return RLHF_OK;
    if (!c->service.url)
        return rlhf_failf(g->host, RLHF_E_INVALID,
                          "%s: %s asks the model \"%.60s\"; give url=, a service of chat "
                          "completions that runs it, and perhaps model=, another model",
                          c->file, *of->path ? of->path : "the grader", of->model);
    g->asks = 1;
    g->client = rlhf__http_service_options(&c->service, 4);
    g->judge.host = g->host;
    g->judge.o = &g->client;
    g->judge.model = c->service.model;
    RLHF_TRY(rlhf__grader_judge_open(&g->judge));
    rlhf_logf(g->host, RLHF_LOG_INFO, "graders of %s ask %s", c->file,
              g->judge.client.target.shown);
    return RLHF_OK;
}

static rlhf_status open_python(struct grader *g, uint32_t k) {
    snprintf(g->pointer[k], sizeof g->pointer[k], "%s/source", g->spec.of[k].path);
    g->python[k] = (struct rlhf__python){.host = g->host,
                                         .file = g->config->file,
                                         .functions = "grade",
                                         .python = g->config->python,
                                         .pointer = g->pointer[k]};
    return rlhf__python_open(&g->python[k]);
}

static rlhf_status open_graders(struct grader *g) {
    const uint64_t n = g->spec.n;
    g->python = g->host->alloc(g->host, n * sizeof *g->python);
    g->pointer = g->host->alloc(g->host, n * sizeof *g->pointer);
    if (!g->python || !g->pointer) return (g->host->fail)(g->host, RLHF_E_NOMEM, "out of memory");
    for (uint32_t k = 0; k < n; k++) {
        const struct rlhf__grader *of = &g->spec.of[k];
        if (of->type == RLHF__GRADER_PYTHON) RLHF_TRY(open_python(g, k));
        if (of->model) RLHF_TRY(open_judge(g, of));
    }
    if (!g->config->service.url || g->asks) return RLHF_OK;
    return rlhf_failf(g->host, RLHF_E_INVALID,
                      "%s has no grader that asks a model, so leave out url=", g->config->file);
}

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct grader *g = host->alloc(host, sizeof *g);
    if (!g) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    g->host = g->spec.host = host;
    g->config = config;
    g->spec.path = g->config->file;
    rlhf_status st = rlhf__grader_spec_read(&g->spec);
    if (st == RLHF_OK) st = open_graders(g);
    if (st < 0) {
        destroy(g);
        return st;
    }
    *self = g;
    return RLHF_OK;
}

// ---- scoring ----

// Whether a row is right, if the grader says from which grade on it passes. The grades of checks
// and of labels are 0 or 1.
static uint8_t verdict(const struct rlhf__grader_spec *s, double grade) {
    const int32_t type = s->multi ? RLHF__GRADER_MULTI : s->of[0].type;
    double pass = s->pass;
    if (isnan(pass) && (type == RLHF__GRADER_STRING_CHECK || type == RLHF__GRADER_LABEL_MODEL))
        pass = 1;
    if (isnan(pass)) return RLHF_VERDICT_NONE;
    return grade >= pass ? RLHF_VERDICT_RIGHT : RLHF_VERDICT_WRONG;
}

static rlhf_status write_rewards(const struct grader *g, const struct rlhf__grades *a,
                                 const rlhf_reward_out *out) {
    uint32_t lost = 0;
    int valid;
    for (uint32_t i = 0; i < a->in->n; i++) {
        const double grade = rlhf__grades_row(a, i, &valid);
        out->seq[i] = (float)grade;
        if (out->verdict) out->verdict[i] = verdict(&g->spec, grade);
        if (out->failed) out->failed[i] = a->failed[i];
        lost += a->failed[i];
    }
    if (!lost) return RLHF_OK;
    const rlhf_status st =
        rlhf_failf(g->host, RLHF_E_IO, "%s: %s", g->judge.client.target.shown, a->why);
    return lost < a->in->n && out->failed ? RLHF_OK : st;
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct grader *g = self;
    struct rlhf__grades a = {
        .host = g->host, .spec = &g->spec, .judge = &g->judge, .python = g->python, .in = in};
    if (!in->n) return RLHF_OK;
    rlhf_status st = rlhf__grades_init(&a);
    if (st == RLHF_OK) rlhf__grades_report(&a);
    if (st == RLHF_OK && g->asks) rlhf_metric_add(g->host, "paused", g->judge.requests.paused);
    if (st == RLHF_OK) st = write_rewards(g, &a, out);
    rlhf__grades_finish(&a);
    return st;
}

static rlhf_status check_row(void *self, const rlhf_row_in *in) {
    struct grader *g = self;
    RLHF_TRY(rlhf__grader_spec_check_row(&g->spec, in->meta));
    for (uint32_t k = 0; k < g->spec.n; k++)
        if (g->spec.of[k].type == RLHF__GRADER_PYTHON)
            RLHF_TRY(rlhf__python_try(&g->python[k], in));
    return RLHF_OK;
}

// ---- options ----

#define CODE(KEY, TYPE, FIELD, HELP)                                                               \
    {                                                                                              \
        .key = (KEY), .help = (HELP), .type = (TYPE), .flags = RLHF_OPT_TRUSTED,                   \
        .offset = offsetof(struct config, FIELD)                                                   \
    }
static const rlhf_opt options[] = {
    {.key = "file",
     .help = "the grader, a JSON file, or a fine-tuning job that has one",
     .type = RLHF_T_PATH,
     .flags = RLHF_OPT_REQUIRED | RLHF_OPT_TRUSTED,
     .offset = offsetof(struct config, file)},
    CODE("url", RLHF_T_STR, service.url,
         "for graders that ask a model: a service of chat completions, "
         "http://localhost:8000/v1/chat/completions"),
    RLHF_OPT_STR(struct rlhf__http_service, model, NULL,
                 "name of the service's model, in place of the one in the file"),
    RLHF__HTTP_SERVICE_ROWS,
    {.key = "python",
     .help = "for graders in Python: the interpreter, found on PATH or given by path, as one of a "
             "venv is",
     .type = RLHF_T_STR,
     .flags = RLHF_OPT_TRUSTED,
     .offset = offsetof(struct config, python),
     .s_def = "python3"},
};
static const rlhf_reward_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_REWARD_ROW_ALONE | RLHF_REWARD_EXTERNAL,
    .score = score,
    .check_row = check_row,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.rlhf-host.grader",
    .version = RLHF_SDK_VERSION,
    .summary = "graders of hosted reinforcement fine-tuning, from their JSON",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
    .extension = rlhf__program_extension,
};
RLHF_DEFINE_PLUGIN(plugin)
