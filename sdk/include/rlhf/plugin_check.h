// rlhf/plugin_check.h: checks that a plugin's functions are consistent; shared by the host and
// tests.
//
// Plugins do not need this header. It is not part of the contract and may change in any version.
#ifndef RLHF_PLUGIN_CHECK_H
#define RLHF_PLUGIN_CHECK_H

#include "algo.h"
#include "environment.h"
#include "model.h"
#include "option_check.h"
#include "plugin.h"
#include "reward.h"
#include "sink.h"

// All flags of an ops table that its header defines.
#define RLHF_REWARD_KNOWN      (2 * RLHF_REWARD_FUNCTION - 1)
#define RLHF_ENVIRONMENT_KNOWN (2 * RLHF_ENVIRONMENT_FUNCTION - 1)

// Returns the size in bytes of a kind's ops table in its first version. The tables of models and
// kernels have only the version of these headers. [any]
static inline uint32_t rlhf_ops_first_size(uint32_t kind) {
    return kind == RLHF_KIND_ALGO          ? RLHF_SIZE_TO(rlhf_algo_ops, choose_prompts)
           : kind == RLHF_KIND_REWARD      ? RLHF_SIZE_TO(rlhf_reward_ops, check_row)
           : kind == RLHF_KIND_ENVIRONMENT ? RLHF_SIZE_TO(rlhf_environment_ops, close)
           : kind == RLHF_KIND_SINK        ? RLHF_SIZE_TO(rlhf_sink_ops, end)
           : kind == RLHF_KIND_KERNELS     ? (uint32_t)sizeof(rlhf_kernels_ops)
                                           : (uint32_t)sizeof(rlhf_model_ops);
}

// Returns the flags that the ops table of a descriptor sets and its header does not define. [any]
static inline uint32_t rlhf_ops_unknown_flags(const rlhf_plugin *d) {
    uint32_t head[2]; // size and flags, the first members of each ops table
    memcpy(head, d->ops, sizeof head);
    return head[1] & ~(d->kind == RLHF_KIND_REWARD        ? (uint32_t)RLHF_REWARD_KNOWN
                       : d->kind == RLHF_KIND_ENVIRONMENT ? (uint32_t)RLHF_ENVIRONMENT_KNOWN
                                                          : 0);
}

// Returns the oldest minor version of a host that a plugin runs on, if the plugin was built with
// this minor version. [any]
static inline uint32_t rlhf_plugin_oldest_host(const rlhf_plugin *d, uint32_t built_with) {
    return d->host_minor_min ? d->host_minor_min - 1 : built_with;
}

// Returns whether an id has the form of rlhf_plugin.id; NULL has not. [any]
static inline int rlhf_plugin_id_is_valid(const char *id) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const char *part = id;
    size_t n = 0, parts = 1;
    if (!id || strlen(id) > 127) return 0;
    while ((n = strspn(part, allowed)) > 0 && part[n] == '.') {
        part += n + 1;
        parts++;
    }
    return n > 0 && !part[n] && parts >= 2;
}

// Limits of the texts of a descriptor, in bytes (plugin.h).
#define RLHF_PLUGIN_VERSION_MAX 63
#define RLHF_PLUGIN_TEXT_MAX    1023

// Checks a text of a descriptor or bundle; NULL is valid. If it breaks a rule of plugin.h, writes
// the error, after "has", to out[cap] and returns the length; otherwise returns 0. The error may
// contain bytes of the text. [any]
static inline int rlhf_plugin_text_refused(const char *name, const char *text, size_t most,
                                           char *out, size_t cap) {
    if (text && strlen(text) > most)
        return snprintf(out, cap, "a %s of %zu bytes; it must have at most %u", name, strlen(text),
                        (unsigned)most);
    return rlhf_x_text_is_plain(text)
               ? 0
               : snprintf(out, cap, "the %s \"%.60s\"; it must be UTF-8 without control characters",
                          name, text);
}

// Checks the texts of a descriptor (a copy) in the same way. version and summary are not NULL.
// [any]
static inline int rlhf_plugin_texts_refused(const rlhf_plugin *d, char *out, size_t cap) {
    const char *const name[] = {"summary", "vendor", "url", "license"};
    const char *const text[] = {d->summary, d->vendor, d->url, d->license};
    if (!*d->version)
        return snprintf(out, cap, "an empty version; it must be a text such as \"1.0\"");
    int bad = rlhf_plugin_text_refused("version", d->version, RLHF_PLUGIN_VERSION_MAX, out, cap);
    for (size_t i = 0; !bad && i < sizeof text / sizeof *text; i++)
        bad = rlhf_plugin_text_refused(name[i], text[i], RLHF_PLUGIN_TEXT_MAX, out, cap);
    return bad;
}

