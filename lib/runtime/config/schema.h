// schema.h: all settings, one struct per section, each described by an option table.
//
// Field comments give meaning and unit. Defaults and ranges are in the tables (schema.c), from
// which --help, --print-config and the docs are generated. Strings here are never NULL: "" means
// unset.
#ifndef RLHF_HOST_CONFIG_SCHEMA_H
#define RLHF_HOST_CONFIG_SCHEMA_H

#include "option/options.h"

#include <rlhf/algo.h>

enum rlhf__stop_on { RLHF__STOP_ON_NONE = 0, RLHF__STOP_ON_COLLAPSE = 1 };

struct rlhf__run_config {
    const char *dir;    // "" = runs/<algo>-<date>-<n>
    const char *preset; // share/rlhf/configs/presets/<preset>.json, "" = none
    const char *note;   // free text stored with the run; presets cite their source here
    int64_t phases;     // 0 = the algorithm's default (supervised: follows from data.epochs)
    int64_t stop_after; // phases after which this process writes a checkpoint and exits; 0 = off
    int64_t seed;
    int64_t threads; // 0 = one per available physical core
    int32_t stop_on; // enum rlhf__stop_on
};

enum rlhf__arithmetic { RLHF__ARITHMETIC_AUTO = 0, RLHF__ARITHMETIC_V1 = 1 };
enum rlhf__dtype_choice { RLHF__DTYPE_AUTO = 0, RLHF__DTYPE_F32 = 1, RLHF__DTYPE_BF16 = 2 };

struct rlhf__compute_config {
    const char *backend; // kernels_<backend>.so or a path, with [:key=value,...]; or "auto"
    int64_t gpu;         // index of the GPU
    int32_t dtype;       // enum rlhf__dtype_choice
    int32_t guard;       // reference: protect device buffers from the host; cuda: check every call
    int64_t workspace_mib; // 0 = the backend's default
    int32_t memory_check;  // 1: before loading, reject a run that does not fit into memory
    int32_t recompute;     // enum rlhf_recompute, for models that are trained
    int32_t arithmetic;    // enum rlhf__arithmetic
};

enum rlhf__policy_init { RLHF__INIT_PRETRAINED = 0, RLHF__INIT_RANDOM = 1 };

struct rlhf__policy_config {
    const char *path;   // model directory; "" = the embedded default
    int32_t init;       // enum rlhf__policy_init; `random` needs only config.json and the tokenizer
    int32_t dequantize; // 1: quantised weights of a GGUF file become f32
    // "adapter.path" etc.: train a low-rank adapter and keep the model fixed
    const char *adapter_path;    // PEFT directory to start from; "" = none
    const char *adapter_targets; // for a new adapter: layers, separated by commas
    int64_t adapter_rank;        // for a new adapter; 0 = train the whole model
    double adapter_alpha;        // 0 = twice the rank
};

struct rlhf__reference_config {
    const char *path; // "" = the policy's first weights
};

enum rlhf__critic_kind { RLHF__CRITIC_SHARED = 0, RLHF__CRITIC_SEPARATE = 1 };

struct rlhf__value_config {
    int32_t kind;     // enum rlhf_value_kind (none: reject algorithms that need a value head)
    int32_t init;     // enum rlhf_value_init
    int32_t detach;   // 1: no gradient from the value head into the trunk
    int32_t critic;   // enum rlhf__critic_kind
    const char *path; // separate critic: its first weights; "" = the policy's
    double lr;        // for the value head (and separate critic); 0 = optim.lr
};

// The score head of classifiers and reward models.
struct rlhf__score_head_config {
    const char *labels; // comma-separated names by label number; "" = LABEL_0, LABEL_1, ...
    int32_t pooling;    // enum rlhf_pool; 0 = the architecture's default; for a reward model: mean
    // number of samples of the reference to which gain and bias are fitted; 0 = no fit
    int64_t calibrate;
};

