// members.c: see members.h.
#include "grader/members.h"

#include "process/json_reward.h"
#include "process/utf8.h"

#include <rlhf/log.h>
#include <stdio.h>
#include <string.h>

rlhf_status rlhf__members_refuse(const struct rlhf__members *p, const char *path,
                                 const char *what) {
    return rlhf_failf(p->host, RLHF_E_INVALID, "%s: %s %s", p->file, *path ? path : "the grader",
                      what);
}

rlhf_status rlhf__members_expected(const struct rlhf__members *p, const char *key,
                                   const char *what) {
    const json_t *v = json_object_get(p->v, key);
    char path[RLHF__MEMBERS_PATH + 40], text[420], shown[60];
    snprintf(path, sizeof path, "%s/%s", p->path, key);
    if (json_is_string(v))
        snprintf(text, sizeof text, "is \"%s\"; expected %s",
                 rlhf__utf8_shown(json_string_value(v), json_string_length(v), shown, sizeof shown),
                 what);
    else
        snprintf(text, sizeof text, "is %s; expected %s", rlhf__json_what(v), what);
    return rlhf__members_refuse(p, path, text);
}

const json_t *rlhf__members_get(const struct rlhf__members *p, const char *key) {
    const json_t *v = json_object_get(p->v, key);
    return json_is_null(v) ? NULL : v;
}

rlhf_status rlhf__members_check(const struct rlhf__members *p, const char *all) {
    const char *key;
    json_t *v;
    char name[64], what[320], shown[60];
    json_object_foreach((json_t *)(uintptr_t)p->v, key, v) {
        snprintf(name, sizeof name, " %.60s ", key);
        if (json_is_null(v) || (strlen(key) <= 60 && strstr(all, name))) continue;
        snprintf(what, sizeof what, "has \"%s\"; allowed:%.200s",
                 rlhf__utf8_shown(key, strlen(key), shown, sizeof shown), all);
        return rlhf__members_refuse(p, p->path, what);
    }
    return RLHF_OK;
}

rlhf_status rlhf__members_text(const struct rlhf__members *p, const char *key, const char **out) {
    *out = json_string_value(rlhf__members_get(p, key));
    return *out ? RLHF_OK : rlhf__members_expected(p, key, "a text");
}

rlhf_status rlhf__members_number(const struct rlhf__members *p, const char *key, double *out) {
    const json_t *v = rlhf__members_get(p, key);
    if (v && !json_is_number(v)) return rlhf__members_expected(p, key, "a number");
    if (v) *out = json_number_value(v);
    return RLHF_OK;
}

rlhf_status rlhf__members_word(const struct rlhf__members *p, const char *key,
                               const char *const *words, size_t n, int32_t *out) {
    const char *text = json_string_value(rlhf__members_get(p, key));
    char what[320] = "";
    for (size_t i = 0; i < n; i++) {
        *out = (int32_t)i;
        if (text && strcmp(words[i], text) == 0) return RLHF_OK;
        const size_t at = strlen(what);
        snprintf(what + at, sizeof what - at, "%s%s",
                 i == 0      ? ""
                 : i + 1 < n ? ", "
                             : " or ",
                 words[i]);
    }
    return rlhf__members_expected(p, key, what);
}
