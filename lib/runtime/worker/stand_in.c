// stand_in.c: see stand_in.h. Workers and instances are in worker_instance.c, score() is in
// worker_scoring.c.
#include "worker/stand_in.h"

#include "base/hash.h"
#include "base/printable.h"
#include "plugin/search.h"
#include "worker/episode_calls.h"
#include "worker/sink_calls.h"
#include "worker/worker_instance.h"
#include "worker/worker_scoring.h"

#include <rlhf/draft/program.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rlhf__stand_in *of(struct rlhf__outside *o) { return (struct rlhf__stand_in *)o; }

static void destroy(struct rlhf__outside *o) {
    struct rlhf__stand_in *s = of(o);
    rlhf__worker_end(s->spare);
    rlhf__description_finish(&s->what);
    rlhf__strings_finish(&s->said);
    free(s->path);
    free(s->id);
    free(s->asker);
    free(s->confined);
    free(s);
}

// ---- options without effect ----

static const char *why_unused(const struct rlhf__plugin *p, const void *config, const char *key) {
    struct rlhf__stand_in *s = of(p->outside);
    struct rlhf__ear ear = {.api = NULL};
    struct rlhf__asked a = {.ear = &ear};
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error err;
    const char *why = NULL;
    json_t *options = json_object();
    if (!(s->what.has & RLHF__DESCRIBED_WHY_UNUSED) || !options) goto out;
    if (!s->spare && rlhf__stand_in_worker(s, NULL, &s->spare, NULL, &err) < 0) goto out;
    if (rlhf__opts_to_json(&p->table, config, options, &err) < 0) goto out;
    rlhf__json_write(&text, options, 0);
    a.worker = s->spare;
    rlhf__wire_begin(&a.frame, RLHF__ASK_WHY_UNUSED);
    rlhf__wire_puts(&a.frame, key);
    rlhf__wire_text(&a.frame, text.data, text.len);
    const rlhf_status st = rlhf__ask(&a, 1, s->rules.timeout_s, "rewards.timeout_s");
    if (st == RLHF_OK && a.status == RLHF_OK && rlhf__wire_get_u32(&a.result) == 1) {
        const rlhf_str said = rlhf__wire_get_text(&a.result);
        struct rlhf__buf shown = RLHF__BUF_INIT;
        rlhf__put_printable(&shown, said.ptr, (size_t)(said.len < 500 ? said.len : 500), "");
        why = rlhf__strings_add(&s->said, rlhf__buf_text(&shown));
        rlhf__buf_finish(&shown);
    }
    if (st != RLHF_OK) { // creating the instance will report the failure
        rlhf__worker_end(s->spare);
        s->spare = NULL;
    }
out:
    json_decref(options);
    rlhf__asked_finish(&a);
    rlhf__buf_finish(&text);
    return why;
}

// ---- extensions ----

// Functions in another process cannot be called. Of the extensions that the host knows, only
// RLHF_EXT_PROGRAM consists of data alone, so only this one can be returned.
static const void *extension(const struct rlhf__plugin *p, void *self, const char *id) {
    static const rlhf_program_use programs = {sizeof programs, 0};
    const struct rlhf__stand_in *s = of(p->outside);
    (void)self;
    const int is = strcmp(id, RLHF_EXT_PROGRAM) == 0 && (s->what.has & RLHF__DESCRIBED_PROGRAM);
    return is ? &programs : NULL;
}

// ---- opening ----

static int is_same(const char *a, const char *b) {
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

// Returns an existing stand-in for this file, or NULL.
static const struct rlhf__plugin *find(const struct rlhf__plugins *p, const char *path,
                                       const char *id, int32_t kind,
                                       const struct rlhf__worker_rules *rules) {
    const struct rlhf__plugin *const *all;
    const size_t n = rlhf__plugins_list(p, &all);
    for (size_t i = 0; i < n; i++) {
        if (!all[i]->outside || all[i]->outside->destroy != destroy) continue;
        const struct rlhf__stand_in *s = of(all[i]->outside);
        if (strcmp(s->path, path) == 0 && is_same(s->id, id) && s->kind == kind &&
            s->rules.network == rules->network)
            return all[i];
    }
    return NULL;
}

static struct rlhf__stand_in *fresh(const struct rlhf__worker_rules *rules, const char *path,
                                    const char *id, int32_t kind, const char *asker) {
    struct rlhf__stand_in *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->base = (struct rlhf__outside){
        .why_unused = why_unused, .extension = extension, .destroy = destroy, .worker = 1};
    if (kind == RLHF_KIND_REWARD) s->base.ended_at = rlhf__stand_in_ended_at;
    s->rules = *rules;
    s->kind = kind;
    s->path = strdup(path);
    s->id = id ? strdup(id) : NULL;
    s->asker = strdup(asker);
    if (s->path && s->asker && (!id || s->id)) return s;
    destroy(&s->base);
    return NULL;
}

// Fill in the functions of a descriptor; the worker described everything else.
static void fill(struct rlhf__stand_in *s) {
    rlhf_plugin *d = &s->what.desc;
    d->kind = (uint32_t)s->kind;
    s->ops = (rlhf_reward_ops){.size = sizeof s->ops, .flags = s->what.ops_flags};
    s->ops.score = rlhf__stand_in_score;
    if (s->what.has & RLHF__DESCRIBED_CHECK_ROW) s->ops.check_row = rlhf__stand_in_check_row;
    rlhf__episode_calls_ops(&s->what, &s->environment);
    rlhf__sink_calls_ops(&s->what, &s->sink);
    d->create = rlhf__stand_in_create;
    d->destroy = rlhf__stand_in_destroy;
    d->save = d->state_version ? rlhf__stand_in_save : NULL;
    d->load = d->state_version ? rlhf__stand_in_load : NULL;
    d->ops = s->kind == RLHF_KIND_REWARD        ? (const void *)&s->ops
             : s->kind == RLHF_KIND_ENVIRONMENT ? (const void *)&s->environment
                                                : &s->sink;
    s->base.confined = s->confined;
}

static rlhf_status open_path(struct rlhf__plugins *p, const struct rlhf__worker_rules *rules,
                             const char *path, const char *id, int32_t kind, const char *asker,
                             const struct rlhf__plugin **out, struct rlhf__error *err) {
    RLHF_TRY(rlhf__plugins_trust(p, path, err));
    struct rlhf__stand_in *s = fresh(rules, path, id, kind, asker);
    if (!s) return RLHF__NOMEM(err, "%s: out of memory", path);
    s->program = rlhf__plugins_program(p);
    rlhf_status st = rlhf__sha256_file(path, s->sha256, err);
    if (st == RLHF_OK) st = rlhf__stand_in_worker(s, NULL, &s->spare, &s->what, err);
    if (st == RLHF_OK) {
        fill(s);
        st = rlhf__plugins_add_outside(p, path, s->sha256, &s->what.desc, &s->base, out, err);
    }
    if (st != RLHF_OK) destroy(&s->base);
    return st;
}

rlhf_status rlhf__worker_plugin(struct rlhf__plugins *p, const struct rlhf__worker_rules *rules,
                                const char *name, int32_t kind, int32_t from, const char *asker,
                                const struct rlhf__plugin **out, struct rlhf__error *err) {
    char *path = NULL, *id = NULL;
    RLHF_TRY(rlhf__plugins_find(p, name, kind, from, asker, &path, &id, err));
    rlhf_status st = RLHF_OK;
    *out = find(p, path, id, kind, rules);
    if (!*out) st = open_path(p, rules, path, id, kind, asker, out, err);
    free(path);
    free(id);
    return st;
}
