// tuned_defaults.c: rlhf__say_tuned_defaults of setup.h.
#include "setup/setup.h"

#include "config/layer.h"
#include "model/parameters.h"

#include <stdio.h>
#include <string.h>

// The parameters of the default policy, on which the defaults of optim.lr, of the KL penalty and of
// the sizes of a phase were chosen. The best learning rate falls as models get wider, so these
// defaults say little about a model with more than FAR times as many parameters.
#define TUNED_ON 7.6e6
#define FAR      4

// Presets for chat models, by the stem of their algorithm.
static const char *chat_preset(const struct rlhf__config *c) {
    char stem[64];
    rlhf__plugin_stem(c->algo.plugin, stem, sizeof stem);
    if (strcmp(stem, "sft") == 0) return "chat-sft";
    if (strcmp(stem, "dpo") == 0) return "chat-dpo";
    if (strcmp(stem, "grpo") != 0) return NULL;
    return c->policy.adapter_rank > 0 || c->policy.adapter_path[0] ? "chat-lora" : "chat-grpo";
}

static int is_given(const struct rlhf__config *c, const char *path) {
    return json_object_get(c->given, path) != NULL;
}

// Returns 1 if the user chose this option of the algorithm, by a flag or in a file.
static int is_chosen(const struct rlhf__config *c, const char *key) {
    const json_t *from = json_object_get(c->algo.origin, key);
    return json_object_get(from, "raw") || json_object_get(from, "file");
}

static void append(struct rlhf__buf *list, const char *path, double value) {
    rlhf__buf_printf(list, ", %s %g", path, value);
}

// List the settings that are defaults: "optim.lr 0.0001, batch.size 128".
static void list_defaults(const struct rlhf__run *r, struct rlhf__buf *list) {
    static const char *const penalties[] = {"kl_coef", "beta"};
    const struct rlhf__config *c = r->config;
    const int rollout = r->cast.plan.source == RLHF_SOURCE_ROLLOUT;
    rlhf__buf_printf(list, "optim.lr %g", c->optim.lr);
    for (size_t i = 0; i < sizeof penalties / sizeof *penalties; i++) {
        const json_t *v = json_object_get(c->algo.options, penalties[i]);
        char path[32];
        if (!json_is_number(v) || is_chosen(c, penalties[i]) || is_chosen(c, "kl_placement"))
            continue;
        snprintf(path, sizeof path, "algo.%s", penalties[i]);
        append(list, path, json_number_value(v));
    }
    if (!is_given(c, "batch.size") && c->data.batch_tokens == 0)
        append(list, "batch.size", (double)c->batch.size);
    if (rollout && !is_given(c, "sampling.max_new_tokens"))
        append(list, "sampling.max_new_tokens", (double)c->sampling.max_new_tokens);
}

void rlhf__say_tuned_defaults(const struct rlhf__run *r) {
    const struct rlhf__config *c = r->config;
    const struct rlhf__model *m = r->cast.policy;
    const char *preset = chat_preset(c);
    double n = 0;
    if (r->req->resume || r->req->recorded || c->run.preset[0] || is_given(c, "optim.lr")) return;
    for (uint32_t i = 0; m && i < m->n_tensors; i++)
        if (m->params[i].group == RLHF_PARAM_TRUNK) n += (double)rlhf__param_count(&m->params[i]);
    if (n <= FAR * TUNED_ON) return;
    struct rlhf__buf list = RLHF__BUF_INIT;
    list_defaults(r, &list);
    rlhf__logf(
        r->report.log, RLHF_LOG_INFO,
        "these settings are defaults, tuned on a model of %.3g million parameters (the policy "
        "has %.4g million): %s; %s%s (docs/your-chat-model.md)",
        TUNED_ON / 1e6, n / 1e6, rlhf__buf_text(&list),
        preset ? "for a chat model use --preset " : "set them for this model",
        preset ? preset : "");
    rlhf__buf_finish(&list);
}
