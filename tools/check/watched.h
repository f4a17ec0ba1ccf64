// watched.h: an instance of a plugin on a host that watches it: what it allocates, says and
// reports, on which thread and in which call. For a child process that tries a plugin.
#ifndef RLHF_HOST_CHECK_WATCHED_H
#define RLHF_HOST_CHECK_WATCHED_H

#include "check/board.h"
#include "plugin/row_service.h"
#include "plugin/services.h"

struct rlhf__check_fakes; // services made of paper (fakes.h)

// One plugin of the file that is tried, in a child.
struct rlhf__check {
    struct rlhf__board *board;
    const struct rlhf__dirs *dirs;
    const struct rlhf__plugin *plugin;
    const json_t *options; // as the author gave them, may be NULL
    const json_t *rows;    // data rows as the author gave them, may be NULL
    int32_t seconds;       // that a step may take
    int32_t reserved;
    struct rlhf__services services;
    struct rlhf__note failure;
    struct rlhf__row_service row;
    struct rlhf__check_fakes *fakes;
};

// The services that instances find: rows as the host has them, the others of paper. RLHF_E_NOMEM.
// c must stay where it is. [main]
rlhf_status rlhf__check_services(struct rlhf__check *c, struct rlhf__error *err);
void rlhf__check_services_finish(struct rlhf__check *c); // [main]

struct rlhf__watched_host;

struct rlhf__watched {
    struct rlhf__check *check;
    struct rlhf__watched_host *host;
    void *config, *self;
    struct rlhf__strings strings;
};

// Make an instance with these options (NULL: the author's). fail_at: the allocation that gets no
// memory, 1 = the first, 0 = none. What create() does against the rules is found; a failure, whose
// sentence err has, is the caller's to judge. *t needs finish also after one. [main]
rlhf_status rlhf__watched_create(struct rlhf__check *c, const json_t *options, int64_t fail_at,
                                 struct rlhf__watched *t, struct rlhf__error *err);
// Destroy the instance; what it kept is found. [main]
void rlhf__watched_finish(struct rlhf__watched *t);

// Between the two a function of the plugin runs, which is told to stop when it waits (it warned,
// and asks host->cancelled since) and is then called no more: st is what it returned, and what is
// wrong with it or with how it failed is found. Returns st, or RLHF_E_INTERNAL for one that is no
// status; err has the plugin's own words. [any]
void rlhf__watched_begin(struct rlhf__watched *t, const char *function);
rlhf_status rlhf__watched_end(struct rlhf__watched *t, rlhf_status st, struct rlhf__error *err);

// Allocations so far, and let number n from now on fail (0: none). [main]
int64_t rlhf__watched_allocs(const struct rlhf__watched *t);
void rlhf__watched_fail_alloc(struct rlhf__watched *t, int64_t n);

// 1 when an allocation failed so. [main]
int rlhf__watched_starved(const struct rlhf__watched *t);

// What it said with host->fail in the last call, or "". [main]
const char *rlhf__watched_words(const struct rlhf__watched *t);

// What the plugin asked for that the check has no stand-in for: the id of a service, or "". [main]
const char *rlhf__watched_missing(const struct rlhf__watched *t);

#endif
