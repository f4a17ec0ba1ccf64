// walled.c: see walled.h.
#include "worker/walled.h"

#include "plugin/services.h"

#include <stdlib.h>
#include <string.h>

struct walled {
    struct rlhf__outside base; // first member: load.h passes it back
    struct rlhf__program_walls walls;
};

static void destroy(struct rlhf__outside *o) {
    struct walled *w = (struct walled *)o;
    free(w->walls.confined);
    free(w);
}

static struct walled *of(const struct rlhf__plugin *p) {
    return p->outside && p->outside->destroy == destroy ? (struct walled *)p->outside : NULL;
}

rlhf_status rlhf__walled_plugin(struct rlhf__plugins *p, const struct rlhf__plugin *open,
                                int32_t network, const struct rlhf__plugin **out,
                                struct rlhf__error *err) {
    const struct rlhf__plugin *const *all;
    const size_t n = rlhf__plugins_list(p, &all);
    for (size_t i = 0; i < n; i++) {
        const struct walled *there = of(all[i]);
        *out = all[i];
        if (there && there->walls.network == network && strcmp(all[i]->path, open->path) == 0)
            return RLHF_OK;
    }
    struct walled *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w) return RLHF__NOMEM(err, "%s: out of memory", open->path);
    w->base.destroy = destroy;
    w->walls.network = network;
    w->walls.told = &w->base.confined;
    const rlhf_status st =
        rlhf__plugins_add_outside(p, open->path, open->sha256, &open->desc, &w->base, out, err);
    if (st != RLHF_OK) destroy(&w->base);
    return st;
}

struct rlhf__program_walls *rlhf__walls_of(const rlhf_host *plugin) {
    struct walled *w = of(rlhf__instance_behind(plugin)->plugin);
    return w ? &w->walls : NULL;
}
