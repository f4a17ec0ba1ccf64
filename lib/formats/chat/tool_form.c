// tool_form.c: see tool_form.h.
#include "chat/tool_form.h"

#include <string.h>

const char *const *rlhf__tool_form_names(void) {
    static const char *const names[] = {"hermes", "llama3", "mistral", "qwen3_coder", "xml", NULL};
    return names;
}

int32_t rlhf__tool_form_find(const char *name) {
    const char *const *names = rlhf__tool_form_names();
    for (int32_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0) return i + 1;
    return RLHF__TOOL_FORM_NONE;
}

const char *rlhf__tool_form_name(int32_t form) {
    return form > 0 && form < RLHF__N_TOOL_FORMS ? rlhf__tool_form_names()[form - 1] : "none";
}
