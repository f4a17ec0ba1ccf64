// typed_tokenizer.c: see typed_tokenizer.h.
#include "prompt/typed_tokenizer.h"

#include "base/file.h"
#include "cmd/command_setup.h"
#include "model/adapter.h"
#include "model/session.h"
#include "weights/run_checkpoint.h"
#include "weights/safetensors.h"
#include "weights/wrong_dir.h"

rlhf_status rlhf__typed_tokenizer(const struct rlhf__env *env, const char *flag, const char *given,
                                  const struct rlhf__chat_choice *chat,
                                  struct rlhf__tokenizer **out, struct rlhf__error *err) {
    char room[RLHF__PATH_CAP], base[RLHF__PATH_CAP], config[RLHF__PATH_CAP];
    const char *dir = room;
    struct rlhf__peft adapter = {0};
    const struct rlhf__model_adapter none = {0};
    if (given) {
        dir = rlhf__dirs_shared(env->dirs, given, room);
        RLHF_TRY(rlhf__run_model(flag, &dir, room, env->log, err));
    } else {
        rlhf__default_model(env->dirs, "policy", room);
    }
    rlhf_status st = rlhf__adapter_find(dir, &none, &adapter, base, err);
    if (st == RLHF_OK && adapter.dir && rlhf__adapter_has_text(adapter.dir))
        st = rlhf__tokenizer_open(adapter.dir, out, err);
    else if (st == RLHF_OK && !rlhf__adapter_has_text(base) && !rlhf__weights_exist(base))
        st = rlhf__is_file(rlhf__path_put(config, "%s/config.json", base))
                 ? rlhf__wrong_weights(base, err)
                 : rlhf__wrong_dir(base, err);
    else if (st == RLHF_OK)
        st = rlhf__tokenizer_open(base, out, err);
    if (st == RLHF_OK && adapter.dir && rlhf__adapter_has_text(adapter.dir))
        rlhf__adapter_note_template(adapter.dir, base, *out, env->log);
    rlhf__peft_finish(&adapter);
    if (st == RLHF_OK) {
        rlhf__tokenizer_set_log(*out, env->log);
        return rlhf__tokenizer_choose_chat(*out, chat, rlhf__command_setup_chat_flags(), err);
    }
    const int bad = st == RLHF_E_INVALID || st == RLHF_E_UNSUPPORTED;
    return given && bad ? rlhf__error_context(err, "%s", flag) : st;
}
