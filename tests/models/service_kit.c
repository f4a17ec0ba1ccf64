// service_kit.c: see service_kit.h.
#include "service_kit.h"

#include "support/check.h"

#include <string.h>

static rlhf_status take(const rlhf_host *host, rlhf_status code, const char *msg) {
    struct service_kit *k = (struct service_kit *)(uintptr_t)host;
    k->said = (struct rlhf__error){0, ""};
    rlhf__fail(&k->said, code, "%s", msg);
    return code;
}

static const void *find(const rlhf_host *host, const char *id) {
    const struct service_kit *k = (const struct service_kit *)host;
    return rlhf__services_find(&k->session.services, id);
}

void service_kit_calls(struct service_kit *k, const char *function) {
    if (function)
        rlhf__on_call_begin(&k->whole.on_call, function);
    else
        rlhf__on_call_end(&k->whole.on_call, NULL);
}

int service_kit_init(struct service_kit *k) {
    static const struct rlhf__plugin reward = {.desc = {.kind = RLHF_KIND_REWARD}};
    memset(k, 0, sizeof *k);
    k->whole.instance.plugin = &reward;
    service_kit_calls(k, "create()");
    k->host = (rlhf_host){.size = sizeof k->host, .fail = take, .service = find};
    if (rlhf__dirs_find(&k->dirs, NULL) != RLHF_OK) return -1;
    if (rlhf__plugins_open(&k->dirs, &k->plugins, NULL) != RLHF_OK) return -1;
    const struct rlhf__compute_config compute = {.backend = "cpu", .dtype = RLHF__DTYPE_F32};
    const struct rlhf__run_config run = {.seed = 1, .threads = 1};
    if (rlhf__session_init(&k->session, &k->dirs, NULL, NULL, k->plugins, &compute, &run, NULL))
        return -1;
    return rlhf__text_services_open(&k->session.models, &k->dirs, &k->served, NULL) ? -1 : 0;
}

int service_kit_finish(struct service_kit *k) {
    const int left = rlhf__text_services_at(k->served, 0) != NULL;
    rlhf__text_services_close(k->served);
    rlhf__session_finish(&k->session);
    rlhf__plugins_close(k->plugins);
    return left;
}

void service_works(const struct service_kit *k, rlhf_status st) {
    if (st != RLHF_OK) fail_msg("%s", k->said.text);
}

void service_refused(const struct service_kit *k, rlhf_status st, rlhf_status as, const char *why) {
    assert_int_equal(st, as);
    assert_int_equal(k->said.code, as);
    if (!strstr(k->said.text, why)) fail_msg("\"%s\" is not in \"%s\"", why, k->said.text);
}
