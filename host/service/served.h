// served.h: the models that plugins have opened through one service. Plugins that open the same
// directory share a model. The host reaches each model to load it, to estimate its memory and to
// list its files.
#ifndef RLHF_HOST_SERVICE_SERVED_H
#define RLHF_HOST_SERVICE_SERVED_H

#include "batch/rows.h"
#include "model/model.h"
#include "plugin/service_args.h"

struct rlhf__served_list;

// The first member of the service's object (rlhf_classifier and so on).
struct rlhf__served {
    struct rlhf__served *next;
    const struct rlhf__served_list *list;
    char *dir; // absolute path of the directory that was asked for
    int64_t users;
    struct rlhf__model *model;
};

// What differs between services.
struct rlhf__served_kind {
    const char *id;   // of the service
    const char *name; // "classifier", for messages
    size_t size;      // of the service's object
    // Opens the model of `dir`: sets o->model and the members after it. `how` is the argument of
    // rlhf__served_open.
    rlhf_status (*open)(struct rlhf__served *o, const char *dir, const void *how,
                        struct rlhf__error *err);
    void (*close)(struct rlhf__served *o); // closes what `open` opened, also in part
    // Makes the largest call of the service for these rows of a run, with `m` as the model, which
    // is on a memory plan.
    rlhf_status (*largest)(const struct rlhf__served *o, const struct rlhf__model *m,
                           const struct rlhf__rows *, struct rlhf__error *err);
};

struct rlhf__served_list {
    const struct rlhf__served_kind *kind;
    const struct rlhf__model_env *env;
    char *default_dir;          // for the path NULL or "default"
    struct rlhf__served *first; // in the order of opening
};

// Initialize a list. Release it with rlhf__served_finish, which closes models that are still open.
// Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__served_init(struct rlhf__served_list *, const struct rlhf__served_kind *,
                              const struct rlhf__model_env *, const char *default_dir,
                              struct rlhf__error *err);
void rlhf__served_finish(struct rlhf__served_list *); // accepts a zeroed struct [main]

// Open the model of a directory or a run, or find the open one. A failure is reported to `host`.
// [main]
rlhf_status rlhf__served_open(struct rlhf__served_list *, const rlhf_host *host, const char *path,
                              const void *how, struct rlhf__served **out);
// End one use of `o`. The last use closes the model. [main]
void rlhf__served_close(struct rlhf__served_list *, struct rlhf__served *o);

// Returns the i-th open model, or NULL past the end. [main]
struct rlhf__served *rlhf__served_at(const struct rlhf__served_list *, size_t i);

// ---- calls that several services have ----

// encode() and decode() with `tok`. `flags` has bits of enum rlhf__encode_flag. [any]
rlhf_status rlhf__served_encode(const rlhf_host *host, const struct rlhf__tokenizer *tok,
                                rlhf_str text, uint32_t flags, rlhf_encode_out *to);
rlhf_status rlhf__served_decode(const rlhf_host *host, const struct rlhf__tokenizer *tok,
                                const rlhf_decode_in *how, rlhf_decode_out *to);
// Writes the ids that fit, and sets to->n to the number of all ids. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__served_ids(const rlhf_host *host, const struct rlhf__ids *found,
                             rlhf_encode_out *to);

// Check the ids of n ragged rows for a model: they are in its vocabulary. Errors: RLHF_E_INVALID.
// [any]
rlhf_status rlhf__served_check_ids(const struct rlhf__served *, uint32_t n, const int32_t *ids,
                                   const int32_t *offset, struct rlhf__error *err);

#endif
