// load.h: finds, opens and checks plugins. If a file is rejected, one sentence gives the reason.
//
// Files are never dlclosed, because threads that they started may still use their code at exit.
#ifndef RLHF_HOST_PLUGIN_LOAD_H
#define RLHF_HOST_PLUGIN_LOAD_H

#include "base/dirs.h"
#include "plugin/descriptor.h"
#include "plugin/trust.h"

// Returns the name by which users know the plugin, i.e. the name of its file. If the plugin was not
// read from a file, returns its id. Borrowed. [any]
const char *rlhf__plugin_name(const struct rlhf__plugin *p);

// Owns all plugins that this process has opened.
struct rlhf__plugins;

// Create an empty list of plugins. [main]
rlhf_status rlhf__plugins_open(const struct rlhf__dirs *dirs, struct rlhf__plugins **out,
                               struct rlhf__error *err);
void rlhf__plugins_close(struct rlhf__plugins *p); // `p` may be NULL; files stay mapped

// Do not compute the sha256 of files that are opened after this call. This is for callers that only
// describe plugins, because computing the checksum of a large file takes longer than opening it.
// [main]
void rlhf__plugins_leave_sums(struct rlhf__plugins *p);

// Returns the number of open plugins. *out is an array of them in the order of opening, valid until
// another one is opened. [main]
size_t rlhf__plugins_list(const struct rlhf__plugins *p, const struct rlhf__plugin *const **out);

// Open a plugin of the kind `kind`. `asker` says where the name was given, for messages ("--algo",
// "config.json's model_type").
// - If `from` (enum rlhf__name_from) allows it, `name` may be an existing file.
// - Otherwise `name` is looked up in the directories of RLHF_PLUGIN_PATH, then in the user's
//   directory (dirs->user), then in <lib>/<kind>s. A missing ".so" is added.
// - "#id" at the end chooses one of several plugins in a file.
//
// If the file is already open, the same plugin is returned. A file that others can change is
// rejected (trust.h). *out lives as long as `p`. [main]
rlhf_status rlhf__plugin_open(struct rlhf__plugins *p, const char *name, int32_t kind, int32_t from,
                              const char *asker, const struct rlhf__plugin **out,
                              struct rlhf__error *err);

// Find the file for a name, as rlhf__plugin_open does. *path is heap-allocated, and so is *id, the
// part after "#". If there is no such part, *id is NULL. [main]
rlhf_status rlhf__plugins_find(const struct rlhf__plugins *p, const char *name, int32_t kind,
                               int32_t from, const char *asker, char **path, char **id,
                               struct rlhf__error *err);

// Call rlhf__trust_code for a file. [main]
rlhf_status rlhf__plugins_trust(const struct rlhf__plugins *p, const char *path,
                                struct rlhf__error *err);

// Returns rlhf__dirs.program, borrowed. [main]
const char *rlhf__plugins_program(const struct rlhf__plugins *p);

// Returns 1 if the file is one of the plugins that came with the program. [main]
int rlhf__plugins_shipped(const struct rlhf__plugins *p, const char *path);

// Like rlhf__plugin_open, for a file whose permissions the parent process has already checked. `id`
// selects the plugin; "" means the only one. [main]
rlhf_status rlhf__plugin_open_trusted(struct rlhf__plugins *p, const char *path, const char *id,
                                      int32_t kind, const char *asker,
                                      const struct rlhf__plugin **out, struct rlhf__error *err);

// Add a plugin whose file is not opened in this process. `src` describes the plugin, and is checked
// like the descriptor in an open file. Takes ownership of *outside, except after an error. [main]
rlhf_status rlhf__plugins_add_outside(struct rlhf__plugins *p, const char *path,
                                      const char sha256[65], const rlhf_plugin *src,
                                      struct rlhf__outside *outside,
                                      const struct rlhf__plugin **out, struct rlhf__error *err);

// Returns the reason why the other options in `config` disable option `key`, or NULL if the option
// has an effect. [any]
const char *rlhf__plugin_why_unused(const struct rlhf__plugin *, const void *config,
                                    const char *key);

// Returns the plugin's table for an optional interface, or NULL. `self` is NULL if there is no
// instance. [any]
const void *rlhf__plugin_extension(const struct rlhf__plugin *, void *self, const char *id);

// Append a list "a, b" to *out: the names, without ".so", of the plugins in the folders of a kind
// ("models"), in search order. Sets *there to 1 if `name` is one of these names or the name of a
// file directly in a searched directory, otherwise to 0. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__plugin_stems(const struct rlhf__plugins *p, int32_t kind, const char *name,
                               struct rlhf__buf *out, int *there);

// Open all plugins of a file, of any kind. *out is an array [*n] of pointers borrowed from `p`. The
// caller frees the array. [main]
rlhf_status rlhf__plugin_open_file(struct rlhf__plugins *p, const char *path,
                                   const struct rlhf__plugin ***out, size_t *n,
                                   struct rlhf__error *err);

// Returns the ABI's major number, from the name of the opened object's entry function, or -1 if the
// object is not a plugin. [main]
int rlhf__plugin_abi(void *object);

#endif
