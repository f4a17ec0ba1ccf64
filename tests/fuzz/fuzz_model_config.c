// fuzz_model_config.c: reads any bytes as the config.json of a model directory, and creates the
// model's instance. A refusal has a reason. An accepted model returns its labels and end tokens,
// and can be destroyed.
#include "fuzz.h"

#include "base/json.h"
#include "model/model_config.h"
#include "plugin/services.h"
#include "weights/hf_dir.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct rlhf__plugins *plugins;
static struct rlhf__services services;

static void start(void) {
    static struct rlhf__dirs dirs;
    struct rlhf__error err = {0};
    const struct rlhf__plugin *llama = NULL; // without it nothing would be tested
    if (plugins) return;
    snprintf(dirs.lib, sizeof dirs.lib, "%s/lib/rlhf/1", FUZZ_BUILD_DIR);
    FUZZ_CHECK(rlhf__plugins_open(&dirs, &plugins, &err) == RLHF_OK);
    FUZZ_CHECK(rlhf__plugin_open(plugins, "llama.so", RLHF_KIND_MODEL, RLHF__NAME_LOOKED_UP,
                                 "config.json", &llama, &err) == RLHF_OK);
    services = (struct rlhf__services){.phase = -1};
}

static rlhf_status make(const char *type, json_t *config, struct rlhf__error *err) {
    char name[256];
    const struct rlhf__plugin *plugin = NULL;
    struct rlhf__instance *instance = NULL;
    struct rlhf__origin from = {"config.json", "", NULL, 0, 1};
    snprintf(name, sizeof name, "%s.so", type);
    RLHF_TRY(rlhf__plugin_open(plugins, name, RLHF_KIND_MODEL, RLHF__NAME_LOOKED_UP, "config.json",
                               &plugin, err));
    RLHF_TRY(
        rlhf__instance_open(plugin, &services, "models/policy", config, &from, &instance, err));
    rlhf__instance_close(instance);
    return RLHF_OK;
}

static rlhf_status look_at(const char *dir, json_t **config, struct rlhf__error *err) {
    const char *type = NULL;
    struct rlhf__labels labels = {0};
    RLHF_TRY(rlhf__hf_config_read(dir, config, err));
    RLHF_TRY(rlhf__hf_model_type(*config, dir, &type, err));
    RLHF_TRY(rlhf__config_common(*config, dir, err));
    RLHF_TRY(rlhf__hf_labels(*config, dir, &labels, err));
    for (int32_t i = 0; i < labels.n; i++)
        FUZZ_CHECK(rlhf__labels_find(&labels, labels.name[i]) >= 0);
    const int32_t n = labels.n;
    rlhf__labels_finish(&labels);
    RLHF_TRY(rlhf__config_labels(*config, dir, n, err));
    return make(type, *config, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    char dir[128], path[256];
    const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    struct rlhf__error err = {0};
    json_t *config = NULL;
    start();
    snprintf(dir, sizeof dir, "%s/rlhf-fuzz-model-%ld", tmp, (long)getpid());
    snprintf(path, sizeof path, "%s/config.json", dir);
    FUZZ_CHECK(mkdir(dir, 0700) == 0);
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
    const rlhf_status st = look_at(dir, &config, &err);
    if (st < 0) FUZZ_CHECK(err.text[0] && err.code < 0);
    json_decref(config);
    unlink(path);
    rmdir(dir);
    return 0;
}