// Checks the functions of a descriptor (a copy, see rlhf_copy_in). Returns NULL if they are valid,
// or else the error, as text that follows the plugin's name in a message. [any]
static inline const char *rlhf_plugin_fault(const rlhf_plugin *d) {
    if ((d->state_version || d->save || d->load) && d->kind != RLHF_KIND_ALGO &&
        d->kind != RLHF_KIND_REWARD)
        return "has a state, which only algorithms and rewards may have; leave out save(), load() "
               "and state_version";
    if (d->state_version && !d->save) return "has a state_version but no save function";
    if (d->state_version && !d->load) return "has a state_version but no load function";
    if (!d->state_version && (d->save || d->load))
        return d->save && d->load
                   ? "has save() and load() but state_version 0, so nothing is saved: set "
                     "state_version to a number from 1 on for the format that save() writes"
               : d->save ? "has save() but neither load() nor a state_version"
                         : "has load() but neither save() nor a state_version";
    if (d->create) return NULL;
    if (d->destroy)
        return "has destroy() but no create(): without one there is no instance, and its functions "
               "get the config as self";
    return d->state_version
               ? "has a state_version but no create(): without an instance there is no state"
               : NULL;
}

// Each function checks the ops table of one kind (a copy), and returns NULL or the error like
// rlhf_plugin_fault. [any]
static inline const char *rlhf_algo_ops_fault(const rlhf_algo_ops *o) {
    return !o->plan   ? "lacks the required function plan()"
           : !o->loss ? "lacks the required function loss()"
                      : NULL;
}
static inline const char *rlhf_reward_ops_fault(const rlhf_reward_ops *o) {
    if ((o->flags & RLHF_REWARD_ROW_ALONE) && (o->flags & RLHF_REWARD_WHOLE_BATCH))
        return "sets RLHF_REWARD_ROW_ALONE and RLHF_REWARD_WHOLE_BATCH in the flags of its ops; a "
               "reward may set one of the two at most";
    return o->score ? NULL : "lacks the required function score()";
}
static inline const char *rlhf_environment_ops_fault(const rlhf_environment_ops *o) {
    if ((o->flags & RLHF_ENVIRONMENT_VARIES) && (o->flags & RLHF_ENVIRONMENT_FUNCTION))
        return "sets RLHF_ENVIRONMENT_VARIES and RLHF_ENVIRONMENT_FUNCTION in the flags of its "
               "ops; an environment may set one of the two at most";
    return o->step ? NULL : "lacks the required function step()";
}
static inline const char *rlhf_model_ops_fault(const rlhf_model_ops *o) {
    if (!o->open) return "lacks the required function open()";
    if (!o->info) return "lacks the required function info()";
    if (!o->param) return "lacks the required function param()";
    if (!o->refresh) return "lacks the required function refresh()";
    if (!o->forward) return "lacks the required function forward()";
    if (!o->fill_begin != !o->fill_end)
        return o->fill_begin ? "has fill_begin() but lacks the required function fill_end()"
                             : "has fill_end() but lacks the required function fill_begin()";
    if (o->fill_blocks && !o->fill_end)
        return "has fill_blocks() but lacks the required function fill_end()";
    if (!o->gen_open && !o->gen_step && !o->gen_close) return NULL;
    return !o->gen_open    ? "has functions to sample (gen_step(), gen_close()) but no gen_open()"
           : !o->gen_step  ? "has gen_open() but lacks the required function gen_step()"
           : !o->gen_close ? "has gen_open() but lacks the required function gen_close()"
                           : NULL;
}

static inline const char *rlhf_kernels_ops_fault(const rlhf_kernels_ops *o) {
    return !o->open    ? "lacks the required function open()"
           : !o->close ? "lacks the required function close()"
                       : NULL;
}
static inline const char *rlhf_sink_ops_fault(const rlhf_sink_ops *o) {
    return !o->begin   ? "lacks the required function begin()"
           : !o->phase ? "lacks the required function phase()"
                       : NULL;
}

#endif
