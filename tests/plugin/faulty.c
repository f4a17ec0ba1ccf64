// faulty.c: plugins with one fault each, chosen by a FAULT_ macro. See test_load.c.
#include <rlhf/environment.h>
#include <rlhf/model.h>
#include <rlhf/plugin_check.h>
#include <rlhf/reward.h>
#include <rlhf/sink.h>

#include <math.h>
#include <stdlib.h>

struct config {
    double gain;
    int32_t mode, pad;
    const char *text;
    const char *const *words;
    rlhf_f64_list factors;
};

__attribute__((unused)) static rlhf_status score(void *self, const rlhf_reward_in *in,
                                                 const rlhf_reward_out *out) {
    (void)self;
    for (uint32_t i = 0; i < in->n; i++)
        out->seq[i] = 0;
    return RLHF_OK;
}

#ifdef FAULT_ROW_AND_BATCH
#define OPS_FLAGS (RLHF_REWARD_ROW_ALONE | RLHF_REWARD_WHOLE_BATCH)
#elif defined FAULT_OPS_FLAG
#define OPS_FLAGS ((RLHF_REWARD_KNOWN + 1u) | RLHF_REWARD_PER_TOKEN)
#else
#define OPS_FLAGS 0
#endif

#ifdef FAULT_SHORT_OPS
#define OPS_SIZE (sizeof(rlhf_reward_ops) - 8)
#elif defined FAULT_ODD_OPS
#define OPS_SIZE (sizeof(rlhf_reward_ops) + 4)
#else
#define OPS_SIZE sizeof(rlhf_reward_ops)
#endif

__attribute__((unused)) static const rlhf_reward_ops ops = {.size = OPS_SIZE,
                                                            .flags = OPS_FLAGS,
#ifndef FAULT_NO_SCORE
                                                            .score = score
#endif
};

#ifdef FAULT_NO_CHOICES
static const char *const modes[] = {NULL};
#elif defined FAULT_EMPTY_CHOICE
static const char *const modes[] = {"a", "", NULL};
#elif defined FAULT_TWICE_CHOICE
static const char *const modes[] = {"a", "b", "a", NULL};
#elif defined FAULT_COMMA_CHOICE
static const char *const modes[] = {"a,b", NULL};
#else
static const char *const modes[] = {"a", "b", NULL};
#endif

#ifdef FAULT_DEEP_TABLE
static const rlhf_opt deep[] = {{.type = RLHF_T_TABLE, .table = deep, .n_table = 1}};
#endif

#if defined FAULT_ODD_CHOICE || defined FAULT_ODD_ITEM
static const char *const odd[] = {"x", "b\xff", NULL};
#endif

#ifdef FAULT_LIST_CHOICE
static const char *const twice[] = {"x", "x", NULL};
#endif

#if defined FAULT_SHARED_TABLE || defined FAULT_FAR_TABLE
static const rlhf_opt inside[] = {
    {.key = "inside", .help = "a factor", .type = RLHF_T_BOOL, .offset = 8, .i_max = 1}};
#endif

#ifdef FAULT_NAMED_TABLE
static const rlhf_opt inner[] = {
    {.key = "inner", .help = "a factor", .type = RLHF_T_F64, .f_def = 1, .f_max = 1}};
#endif

