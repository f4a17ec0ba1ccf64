// plugin_states.c: see plugin_states.h.
#include "keep/plugin_states.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_BYTES ((uint64_t)1 << 30) // limit per plugin

static struct rlhf__plugin_state *add(struct rlhf__plugin_states *s,
                                      const struct rlhf__instance *plugin) {
    struct rlhf__plugin_state *p = &s->item[s->n++];
    *p = (struct rlhf__plugin_state){.plugin = plugin, .bytes = RLHF__BUF_INIT};
    return p;
}

// List the plugins and their files, without calling them yet.
static rlhf_status list(struct rlhf__plugin_states *s, const struct rlhf__cast *cast,
                        struct rlhf__error *err) {
    *s = (struct rlhf__plugin_states){.item = calloc(cast->n_rewards + 2, sizeof *s->item)};
    if (!s->item) return RLHF__NOMEM(err, "out of memory for the state of plugins");
    snprintf(add(s, cast->algo)->name, sizeof s->item->name, "state/algo.bin");
    for (size_t i = 0; i < cast->n_rewards; i++)
        snprintf(add(s, cast->rewards[i])->name, sizeof s->item->name, "state/reward_%zu.bin", i);
    if (cast->judge) snprintf(add(s, cast->judge)->name, sizeof s->item->name, "state/judge.bin");
    return RLHF_OK;
}

rlhf_status rlhf__plugin_states_save(struct rlhf__plugin_states *s, const struct rlhf__cast *cast,
                                     struct rlhf__error *err) {
    RLHF_TRY(list(s, cast, err));
    for (size_t i = 0; i < s->n; i++) {
        RLHF_TRY(rlhf__instance_save(s->item[i].plugin, &s->item[i].bytes, err));
        RLHF_TRY(rlhf__buf_ok(&s->item[i].bytes, err));
    }
    return RLHF_OK;
}

void rlhf__plugin_states_finish(struct rlhf__plugin_states *s) {
    for (size_t i = 0; i < s->n; i++)
        rlhf__buf_free(&s->item[i].bytes);
    free(s->item);
    *s = (struct rlhf__plugin_states){0};
}

rlhf_status rlhf__plugin_states_write(const struct rlhf__plugin_states *s,
                                      const struct rlhf__folder *checkpoint,
                                      struct rlhf__error *err) {
    for (size_t i = 0; i < s->n; i++) {
        const struct rlhf__plugin_state *p = &s->item[i];
        if (p->bytes.len > 0)
            RLHF_TRY(rlhf__file_write(checkpoint, p->name, p->bytes.data, p->bytes.len, err));
    }
    return RLHF_OK;
}

static rlhf_status load(const struct rlhf__plugin_state *p, const char *dir,
                        struct rlhf__error *err) {
    char path[4400];
    struct rlhf__buf bytes = RLHF__BUF_INIT;
    rlhf_status st = RLHF_OK;
    if (rlhf__is_file(rlhf__path_in(path, sizeof path, dir, p->name)))
        st = rlhf__file_read(path, MAX_BYTES, &bytes, err);
    if (st == RLHF_OK) st = rlhf__instance_load(p->plugin, bytes.data, bytes.len, err);
    rlhf__buf_free(&bytes);
    return st;
}

rlhf_status rlhf__plugin_states_load(const struct rlhf__cast *cast, const char *dir,
                                     struct rlhf__error *err) {
    struct rlhf__plugin_states s = {0};
    rlhf_status st = list(&s, cast, err);
    for (size_t i = 0; st == RLHF_OK && i < s.n; i++)
        st = load(&s.item[i], dir, err);
    rlhf__plugin_states_finish(&s);
    return st;
}
