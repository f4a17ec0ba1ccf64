// ranks.c: see ranks.h.
#include "scale/ranks.h"

#include "base/json.h"
#include "cmd/commands.h"
#include "cmd/program.h"
#include "scale/network.h"
#include "team/agree.h"
#include "team/join.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST      ((uint64_t)64 << 20)
#define TIMEOUT_S 60

static rlhf_status store(const char *file, const struct rlhf__scale_figures *f, int json,
                         struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    RLHF_TRY(rlhf__json_save_new(NULL, file, rlhf__scale_figures_json(f), 2, err));
    if (json) return rlhf__print_json_new(rlhf__scale_figures_json(f), err);
    rlhf__scale_network_table(&f->line, &text);
    rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK) fputs(rlhf__buf_text(&text), stdout);
    rlhf__buf_free(&text);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

static rlhf_status measure(struct rlhf__team *t, const char *file, int json,
                           struct rlhf__scale_figures *f, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    // Rank 0 finds a wrong file before anything is measured.
    if (t->rank == 0) st = rlhf__scale_figures_before(file, f, err);
    RLHF_TRY(rlhf__team_agree(t, RLHF__BARRIER_SETUP, NULL, st, err));
    RLHF_TRY(rlhf__scale_network(t, MOST, &f->line, err));
    f->has_line = 1;
    if (t->rank == 0) st = store(file, f, json, err);
    return rlhf__team_agree(t, RLHF__BARRIER_END, NULL, st, err);
}

int rlhf__scale_ranks(const struct rlhf__env *env, const char *file, int json) {
    struct rlhf__error err = {0, ""};
    struct rlhf__collective *c = calloc(1, sizeof *c);
    struct rlhf__scale_figures *f = calloc(1, sizeof *f);
    rlhf_status st = c && f ? RLHF_OK : RLHF__NOMEM(&err, "out of memory");
    if (c) st = rlhf__join(env, NULL, TIMEOUT_S, c, st, &err);
    if (st == RLHF_OK && !rlhf__joined(c))
        st = rlhf__fail(
            &err, RLHF_E_INVALID,
            "scale: --measure without a run measures the network between processes, and "
            "there is only one; start several: mpirun -n 2 rlhf-host scale --measure FILE");
    if (st == RLHF_OK && f) st = measure(&c->team, file, json, f, &err);
    const int status = rlhf__cmd_end(env, st, &err);
    if (c) rlhf__collective_close(c, status);
    free(c);
    free(f);
    return status;
}