__attribute__((unused)) static const rlhf_opt opts[] = {
#ifdef FAULT_DEFAULT_RANGE
    RLHF_OPT_F64(struct config, gain, 2, 0, 1, "its default is too large"),
#else
    RLHF_OPT_F64(struct config, gain, 1, 0, 1, "a factor"),
#endif
#ifdef FAULT_TWICE_KEY
    RLHF_OPT_F64(struct config, gain, 1, 0, 1, "the same again"),
#endif
    RLHF_OPT_ENUM(struct config, mode, 0, modes, "a choice"),
#ifdef FAULT_HOST_KEY
    {.key = "weight",
     .help = "the host's",
     .type = RLHF_T_F64,
     .offset = offsetof(struct config, gain),
     .f_def = 1,
     .f_max = 1},
#endif
#ifdef FAULT_SINK_KEY
    {.key = "network",
     .help = "the host's",
     .type = RLHF_T_F64,
     .offset = offsetof(struct config, gain),
     .f_def = 1,
     .f_max = 1},
#endif
#ifdef FAULT_LATER_KEY
    {.key = "host_retries",
     .help = "of a later host",
     .type = RLHF_T_F64,
     .offset = offsetof(struct config, gain),
     .f_def = 1,
     .f_max = 1},
#endif
#ifdef FAULT_ODD_KEY
    {.key = "gain.more",
     .help = "two words",
     .type = RLHF_T_F64,
     .offset = offsetof(struct config, gain),
     .f_def = 1,
     .f_max = 1},
#endif
#ifdef FAULT_NEEDLESS
    {.key = "pace",
     .help = "with a choice",
     .type = RLHF_T_F64,
     .offset = offsetof(struct config, gain),
     .f_def = 1,
     .f_max = 1,
     .choices = modes},
#endif
#ifdef FAULT_RESERVED
    {.key = "pace",
     .help = "with a reserved member",
     .type = RLHF_T_F64,
     .offset = offsetof(struct config, gain),
     .reserved = 5,
     .f_def = 1,
     .f_max = 1},
#endif
#ifdef FAULT_OTHER_FLAG
    {.key = "pace",
     .help = "with a flag of another type",
     .type = RLHF_T_ENUM,
     .flags = RLHF_OPT_TRUSTED,
     .offset = offsetof(struct config, mode),
     .choices = modes},
#endif
#ifdef FAULT_OPTION_FLAG
    RLHF_OPT_F64_FLAGS(struct config, gain, 1u << 16, 1, 0, 1, "a flag that is the host's own"),
#endif
#ifdef FAULT_NAN_DEFAULT
    RLHF_OPT_F64_FLAGS(struct config, gain, RLHF_OPT_REQUIRED, NAN, 0, 1,
                       "its default is no number"),
#endif
#ifdef FAULT_INFINITE_DEFAULT
    RLHF_OPT_F64(struct config, gain, INFINITY, 0, INFINITY, "its default is infinite"),
#endif
#ifdef FAULT_NAN_LIMIT
    RLHF_OPT_F64_LIST(struct config, factors, -INFINITY, NAN, "its limit is no number"),
#endif
#ifdef FAULT_BOOL_RANGE
    {.key = "on",
     .help = "a third state",
     .type = RLHF_T_BOOL,
     .offset = offsetof(struct config, pad),
     .i_max = 2},
#endif
#ifdef FAULT_ENUM_RANGE
    {.key = "pace",
     .help = "a choice with a range",
     .type = RLHF_T_ENUM,
     .offset = offsetof(struct config, pad),
     .i_max = 1,
     .choices = modes},
#endif
#ifdef FAULT_REQUIRED_DEFAULT
    {.key = "text",
     .help = "with a default that nobody gets",
     .type = RLHF_T_STR,
     .flags = RLHF_OPT_REQUIRED,
     .offset = offsetof(struct config, text),
     .s_def = "x"},
#endif
#ifdef FAULT_ODD_TEXT
    RLHF_OPT_STR(struct config, text, "a\xff", "its default is not UTF-8"),
#endif
#ifdef FAULT_ODD_HELP
    RLHF_OPT_STR(struct config, text, NULL, "red \x1b[31m"),
#endif
#ifdef FAULT_ODD_CHOICE
    RLHF_OPT_LIST(struct config, words, NULL, odd, "its choice is not UTF-8"),
#endif
#ifdef FAULT_ODD_ITEM
    RLHF_OPT_LIST(struct config, words, odd, NULL, "its default is not UTF-8"),
#endif
#ifdef FAULT_LIST_CHOICE
    RLHF_OPT_LIST(struct config, words, NULL, twice, "the same item twice"),
#endif
#ifdef FAULT_SHARED_FIELD
    {.key = "pace",
     .help = "in the same field",
     .type = RLHF_T_ENUM,
     .offset = offsetof(struct config, mode),
     .choices = modes},
#endif
#ifdef FAULT_SHARED_TABLE
    {.type = RLHF_T_TABLE, .table = inside, .n_table = 1},
#endif
#ifdef FAULT_FAR_TABLE
    {.type = RLHF_T_TABLE, .offset = 0xfffffff8, .table = inside, .n_table = 1},
#endif
#ifdef FAULT_DEEP_TABLE
    {.type = RLHF_T_TABLE, .table = deep, .n_table = 1},
#endif
#ifdef FAULT_NAMED_TABLE
    {.key = "more", .type = RLHF_T_TABLE, .table = inner, .n_table = 1},
#endif
#ifdef FAULT_EMPTY_TABLE
    {.type = RLHF_T_TABLE},
#endif
};

// Functions whose counterparts are missing, depending on the FAULT_ macro.
__attribute__((unused)) static rlhf_status create(const rlhf_host *host, const void *config,
                                                  void **self) {
    (void)host;
    *self = (void *)(uintptr_t)config;
    return RLHF_OK;
}

__attribute__((unused)) static void destroy(void *self) { (void)self; }

__attribute__((unused)) static rlhf_status save(void *self, const rlhf_ostream *out) {
    (void)self;
    (void)out;
    return RLHF_OK;
}

