// plugin_in_tree.h: `rlhf-host plugin new KIND NAME --in-tree`: adds a plugin to a clone of
// rlhf-host, with its test, its page, and its lines in the files that list all plugins.
#ifndef RLHF_TOOLS_CMD_PLUGIN_IN_TREE_H
#define RLHF_TOOLS_CMD_PLUGIN_IN_TREE_H

#include "base/error.h"

// What to add. `word` and `kind` name the kind ("algo"); `dir` is its directory below plugins/
// ("algos"); `what` describes it ("an algorithm").
struct rlhf__new_plugin {
    const char *word, *kind, *dir, *what, *name;
};

// Add the plugin to the clone in the directory `root`, and print what was written. All texts are
// made before the first file is written, and after a failure all files are as before. Errors:
// RLHF_E_INVALID if `root` is not a clone, if a kind cannot be added so, if a file exists already,
// or if a file lacks the line before or after which to write; RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__plugin_in_tree(const char *root, const struct rlhf__new_plugin *,
                                 struct rlhf__error *err);

#endif
