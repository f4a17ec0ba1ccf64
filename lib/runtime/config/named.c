// named.c: see named.h.
#include "config/named.h"

#include "base/file.h"

#include <string.h>
#include <unistd.h>

static struct rlhf__named_model *find(struct rlhf__config *c, const char *name) {
    for (uint32_t i = 0; i < c->models.n; i++)
        if (strcmp(c->models.of[i].name, name) == 0) return &c->models.of[i];
    return NULL;
}

static rlhf_status check(const struct rlhf__config *c, const char *name, const json_t *value,
                         const char *where, struct rlhf__error *err) {
    const size_t n = strlen(name);
    if (n < 1 || n > RLHF__NAME_MAX || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != n)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: models.%s: a name has 1 to %d of the letters a to z, digits and '_'",
                          where, name, RLHF__NAME_MAX);
    if (!json_is_string(value))
        return rlhf__fail(err, RLHF_E_INVALID, "%s: models.%s must be a model directory", where,
                          name);
    if (c->models.n == RLHF_NAMED_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: models.%s: at most %d models have names", where,
                          name, RLHF_NAMED_MAX);
    return RLHF_OK;
}

rlhf_status rlhf__named_set(struct rlhf__config *c, const char *name, const json_t *value,
                            const char *where, struct rlhf__error *err) {
    struct rlhf__named_model *m = find(c, name);
    if (!m || !json_is_string(value)) RLHF_TRY(check(c, name, value, where, err));
    const char *path = rlhf__strings_add(&c->strings, json_string_value(value));
    const char *key = m ? m->name : rlhf__strings_add(&c->strings, name);
    if (!path || !key) return RLHF__NOMEM(err, "out of memory for settings");
    if (!m) m = &c->models.of[c->models.n++];
    *m = (struct rlhf__named_model){key, path};
    return RLHF_OK;
}

const char *rlhf__named_path(const struct rlhf__config *c, const char *name) {
    for (uint32_t i = 0; i < c->models.n; i++)
        if (strcmp(c->models.of[i].name, name) == 0)
            return c->models.of[i].path[0] ? c->models.of[i].path : NULL;
    return NULL;
}

rlhf_status rlhf__named_absolute(struct rlhf__config *c, struct rlhf__error *err) {
    for (uint32_t i = 0; i < c->models.n; i++) {
        struct rlhf__named_model *m = &c->models.of[i];
        char full[RLHF__PATH_CAP];
        if (!m->path[0] || m->path[0] == '/' || access(m->path, F_OK) != 0 ||
            !rlhf__path_real(m->path, full))
            continue;
        m->path = rlhf__strings_add(&c->strings, full);
        if (!m->path) return RLHF__NOMEM(err, "out of memory for settings");
    }
    return RLHF_OK;
}

json_t *rlhf__named_json(const struct rlhf__config *c) {
    json_t *all = NULL;
    for (uint32_t i = 0; i < c->models.n; i++) {
        const struct rlhf__named_model *m = &c->models.of[i];
        if (!m->path[0]) continue;
        if (!all) all = json_object();
        if (json_object_set_new(all, m->name, json_string(m->path)) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}
