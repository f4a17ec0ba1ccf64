// command_setup.c: see command_setup.h.
#include "cmd/command_setup.h"

#include "base/json.h"
#include "model/parameters.h"
#include "weights/run_checkpoint.h"

#include <stdio.h>
#include <string.h>

rlhf_status rlhf__command_setup_init(struct rlhf__command_setup *w, const struct rlhf__env *env,
                                     const struct rlhf__command_setup_flags *flags,
                                     int32_t progress, struct rlhf__error *err) {
    memset(w, 0, sizeof *w);
    w->env = env;
    w->threads = flags->threads;
    w->compute.backend = flags->backend;
    w->adapter.dir = flags->adapter;
    w->compute.gpu = flags->gpu;
    w->compute.memory_check = 1;
    if (w->adapter.dir)
        RLHF_TRY(rlhf__run_model("--adapter", &w->adapter.dir, w->adapter_room, env->log, err));
    RLHF_TRY(rlhf__dtype_choice(flags->dtype, "--dtype", &w->compute.dtype, err));
    RLHF_TRY(rlhf__progress_open(progress, env->log, &w->progress, err));
    return rlhf__plugins_open(env->dirs, &w->plugins, err);
}

rlhf_status rlhf__command_setup_start(struct rlhf__command_setup *w, int64_t seed,
                                      struct rlhf__error *err) {
    struct rlhf__run_config run = {.seed = seed, .threads = w->threads};
    rlhf__progress_note(w->progress, "loading the model");
    RLHF_TRY(rlhf__session_init(&w->session, w->env->dirs, w->env->log, w->env->cancelled,
                                w->plugins, &w->compute, &run, err));
    RLHF_TRY(rlhf__text_services_open(&w->session.models, w->env->dirs, &w->served, err));
    const struct rlhf__compute *found = w->session.compute;
    if (found->passed_over[0])
        rlhf__logf(w->env->log, found->passed_level, "no GPU is used: %s", found->passed_over);
    if (w->compute.gpu && found->table->device == RLHF_DEVICE_CPU)
        return rlhf__fail(err, RLHF_E_INVALID, "--gpu has no effect here: no GPU is used");
    return RLHF_OK;
}

void rlhf__command_setup_finish(struct rlhf__command_setup *w) {
    rlhf__text_services_close(w->served);
    rlhf__session_finish(&w->session);
    rlhf__progress_close(w->progress);
    rlhf__plugins_close(w->plugins);
}

struct rlhf__loading rlhf__command_setup_loading(const struct rlhf__command_setup *w,
                                                 int64_t max_mib) {
    return (struct rlhf__loading){.max_mib = max_mib,
                                  .setting = "--max-mib",
                                  .cancelled = w->env->cancelled,
                                  .watch = rlhf__progress_watch(w->progress)};
}

rlhf_status rlhf__command_setup_dir(const struct rlhf__command_setup *w, const char *given,
                                    const char *name, char room[RLHF__PATH_CAP], const char **dir,
                                    struct rlhf__error *err) {
    *dir = given ? given : w->adapter.dir ? "" : room;
    if (given) {
        *dir = rlhf__dirs_shared(w->env->dirs, given, room);
        return rlhf__run_model("--model", dir, room, w->env->log, err);
    }
    if (*dir == room) rlhf__default_model(w->env->dirs, name, room);
    return RLHF_OK;
}

rlhf_status rlhf__command_setup_opened(const char *given, rlhf_status st, struct rlhf__error *err) {
    const int bad = st == RLHF_E_INVALID || st == RLHF_E_UNSUPPORTED;
    return given && bad ? rlhf__error_context(err, "--model") : st;
}

rlhf_status rlhf__command_setup_run_config(const struct rlhf__command_setup *w, const char *dir,
                                           json_t **out, struct rlhf__error *err) {
    char run[RLHF__PATH_CAP];
    *out = NULL;
    RLHF_TRY(rlhf__run_above(w->adapter.dir ? w->adapter.dir : dir, run, err));
    return run[0] ? rlhf__json_load_any(run, "config.json", out, err) : RLHF_OK;
}

const struct rlhf__chat_choice *rlhf__command_setup_chat_flags(void) {
    static const struct rlhf__chat_choice flags = {"--template", "--template-vars", "--date"};
    return &flags;
}

rlhf_status rlhf__command_setup_template(const struct rlhf__model *m,
                                         const struct rlhf__chat_choice *chat,
                                         struct rlhf__error *err) {
    return rlhf__tokenizer_choose_chat(m->tok, chat, rlhf__command_setup_chat_flags(), err);
}

rlhf_status rlhf__command_setup_chat_check(const struct rlhf__chat_choice *chat,
                                           struct rlhf__error *err) {
    return rlhf__chat_check_choice(chat, rlhf__command_setup_chat_flags(), err);
}

int rlhf__command_setup_chat_given(const struct rlhf__chat_choice *chat) {
    return chat->name || chat->vars || chat->date;
}

