// rewards.c: what a reward plugin pays texts of standard input, for rewards.py.
//
//     oracle_rewards PLUGIN.so [KEY=VALUE ...]
//
// A line is {"response": text, "row": {...}, "ids": [...]}, row and ids where they matter; the
// answer to it is a line with the reward, exactly.
#include "base/buf.h"
#include "plugin/row_service.h"

#include <jansson.h>
#include <rlhf/reward.h>
#include <rlhf/test.h>

static struct rlhf_test_host host;
static struct rlhf__services services;
static struct rlhf__note failure;
static struct rlhf__row_service rows;

static int refuse(const char *what, const char *why) {
    fprintf(stderr, "oracle_rewards: %s: %s\n", what, why);
    return 1;
}

// Settings "key=value" into a config of the plugin; NULL where one is refused.
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

static int pay(const rlhf_plugin *p, void *self, const json_t *line) {
    const rlhf_reward_ops *ops = p->ops;
    const json_t *text = json_object_get(line, "response"), *list = json_object_get(line, "ids");
    char *row = json_dumps(json_object_get(line, "row"), JSON_COMPACT);
    const size_t n = json_array_size(list);
    int32_t *ids = calloc(n + 1, sizeof *ids), offset[2] = {0, (int32_t)n}, none[1] = {0};
    rlhf_str response = {json_string_value(text), json_string_length(text)};
    rlhf_str meta = {row, row ? strlen(row) : 0};
    float seq = 0;
    uint8_t verdict = 0;
    for (size_t i = 0; ids && i < n; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    const rlhf_reward_in in = {.size = sizeof in,
                               .n = 1,
                               .prompt = &response,
                               .response = &response,
                               .meta = &meta,
                               .ids = ids,
                               .offset = offset,
                               .prompt_len = none};
    const rlhf_reward_out out = {.size = sizeof out, .seq = &seq, .verdict = &verdict};
    const rlhf_status st = ids ? ops->score(self, &in, &out) : RLHF_E_NOMEM;
    free(row);
    free(ids);
    if (st < 0) return refuse("score", host.fail_text);
    printf("%.9g\n", (double)seq);
    return 0;
}

static int pay_all(const rlhf_plugin *p, void *self) {
    char *line = NULL;
    size_t cap = 0;
    int status = 0;
    for (ssize_t n; status == 0 && (n = getline(&line, &cap, stdin)) > 0;) {
        json_t *v = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);
        status = v ? pay(p, self, v) : refuse("standard input", "no JSON");
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
    services = (struct rlhf__services){.phase = -1, .failure = &failure};
    rlhf__note_init(&failure);
    rlhf_test_init(&host, 1);
    int status = !config || rlhf__row_service_init(&rows, &services, NULL) != RLHF_OK;
    if (status == 0) rlhf_test_offer(&host, RLHF_SVC_ROW, &rows.table);
    if (!p->create) self = config;
    if (status == 0 && p->create) {
        status = p->create(&host.table, config, &self) < 0;
        if (status) refuse("create", host.fail_text);
    }
    if (status == 0) status = pay_all(p, self);
    if (p->destroy) p->destroy(self);
    rlhf__note_finish(&failure);
    free(config);
    return status;
}
