// fuzz_config.c: reads any bytes as a config file, as --set assignments, or as the value of an
// option that is a list. The first byte chooses among these. An accepted config or list is printed
// as JSON. If this JSON is read and printed again, the result is the same. A refusal names the
// place.
#include "fuzz.h"

#include "config/config.h"
#include "config/config_json.h"

#include <string.h>
#include <unistd.h>

static void write_file(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static struct rlhf__buf printed(const struct rlhf__config *c) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    FUZZ_CHECK(rlhf__config_print(c, &b, &err) == RLHF_OK);
    return b;
}

// The printed file gives the same text if it is read and printed again.
static void check_reads_back(const char *path, const struct rlhf__config *c) {
    struct rlhf__dirs dirs = {.lib = "/nowhere", .share = "/nowhere"};
    struct rlhf__config_request req = {.dirs = &dirs, .config_file = path};
    struct rlhf__config again;
    struct rlhf__error err = {0};
    struct rlhf__buf a = printed(c);
    write_file(path, a.data, a.len);
    FUZZ_CHECK(rlhf__config_load(&req, &again, &err) == RLHF_OK);
    struct rlhf__buf b = printed(&again);
    FUZZ_CHECK(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
    rlhf__buf_finish(&a);
    rlhf__buf_finish(&b);
    rlhf__config_finish(&again);
}

static void as_file(const char *path, const uint8_t *data, size_t n) {
    struct rlhf__dirs dirs = {.lib = "/nowhere", .share = "/nowhere"};
    struct rlhf__config_request req = {.dirs = &dirs, .config_file = path};
    struct rlhf__config c;
    struct rlhf__error err = {0};
    write_file(path, data, n);
    if (rlhf__config_load(&req, &c, &err) == RLHF_OK)
        check_reads_back(path, &c);
    else
        FUZZ_CHECK(err.code == RLHF_E_INVALID && *err.text);
    rlhf__config_finish(&c);
}

static void as_assignments(const char *path, const uint8_t *data, size_t n) {
    struct rlhf__dirs dirs = {.lib = "/nowhere", .share = "/nowhere"};
    const char *set[16], *reward = "x.so";
    char *text = calloc(1, n + 1);
    struct rlhf__config_request req = {.dirs = &dirs, .set = set, .reward = &reward, .n_reward = 1};
    struct rlhf__config c;
    struct rlhf__error err = {0};
    FUZZ_CHECK(text);
    if (n) memcpy(text, data, n);
    for (char *line = strtok(text, "\n"); line && req.n_set < 16; line = strtok(NULL, "\n"))
        set[req.n_set++] = line;
    if (rlhf__config_load(&req, &c, &err) == RLHF_OK)
        check_reads_back(path, &c);
    else
        FUZZ_CHECK(err.code == RLHF_E_INVALID && *err.text);
    rlhf__config_finish(&c);
    free(text);
}

struct lists {
    const char *const *any, *const *some;
};

static void as_list(const uint8_t *data, size_t n) {
    static const char *const words[] = {"a", "b,c", "", NULL};
    static const rlhf_opt opts[] = {RLHF_OPT_LIST(struct lists, any, NULL, NULL, ""),
                                    RLHF_OPT_LIST(struct lists, some, NULL, words, "")};
    const struct rlhf__opt_table table = {opts, 2, sizeof *opts};
    const struct rlhf__origin from = {"--set", "x", NULL, 0, 0};
    struct rlhf__strings strings = {0};
    struct rlhf__error err = {0};
    struct lists own, again;
    char *text = calloc(1, n + 1);
    FUZZ_CHECK(text);
    if (n) memcpy(text, data, n);
    json_t *v = json_loadb(text, n, JSON_DECODE_ANY, NULL);
    if (!v) v = json_string(text);
    for (uint32_t i = 0; v && i < 2; i++) {
        FUZZ_CHECK(rlhf__opts_defaults(&table, &own, &strings, &err) == RLHF_OK);
        FUZZ_CHECK(rlhf__opts_defaults(&table, &again, &strings, &err) == RLHF_OK);
        if (rlhf__opts_set(&table, opts[i].key, v, text, &from, &own, &strings, &err) < 0) {
            FUZZ_CHECK(err.code == RLHF_E_INVALID && strstr(err.text, opts[i].key));
            continue;
        }
        json_t *a = rlhf__opt_json(&opts[i], &own);
        FUZZ_CHECK(rlhf__opts_set(&table, opts[i].key, a, NULL, &from, &again, &strings, &err) ==
                   RLHF_OK);
        json_t *b = rlhf__opt_json(&opts[i], &again);
        FUZZ_CHECK(a && json_is_array(a) && json_equal(a, b));
        json_decref(a);
        json_decref(b);
    }
    json_decref(v);
    free(text);
    rlhf__strings_finish(&strings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    char path[128];
    const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/rlhf-fuzz-%ld.json", tmp, (long)getpid());
    if (n > 0 && data[0] == '@') {
        as_list(data + 1, n - 1);
        return 0;
    }
    if (n > 0 && data[0] == '#')
        as_assignments(path, data + 1, n - 1);
    else
        as_file(path, data, n);
    unlink(path);
    return 0;
}
