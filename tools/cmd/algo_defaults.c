// algo_defaults.c: see algo_defaults.h.
#include "cmd/algo_defaults.h"

#include "base/decimal.h"
#include "base/file.h"
#include "base/printable.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rlhf__algo_defaults *rlhf__algo_defaults_all(const struct rlhf__dirs *dirs, size_t *n) {
    char dir[RLHF__PATH_CAP];
    struct dirent **entry = NULL;
    rlhf__path_put(dir, "%s/configs", dirs->share);
    int found = scandir(dir, &entry, NULL, alphasort);
    struct rlhf__algo_defaults *all = found > 0 ? calloc((size_t)found, sizeof *all) : NULL;
    *n = 0;
    for (int i = 0; i < found; free(entry[i++])) {
        const char *file = entry[i]->d_name;
        size_t len = strlen(file);
        char path[RLHF__PATH_CAP];
        struct rlhf__error err;
        if (!all || len < 6 || len > 60 || strcmp(file + len - 5, ".json") != 0) continue;
        rlhf__path_put(path, "%s/%s", dir, file);
        if (rlhf__json_load(path, &all[*n].json, &err) < 0) continue;
        snprintf(all[*n].algo, sizeof all[*n].algo, "%.*s", (int)(len - 5), file);
        ++*n;
    }
    free(entry);
    return all;
}

void rlhf__algo_defaults_finish(struct rlhf__algo_defaults *all, size_t n) {
    for (size_t i = 0; i < n; i++)
        json_decref(all[i].json);
    free(all);
}

const json_t *rlhf__algo_defaults_value(const struct rlhf__algo_defaults *t, const char *section,
                                        const rlhf_opt *o) {
    const json_t *v = json_object_get(json_object_get(t->json, section), o->key);
    if (!v) return NULL;
    json_t *def = rlhf__opt_default(o);
    int same = json_is_number(v) && json_is_number(def)
                   ? json_number_value(v) == json_number_value(def)
                   : json_equal(v, def);
    json_decref(def);
    return same ? NULL : v;
}

void rlhf__put_value(struct rlhf__buf *out, const rlhf_opt *o, const json_t *v) {
    char number[40];
    if (o->type == RLHF_T_ENUM && json_is_string(v))
        rlhf__put_printable(out, json_string_value(v), json_string_length(v), "");
    else if (json_is_real(v))
        rlhf__buf_puts(out, rlhf__format_double(json_real_value(v), 0, number));
    else
        rlhf__json_write(out, v, 0);
}

void rlhf__put_default(struct rlhf__buf *out, const rlhf_opt *o) {
    json_t *def = rlhf__opt_default(o);
    rlhf__put_value(out, o, def);
    json_decref(def);
}

void rlhf__put_values(struct rlhf__buf *out, const struct rlhf__algo_defaults *defaults,
                      const rlhf_opt *o) {
    const json_t *v = defaults ? rlhf__algo_defaults_value(defaults, "algo", o) : NULL;
    if (o->flags & RLHF_OPT_REQUIRED) {
        rlhf__buf_puts(out, "required");
    } else if ((o->type == RLHF_T_STR || o->type == RLHF_T_PATH) && !o->s_def) {
        rlhf__buf_puts(out, "default none");
    } else {
        rlhf__buf_puts(out, "default ");
        rlhf__put_default(out, o);
    }
    if (!v) return;
    rlhf__buf_printf(out, "; configs/%s.json: ", defaults->algo);
    rlhf__put_value(out, o, v);
}

const struct rlhf__algo_defaults *
rlhf__algo_defaults_of(const char *algo, const struct rlhf__algo_defaults *all, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].algo, algo) == 0) return &all[i];
    return NULL;
}
