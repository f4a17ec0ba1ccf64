// plugin.h: opens a plugin that runs code in another process, and creates an instance of it, for
// benchmarks.
#ifndef RLHF_BENCH_PLUGIN_H
#define RLHF_BENCH_PLUGIN_H

#include "bench.h"

#include "worker/programs.h"

struct bench_plugin {
    const rlhf_plugin *plugin;
    void *config, *self;
    struct rlhf_test_host host;
    struct rlhf__programs programs;
};

// Opens the plugin `file` in lib_dir/`folder` and creates an instance. `set` lists the options and
// ends with NULL. Ends the program on failure. *p must not move until bench_plugin_close.
void bench_plugin_open(struct bench_plugin *p, const struct bench *b, const char *folder,
                       const char *file, const char *const (*set)[2]);
void bench_plugin_close(struct bench_plugin *p);

double bench_seconds(void); // wall time

// Writes a temporary Python file. `path` must end in "XXXXXX.py"; the X's are replaced so that the
// name is unique. The caller unlinks the file.
void bench_python_file(char *path, const char *text);

#endif