enum rlhf__bad_row_policy { RLHF__BAD_ROWS_REFUSE = 0, RLHF__BAD_ROWS_SKIP = 1 };
enum rlhf__long_rows { RLHF__DATA_TRUNCATE = 0, RLHF__DATA_SPLIT = 1 };

// Rows of supervised algorithms.
struct rlhf__data_config {
    const char *path;      // .jsonl, .jsonl.gz or .txt
    const char *eval_path; // held-out rows; "" = none
    int64_t limit, skip;   // rows to use (0 = all) after skipping
    int64_t eval_limit;    // rows of eval_path, 0 = all
    int64_t eval_every;    // phases between evaluations, 0 = only at the end
    int64_t max_tokens;    // longest row in tokens, 0 = the model's context
    int64_t batch_tokens;  // tokens per phase; 0 = batch.size rows per phase
    double epochs;         // passes over the rows; used if run.phases is 0
    int32_t shuffle;
    int32_t long_rows; // enum rlhf__long_rows
    // 1: in rows with messages, only the assistant's tokens are in the loss
    int32_t assistant_only;
    int32_t bad_rows; // enum rlhf__bad_row_policy
    int64_t max_mib;  // memory for the rows of a file with their tokens, and for prompts
};

// Whether a text begins with BOS: as the tokenizer's files say, always, or never.
enum rlhf__prepend_bos { RLHF__BOS_AUTO = 0, RLHF__BOS_ALWAYS = 1, RLHF__BOS_NEVER = 2 };

// Prompts of rollout algorithms.
struct rlhf__prompts_config {
    const char *path;           // .jsonl, .jsonl.gz or .txt; "" = the embedded prompts
    const char *text;           // one constant prompt instead of a file; "" = none
    const char *field;          // member of a JSONL row
    int64_t length;             // cut to exactly this many tokens and skip shorter ones; 0 = off
    int64_t min_tokens;         // shorter prompts are skipped
    int64_t max_tokens;         // longest prompt; 0 = limited by the context
    int64_t limit;              // prompts to use, 0 = all
    int32_t prepend_bos;        // enum rlhf__prepend_bos
    int32_t start_after_period; // begin after the first period; skip texts without one
    int32_t end_at_period;      // end at the last period within length (or max_tokens)
    int32_t shuffle;            // 1: a new order on every pass
    int32_t long_rows;          // enum rlhf__long_prompts (data/prompts.h)
    const char *template;       // for messages: a name, a file (rlhf__chat_name) or "auto"
    const char *template_vars;  // RLHF__OPT_OBJECT: its variables
    const char *date;           // of strftime_now; "" = none
};

enum rlhf__stop_at_eos { RLHF__STOP_AUTO = 0, RLHF__STOP_ALWAYS = 1, RLHF__STOP_NEVER = 2 };

struct rlhf__sampling_config {
    double temperature, top_p, min_p;
    int64_t top_k; // 0 = off
    int64_t max_new_tokens;
    int64_t slots;       // rows decoded at once, 0 = chosen for the device
    const char *stop;    // RLHF__OPT_ENDS: texts and token ids that end a response
    int32_t stop_at_eos; // enum rlhf__stop_at_eos
};

enum rlhf__truncate { RLHF__TRUNCATE_NONE = 0, RLHF__TRUNCATE_STOP = 1, RLHF__TRUNCATE_PERIOD = 2 };
enum rlhf__non_stop {
    RLHF__NON_STOP_NONE = 0,
    RLHF__NON_STOP_REPLACE = 1,
    RLHF__NON_STOP_SUBTRACT = 2
};

// Rules for responses. `truncate` applies before scoring, the penalties after it.
struct rlhf__response_config {
    int32_t truncate;         // enum rlhf__truncate
    int32_t non_stop;         // enum rlhf__non_stop: effect of non_stop_penalty
    const char *period_token; // text of the one token that is a period; "" = any with a "."
    // the text ends at the first period among its tokens period_min to period_max, counted from 1
    int64_t period_min, period_max;
    double period_penalty;   // score of a text without such a period
    double non_stop_penalty; // for responses that no stop token ended
};