__attribute__((unused)) static rlhf_status load(void *self, const rlhf_istream *in,
                                                uint32_t version) {
    (void)self;
    (void)in;
    (void)version;
    return RLHF_OK;
}

// Ops of other kinds.
#if defined FAULT_MODEL_COMPUTE
static const rlhf_model_ops model = {
    .size = sizeof model, .compute_major = RLHF_COMPUTE_MAJOR, .compute_minor = 99};
#define OPS &model
#elif defined FAULT_KERNELS_COMPUTE
static const rlhf_kernels_ops kernels = {.size = sizeof kernels, .compute_minor = 9};
#define OPS &kernels
#elif defined FAULT_NO_CLOSE
static rlhf_status open_table(void *self, const rlhf_kernels_open *how, rlhf_compute **out) {
    (void)self;
    (void)how;
    (void)out;
    return RLHF_E_UNSUPPORTED;
}
static const rlhf_kernels_ops kernels = {.size = sizeof kernels,
                                         .compute_major = RLHF_COMPUTE_MAJOR,
                                         .compute_minor = RLHF_COMPUTE_MINOR,
                                         .open = open_table};
#define OPS &kernels
#elif defined FAULT_NO_PHASE || defined FAULT_SINK_KEY || defined FAULT_SINK_FLAG
static rlhf_status begin(void *self, const rlhf_sink_run *run, rlhf_sink_answer *answer) {
    (void)self;
    (void)run;
    (void)answer;
    return RLHF_OK;
}
__attribute__((unused)) static rlhf_status phase(void *self, const rlhf_sink_phase *in) {
    (void)self;
    (void)in;
    return RLHF_OK;
}
static const rlhf_sink_ops sink = {.size = sizeof sink,
#ifdef FAULT_SINK_FLAG
                                   .flags = 1u << 31,
#endif
#ifndef FAULT_NO_PHASE
                                   .phase = phase,
#endif
                                   .begin = begin};
#define OPS &sink
#elif defined FAULT_NO_STEP || defined FAULT_ENVIRONMENT_FLAG ||                                   \
    defined FAULT_VARIES_AND_FUNCTION || defined FAULT_HALF_OPS
static rlhf_status step(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    (void)self;
    memset(out->end, RLHF_EPISODE_DONE, in->n);
    return RLHF_OK;
}
static const rlhf_environment_ops environment = {
#ifdef FAULT_HALF_OPS
    .size = offsetof(rlhf_environment_ops, close) + 4,
#else
    .size = sizeof environment,
#endif
#ifdef FAULT_NO_STEP
    .reset = step,
#elif defined FAULT_VARIES_AND_FUNCTION
    .flags = RLHF_ENVIRONMENT_VARIES | RLHF_ENVIRONMENT_FUNCTION,
    .step = step,
#elif defined FAULT_HALF_OPS
    .step = step,
#else
    .flags = RLHF_ENVIRONMENT_KNOWN + 1,
    .step = step,
#endif
};
#define OPS &environment
#elif defined FAULT_ALGO_FLAG
static rlhf_status plan(void *self, const rlhf_run_info *run, rlhf_plan *out) {
    (void)self;
    (void)run;
    (void)out;
    return RLHF_OK;
}
static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    (void)self;
    (void)in;
    (void)out;
    return RLHF_OK;
}
static const rlhf_algo_ops algo = {.size = sizeof algo, .flags = 1, .plan = plan, .loss = loss};
#define OPS &algo
#else
#define OPS &ops
#endif

// A descriptor of a future SDK: one pointer longer.
struct longer {
    rlhf_plugin now;
    const char *later;
};

