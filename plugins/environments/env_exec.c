// env_exec.c: an environment that a program in any language plays (docs/environments.md).
#include "lines.h"
#include "process/words.h"

struct config {
    const char *command;
};

struct env {
    struct rlhf__env_lines lines;
    char **words;
};

static void destroy(void *self) {
    struct env *e = self;
    if (!e) return;
    const rlhf_host *host = e->lines.host;
    rlhf__lines_finish(&e->lines);
    if (e->words) host->free(host, e->words);
    host->free(host, e);
}

static rlhf_status open_program(struct env *e, const struct config *c) {
    const rlhf_host *host = e->lines.host;
    RLHF_TRY(rlhf__words_split(host, c->command, &e->words));
    RLHF_TRY(rlhf__program_init(&e->lines.program, host, e->words, NULL));
    return rlhf__lines_start(&e->lines, RLHF_E_INVALID);
}

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct env *e = host->alloc(host, sizeof *e);
    if (!e) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    e->lines.host = e->lines.closed.host = host;
    e->lines.doing = "with its first line";
    e->lines.phase = -1;
    const rlhf_status st = open_program(e, config);
    if (st < 0) {
        destroy(e);
        return st;
    }
    *self = e;
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    {.key = "command",
     .help = "the program and its arguments, split into words as a shell does, which none runs",
     .type = RLHF_T_STR,
     .flags = RLHF_OPT_REQUIRED | RLHF_OPT_TRUSTED,
     .offset = offsetof(struct config, command)},
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ENVIRONMENT,
    .id = "org.rlhf-host.env_exec",
    .version = RLHF_SDK_VERSION,
    .summary = "an environment that a program plays, which reads and writes lines of JSON",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = destroy,
    .ops = &rlhf__lines_ops,
    .extension = rlhf__lines_extension,
};
RLHF_DEFINE_PLUGIN(plugin)
