// scale.c: see scale.h. The command separates its flags from those that describe the run, measures
// or reads the figures, and prints the forecast.
#include "scale/scale.h"

#include "base/json.h"
#include "cmd/cli.h"
#include "cmd/commands.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "scale/forecast.h"
#include "scale/measure.h"
#include "scale/ranks.h"
#include "team/join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *ranks, *network, *measure, *from;
    int64_t per_host, measured, rows;
    int32_t per_rank, json;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--ranks", ranks, "N,N,..", "numbers of ranks [1,2,4,.. 1024]"),
    RLHF__FLAG_I(O, "--ranks-per-host", per_host, "N", 1, 1024, "ranks on one machine [1]"),
    RLHF__FLAG_S(O, "--network", network, "LINE",
                 "between ranks: a measured FILE, or rate and latency: 10gbit,20us"),
    RLHF__FLAG_I(O, "--rows", rows, "N", 1, 1000000000, "rows of a phase [batch.size]"),
    RLHF__FLAG_SW(O, "--per-rank", per_rank, "--rows, or batch.size, counts the rows of each rank"),
    RLHF__FLAG_I(O, "--measured-rows", measured, "N", 1, 1000000,
                 "largest phase to measure; larger ones follow from it [64]"),
    RLHF__FLAG_S(O, "--measure", measure, "FILE", "store what was measured, for --from"),
    RLHF__FLAG_S(O, "--from", from, "FILE", "forecast from a stored FILE; nothing is measured"),
    RLHF__FLAG_SW(O, "--json", json, "one JSON object instead of a table"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)
#define USAGE                                                                                      \
    "rlhf-host scale --network LINE RUN-OPTIONS [options]     measure a run, forecast\n"           \
    "       rlhf-host scale --from FILE [options]                    forecast only\n"              \
    "       mpirun -n 2 rlhf-host scale --measure FILE               measure the network\n"        \
    "RUN-OPTIONS are those of training: rlhf-host --help. A few phases of that run are run."

struct job {
    struct options o;
    struct rlhf__scale_question question;
    struct rlhf__scale_figures figures;
};

// ---- the command line ----

// The arguments in two lists: flags of this command with their values, and all others.
struct split {
    char **own, **run; // [n_own], [n_run]; element 0 of both is the command's name
    int n_own, n_run;
};

static const struct rlhf__flag *own_flag(const char *arg) {
    for (size_t i = 0; i < N_FLAGS; i++) {
        const size_t n = strlen(flags[i].name);
        if (strncmp(arg, flags[i].name, n) == 0 && (arg[n] == '\0' || arg[n] == '='))
            return &flags[i];
    }
    return NULL;
}

static rlhf_status split(int argc, char **argv, struct split *s, struct rlhf__error *err) {
    s->own = calloc((size_t)argc + 1, sizeof *s->own);
    s->run = calloc((size_t)argc + 1, sizeof *s->run);
    if (!s->own || !s->run) return RLHF__NOMEM(err, "out of memory");
    s->own[s->n_own++] = s->run[s->n_run++] = argv[0];
    for (int i = 1; i < argc; i++) {
        const struct rlhf__flag *f = own_flag(argv[i]);
        if (!f) {
            s->run[s->n_run++] = argv[i];
            continue;
        }
        s->own[s->n_own++] = argv[i];
        if (f->kind != RLHF__FLAG_SWITCH && !strchr(argv[i], '=') && i + 1 < argc)
            s->own[s->n_own++] = argv[++i];
    }
    return RLHF_OK;
}

static rlhf_status parse_ranks(const char *text, struct rlhf__scale_question *q,
                               struct rlhf__error *err) {
    char one[16];
    q->chosen = text != NULL;
    for (const char *at = text; text; at += strcspn(at, ",") + 1) {
        int64_t n = 0;
        const int len = (int)strcspn(at, ",");
        snprintf(one, sizeof one, "%.*s", len, at);
        if (len > 8 || !rlhf__typed_integer(one, &n) || n < 1 || n > RLHF__SCALE_MOST_RANKS ||
            q->n == RLHF__SCALE_RANKS)
            return rlhf__fail(
                err, RLHF_E_INVALID,
                "--ranks is \"%s\"; at most %d whole numbers from 1 to %d are allowed, "
                "with commas between them: 1,2,4",
                text, RLHF__SCALE_RANKS, RLHF__SCALE_MOST_RANKS);
        q->ranks[q->n++] = (double)n;
        if (!at[len]) return RLHF_OK;
    }
    for (int n = 1; n <= 1024; n *= 2)
        q->ranks[q->n++] = n;
    return RLHF_OK;
}

static rlhf_status read_network(struct job *j, struct rlhf__error *err) {
    const char *text = j->o.network;
    struct rlhf__scale_figures file = {.has_line = 0};
    if (!text || !rlhf__is_file(text)) {
        if (text) RLHF_TRY(rlhf__scale_line_typed(text, &j->figures.line, err));
        j->figures.has_line |= text != NULL;
    } else {
        RLHF_TRY(rlhf__scale_figures_read(text, &file, err));
        if (!file.has_line)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s has no \"network\"; mpirun -n 2 rlhf-host scale --measure FILE "
                              "measures it",
                              text);
        j->figures.line = file.line;
        j->figures.has_line = 1;
    }
    if (j->figures.has_line) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "scale: the network between the ranks is not known; give --network FILE, "
                      "which mpirun -n 2 rlhf-host scale --measure FILE writes, or a rate and a "
                      "latency: --network 10gbit,20us");
}

