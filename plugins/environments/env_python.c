// env_python.c: environments in Python, which the system's python3 runs. An environment is a class
// that TRL's environment_factory accepts, a list of functions that are tools, or a Gymnasium
// environment whose spaces are text (docs/environments.md). The plugin does not link Python and
// needs no Python package.
#include "environment_driver.h" // generated: rlhf__environment_driver
#include "lines.h"

enum { TRL, GYMNASIUM };

struct config {
    const char *file, *class_name, *tools, *rewards, *python;
    int32_t api;
};

struct env {
    struct rlhf__env_lines lines;
    char *argv[9];
    char name[256]; // "game.py (python3)"
};

static const char *const environment[] = {
    "PYTHONHASHSEED=0", // sets have the same order when a run is resumed
    NULL,
};

static void destroy(void *self) {
    struct env *e = self;
    if (!e) return;
    rlhf__lines_finish(&e->lines);
    e->lines.host->free(e->lines.host, e);
}

static rlhf_status check(const rlhf_host *host, const struct config *c) {
    if (!c->class_name && !c->tools)
        return (host->fail)(host, RLHF_E_INVALID,
                            "class=NAME or tools=NAME,NAME is needed, to say what in the file is "
                            "the environment");
    if (c->api == GYMNASIUM && (c->tools || c->rewards || !c->class_name))
        return (host->fail)(host, RLHF_E_INVALID,
                            "api=gymnasium is for class=NAME, without tools and rewards");
    return RLHF_OK;
}

static rlhf_status open_python(struct env *e, const struct config *c) {
    static const char *const apis[] = {"trl", "gymnasium"};
    const char *slash = strrchr(c->file, '/');
    RLHF_TRY(check(e->lines.host, c));
    char *const argv[] = {rlhf__program_word(c->python),
                          rlhf__program_word("-c"),
                          rlhf__program_word(rlhf__environment_driver),
                          rlhf__program_word(c->file),
                          rlhf__program_word(apis[c->api]),
                          rlhf__program_word(c->class_name ? c->class_name : ""),
                          rlhf__program_word(c->tools ? c->tools : ""),
                          rlhf__program_word(c->rewards ? c->rewards : ""),
                          NULL};
    memcpy(e->argv, argv, sizeof argv);
    snprintf(e->name, sizeof e->name, "%.120s (%.120s)", slash ? slash + 1 : c->file, c->python);
    RLHF_TRY(rlhf__program_init(&e->lines.program, e->lines.host, e->argv, environment));
    e->lines.program.name = e->name;
    return rlhf__lines_start(&e->lines, RLHF_E_INVALID);
}

// Logs that the user's class gives no reward. The host cannot see this, because the plugin has the
// flag RLHF_ENVIRONMENT_PAYS for all classes.
static void say_unpaid(const struct env *e, const struct config *c) {
    char text[512];
    if (e->lines.hello.finish || c->api != TRL) return;
    snprintf(text, sizeof text,
             "%s gives no reward: %.120s has no get_reward(), and rewards= is not given; the "
             "run's rewards come only from --reward",
             e->name, c->class_name ? c->class_name : c->tools);
    e->lines.host->log(e->lines.host, RLHF_LOG_INFO, text);
}

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct env *e = host->alloc(host, sizeof *e);
    if (!e) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    e->lines.host = e->lines.closed.host = host;
    e->lines.doing = "while it imported the file";
    e->lines.phase = -1;
    const rlhf_status st = open_python(e, config);
    if (st < 0) {
        destroy(e);
        return st;
    }
    say_unpaid(e, config);
    *self = e;
    return RLHF_OK;
}

static const char *const apis[] = {"trl", "gymnasium", NULL};
static const rlhf_opt options[] = {
    {.key = "file",
     .help = "the Python file",
     .type = RLHF_T_PATH,
     .flags = RLHF_OPT_REQUIRED | RLHF_OPT_TRUSTED,
     .offset = offsetof(struct config, file)},
    {.key = "class",
     .help = "the class in it, or a function that makes an environment",
     .type = RLHF_T_STR,
     .offset = offsetof(struct config, class_name)},
    RLHF_OPT_STR(struct config, tools, NULL, "functions in it that are tools, with + between"),
    RLHF_OPT_STR(struct config, rewards, NULL,
                 "TRL's reward functions in it that read the environment, with + between"),
    RLHF_OPT_ENUM(struct config, api, TRL, apis,
                  "trl: a class as TRL's environment_factory takes it; gymnasium: reset() and "
                  "step() with texts"),
    {.key = "python",
     .help = "the interpreter, found on PATH or given by path, as one of a venv is",
     .type = RLHF_T_STR,
     .flags = RLHF_OPT_TRUSTED,
     .offset = offsetof(struct config, python),
     .s_def = "python3"},
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ENVIRONMENT,
    .id = "org.rlhf-host.env_python",
    .version = RLHF_SDK_VERSION,
    .summary = "an environment in Python: a class as TRL's environment_factory takes it, functions "
               "as tools, or Gymnasium's",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = destroy,
    .ops = &rlhf__lines_ops,
    .extension = rlhf__lines_extension,
};
RLHF_DEFINE_PLUGIN(plugin)
