// end.c: how every command ends, rlhf__cmd_end of commands.h.
#include "cmd/commands.h"

int rlhf__cmd_end(const struct rlhf__env *env, rlhf_status st, const struct rlhf__error *err) {
    int asked = env->cancelled ? *env->cancelled : 0;
    if (st == RLHF_OK) return 0;
    if (st == RLHF_E_CANCELLED && asked) return 128 + asked;
    rlhf__log_error(env->log, err->text);
    return rlhf__exit_status(st);
}
