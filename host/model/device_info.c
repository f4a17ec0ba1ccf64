// device_info.c: see device_info.h.
#include "model/device_info.h"

#include "base/printable.h"

#include <string.h>

enum { MOST_JSON = 1 << 16, MOST_TEXT = 512, MOST_LEVELS = 16 };

static rlhf_status refuse(const char *key, const char *wanted, const json_t *found,
                          struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID, "the member \"%s\" is %s; expected %s", key,
                      rlhf__json_kind(found), wanted);
}

static int is_text(const json_t *v) {
    const char *s = json_string_value(v);
    size_t left = json_string_length(v), n;
    uint32_t c;
    if (!s || left > MOST_TEXT) return 0;
    for (; left > 0; s += n, left -= n) {
        n = rlhf__char_at(s, left, &c);
        if (n == 0 || !rlhf__is_printable(c)) return 0;
    }
    return 1;
}

static rlhf_status text_of(const json_t *from, const char *key, const char **out,
                           struct rlhf__error *err) {
    const json_t *v = json_object_get(from, key);
    *out = "";
    if (!v) return RLHF_OK;
    if (!is_text(v)) return refuse(key, "a printable string of at most 512 bytes", v, err);
    *out = json_string_value(v);
    return RLHF_OK;
}

static rlhf_status number_of(const json_t *from, const char *key, int64_t most, int64_t *out,
                             struct rlhf__error *err) {
    const json_t *v = json_object_get(from, key);
    if (!v) return RLHF_OK;
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > most)
        return refuse(key, "a whole number in its range", v, err);
    *out = json_integer_value(v);
    return RLHF_OK;
}

static rlhf_status check_level(const json_t *level, struct rlhf__error *err) {
    static const char *const texts[] = {"name", "loops", "f32", "bf16", "why_unused"};
    static const char *const marks[] = {"supported", "used"};
    const char *text;
    if (!json_is_object(level)) return refuse("levels", "a list of objects", level, err);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        RLHF_TRY(text_of(level, texts[i], &text, err));
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const json_t *v = json_object_get(level, marks[i]);
        if (v && !json_is_boolean(v)) return refuse(marks[i], "true or false", v, err);
    }
    return RLHF_OK;
}

static rlhf_status read_levels(struct rlhf__device_info *d, struct rlhf__error *err) {
    size_t i;
    const json_t *level;
    d->levels = json_object_get(d->all, "levels");
    if (!d->levels) return RLHF_OK;
    if (!json_is_array(d->levels) || json_array_size(d->levels) > MOST_LEVELS)
        return refuse("levels", "a list of at most 16 objects", d->levels, err);
    json_array_foreach(d->levels, i, level) RLHF_TRY(check_level(level, err));
    return RLHF_OK;
}

static rlhf_status read_members(struct rlhf__device_info *d, struct rlhf__error *err) {
    const struct {
        const char *key, **to;
    } texts[] = {{"name", &d->name},
                 {"driver", &d->driver},
                 {"runtime", &d->runtime},
                 {"library", &d->library},
                 {"missing", &d->missing}};
    int64_t devices, capability = 0, memory = 0, memory_free = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        RLHF_TRY(text_of(d->all, texts[i].key, texts[i].to, err));
    devices = *d->missing ? 0 : 1; // the default if the backend gives no number
    RLHF_TRY(number_of(d->all, "devices", 4096, &devices, err));
    RLHF_TRY(number_of(d->all, "capability", 100000, &capability, err));
    RLHF_TRY(number_of(d->all, "memory", INT64_MAX, &memory, err));
    RLHF_TRY(number_of(d->all, "memory_free", INT64_MAX, &memory_free, err));
    d->devices = (uint32_t)devices;
    d->capability = (int32_t)capability;
    d->memory = (uint64_t)memory;
    d->memory_free = (uint64_t)memory_free;
    return read_levels(d, err);
}

rlhf_status rlhf__device_info_read(const char *json, struct rlhf__device_info *out,
                                   struct rlhf__error *err) {
    *out = (struct rlhf__device_info){.devices = 1};
    out->name = out->driver = out->runtime = out->library = out->missing = "";
    if (!json) return RLHF_OK;
    const size_t n = strnlen(json, MOST_JSON + 1);
    if (n > MOST_JSON)
        return rlhf__fail(err, RLHF_E_INVALID, "its answer has more than %d bytes", MOST_JSON);
    if (rlhf__json_parse("its answer", json, n, &out->all, err) < 0) return err->code;
    if (!json_is_object(out->all))
        return rlhf__fail(err, RLHF_E_INVALID, "its answer is %s; expected an object",
                          rlhf__json_kind(out->all));
    return read_members(out, err);
}

void rlhf__device_info_finish(struct rlhf__device_info *d) {
    json_decref(d->all);
    *d = (struct rlhf__device_info){0};
}
