// command_setup.h: the set-up that `generate`, `eval`, `label` and `pairs` share: plugins, a
// progress bar on the terminal, compute and services, and the model that --model names.
#ifndef RLHF_HOST_CMD_COMMAND_SETUP_H
#define RLHF_HOST_CMD_COMMAND_SETUP_H

#include "base/env.h"
#include "base/file.h"
#include "cmd/flags.h"
#include "data/lines.h"
#include "model/session.h"
#include "report/progress.h"
#include "service/text_services.h"

// The flags --template, --template-vars and --date of commands that read rows. A command's struct
// of options contains a struct rlhf__chat_choice as member `chat`.
#define RLHF__CHAT_FLAGS(T)                                                                        \
    RLHF__FLAG_S(T, "--template", chat.name, "NAME",                                               \
                 "chat template of messages: chatml, llama2, ... [auto: the model's own]"),        \
        RLHF__FLAG_S(T, "--template-vars", chat.vars, "JSON",                                      \
                     "variables of the chat template: {\"enable_thinking\": false}"),              \
        RLHF__FLAG_S(T, "--date", chat.date, "DATE",                                               \
                     "date that the chat template writes as today's: 2026-11-28")

// The flags --adapter, --threads, --backend, --gpu and --dtype. A command's struct of options
// contains this struct as member `at`. The command's list of flags ends with these five.
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

// Zero-initialize; release with rlhf__command_setup_finish, even after a failure. Do not move the
// struct.
struct rlhf__command_setup {
    const struct rlhf__env *env;
    struct rlhf__plugins *plugins;
    struct rlhf__progress *progress;
    struct rlhf__compute_config compute;
    struct rlhf__session session;
    struct rlhf__text_services *served; // the models that plugins open
    struct rlhf__model_adapter adapter; // for the model that --model names
    int64_t threads;
    // 1: models use all rows of the embedding, as in training on texts; tokens_only (model/model.h)
    // is then 0
    int32_t all_rows;
    char adapter_room[RLHF__PATH_CAP]; // storage for adapter.dir if --adapter names a run
};

// Open plugins and the progress bar (progress is an enum rlhf__progress_kind), and check the flags.
// Errors: RLHF_E_INVALID, with the flag's name. [main]
rlhf_status rlhf__command_setup_init(struct rlhf__command_setup *, const struct rlhf__env *,
                                     const struct rlhf__command_setup_flags *, int32_t progress,
                                     struct rlhf__error *err);

// Open compute and services; call this after _init. `seed` is the seed of the random numbers.
// [main]
rlhf_status rlhf__command_setup_start(struct rlhf__command_setup *, int64_t seed,
                                      struct rlhf__error *err);

void rlhf__command_setup_finish(struct rlhf__command_setup *); // accepts a zeroed one [main]

// Returns the memory limit (--max-mib) and the progress display for loading rows. [any]
struct rlhf__loading rlhf__command_setup_loading(const struct rlhf__command_setup *,
                                                 int64_t max_mib);

// Set *dir to the path of the model's directory. *dir may point into `room`, a buffer of the
// caller.
// - --model DIR: that directory. If DIR is a run, the run's best checkpoint or, without one, its
//   last checkpoint; the choice is logged.
// - --adapter without --model: "", because the adapter's config names the model.
// - neither flag: the shipped model `name`.
//
// Errors: RLHF_E_INVALID if a run lacks a checkpoint. [main]
rlhf_status rlhf__command_setup_dir(const struct rlhf__command_setup *w, const char *given,
                                    const char *name, char room[RLHF__PATH_CAP], const char **dir,
                                    struct rlhf__error *err);

// Call this with `st`, the result of opening the directory that rlhf__command_setup_dir found. If
// `st` means bad input and --model was given (`given` is not NULL), puts "--model" before the
// message in `err`. Returns `st`. [any]
rlhf_status rlhf__command_setup_opened(const char *given, rlhf_status st, struct rlhf__error *err);

// Set *out to the configuration of the run that wrote the checkpoint in `dir` (a new reference), or
// to NULL if `dir` is not a run's checkpoint. For a model with an adapter, uses the run that wrote
// the adapter. [main]
rlhf_status rlhf__command_setup_run_config(const struct rlhf__command_setup *, const char *dir,
                                           json_t **out, struct rlhf__error *err);

// The names of these flags. [any]
const struct rlhf__chat_choice *rlhf__command_setup_chat_flags(void);

// Use the chat template, variables and date that the flags give. Errors: those of
// rlhf__chat_choose. [main]
rlhf_status rlhf__command_setup_template(const struct rlhf__model *,
                                         const struct rlhf__chat_choice *, struct rlhf__error *err);

// Checks these flags before a model is opened, as far as that is possible without one. Errors:
// RLHF_E_INVALID, with the flag's name. [any]
rlhf_status rlhf__command_setup_chat_check(const struct rlhf__chat_choice *,
                                           struct rlhf__error *err);

// 1 if one of the flags is given. [any]
int rlhf__command_setup_chat_given(const struct rlhf__chat_choice *);

// Reject such a flag without effect: `reason` ends the message. [any]
rlhf_status rlhf__command_setup_chat_idle(const char *command, const struct rlhf__chat_choice *,
                                          const char *reason, struct rlhf__error *err);

// The same if `chats`, the number of prompts or rows that use the template, is 0. [any]
rlhf_status rlhf__command_setup_template_used(const char *command, const struct rlhf__chat_choice *,
                                              int64_t chats, struct rlhf__error *err);

// Open the language model that --model names, or else the default policy. The model is frozen.
// Fails if it cannot generate. Close the model before calling _finish. [main]
rlhf_status rlhf__command_setup_writer(struct rlhf__command_setup *, const char *given,
                                       struct rlhf__model **out, struct rlhf__error *err);

// Open a second frozen language model. The flag --<role> names its directory or run. The second
// model must have the same vocabulary as `model`. Close the second model before `model`. [main]
rlhf_status rlhf__command_setup_second(struct rlhf__command_setup *, const char *role,
                                       const char *given, const struct rlhf__model *model,
                                       struct rlhf__model **out, struct rlhf__error *err);

// Open a frozen language model as the reference. --reference names its directory or run. The
// reference must have the same vocabulary as `model`. Close the reference before `model`. [main]
rlhf_status rlhf__command_setup_reference(struct rlhf__command_setup *, const char *given,
                                          const struct rlhf__model *model, struct rlhf__model **out,
                                          struct rlhf__error *err);

// Open the critic stored in the checkpoint `dir`. Sets *out to NULL if the checkpoint lacks a value
// head (state/value_head.safetensors). Close the critic before calling _finish. [main]
rlhf_status rlhf__command_setup_critic(struct rlhf__command_setup *, const char *dir,
                                       struct rlhf__model **out, struct rlhf__error *err);

#endif
