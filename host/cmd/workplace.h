// workplace.h: what a command beside the training run (generate, eval, label, pairs) begins with:
// plugins, a terminal bar, compute and services, and the model that --model names.
#ifndef RLHF_HOST_WORKPLACE_H
#define RLHF_HOST_WORKPLACE_H

#include "base/env.h"
#include "base/file.h"
#include "cmd/flags.h"
#include "data/lines.h"
#include "model/session.h"
#include "report/progress.h"

// What commands that read rows take beside those below.
#define RLHF__TEMPLATE_FLAG(T)                                                                     \
    RLHF__FLAG_S(T, "--template", template, "NAME",                                                \
                 "chat template of messages: chatml, llama2, ... [auto: the model's own]")

// --adapter, --threads, --backend, --gpu and --dtype. A command has it in its options as `at`, and
// lists the rows last.
struct rlhf__workplace_flags {
    const char *backend, *dtype, *adapter;
    int64_t threads, gpu;
};

#define RLHF__WORKPLACE_DEFAULTS                                                                   \
    { "auto", "auto", NULL, 0, 0 }
#define RLHF__WORKPLACE_FLAGS(T)                                                                   \
    RLHF__FLAG_S(T, "--adapter", at.adapter, "DIR",                                                \
                 "adapter on the model, as PEFT or a run wrote it"),                               \
        RLHF__FLAG_I(T, "--threads", at.threads, "N", 0, 1024, "CPU threads; 0: one a core [0]"),  \
        RLHF__FLAG_S(T, "--backend", at.backend, "NAME",                                           \
                     "kernels: auto, cpu, cuda, reference or a file [auto]"),                      \
        RLHF__FLAG_I(T, "--gpu", at.gpu, "N", 0, 1023, "which GPU [0]"),                           \
        RLHF__FLAG_S(T, "--dtype", at.dtype, "T", "auto, f32 or bf16 [auto]")

// Zero-initialise; release with rlhf__workplace_finish, also after a failure. Stays where it is.
struct rlhf__workplace {
    const struct rlhf__env *env;
    struct rlhf__plugins *plugins;
    struct rlhf__progress *progress;
    struct rlhf__compute_config compute;
    struct rlhf__session session;
    struct rlhf__model_adapter adapter; // of the model that --model names
    int64_t threads;
    char adapter_room[RLHF__PATH_CAP]; // of adapter.dir, where --adapter names a run
};

// Plugins and the bar (enum rlhf__progress_kind); flags are checked. Errors: RLHF_E_INVALID names
// the flag. [main]
rlhf_status rlhf__workplace_init(struct rlhf__workplace *, const struct rlhf__env *,
                                 const struct rlhf__workplace_flags *, int32_t progress,
                                 struct rlhf__error *err);

// Then compute and services; seed is that of the draws. [main]
rlhf_status rlhf__workplace_start(struct rlhf__workplace *, int64_t seed, struct rlhf__error *err);

void rlhf__workplace_finish(struct rlhf__workplace *); // accepts a zeroed one [main]

// What bounds and watches the loading of rows: --max-mib. [any]
struct rlhf__loading rlhf__workplace_loading(const struct rlhf__workplace *, int64_t max_mib);

// *dir = the directory that --model gave, of a run its best checkpoint or its last, which the log
// says; when it was not given, of the model that comes with the program under that name. It may lie
// in `room`. "" with --adapter alone, which says it. Errors: RLHF_E_INVALID: a run without a
// checkpoint. [main]
rlhf_status rlhf__workplace_dir(const struct rlhf__workplace *w, const char *given,
                                const char *name, char room[RLHF__PATH_CAP], const char **dir,
                                struct rlhf__error *err);

// st of opening that directory; with --model in front of the message when it was bad input. [any]
rlhf_status rlhf__workplace_opened(const char *given, rlhf_status st, struct rlhf__error *err);

// The configuration of the run that the model at `dir` (its adapter, where it has one) is a
// checkpoint of, or NULL: of none. New reference. [main]
rlhf_status rlhf__workplace_run_config(const struct rlhf__workplace *, const char *dir,
                                       json_t **out, struct rlhf__error *err);

// Take the chat template that --template names (NULL = it was not given). Errors: those of
// rlhf__chat_name. [main]
rlhf_status rlhf__workplace_template(const struct rlhf__model *, const char *name,
                                     struct rlhf__error *err);

// Refuse a --template that was given where `chats`, the number of rows with messages, is 0. [any]
rlhf_status rlhf__workplace_template_used(const char *command, const char *name, int64_t chats,
                                          struct rlhf__error *err);

// The language model of --model (or the default policy), frozen, and able to write. Close it before
// the workplace is finished. [main]
rlhf_status rlhf__workplace_writer(struct rlhf__workplace *, const char *given,
                                   struct rlhf__model **out, struct rlhf__error *err);

// The language model that --reference gave, a directory or a run, frozen: its vocabulary is
// `model`'s. Close it before `model`. [main]
rlhf_status rlhf__workplace_reference(struct rlhf__workplace *, const char *given,
                                      const struct rlhf__model *model, struct rlhf__model **out,
                                      struct rlhf__error *err);

#endif