enum rlhf__normalize {
    RLHF__NORMALIZE_NONE = 0,
    RLHF__NORMALIZE_BEFORE = 1,
    RLHF__NORMALIZE_AFTER = 2
};
enum rlhf__nan_policy { RLHF__NAN_STOP = 0, RLHF__NAN_ZERO = 1, RLHF__NAN_DROP = 2 };

// What happens to a row that a reward could not score.
enum rlhf__failure_policy {
    RLHF__FAILURE_STOP = 0,
    RLHF__FAILURE_RETRY = 1, // score it again, at most rewards.retries times, then stop
    RLHF__FAILURE_ZERO = 2,
    RLHF__FAILURE_DROP = 3
};

enum rlhf__isolate {
    RLHF__ISOLATE_ALWAYS = 0,
    RLHF__ISOLATE_THIRD_PARTY = 1,
    RLHF__ISOLATE_NEVER = 2
};

struct rlhf__mixing_config {
    int32_t normalize;  // enum rlhf__normalize: (r - mean) / std before or after the weighted sum
    int32_t nan_policy; // enum rlhf__nan_policy
    double clip;        // |score| at most this after mixing; 0 = off
    int32_t on_failure; // enum rlhf__failure_policy
    int32_t isolate;    // enum rlhf__isolate: whether rewards and judge run in workers
    int64_t retries;    // number of times that failed rows are scored again
    double timeout_s;   // limit of a call to a reward outside this process, seconds; 0 = none
    int64_t memory_mib; // limit of each such process; 0 = none
    int64_t workers;    // processes of a reward, which share the batch
    int32_t overlap;    // 1: call rewards that allow it while rows are still being sampled
};

// Where an environment's tools are listed.
enum rlhf__tools_listed { RLHF__TOOLS_TEMPLATE = 0, RLHF__TOOLS_HIDDEN = 1 };

// What happens to an episode whose last attempt failed.
enum rlhf__episode_failure { RLHF__EPISODE_STOP = 0, RLHF__EPISODE_DROP = 1 };

// Whether an environment must begin all episodes of a group with the same text.
enum rlhf__starts { RLHF__STARTS_SAME = 0, RLHF__STARTS_ANY = 1 };

// What happens if the chat template would rewrite earlier turns.
enum rlhf__rewrites { RLHF__REWRITES_KEEP = 0, RLHF__REWRITES_REFUSE = 1 };

// Limits of an episode (environment).
struct rlhf__episodes_config {
    int64_t turns;        // of the policy
    int64_t tokens;       // longest row; 0 = as long as the other limits and the context allow
    int64_t reply_tokens; // longest text that the environment adds after a turn, and at the start
    int64_t retries;      // replays of an episode after a failure, at most
    int32_t tools;        // enum rlhf__tools_listed
    int32_t calls;        // 0 = the template's form, or enum rlhf__tool_form
    int32_t on_failure;   // enum rlhf__episode_failure
    int32_t rewrites;     // enum rlhf__rewrites
    int32_t starts;       // enum rlhf__starts
};

// Settings for sampling the responses of the next phase while the current phase trains.
struct rlhf__ahead_config {
    int64_t ahead;   // phases: 0 or 1
    int64_t threads; // CPU threads that sample; 0 = a third of run.threads
};

struct rlhf__batch_config {
    int64_t size;              // sequences per phase
    int64_t microbatch_tokens; // tokens per forward/backward pass, 0 = chosen for the device
    int32_t share_prompts;     // compute the prompt of a group's rows once
};

enum rlhf__optim_kind { RLHF__OPTIM_ADAMW = 0, RLHF__OPTIM_MUON = 1 };
enum rlhf__schedule {
    RLHF__SCHEDULE_CONSTANT = 0,
    RLHF__SCHEDULE_LINEAR = 1,
    RLHF__SCHEDULE_COSINE = 2
};

