// command_setup.h: the set-up that commands other than training share (generate, eval, label,
// pairs): plugins, a terminal bar, compute and services, and the model that --model names.
#ifndef RLHF_HOST_COMMAND_SETUP_H
#define RLHF_HOST_COMMAND_SETUP_H

#include "base/env.h"
#include "base/file.h"
#include "cmd/flags.h"
#include "data/lines.h"
#include "model/session.h"
#include "report/progress.h"

// Additional flags of commands that read rows.
#define RLHF__TEMPLATE_FLAG(T)                                                                     \
    RLHF__FLAG_S(T, "--template", template, "NAME",                                                \
                 "chat template of messages: chatml, llama2, ... [auto: the model's own]")

// --adapter, --threads, --backend, --gpu and --dtype. A command has this struct as member `at` of
// its options and lists these flags last.
struct rlhf__command_setup_flags {
    const char *backend, *dtype, *adapter;
    int64_t threads, gpu;
};

#define RLHF__COMMAND_SETUP_DEFAULTS                                                               \
    { "auto", "auto", NULL, 0, 0 }
#define RLHF__COMMAND_SETUP_FLAGS(T)                                                               \
    RLHF__FLAG_S(T, "--adapter", at.adapter, "DIR",                                                \
                 "adapter on the model, as PEFT or a run wrote it"),                               \
        RLHF__FLAG_I(T, "--threads", at.threads, "N", 0, 1024, "CPU threads; 0: one a core [0]"),  \
        RLHF__FLAG_S(T, "--backend", at.backend, "NAME",                                           \
                     "kernels: auto, cpu, cuda, reference or a file [:key=value,...] [auto]"),     \
        RLHF__FLAG_I(T, "--gpu", at.gpu, "N", 0, 1023, "which GPU [0]"),                           \
        RLHF__FLAG_S(T, "--dtype", at.dtype, "T", "auto, f32 or bf16 [auto]")

// Zero-initialise; release with rlhf__command_setup_finish, also after a failure. Must not move.
struct rlhf__command_setup {
    const struct rlhf__env *env;
    struct rlhf__plugins *plugins;
    struct rlhf__progress *progress;
    struct rlhf__compute_config compute;
    struct rlhf__session session;
    struct rlhf__model_adapter adapter; // for the model that --model names
    int64_t threads;
    char adapter_room[RLHF__PATH_CAP]; // storage for adapter.dir if --adapter names a run
};

// Open plugins and the bar (enum rlhf__progress_kind), and check the flags. Errors: RLHF_E_INVALID
// names the flag. [main]
rlhf_status rlhf__command_setup_init(struct rlhf__command_setup *, const struct rlhf__env *,
                                     const struct rlhf__command_setup_flags *, int32_t progress,
                                     struct rlhf__error *err);

// Then open compute and services; seed is for the random numbers. [main]
rlhf_status rlhf__command_setup_start(struct rlhf__command_setup *, int64_t seed,
                                      struct rlhf__error *err);

void rlhf__command_setup_finish(struct rlhf__command_setup *); // accepts a zeroed one [main]

// The memory limit (--max-mib) and the progress of loading rows. [any]
struct rlhf__loading rlhf__command_setup_loading(const struct rlhf__command_setup *,
                                                 int64_t max_mib);

// *dir = the model's directory. It is the one that --model gave; if that is a run, the run's best
// checkpoint or else its last one, which is logged. Without --model it is the shipped model `name`.
// With --adapter alone it is "", because the adapter's config names the model. *dir may point into
// `room`. Errors: RLHF_E_INVALID: a run without a checkpoint. [main]
rlhf_status rlhf__command_setup_dir(const struct rlhf__command_setup *w, const char *given,
                                    const char *name, char room[RLHF__PATH_CAP], const char **dir,
                                    struct rlhf__error *err);

// After an attempt to open that directory with result st: if the input was bad, prefix the message
// with --model. Returns st. [any]
rlhf_status rlhf__command_setup_opened(const char *given, rlhf_status st, struct rlhf__error *err);

// *out = the configuration of the run that wrote the checkpoint in `dir` (of the adapter, if the
// model has one). NULL if it is not a checkpoint. New reference. [main]
rlhf_status rlhf__command_setup_run_config(const struct rlhf__command_setup *, const char *dir,
                                           json_t **out, struct rlhf__error *err);

// Use the chat template that --template names (NULL = not given). Errors: those of rlhf__chat_name.
// [main]
rlhf_status rlhf__command_setup_template(const struct rlhf__model *, const char *name,
                                         struct rlhf__error *err);

// Refuse a given --template if `chats`, the number of rows with messages, is 0. [any]
rlhf_status rlhf__command_setup_template_used(const char *command, const char *name, int64_t chats,
                                              struct rlhf__error *err);

// Open the language model of --model (or the default policy), frozen; it must be able to generate.
// Close it before the command's set-up is finished. [main]
rlhf_status rlhf__command_setup_writer(struct rlhf__command_setup *, const char *given,
                                       struct rlhf__model **out, struct rlhf__error *err);

// Open the language model that --reference gave, a directory or a run, frozen. Its vocabulary must
// be `model`'s. Close it before `model`. [main]
rlhf_status rlhf__command_setup_reference(struct rlhf__command_setup *, const char *given,
                                          const struct rlhf__model *model, struct rlhf__model **out,
                                          struct rlhf__error *err);

#endif
