// ranks.c: a program that tests/mpi/ranks.sh starts as several ranks:
//
//   team_ranks WHAT [RANK]
//
//   work          exchanges of many sizes, gathers and headers, with checks of every byte
//   fail          RANK fails between two barriers; all ranks end with RANK's sentence and status 2
//   kill, stop, exit, segv   what happens to RANK after some barriers
//   barriers      RANK is at another barrier than the other ranks
//   sizes         RANK sends a number of bytes that the other ranks do not expect
//   hang          RANK does not come to a barrier
#include "base/clock.h"
#include "supervise/last_words.h"
#include "team/agree.h"
#include "team/team_open.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned char byte_of(int from, int to, uint64_t i) {
    return (unsigned char)((uint64_t)from * 31 + (uint64_t)to * 7 + i * 13 + i / 251);
}

// Sends a message of another length to every rank, eight exchanges at a time.
static rlhf_status exchange_all(struct rlhf__team *t, uint64_t bytes, struct rlhf__error *err) {
    rlhf_block *send = calloc((size_t)t->ranks, sizeof *send);
    rlhf_block *recv = calloc((size_t)t->ranks, sizeof *recv);
    rlhf_status st = send && recv ? RLHF_OK : (rlhf_status)RLHF_E_NOMEM;
    uint64_t ticket = 0;
    for (int k = 0; st == RLHF_OK && k < t->ranks; k++) {
        send[k] = (rlhf_block){malloc(bytes + 16), bytes + (uint64_t)(t->rank + 2 * k)};
        recv[k] = (rlhf_block){calloc(1, bytes + 16), bytes + (uint64_t)(k + 2 * t->rank)};
        for (uint64_t i = 0; send[k].at && i < send[k].bytes; i++)
            ((unsigned char *)send[k].at)[i] = byte_of(t->rank, k, i);
    }
    for (int round = 0; st == RLHF_OK && round < 20; round++) {
        st = rlhf__team_exchange(t, send, recv, &ticket, err);
        if (st == RLHF_OK && round % 3 == 2) st = rlhf__team_wait(t, ticket, err);
    }
    if (st == RLHF_OK) st = rlhf__team_wait(t, ticket, err);
    for (int k = 0; st == RLHF_OK && k < t->ranks; k++)
        for (uint64_t i = 0; k != t->rank && i < recv[k].bytes; i++)
            if (((unsigned char *)recv[k].at)[i] != byte_of(k, t->rank, i))
                st = rlhf__fail(err, RLHF_E_INTERNAL, "byte %llu from rank %d is wrong",
                                (unsigned long long)i, k);
    for (int k = 0; send && recv && k < t->ranks; k++) {
        free(send[k].at);
        free(recv[k].at);
    }
    free(send);
    free(recv);
    return st;
}

static rlhf_status gather_all(struct rlhf__team *t, uint64_t bytes, struct rlhf__error *err) {
    unsigned char *own = malloc(bytes), *all = malloc(bytes * (uint64_t)t->ranks);
    if (!own || !all) {
        free(own);
        free(all);
        return RLHF__NOMEM(err, "out of memory");
    }
    for (uint64_t i = 0; i < bytes; i++)
        own[i] = byte_of(t->rank, 0, i);
    rlhf_status st = rlhf__team_gather(t, own, bytes, all, err);
    for (int k = 0; st == RLHF_OK && k < t->ranks; k++)
        for (uint64_t i = 0; i < bytes; i++)
            if (all[(uint64_t)k * bytes + i] != byte_of(k, 0, i)) {
                free(own);
                free(all);
                return rlhf__fail(err, RLHF_E_INTERNAL, "byte %llu of rank %d is wrong",
                                  (unsigned long long)i, k);
            }
    free(own);
    free(all);
    return st;
}

