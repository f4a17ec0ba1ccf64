// hint.c: rlhf__config_hint of config.h: which setting a --set without a section may mean.
#include "base/nearest.h"
#include "config/config.h"
#include "config/resume.h"
#include "option/aliases.h"
#include "plugin/load.h"

#include <stdio.h>
#include <string.h>

struct search {
    struct rlhf__nearest near;
    char best[160];         // "section.key" of near.best
    struct rlhf__buf exact; // all settings with exactly that key
};

static void offer(struct search *s, const char *section, const struct rlhf__opt_table *t) {
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        if (strcmp(o.key, s->near.wanted) == 0)
            rlhf__buf_printf(&s->exact, "%s\"%s.%s\"", s->exact.len ? " or " : "", section, o.key);
        const char *before = s->near.best;
        rlhf__nearest_offer(&s->near, o.key);
        if (s->near.best != before) snprintf(s->best, sizeof s->best, "%s.%s", section, o.key);
    }
}

// The options of the algorithm that c names, if it can be opened. In a resumed run the stored
// config has not been read yet when a typed setting is refused.
static void offer_algo(struct search *s, const struct rlhf__config_request *req,
                       const struct rlhf__config *c) {
    struct rlhf__plugins *plugins = NULL;
    const struct rlhf__plugin *algo = NULL;
    struct rlhf__error err;
    if (req->resume && rlhf__resume_trust(req, c, &err) < 0) return;
    if (!c->algo.plugin || rlhf__plugins_create(req->dirs, &plugins, &err) < 0) return;
    if (rlhf__plugin_open(plugins, c->algo.plugin, RLHF_KIND_ALGO, c->algo.from, "--algo", &algo,
                          &err) >= 0)
        offer(s, "algo", &algo->table);
    rlhf__plugins_destroy(plugins);
}

void rlhf__config_hint(const struct rlhf__config_request *req, const struct rlhf__config *c,
                       struct rlhf__error *err) {
    char key[64] = "";
    size_t n;
    for (size_t i = 0; i < req->n_set && !*key; i++) {
        size_t len = strcspn(req->set[i], ".=");
        if (req->set[i][len] == '=' && len > 0 && len < sizeof key)
            snprintf(key, sizeof key, "%.*s", (int)len, req->set[i]);
    }
    if (!*key || !strstr(err->text, "is not of the form")) return;
    struct search s = {.near = {key, NULL, 0}, .exact = RLHF__BUF_INIT};
    const struct rlhf__section *section = rlhf__sections(&n);
    for (size_t i = 0; i < n; i++)
        offer(&s, section[i].name, &section[i].table);
    offer_algo(&s, req, c);
    size_t at = strlen(err->text), room = sizeof err->text - at;
    struct rlhf__buf theirs = RLHF__BUF_INIT;
    if (!s.exact.len && rlhf__alias_hint(key, 0, &theirs))
        snprintf(err->text + at, room, "%s", rlhf__buf_text(&theirs));
    else if (s.exact.len)
        snprintf(err->text + at, room, " (did you mean %s?)", rlhf__buf_text(&s.exact));
    else if (*s.best)
        snprintf(err->text + at, room, " (did you mean \"%s\"?)", s.best);
    rlhf__buf_free(&s.exact);
    rlhf__buf_free(&theirs);
}
