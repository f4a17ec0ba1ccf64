// tokenizer_part.c: see tokenizer_part.h.
#include "text/tokenizer_part.h"

#include <stdio.h>
#include <string.h>

const char *rlhf__part_type(const json_t *part) {
    const char *type = json_string_value(json_object_get(part, "type"));
    return type ? type : "none";
}

int rlhf__part_is(const json_t *part, const char *type) {
    return strcmp(rlhf__part_type(part), type) == 0;
}

// The parts of a Sequence; NULL for another type.
static const json_t *parts_of(const json_t *part) {
    static const char *const keys[] = {"pretokenizers", "normalizers", "processors", "decoders"};
    const json_t *found = NULL;
    for (size_t i = 0; !found && i < sizeof keys / sizeof *keys; i++)
        found = json_object_get(part, keys[i]);
    return found;
}

void rlhf__part_name(const json_t *part, char *out, size_t cap) {
    const json_t *inner = parts_of(part), *item;
    size_t at = (size_t)snprintf(out, cap, "%.60s", rlhf__part_type(part)), i;
    if (!inner) return;
    json_array_foreach(inner, i, item) {
        if (at >= cap) return;
        at +=
            (size_t)snprintf(out + at, cap - at, "%s%.60s", i ? ", " : "[", rlhf__part_type(item));
    }
    if (at < cap) snprintf(out + at, cap - at, "]");
}

rlhf_status rlhf__part_refuse(const char *key, const json_t *part, const char *allowed,
                              struct rlhf__error *err) {
    char name[400];
    rlhf__part_name(part, name, sizeof name);
    return rlhf__fail(err, RLHF_E_UNSUPPORTED, "the %s '%s' is not supported; allowed: %s", key,
                      name, allowed);
}
