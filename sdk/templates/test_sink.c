// test_sink.c: loads my_sink.so as the host would, simulates runs of a few phases, and checks the
// file that the sink wrote.
//
// Usage: test_sink path/to/my_sink.so
#include <rlhf/sink.h>
#include <rlhf/test.h>

#include <stdio.h>

static struct rlhf_test_host host;
static const rlhf_plugin *plugin;
static _Alignas(16) unsigned char config[256];

// Phase k reports k times these values.
static const char *const names[] = {"objective/kl", "objective/scores"};
static const double values[] = {0.5, 2};

static rlhf_status play(const char *dir, int64_t done, int64_t phases, int32_t how) {
    const struct rlhf_test_run run = {.dir = dir,
                                      .why = "stopped by a test",
                                      .done = done,
                                      .phases = phases,
                                      .n_metrics = 2,
                                      .how = how,
                                      .names = names,
                                      .values = values};
    void *self = NULL;
    rlhf_status st = plugin->create(&host.table, config, &self);
    if (st >= 0) st = rlhf_test_sink(plugin->ops, self, &run);
    plugin->destroy(self);
    return st;
}

static int holds(const char *path, const char *want) {
    char text[256] = "";
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return strcmp(text, want) == 0;
}

static void writes_every_phase(void) {
    static const char path[] = "test_sink.out";
    RLHF_TEST_CHECK(&host, rlhf_test_set(plugin, config, "file", path));
    RLHF_TEST_CHECK(&host, play(".", 0, 2, RLHF_RUN_STOPPED) == RLHF_OK);
    RLHF_TEST_CHECK(&host, holds(path, "1 2\n2 4\n"));
    RLHF_TEST_CHECK(&host, rlhf_test_logged(&host, "stopped by a test"));
    RLHF_TEST_CHECK(&host,
                    play(".", 1, 3, RLHF_RUN_DONE) == RLHF_OK); // after a resume all phases arrive
    RLHF_TEST_CHECK(&host, holds(path, "1 2\n2 4\n3 6\n"));
    remove(path);
}

static rlhf_status begin_and_end(struct rlhf_test_host *t, void *arg) {
    void *self = NULL;
    (void)arg;
    rlhf_status st = plugin->create(&t->table, config, &self);
    plugin->destroy(self);
    return st;
}

int main(int argc, char **argv) {
    plugin = argc == 2 ? rlhf_test_open(argv[1], 0) : NULL;
    if (!plugin) return 2;
    rlhf_test_init(&host, 1);
    if (RLHF_TEST_CHECK(&host, plugin->config_size <= sizeof config)) {
        rlhf_test_config(plugin, config);
        writes_every_phase();
        // If the directory does not exist, the sink must report it.
        RLHF_TEST_CHECK(&host, play("no/such/directory", 0, 1, RLHF_RUN_DONE) == RLHF_E_IO);
        RLHF_TEST_CHECK(&host, strstr(rlhf_test_failure(&host), "cannot be opened"));
        // Let each allocation of create() fail once.
        RLHF_TEST_CHECK(&host, rlhf_test_alloc_sweep(&host, begin_and_end, NULL) >= 0);
    }
    return rlhf_test_end(&host); // 1 if a check failed or memory was not freed
}
