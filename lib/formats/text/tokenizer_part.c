// tokenizer_part.c: see tokenizer_part.h.
#include "text/tokenizer_part.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

const char *rlhf__part_type(const json_t *part) {
    const char *type = json_string_value(json_object_get(part, "type"));
    return type ? type : "none";
}

int rlhf__part_is(const json_t *part, const char *type) {
    return strcmp(rlhf__part_type(part), type) == 0;
}

// The parts of a Sequence; NULL if the part is of another type.
static const json_t *parts_of(const json_t *part) {
    static const char *const keys[] = {"pretokenizers", "normalizers", "processors", "decoders"};
    const json_t *found = NULL;
    for (size_t i = 0; !found && i < sizeof keys / sizeof *keys; i++)
        found = json_object_get(part, keys[i]);
    return found;
}

// Writes the part's type and, for a Sequence, the types of its parts: "Sequence[Digits,
// ByteLevel]".
static void part_name(const json_t *part, char *out, size_t cap) {
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

// Refuses a switch that is not a boolean, as the tokenizers library does.
static rlhf_status check_switches(const char *key, const json_t *part, struct rlhf__error *err) {
    static const char *const names[] = {
        "add_prefix_space", "clean_text",   "cleanup",  "handle_chinese_chars", "individual_digits",
        "invert",           "lowercase",    "split",    "strip_accents",        "strip_left",
        "strip_right",      "trim_offsets", "use_regex"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *v = json_object_get(part, names[i]);
        int may_be_null = !strcmp(names[i], "strip_accents");
        if (!v || json_is_boolean(v) || (may_be_null && json_is_null(v))) continue;
        return rlhf__fail(err, RLHF_E_INVALID, "the %s %.60s: %s: expected true or false, found %s",
                          key, rlhf__part_type(part), names[i], rlhf__json_kind(v));
    }
    return RLHF_OK;
}

static rlhf_status check(const char *key, const json_t *part, int depth, struct rlhf__error *err) {
    const json_t *item;
    size_t i;
    if (!json_is_object(part))
        return rlhf__fail(err, RLHF_E_INVALID, "the %s: expected an object, found %s", key,
                          rlhf__json_kind(part));
    RLHF_TRY(check_switches(key, part, err));
    if (!rlhf__part_is(part, "Sequence") || depth == RLHF__PART_DEPTH_MAX) return RLHF_OK;
    json_array_foreach(parts_of(part), i, item) RLHF_TRY(check(key, item, depth + 1, err));
    return RLHF_OK;
}

rlhf_status rlhf__part_check(const char *key, const json_t *part, struct rlhf__error *err) {
    return part && !json_is_null(part) ? check(key, part, 0, err) : RLHF_OK;
}

rlhf_status rlhf__part_refuse(const char *key, const json_t *part, const char *allowed,
                              struct rlhf__error *err) {
    char name[400];
    part_name(part, name, sizeof name);
    return rlhf__fail(err, RLHF_E_UNSUPPORTED, "the %s '%s' is not supported; allowed: %s", key,
                      name, allowed);
}
