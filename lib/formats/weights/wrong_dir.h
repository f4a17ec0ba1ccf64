// wrong_dir.h: says what a path is if it is not a model directory that this program reads, and what
// to give instead: another format (GGUF, pickles), a folder of the hub's cache, a hub name, the
// output folder of a trainer.
#ifndef RLHF_FORMATS_WEIGHTS_WRONG_DIR_H
#define RLHF_FORMATS_WEIGHTS_WRONG_DIR_H

#include "base/error.h"

// `dir` lacks weights that this program reads. Most other formats are pickles, which are never
// read, because reading them would run their code. Returns RLHF_E_INVALID. [any]
rlhf_status rlhf__wrong_weights(const char *dir, struct rlhf__error *err);

// `dir` lacks a config.json, is a file, or does not exist. Returns RLHF_E_INVALID. [any]
rlhf_status rlhf__wrong_dir(const char *dir, struct rlhf__error *err);

// A GGUF file was given where a model with a score head is needed, e.g. what = "reward model".
// Returns RLHF_E_INVALID. [any]
rlhf_status rlhf__wrong_head(const char *path, const char *what, struct rlhf__error *err);

#endif
