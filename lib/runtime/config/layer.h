// layer.h: applies one source of settings to a config. For use in config/ only.
#ifndef RLHF_HOST_CONFIG_LAYER_H
#define RLHF_HOST_CONFIG_LAYER_H

#include "config/schema.h"
#include "option/nearest.h"

// A parsed source of settings.
struct rlhf__layer {
    const char *source;    // for messages: the file as the user wrote it, or "--set"
    struct rlhf__buf text; // the source's text, needed for line numbers
    json_t *json;          // an object
    int32_t users;         // 1: a user's file; its settings count as given by the user
};

// Read a file. Its top level must be an object. [main]
rlhf_status rlhf__layer_load(const char *path, struct rlhf__layer *out, struct rlhf__error *err);
void rlhf__layer_finish(struct rlhf__layer *l);

// Write every value of the layer to `c`. If the layer names an algorithm other than `algo_stem`
// ("ppo"), the layer's algorithm options are skipped. [main]
rlhf_status rlhf__layer_apply(const struct rlhf__layer *l, const char *algo_stem,
                              struct rlhf__config *c, struct rlhf__error *err);

// Offer the names of all sections, those of plugins included. [any]
void rlhf__layer_offer_sections(struct rlhf__nearest *);

// Apply "path.to.key=value" to `c`. `flag` is "--set" or its short form, for messages. [main]
rlhf_status rlhf__layer_set(const char *flag, const char *assignment, struct rlhf__config *c,
                            struct rlhf__error *err);

// Record that section.key was given by a flag (typed = 1) or in a file. [main]
rlhf_status rlhf__layer_given(struct rlhf__config *c, const char *section, const char *key,
                              const char *source, int typed, struct rlhf__error *err);

// Returns the flag that gave section.key, or NULL if no flag did. The text lives as long as
// c->given. [main]
const char *rlhf__layer_typed_by(const struct rlhf__config *c, const char *section,
                                 const char *key);

// Apply "X.so[:k=v,...]", typed with `flag`, to `p`: set the plugin's name, and add each option
// with its raw text and its parsed value. [main]
rlhf_status rlhf__spec_apply(const char *spec, const char *flag, struct rlhf__plugin_config *p,
                             struct rlhf__config *c, struct rlhf__error *err);

// Write the short name of a plugin to `out`, which has `cap` bytes: "imdb" for "/x/imdb.so" or
// "imdb.so:weight=1". [any]
void rlhf__plugin_stem(const char *name, char *out, size_t cap);

// Append a zeroed entry to c->reward. Returns the entry, or NULL if memory runs out. [main]
struct rlhf__plugin_config *rlhf__reward_add(struct rlhf__config *c);

// Do the same for c->sink. [main]
struct rlhf__plugin_config *rlhf__sink_add(struct rlhf__config *c);

// Free all entries of c->reward or c->sink. [main]
void rlhf__rewards_clear(struct rlhf__config *c);
void rlhf__sinks_clear(struct rlhf__config *c);

// Write the name of reward i's section for messages: "reward.0", or "judge.0" if the flag --judge
// named the reward, as in `rlhf-host pairs`. [any]
void rlhf__reward_section(const struct rlhf__plugin_config *p, size_t i, char out[32]);

// Call this before setting the plugin of *p (the judge or the environment) to `name`. If *p has a
// plugin of another name, drops the options of that plugin. [main]
void rlhf__layer_name(struct rlhf__plugin_config *p, const char *name);

// Free what an entry owns and zero it. [any]
void rlhf__plugin_config_clear(struct rlhf__plugin_config *p);

// Set `isolate` or `network` of a plugin entry. Returns 1 if `v` is true or false, otherwise 0.
// [any]
int rlhf__layer_switch(struct rlhf__plugin_config *p, const char *key, const json_t *v);

#endif
