// run_sinks.c: see run_sinks.h.
#include "run/run_sinks.h"

#include "base/file.h"
#include "config/config_json.h"
#include "history/run_lines.h"
#include "keep/run_dir.h"
#include "report/closing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int32_t kinds[] = {[RLHF__VERDICT_NONE] = RLHF_RUN_VERDICT_NONE,
                                [RLHF__VERDICT_GOOD] = RLHF_RUN_VERDICT_GOOD,
                                [RLHF__VERDICT_WARN] = RLHF_RUN_VERDICT_WARN,
                                [RLHF__VERDICT_BAD] = RLHF_RUN_VERDICT_BAD};

// Write the directory of a checkpoint. Returns `out`, or NULL if `phase` is below 0.
static const char *checkpoint_of(int64_t phase, char out[40]) {
    if (phase < 0) return NULL;
    snprintf(out, 40, "checkpoints/%06lld", (long long)phase);
    return out;
}

static int64_t best_of(const struct rlhf__run *r) {
    return r->config->checkpoint.best[0] && r->best.phase > 0 ? r->best.phase : -1;
}

// Report the phases up to the present one, which has a checkpoint if `saved` is its number.
static void report(const struct rlhf__run *r, int64_t saved) {
    char path[40];
    const int64_t now = r->count.phase;
    rlhf__sinks_report(r->report.sinks, now, checkpoint_of(saved == now ? now : -1, path),
                       best_of(r) == now);
}

void rlhf__run_sinks_report(const struct rlhf__run *r) {
    if (rlhf__run_writes(r)) report(r, r->saved.phase);
}

void rlhf__run_sinks_begin(const struct rlhf__run *r) {
    struct rlhf__buf config = RLHF__BUF_INIT;
    struct rlhf__error unprinted;
    char held[64], dir[RLHF__PATH_CAP];
    struct rlhf__folder *root = r->req->dir->root;
    if (!rlhf__run_writes(r)) return;
    // Resolve the directory by its descriptor, because a plugin may have changed the working
    // directory.
    snprintf(held, sizeof held, "/proc/self/fd/%d", root->fd);
    if (!rlhf__path_real(held, dir)) rlhf__path_put(dir, "%s", r->req->dir->name);
    if (rlhf__config_print(r->config, &config, &unprinted) != RLHF_OK) rlhf__buf_clear(&config);
    const rlhf_sink_run run = {.resumed = r->req->resume != NULL,
                               .phases_done = r->count.phase,
                               .phases = r->count.phases,
                               .dir = dir,
                               .name = rlhf__path_base(dir),
                               .config = config.len ? rlhf__buf_text(&config) : "{}"};
    rlhf__sinks_begin(r->report.sinks, root, &run);
    if (run.resumed) report(r, r->count.phase); // a run is resumed from a checkpoint
    rlhf__buf_finish(&config);
}

// Returns how the run ended. If the run was stopped, why[cap] receives the reason.
static enum rlhf_run_end how_it_ended(const struct rlhf__run *r, rlhf_status st, char *why,
                                      size_t cap) {
    const int cancelled = r->req->env->cancelled && *r->req->env->cancelled;
    if (st != RLHF_OK && !(st == RLHF_E_CANCELLED && cancelled)) return RLHF_RUN_FAILED;
    if (r->count.phase >= r->count.phases) return RLHF_RUN_DONE;
    if (cancelled)
        snprintf(why, cap, "the user stopped it");
    else if (r->collapsed)
        snprintf(why, cap, "the policy %s (run.stop_on)", r->history.lost);
    else if (r->count.stop)
        snprintf(why, cap, "a limit of early_stop is reached");
    else
        snprintf(why, cap, "run.stop_after is %lld", (long long)r->config->run.stop_after);
    return RLHF_RUN_STOPPED;
}

// The findings of a verdict that the closing lines name. [n]
struct found {
    const char **id, **text;
    uint32_t n;
};

static void find(const struct rlhf__verdict *v, struct found *out) {
    *out = (struct found){calloc(v->notes.n + 1, sizeof(char *)),
                          calloc(v->notes.n + 1, sizeof(char *)), 0};
    for (size_t i = 0; out->id && out->text && i < v->notes.n; i++) {
        if (v->notes.all[i].level == RLHF__NOTE_INFO) continue;
        out->id[out->n] = v->notes.all[i].id;
        out->text[out->n++] = v->notes.all[i].text;
    }
}

static void tell_end(const struct rlhf__run *r, rlhf_sink_end *end) {
    const struct rlhf__history h = {&r->history.series, &r->history.facts};
    struct rlhf__buf sentence = RLHF__BUF_INIT;
    struct rlhf__verdict v = {0};
    struct rlhf__error unsaid;
    struct found found = {0};
    end->verdict = "";
    if (h.series->n && rlhf__verdict_make(&h, &v, &unsaid) == RLHF_OK) {
        rlhf__put_verdict(&v, &sentence);
        find(&v, &found);
        end->verdict = rlhf__buf_text(&sentence);
        end->verdict_kind = kinds[v.kind];
        end->n_findings = found.n;
        end->finding_id = found.id;
        end->finding = found.text;
    }
    rlhf__sinks_end(r->report.sinks, end);
    free(found.id);
    free(found.text);
    rlhf__buf_finish(&sentence);
    rlhf__verdict_finish(&v);
}

void rlhf__run_sinks_end(const struct rlhf__run *r, rlhf_status st, const struct rlhf__error *err) {
    static const char *const status[] = {
        [RLHF_RUN_DONE] = "done", [RLHF_RUN_STOPPED] = "stopped", [RLHF_RUN_FAILED] = "failed"};
    char why[64] = "", last[40], best[40];
    const enum rlhf_run_end how = how_it_ended(r, st, why, sizeof why);
    const char *reason = how == RLHF_RUN_FAILED ? err->text : why;
    rlhf_sink_end end = {.how = (int32_t)how,
                         .phases_done = r->count.phase,
                         .why = reason,
                         .last_checkpoint = checkpoint_of(r->saved.phase, last),
                         .best_checkpoint = checkpoint_of(best_of(r), best)};
    if (!rlhf__run_writes(r)) return;
    tell_end(r, &end);
    rlhf__events_end(r->report.events, r->count.phase, status[how], reason);
}

int rlhf__run_sinks_wait(const struct rlhf__run *r) {
    struct rlhf__run_files files = {.root = r->req->dir->root, .trouble = json_array()};
    json_t *first = NULL, *last = NULL;
    if (rlhf__run_writes(r) && r->req->resume && files.trouble)
        rlhf__run_lines_ends(&files, "events.jsonl", &first, &last);
    const char *event = json_string_value(json_object_get(last, "event"));
    const int waits = event && strcmp(event, "end") != 0;
    json_decref(first);
    json_decref(last);
    json_decref(files.trouble);
    return waits;
}