static const struct longer plugin = {
    {
#if defined FAULT_LONG_ZERO || defined FAULT_LONG_SET
        .size = sizeof(struct longer),
#elif defined FAULT_HUGE_SIZE
        .size = 0x7fffffff,
#elif defined FAULT_SHORT_DESCRIPTOR
        .size = 16,
#else
        .size = sizeof(rlhf_plugin),
#endif
#ifdef FAULT_BAD_KIND
        .kind = 77,
#elif defined FAULT_NO_STEP || defined FAULT_ENVIRONMENT_FLAG ||                                   \
    defined FAULT_VARIES_AND_FUNCTION || defined FAULT_HALF_OPS
        .kind = RLHF_KIND_ENVIRONMENT,
#elif defined FAULT_MODEL_COMPUTE
        .kind = RLHF_KIND_MODEL,
#elif defined FAULT_KERNELS_COMPUTE || defined FAULT_NO_CLOSE
        .kind = RLHF_KIND_KERNELS,
#elif defined FAULT_NO_PHASE || defined FAULT_SINK_KEY || defined FAULT_SINK_FLAG
        .kind = RLHF_KIND_SINK,
#elif defined FAULT_ALGO_FLAG
        .kind = RLHF_KIND_ALGO,
#else
        .kind = RLHF_KIND_REWARD,
#endif
#ifdef FAULT_DESC_FLAG
        .flags = 4,
#endif
#ifdef FAULT_NEWER_HOST
        .host_minor_min = RLHF_MINOR(1000),
#endif
#if defined FAULT_NO_SAVE || defined FAULT_NO_LOAD || defined FAULT_STATE_ALONE
        .state_version = 1,
#endif
#if defined FAULT_NO_LOAD || defined FAULT_NO_VERSION || defined FAULT_SAVE_ALONE ||               \
    defined FAULT_STATE_ALONE
        .save = save,
#endif
#if defined FAULT_NO_VERSION || defined FAULT_LOAD_ALONE || defined FAULT_STATE_ALONE
        .load = load,
#endif
#if defined FAULT_NO_VERSION || defined FAULT_SAVE_ALONE || defined FAULT_LOAD_ALONE
        .create = create,
#endif
#ifdef FAULT_NO_CREATE
        .destroy = destroy,
#endif
#ifdef FAULT_BAD_ID
        .id = "two words",
#elif defined FAULT_SHORT_ID
        .id = "faulty",
#elif defined FAULT_EMPTY_PART
        .id = "org..faulty",
#else
        .id = "org.example.faulty",
#endif
#ifdef FAULT_EMPTY_VERSION
        .version = "",
#elif defined FAULT_ODD_VERSION
        .version = "\xff\n",
#elif defined FAULT_LONG_VERSION
        .version = "0123456789012345678901234567890123456789012345678901234567890123",
#elif !defined FAULT_NULL_VERSION
        .version = "1",
#endif
#ifdef FAULT_ODD_URL
        .url = "https://example.org/\x1b[31m",
#endif
#ifndef FAULT_NULL_SUMMARY
        .summary = "faulty on purpose",
#endif
#if !defined FAULT_STRIDE_ALONE && !defined FAULT_CONFIG_ALONE
        .opts = opts,
#endif
#if !defined FAULT_TABLE_ALONE && !defined FAULT_STRIDE_ALONE && !defined FAULT_CONFIG_ALONE
        .n_opts = sizeof opts / sizeof *opts,
#endif
#if !defined FAULT_NO_STRIDE && !defined FAULT_CONFIG_ALONE
        .opt_stride = sizeof *opts,
#endif
#ifdef FAULT_OUTSIDE_CONFIG
        .config_size = 8,
#else
        .config_size = sizeof(struct config),
#endif
#ifndef FAULT_NO_OPS
        .ops = OPS,
#endif
    },
#ifdef FAULT_LONG_SET
    "a field this host does not know",
#else
    NULL,
#endif
};

#ifdef FAULT_CRASH
__attribute__((constructor)) static void crash(void) { abort(); }
#endif

#if defined FAULT_SEVERAL || defined FAULT_TWICE_ID
static const rlhf_plugin second = {
    .size = sizeof second,
    .kind = RLHF_KIND_REWARD,
#ifdef FAULT_TWICE_ID
    .id = "org.example.faulty",
#else
    .id = "org.example.second",
#endif
    .version = "1",
    .summary = "another",
    .ops = &ops,
};
static const rlhf_plugin *const list[] = {&plugin.now, &second};
#else
static const rlhf_plugin *const list[] = {&plugin.now};
#endif

static const rlhf_bundle bundle = {sizeof bundle,
                                   RLHF_ABI_MAJOR,
#ifdef FAULT_OTHER_MINOR
                                   RLHF_ABI_MINOR + 1,
#else
                                   RLHF_ABI_MINOR,
#endif
#ifdef FAULT_NO_PLUGINS
                                   0,
#else
                                   sizeof list / sizeof *list,
#endif
                                   list,
#ifdef FAULT_OTHER_MINOR
                                   "0.99.1"};
#elif defined FAULT_ODD_BUILT_WITH
                                   "0.11\n"};
#else
                                   RLHF_SDK_VERSION};
#endif

#if defined FAULT_NOT_PLUGIN || defined FAULT_OTHER_ABI
#ifdef FAULT_OTHER_ABI
#define ENTRY rlhf_plugin_v3
#else
#define ENTRY something_else
#endif
RLHF_EXPORT const void *ENTRY(void);
const void *ENTRY(void) { return &bundle; }
#else
const rlhf_bundle *rlhf_plugin_v1(void) {
#ifdef FAULT_NULL_BUNDLE
    return (void)&bundle, NULL;
#else
    return &bundle;
#endif
}
#endif