static rlhf_status read_figures(struct job *j, const struct split *s, struct rlhf__error *err) {
    const struct options *o = &j->o;
    const struct rlhf__flag_idle idle[] = {{"--measure", o->measure != NULL, 0},
                                           {"--measured-rows", o->measured > 0, 0}};
    if (o->from) {
        RLHF_TRY(rlhf__flags_idle(idle, 2, "scale", "with --from: nothing is measured", err));
        if (s->n_run > 1)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "scale: %s is not allowed with --from, because the file describes "
                              "the run; leave out one of them",
                              s->run[1]);
        RLHF_TRY(rlhf__scale_figures_read(o->from, &j->figures, err));
        if (!j->figures.has_run)
            return rlhf__fail(
                err, RLHF_E_INVALID,
                "%s has a network but no run; give it with --network and name the run", o->from);
    } else if (s->n_run == 1) {
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "scale: name the run that is planned, as for training (--algo X.so ..), or "
            "--from FILE");
    }
    return read_network(j, err);
}

// ---- the forecast ----

static rlhf_status print(struct job *j, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (j->o.rows) j->figures.plan.rows = (double)j->o.rows;
    if (j->o.json) return rlhf__print_json_new(rlhf__scale_json(&j->figures, &j->question), err);
    rlhf__scale_table(&j->figures, &j->question, &text);
    rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK) fputs(rlhf__buf_text(&text), stdout);
    rlhf__buf_free(&text);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

static int measured(const struct rlhf__run_request *req, void *self) {
    struct job *j = self;
    struct rlhf__error err = {0, ""};
    const int64_t most = j->o.measured ? j->o.measured : 64;
    rlhf_status st = rlhf__scale_measure(req, most, &j->figures, &err);
    if (st == RLHF_OK && j->o.measure)
        st =
            rlhf__json_save_new(NULL, j->o.measure, rlhf__scale_figures_json(&j->figures), 2, &err);
    if (st == RLHF_OK) st = print(j, &err);
    return rlhf__cmd_end(req->env, st, &err);
}

// Returns 1 if the command measures the network, i.e. with --measure FILE but without a run.
static int only_network(const struct job *j, const struct split *s) {
    return j->o.measure && !j->o.from && s->n_run == 1;
}

// Check the file of --measure before anything is measured.
static rlhf_status check_measure(const char *path, struct rlhf__error *err) {
    struct rlhf__scale_figures *before = calloc(1, sizeof *before);
    const rlhf_status st =
        before ? rlhf__scale_figures_before(path, before, err) : RLHF__NOMEM(err, "out of memory");
    free(before);
    return st;
}

// With --measure FILE and no run, nothing is forecast.
static rlhf_status check_network_flags(const struct options *o, struct rlhf__error *err) {
    const struct rlhf__flag_idle idle[] = {
        {"--ranks", o->ranks != NULL, 0},     {"--ranks-per-host", o->per_host > 0, 0},
        {"--network", o->network != NULL, 0}, {"--rows", o->rows > 0, 0},
        {"--per-rank", o->per_rank, 0},       {"--measured-rows", o->measured > 0, 0}};
    return rlhf__flags_idle(idle, sizeof idle / sizeof *idle, "scale",
                            "with --measure and no run: only the network is measured", err);
}

static rlhf_status prepare(struct job *j, const struct split *s, struct rlhf__error *err) {
    RLHF_TRY(rlhf__flags_parse(flags, N_FLAGS, s->n_own, s->own, &j->o, NULL, err));
    RLHF_TRY(parse_ranks(j->o.ranks, &j->question, err));
    j->question.per_host = j->o.per_host ? (double)j->o.per_host : 1;
    j->question.grows = j->o.per_rank;
    if (only_network(j, s)) return check_network_flags(&j->o, err);
    RLHF_TRY(rlhf__join_refuse("scale, except --measure FILE without a run,", err));
    if (j->o.measure && !j->o.from) RLHF_TRY(check_measure(j->o.measure, err));
    return read_figures(j, s, err);
}

int rlhf__cmd_scale(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct split s = {0};
    int status;
    if (rlhf__flags_helped(flags, N_FLAGS, USAGE, argc, argv)) return 0;
    struct job *j = calloc(1, sizeof *j);
    rlhf_status st = j ? split(argc, argv, &s, &err) : RLHF__NOMEM(&err, "out of memory");
    if (st == RLHF_OK) st = prepare(j, &s, &err);
    const struct rlhf__cli_use use = {.run = measured, .self = j, .command = "scale"};
    if (st != RLHF_OK) // one of several processes is enough to say why
        status =
            rlhf__launch_read().rank > 0 ? rlhf__exit_status(st) : rlhf__cmd_end(env, st, &err);
    else if (only_network(j, &s))
        status = rlhf__scale_ranks(env, j->o.measure, j->o.json);
    else if (j->o.from)
        status = rlhf__cmd_end(env, print(j, &err), &err);
    else
        status = rlhf__cli_with_run(env, s.n_run, s.run, &use);
    free(s.own);
    free(s.run);
    free(j);
    return status;
}
