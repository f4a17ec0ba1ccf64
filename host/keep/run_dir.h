// run_dir.h: the directory a run leaves behind: its name, who may write it, and what is written at
// its start. It is held by descriptor, so that nothing that changes the working directory later
// diverts what is written.
#ifndef RLHF_HOST_RUN_DIR_H
#define RLHF_HOST_RUN_DIR_H

#include "base/folder.h"
#include "base/log.h"
#include "config/config.h"

struct rlhf__run_dir {
    char name[4096];            // as messages call it
    char path[4096];            // resumed: absolute
    char checkpoint[4096];      // resumed: absolute path of the checkpoint it goes on from
    struct rlhf__folder *start; // the working directory at the start; NULL when it cannot be read
    struct rlhf__folder *root;  // NULL until it is made
    int lock;                   // descriptor, -1 = none
    int32_t numbered;           // 1: the name is runs/<algo>-<date>-<n>, and n may still grow
    int32_t found;              // 1: a directory that was there, with nothing of worth in it
    int32_t reserved;
};

// First of all, before any plugin is opened: remember where the process stands and open the
// directory to resume (NULL = a new run). What is wrong with it is told later. Release with
// rlhf__run_dir_finish, also after failures. [main]
void rlhf__run_dir_begin(struct rlhf__run_dir *d, const char *resume);
void rlhf__run_dir_finish(struct rlhf__run_dir *d);

// A new run: choose the name, run.dir or runs/<algo>-<date>-<n>. An existing run.dir is refused
// (RLHF_E_INVALID) with what it is, unless it is an empty directory or holds only what a run leaves
// that ended before its first phase (leftover.h). Nothing is made. [main]
rlhf_status rlhf__run_dir_choose(struct rlhf__run_dir *d, const struct rlhf__config *config,
                                 const char *algo, struct rlhf__error *err);

// Whether there is a checkpoint to go on from. After a crash between a checkpoint and its link,
// attaching repairs the link. [main]
int rlhf__run_dir_has_checkpoint(const struct rlhf__folder *run);

// Before a run is attached: RLHF_E_INVALID when attaching would fail because the run is alive or
// has no checkpoint. Changes nothing. [main]
rlhf_status rlhf__run_dir_can_go_on(const struct rlhf__run_dir *d, struct rlhf__error *err);

// A run that goes on: take its lock, finish or clear away what a crash left half done, and find its
// newest checkpoint. A dry run only looks. Errors: RLHF_E_INVALID when the run is alive, has no
// checkpoint, or is reached through links. [main]
rlhf_status rlhf__run_dir_attach(struct rlhf__run_dir *d, const char *resume, int dry,
                                 struct rlhf__log *log, struct rlhf__error *err);

// Make the directory of a new run, which no other process can have made (or take the one that was
// found, unless another has it by now, and clear it), take its lock and write config.json (the
// resolved config). [main]
rlhf_status rlhf__run_dir_make(struct rlhf__run_dir *d, const struct rlhf__config *config,
                               struct rlhf__log *log, struct rlhf__error *err);

// A run that goes on: config.json says what was changed for it, run.stop_after excepted. [main]
rlhf_status rlhf__run_dir_store(const struct rlhf__run_dir *d, const struct rlhf__config *config,
                                struct rlhf__error *err);

#endif