enum rlhf__warmup_from { RLHF__WARMUP_FROM_STEP = 0, RLHF__WARMUP_FROM_ZERO = 1 };

struct rlhf__optim_config {
    int32_t kind;        // enum rlhf__optim_kind
    int32_t epsilon;     // enum rlhf_adam_epsilon
    int32_t schedule;    // enum rlhf__schedule
    int32_t warmup_from; // enum rlhf__warmup_from
    double lr, beta1, beta2, eps, weight_decay;
    double max_grad_norm; // 0 = no clipping
    double final_scale;   // factor of lr at the last step, for linear and cosine
    double muon_lr, muon_momentum;
    int64_t warmup; // phases of linear warm-up
    // Length of the schedule in phases. If run.phases is larger, run.phases is the length. If a run
    // will be resumed with more phases, set this to the final number of phases, so that lr does not
    // depend on run.phases.
    int64_t schedule_phases;
    int64_t max_skipped; // consecutive steps that may be skipped before the run stops
};

// How a run is divided between processes.
struct rlhf__parallel_config {
    const char *backend; // as in struct rlhf__collective_spec (team/team_open.h)
    double timeout_s;    // seconds that the ranks wait for one of them; 0 = no limit
    int64_t shards;      // parts of a minibatch; 0 = as many as processes that train
    int64_t actors;      // processes that only sample responses; see docs/staleness.md
    int64_t check_every; // phases after which the ranks compare their weights; 0 = never
};

struct rlhf__early_stop_config {
    double kl;     // stop if the mean sequence KL is above this, nats; 0 = off
    double reward; // stop if the mean reward is above this; 0 = off
    int64_t patience, window;
};

enum rlhf__best_mode { RLHF__BEST_MAX = 0, RLHF__BEST_MIN = 1 };
enum rlhf__checkpoint_dtype { RLHF__CHECKPOINT_F32 = 0, RLHF__CHECKPOINT_BF16 = 1 };

struct rlhf__checkpoint_config {
    int64_t every;     // phases between checkpoints, 0 = only at the end
    int64_t every_s;   // seconds between checkpoints, 0 = not by time
    int64_t undo_mib;  // size limit of the copy of weights and moments in memory; keep/boundary.h
    int64_t keep;      // number of newest checkpoints to keep, 0 = all
    int32_t dtype;     // enum rlhf__checkpoint_dtype of model.safetensors; state/ is always exact
    int32_t best_mode; // enum rlhf__best_mode
    const char *best;  // metric by which checkpoints/best is chosen; "" = no such link
};

enum rlhf__log_format { RLHF__LOG_TEXT = 0, RLHF__LOG_JSON = 1 };
enum rlhf__progress_kind {
    RLHF__PROGRESS_AUTO = 0,
    RLHF__PROGRESS_BAR = 1,
    RLHF__PROGRESS_PLAIN = 2,
    RLHF__PROGRESS_OFF = 3,
    RLHF__PROGRESS_FULL = 4
};

struct rlhf__log_config {
    int32_t tensorboard;
    int32_t progress;        // enum rlhf__progress_kind
    int32_t level;           // enum rlhf_log_level
    int32_t rollouts;        // 1: RUN/rollouts.jsonl
    int32_t format;          // enum rlhf__log_format
    int32_t csv;             // 1: RUN/metrics.csv
    int32_t report;          // 1: RUN/report.html when the run ends
    int64_t samples;         // rows of the sample table
    int64_t samples_every;   // phases between tables, 0 = never
    int64_t samples_every_s; // seconds between tables, 0 = not by time
};

