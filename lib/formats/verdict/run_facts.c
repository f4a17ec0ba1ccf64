// run_facts.c: see run_facts.h.
#include "verdict/run_facts.h"

#include <string.h>

static const json_t *get(const json_t *config, const char *group, const char *name) {
    return json_object_get(json_object_get(config, group), name);
}

static double number(const json_t *config, const char *group, const char *name) {
    const json_t *v = get(config, group, name);
    return json_is_number(v) ? json_number_value(v) : 0;
}

static int64_t count(const json_t *config, const char *group, const char *name) {
    const json_int_t n = json_integer_value(get(config, group, name));
    return n > 0 ? (int64_t)n : 0;
}

static void read_kl_limit(const json_t *config, struct rlhf__run_facts *out) {
    const char *by = json_string_value(get(config, "algo", "kl_controller"));
    const int adapts = by && strcmp(by, "adaptive") == 0;
    out->kl_setting = adapts ? "algo.kl_target" : "early_stop.kl";
    out->kl_limit =
        adapts ? number(config, "algo", "kl_target") : number(config, "early_stop", "kl");
}

static int is_text(const json_t *config, const char *group, const char *name, const char *text) {
    const char *own = json_string_value(get(config, group, name));
    return own && strcmp(own, text) == 0;
}

// Returns 1 if responses may end before the length limit, because the user set stop tokens or
// sampling.stop_at_eos is true. Returns -1 if responses always have full length, or if their texts
// are cut at a period. Returns 0 if the model's files decide this, because sampling.stop_at_eos is
// "auto".
static int32_t may_end(const json_t *config) {
    const json_t *at = get(config, "sampling", "stop_at_eos");
    const char *text = json_string_value(at);
    if (is_text(config, "response", "truncate", "period")) return -1;
    if (json_array_size(get(config, "sampling", "stop")) > 0) return 1;
    if (json_is_true(at) || (text && strcmp(text, "true") == 0)) return 1;
    return json_is_false(at) || (text && strcmp(text, "false") == 0) ? -1 : 0;
}

static int is_file(const char *plugin, const char *name) {
    const char *slash = plugin ? strrchr(plugin, '/') : NULL;
    return plugin && strcmp(slash ? slash + 1 : plugin, name) == 0;
}

static void read_rewards(const json_t *list, struct rlhf__run_facts *out) {
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) {
        const char *name = json_string_value(json_object_get(one, "name"));
        const json_t *weight = json_object_get(one, "weight");
        const char *plugin = json_string_value(json_object_get(one, "plugin"));
        const int length = is_file(plugin, "length.so");
        out->pays_length |= length;
        if (!name || out->n_rewards == RLHF__FACTS_REWARDS) continue;
        out->reward[out->n_rewards++] =
            (struct rlhf__paid){.name = name,
                                .weight = json_is_number(weight) ? json_number_value(weight) : 1,
                                .is_length = length,
                                .is_model = is_file(plugin, "bt_rm.so")};
    }
}

void rlhf__run_facts_read(const json_t *config, struct rlhf__run_facts *out) {
    *out = (struct rlhf__run_facts){.phases = count(config, "run", "phases"),
                                    .max_new_tokens = count(config, "sampling", "max_new_tokens"),
                                    .max_grad_norm = number(config, "optim", "max_grad_norm"),
                                    .may_end = may_end(config),
                                    .plays = json_is_object(json_object_get(config, "environment")),
                                    .unbound = is_text(config, "algo", "kl_placement", "none"),
                                    .holds = json_is_number(get(config, "algo", "kl_coef")),
                                    .goes_on = is_text(config, "run", "stop_on", "none"),
                                    .stops = json_array_size(get(config, "sampling", "stop")) > 0,
                                    .kl_coef = number(config, "algo", "kl_coef"),
                                    .lr = number(config, "optim", "lr"),
                                    .batch_size = count(config, "batch", "size")};
    if (is_text(config, "optim", "kind", "muon")) out->muon_lr = number(config, "optim", "muon_lr");
    read_kl_limit(config, out);
    read_rewards(json_object_get(config, "reward"), out);
}