static rlhf_status work(struct rlhf__team *t, struct rlhf__error *err) {
    static const uint64_t sizes[] = {1, 64, 4096, 65536, (1 << 20) + 1, 5 << 20};
    rlhf_status st = RLHF_OK;
    for (size_t i = 0; st == RLHF_OK && i < sizeof sizes / sizeof *sizes; i++) {
        st = exchange_all(t, sizes[i], err);
        if (st == RLHF_OK) st = gather_all(t, sizes[i], err);
        if (st == RLHF_OK) st = rlhf__team_agree(t, RLHF__BARRIER_PASS, NULL, st, err);
    }
    if (st != RLHF_OK || t->rank > 0) return st;
    const double from = rlhf__seconds();
    printf("%d ranks, %d here, %s\n", t->ranks, t->locals, t->table->detail);
    fflush(stdout);
    return from > 0 ? RLHF_OK : RLHF_E_INTERNAL;
}

// Measures the time of a header. Rank 0 prints it.
static rlhf_status ping(struct rlhf__team *t, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    const double from = rlhf__seconds();
    for (int i = 0; st == RLHF_OK && i < 2000; i++)
        st = rlhf__team_agree(t, RLHF__BARRIER_PASS, NULL, st, err);
    if (t->rank == 0) printf("%.1f us a header\n", (rlhf__seconds() - from) / 2000 * 1e6);
    return st;
}

static void happen(const char *what) {
    if (strcmp(what, "kill") == 0) raise(SIGKILL);
    if (strcmp(what, "stop") == 0) raise(SIGSTOP);
    if (strcmp(what, "exit") == 0) _exit(7);
    if (strcmp(what, "segv") == 0) raise(SIGSEGV);
    if (strcmp(what, "hang") == 0) sleep(1000);
}

static rlhf_status barriers(struct rlhf__team *t, const char *what, int rank,
                            struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    for (int i = 0; st == RLHF_OK && i < 100; i++) {
        const int now = i == 50 && t->rank == rank;
        const struct rlhf__wish wish = {.same = i};
        if (now) happen(what);
        if (now && strcmp(what, "fail") == 0)
            st = rlhf__fail(err, RLHF_E_INVALID, "this rank has no such file");
        if (now && strcmp(what, "sizes") == 0) st = gather_all(t, 100, err);
        if (st == RLHF_OK || !t->broken)
            st = rlhf__team_agree(t,
                                  now && strcmp(what, "barriers") == 0 ? RLHF__BARRIER_MINIBATCH
                                                                       : RLHF__BARRIER_PASS,
                                  &wish, st, err);
    }
    return st;
}

int main(int argc, char **argv) {
    struct rlhf__dirs dirs;
    struct rlhf__error err = {0, ""};
    struct rlhf__log log;
    struct rlhf__collective c = {0};
    const char *what = argc > 1 ? argv[1] : "work";
    const char *limit = getenv("TEAM_TIMEOUT"), *backend = getenv("TEAM_BACKEND");
    const int rank = argc > 2 ? atoi(argv[2]) : 0;
    const char *lib = getenv("TEAM_LIB");
    rlhf__log_init(&log);
    rlhf__last_words_install();
    if (rlhf__dirs_find(&dirs, &err) < 0) return 1;
    if (lib) snprintf(dirs.lib, sizeof dirs.lib, "%s", lib);
    const struct rlhf__collective_spec spec = {.dirs = &dirs,
                                               .launch = rlhf__launch_read(),
                                               .backend = backend ? backend : "auto",
                                               .timeout_s = limit ? atof(limit) : 0,
                                               .log = &log};
    rlhf_status st = rlhf__collective_open(&spec, &c, &err);
    rlhf__launch_forget();
    if (st == RLHF_OK && c.team.ranks == 0) printf("alone\n");
    if (st == RLHF_OK && c.team.ranks > 0)
        st = strcmp(what, "work") == 0   ? work(&c.team, &err)
             : strcmp(what, "ping") == 0 ? ping(&c.team, &err)
                                         : barriers(&c.team, what, rank, &err);
    const int32_t own = c.team.ranks ? c.team.rank : spec.launch.rank;
    if (st != RLHF_OK && (own == 0 || (c.team.ranks && !c.team.left)))
        rlhf__log_error(&log, err.text);
    const int status = rlhf__exit_status(st);
    rlhf__collective_close(&c, status);
    rlhf__log_finish(&log);
    return status;
}
