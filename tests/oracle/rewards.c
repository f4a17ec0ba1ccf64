// rewards.c: the rewards that a plugin gives to texts from standard input, for rewards.py.
//
//     oracle_rewards PLUGIN.so [KEY=VALUE ...]
//
// A line is a row {"response": text, "prompt": text, "row": {...}, "ids": [...]}, of which only the
// response is required, or a list of such rows, which are scored in one call. For each line, the
// program writes a line with the exact reward of each row.
#include "base/buf.h"
#include "plugin/row_service.h"
#include "worker/programs.h"

#include <jansson.h>
#include <rlhf/reward.h>
#include <rlhf/test.h>

static struct rlhf_test_host host;

// Runs programs as rlhf-host of the build tree does.
static void offer_programs(void) {
    static struct rlhf__programs programs;
    static char program[4096];
    const char *build = getenv("RLHF_BUILD_DIR");
    snprintf(program, sizeof program, "%s/bin/rlhf-host", build ? build : ".");
    rlhf__programs_init(&programs, program, NULL);
    rlhf_test_offer(&host, RLHF_SVC_PROGRAM, &programs.table);
}

static int refuse(const char *what, const char *why) {
    fprintf(stderr, "oracle_rewards: %s: %s\n", what, why);
    return 1;
}

// Parses settings "key=value" into a config of the plugin. Returns NULL if the plugin refuses a
// setting.
static void *settings(const rlhf_plugin *p, char **argv, int n) {
    void *config = calloc(1, (size_t)p->config_size + 1);
    if (!config) return NULL;
    rlhf_test_config(p, config);
    for (int i = 0; i < n; i++) {
        char *value = strchr(argv[i], '=');
        if (value) *value++ = 0;
        if (value && rlhf_test_set(p, config, argv[i], value)) continue;
        refuse(argv[i], "no such setting, or not such a value");
        free(config);
        return NULL;
    }
    return config;
}

// A batch in the form that plugins get.
struct batch {
    uint32_t n;
    rlhf_str *prompt, *response, *meta;
    int32_t *ids, *offset, *prompt_len;
    uint8_t *finished, *verdict, *failed;
    float *seq;
};

static void batch_finish(struct batch *b) {
    for (uint32_t i = 0; b->meta && i < b->n; i++) {
        const union {
            const char *text;
            void *data;
        } own = {b->meta[i].ptr};
        free(own.data);
    }
    free(b->prompt);
    free(b->response);
    free(b->meta);
    free(b->ids);
    free(b->offset);
    free(b->prompt_len);
    free(b->finished);
    free(b->verdict);
    free(b->failed);
    free(b->seq);
}

static int batch_init(struct batch *b, const json_t *rows) {
    const size_t n = json_array_size(rows);
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += json_array_size(json_object_get(json_array_get(rows, i), "ids"));
    *b = (struct batch){.n = (uint32_t)n,
                        .prompt = calloc(n + 1, sizeof *b->prompt),
                        .response = calloc(n + 1, sizeof *b->response),
                        .meta = calloc(n + 1, sizeof *b->meta),
                        .ids = calloc(total + 1, sizeof *b->ids),
                        .offset = calloc(n + 1, sizeof *b->offset),
                        .prompt_len = calloc(n + 1, sizeof *b->prompt_len),
                        .finished = calloc(n + 1, 1),
                        .verdict = calloc(n + 1, 1),
                        .failed = calloc(n + 1, 1),
                        .seq = calloc(n + 1, sizeof *b->seq)};
    return b->prompt && b->response && b->meta && b->ids && b->offset && b->prompt_len &&
           b->finished && b->verdict && b->failed && b->seq;
}

static rlhf_str text_of(const json_t *row, const char *key) {
    const json_t *v = json_object_get(row, key);
    return (rlhf_str){json_string_value(v), json_string_length(v)};
}

static int pay(const rlhf_plugin *p, void *self, const json_t *rows) {
    const rlhf_reward_ops *ops = p->ops;
    struct batch b;
    int32_t at = 0;
    rlhf_status st = batch_init(&b, rows) ? RLHF_OK : RLHF_E_NOMEM;
    for (uint32_t i = 0; st == RLHF_OK && i < b.n; i++) {
        const json_t *row = json_array_get(rows, i), *list = json_object_get(row, "ids");
        b.response[i] = text_of(row, "response");
        b.prompt[i] = json_object_get(row, "prompt") ? text_of(row, "prompt") : b.response[i];
        b.meta[i].ptr = json_dumps(json_object_get(row, "row"), JSON_COMPACT);
        b.meta[i].len = b.meta[i].ptr ? strlen(b.meta[i].ptr) : 0;
        for (size_t k = 0; k < json_array_size(list); k++)
            b.ids[at++] = (int32_t)json_integer_value(json_array_get(list, k));
        b.offset[i + 1] = at;
    }
    const rlhf_reward_in in = {.size = sizeof in,
                               .n = b.n,
                               .prompt = b.prompt,
                               .response = b.response,
                               .meta = b.meta,
                               .ids = b.ids,
                               .offset = b.offset,
                               .prompt_len = b.prompt_len,
                               .finished = b.finished};
    const rlhf_reward_out out = {
        .size = sizeof out, .seq = b.seq, .verdict = b.verdict, .failed = b.failed};
    if (st == RLHF_OK) st = ops->score(self, &in, &out);
    for (uint32_t i = 0; st == RLHF_OK && i < b.n; i++)
        printf("%.9g\n", (double)b.seq[i]);
    batch_finish(&b);
    return st < 0 ? refuse("score", host.fail_text) : 0;
}

// A line is a row, or a list of rows to score in one call.
static int pay_line(const rlhf_plugin *p, void *self, json_t *line) {
    json_t *rows = json_is_array(line) ? json_incref(line) : json_pack("[O]", line);
    const int status = rows ? pay(p, self, rows) : refuse("standard input", "no row");
    json_decref(rows);
    return status;
}

static int pay_all(const rlhf_plugin *p, void *self) {
    char *line = NULL;
    size_t cap = 0;
    int status = 0;
    for (ssize_t n; status == 0 && (n = getline(&line, &cap, stdin)) > 0;) {
        json_t *v = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);
        status = v ? pay_line(p, self, v) : refuse("standard input", "no JSON");
        json_decref(v);
    }
    free(line);
    return status;
}

int main(int argc, char **argv) {
    void *self = NULL;
    const rlhf_plugin *p = argc > 1 ? rlhf_test_open(argv[1], 0) : NULL;
    if (!p) return refuse("usage", "oracle_rewards PLUGIN.so [KEY=VALUE ...]");
    void *config = settings(p, argv + 2, argc - 2);
    rlhf_test_init(&host, 1);
    int status = !config;
    if (status == 0) rlhf_test_offer(&host, RLHF_SVC_ROW, rlhf__row_service());
    if (status == 0) offer_programs();
    if (!p->create) self = config;
    if (status == 0 && p->create) {
        status = p->create(&host.table, config, &self) < 0;
        if (status) refuse("create", host.fail_text);
    }
    if (status == 0) status = pay_all(p, self);
    if (p->destroy) p->destroy(self);
    free(config);
    return status;
}