rlhf_status rlhf__command_setup_chat_idle(const char *command, const struct rlhf__chat_choice *chat,
                                          const char *reason, struct rlhf__error *err) {
    const struct rlhf__chat_choice *flags = rlhf__command_setup_chat_flags();
    const struct rlhf__flag_idle idle[] = {{flags->name, chat->name != NULL},
                                           {flags->vars, chat->vars != NULL},
                                           {flags->date, chat->date != NULL}};
    return rlhf__flags_idle(idle, 3, command, reason, err);
}

rlhf_status rlhf__command_setup_template_used(const char *command,
                                              const struct rlhf__chat_choice *chat, int64_t chats,
                                              struct rlhf__error *err) {
    return chats ? RLHF_OK
                 : rlhf__command_setup_chat_idle(command, chat, "here: no row has messages", err);
}

rlhf_status rlhf__command_setup_writer(struct rlhf__command_setup *w, const char *given,
                                       struct rlhf__model **out, struct rlhf__error *err) {
    char room[RLHF__PATH_CAP];
    const char *dir;
    RLHF_TRY(rlhf__command_setup_dir(w, given, "policy", room, &dir, err));
    struct rlhf__model_spec spec = {.dir = dir,
                                    .adapter = w->adapter,
                                    .role = "model",
                                    .frozen = 1,
                                    .tokens_only = !w->all_rows,
                                    .language = 1};
    rlhf_status st = rlhf__model_open(&w->session.models, &spec, out, err);
    if (st == RLHF_OK) st = rlhf__model_writes(*out, err);
    // A reference with the same base model shares its trunk.
    if (st == RLHF_OK && (*out)->peft.rank > 0) w->session.models.shared = *out;
    return rlhf__command_setup_opened(given, st, err);
}

rlhf_status rlhf__command_setup_second(struct rlhf__command_setup *w, const char *role,
                                       const char *given, const struct rlhf__model *model,
                                       struct rlhf__model **out, struct rlhf__error *err) {
    char room[RLHF__PATH_CAP];
    const char *dir = rlhf__dirs_shared(w->env->dirs, given, room);
    char flag[32];
    snprintf(flag, sizeof flag, "--%s", role);
    RLHF_TRY(rlhf__run_model(flag, &dir, room, w->env->log, err));
    struct rlhf__model_spec second = {
        .dir = dir, .role = role, .frozen = 1, .tokens_only = !w->all_rows, .language = 1};
    rlhf__progress_note(w->progress, "loading the second model");
    rlhf_status st = rlhf__model_open(&w->session.models, &second, out, err);
    if (st == RLHF_E_INVALID) return rlhf__error_context(err, "%s", flag);
    if (st == RLHF_OK && !rlhf__tokenizer_equal((*out)->tok, model->tok))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the vocabulary of %s%s'%s' is not the model's ('%s')",
                          strcmp(role, "reference") == 0 ? "the reference " : flag,
                          strcmp(role, "reference") == 0 ? "" : " ", (*out)->dir, model->dir);
    return st;
}

rlhf_status rlhf__command_setup_reference(struct rlhf__command_setup *w, const char *given,
                                          const struct rlhf__model *model, struct rlhf__model **out,
                                          struct rlhf__error *err) {
    return rlhf__command_setup_second(w, "reference", given, model, out, err);
}

// ---- critics ----

// Set *kind to the kind of the value head in a checkpoint, or to RLHF_VALUE_NONE if the checkpoint
// lacks a value head.
static rlhf_status value_kind(const char *dir, int32_t *kind, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    struct rlhf__weights *weights = NULL;
    *kind = RLHF_VALUE_NONE;
    rlhf__path_put(path, "%s/state/value_head.safetensors", dir);
    if (!rlhf__is_file(path)) return RLHF_OK;
    RLHF_TRY(rlhf__weights_open(path, &weights, err));
    *kind = rlhf__weights_find(weights, "v_head.fc.weight") ? RLHF_VALUE_MLP : RLHF_VALUE_LINEAR;
    rlhf__weights_close(weights);
    return RLHF_OK;
}

rlhf_status rlhf__command_setup_critic(struct rlhf__command_setup *w, const char *dir,
                                       struct rlhf__model **out, struct rlhf__error *err) {
    char separate[RLHF__PATH_CAP];
    struct rlhf__model_spec spec = {.dir = dir, .role = "critic", .tokens_only = 1, .language = 1};
    RLHF_TRY(value_kind(dir, &spec.value_kind, err));
    *out = NULL;
    if (spec.value_kind == RLHF_VALUE_NONE) return RLHF_OK;
    RLHF_TRY(rlhf__model_open(&w->session.models, &spec, out, err));
    rlhf__path_put(separate, "%s/state/critic.safetensors", dir);
    if (!rlhf__is_file(separate)) return RLHF_OK;
    RLHF_TRY(rlhf__params_read_back(*out, separate, err));
    return rlhf__model_refresh(*out, err);
}