// A plugin as the user specified it. `options` is a JSON object with the given options.
// rlhf__config_resolve adds the defaults of all other options.
struct rlhf__plugin_config {
    char *plugin;            // name or path; rlhf__config_resolve makes the path of a file absolute
    char *name;              // rewards: metric name, unique in the list; NULL for the algorithm
    double weight;           // rewards and the environment
    const char *weight_flag; // the flag that gave the weight, NULL = none; static
    const char *flag; // flag that named it, for messages; NULL = the usual one ("--reward"); static
    int32_t from;     // enum rlhf__name_from: the source of `plugin`
    int32_t stored;   // 1: from a run resumed without --trust-run (resume_trust.c)
    // rewards, judge, environment: 1 = in a worker, -1 = in this process, 0 = the setting
    // rewards.isolate decides
    int32_t isolate;
    int32_t network;                      // likewise; 1 = its worker may use the network
    int32_t isolate_typed, network_typed; // 1: given on the command line
    json_t *options;                      // owned
    // key -> {source, raw | file}: where each option was set, for messages. `raw` is the text as
    // typed, and `file` is a --config file. Defaults that come with the program have neither `raw`
    // nor `file`. Owned.
    json_t *origin;
};

// Section "models" (named.h): additional frozen models, with the names that the algorithm uses.
#define RLHF__NAME_MAX 24 // bytes of a name
struct rlhf__named_model {
    const char *name, *path; // path "": not given
};

struct rlhf__models_config {
    uint32_t n;
    struct rlhf__named_model of[RLHF_NAMED_MAX];
};

struct rlhf__config {
    struct rlhf__run_config run;
    struct rlhf__compute_config compute;
    struct rlhf__policy_config policy;
    struct rlhf__reference_config reference;
    struct rlhf__value_config value;
    struct rlhf__score_head_config score_head; // section "score"
    struct rlhf__data_config data;
    struct rlhf__prompts_config prompts;
    struct rlhf__sampling_config sampling;
    struct rlhf__response_config response;
    struct rlhf__mixing_config mixing; // section "rewards"
    struct rlhf__episodes_config episodes;
    struct rlhf__ahead_config rollout;
    struct rlhf__batch_config batch;
    struct rlhf__optim_config optim;
    struct rlhf__parallel_config parallel;
    struct rlhf__early_stop_config early_stop;
    struct rlhf__checkpoint_config checkpoint;
    struct rlhf__log_config log;
    struct rlhf__models_config models;
    struct rlhf__plugin_config algo; // algo.plugin NULL = not given
    // plugin NULL = none. The judge is a reward whose scores are not used for training
    struct rlhf__plugin_config judge;
    struct rlhf__plugin_config environment; // plugin NULL = none; responses are single turns
    struct rlhf__plugin_config *reward;     // [n_reward]
    size_t n_reward;
    size_t n_recorded; // rewards of the run that are not opened, because their scores are recorded
    struct rlhf__plugin_config *sink; // [n_sink]; plugins that get metrics and samples
    size_t n_sink;
    struct rlhf__strings strings;
    // The settings in the sections above that a user gave: path -> {source, typed}. `typed` is true
    // for the command line and false for a --config file. Owned; not part of the config as JSON.
    json_t *given;
    // Settings that the user gave and that other options of the same plugin disable: path ->
    // {source, typed, why}, where `why` is the reason. Set when the config is resolved.
    json_t *unused;
};

// Returns the maximum number of tokens that the policy can write for one row. With an environment,
// this is the total of all turns. [any]
static inline int64_t rlhf__config_most_drawn(const struct rlhf__config *c) {
    const int64_t turn = c->sampling.max_new_tokens;
    if (!c->environment.plugin) return turn;
    const int64_t all = c->episodes.turns * turn, tokens = c->episodes.tokens;
    return tokens > 0 && tokens < all ? tokens : all;
}

// A section: its name in JSON, its table, and its offset in struct rlhf__config.
struct rlhf__section {
    const char *name, *help;
    struct rlhf__opt_table table;
    uint32_t offset, size;
};

// Returns the sections in the order in which they are printed; *n is their number. [any]
const struct rlhf__section *rlhf__sections(size_t *n);

#endif
