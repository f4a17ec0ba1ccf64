// rlhf/service.h: the service tables returned by host->service(id).
//
// Plugin contract 1.0, frozen: it only grows.
//
// Of all [alone] functions of a service, only one may run at a time, whichever plugin or thread
// calls it, because plugins share models, and a model computes with all threads. An [any] function
// may run at the same time as other calls, also an [alone] call, but not during open or close of
// the same object.
//
// These rules matter only to plugins that start threads, because, with two exceptions, the host
// does not run two plugins at once. First, with rewards.overlap, a thread of the host may call the
// score() of a reward with RLHF_REWARD_EXTERNAL while the model computes. Second, with
// rollout.ahead, a thread of the host generates text while other plugins run. This thread uses a
// second instance of the policy's model and a separate compute table. So instances and tables must
// not share data that they change.
//
// The first argument of every function is the rlhf_host that create() received.
//
// A failing call records a message with the host. If your function returns this call's status
// without calling host->fail, the user sees that message.
#ifndef RLHF_SERVICE_H
#define RLHF_SERVICE_H

#include "host.h"

// "rlhf.classifier/1": runs the sequence classifier of any model directory (DistilBERT, GPT-2 with
// a score head) with its tokenizer. Texts longer than the model's context are truncated; padding is
// never used.
#define RLHF_SVC_CLASSIFIER "rlhf.classifier/1"
typedef struct rlhf_classifier rlhf_classifier;
typedef struct rlhf_classifier_service {
    uint32_t size, reserved;
    // Loads a model directory. If path is NULL or "default", loads the embedded default classifier.
    // Classifiers from the same directory are shared. Free the classifier with close. [main]
    rlhf_status (*open)(const rlhf_host *, const char *path, rlhf_classifier **out);
    void (*close)(const rlhf_host *, rlhf_classifier *);             // NULL allowed [main]
    int32_t (*n_labels)(const rlhf_host *, const rlhf_classifier *); // [any]
    // Returns the name of label i from config.json's id2label, e.g. "POSITIVE", or NULL past the
    // end. Borrowed until close. [any]
    const char *(*label)(const rlhf_host *, const rlhf_classifier *, int32_t i);
    // Writes the logits [n, n_labels] of n texts. [alone]
    rlhf_status (*logits)(const rlhf_host *, rlhf_classifier *, uint32_t n, const rlhf_str *texts,
                          float *logits);
} rlhf_classifier_service;

// "rlhf.tokenizer/1": tokenizers of model directories (byte-level BPE, WordPiece).
#define RLHF_SVC_TOKENIZER "rlhf.tokenizer/1"
typedef struct rlhf_tokenizer rlhf_tokenizer;
typedef struct rlhf_tokenizer_service {
    uint32_t size, reserved;
    // Loads the tokenizer of a model directory, or the policy's tokenizer if path is NULL. [main]
    rlhf_status (*open)(const rlhf_host *, const char *path, rlhf_tokenizer **out);
    void (*close)(const rlhf_host *, rlhf_tokenizer *);            // NULL allowed [main]
    int32_t (*n_vocab)(const rlhf_host *, const rlhf_tokenizer *); // [any]
    // Writes at most cap ids, and sets *n to the number of ids of the whole text. [any]
    rlhf_status (*encode)(const rlhf_host *, const rlhf_tokenizer *, rlhf_str text, int32_t *ids,
                          uint32_t cap, uint32_t *n);
    // Writes at most cap bytes, and sets *len to the length of the whole text. [any]
    rlhf_status (*decode)(const rlhf_host *, const rlhf_tokenizer *, const int32_t *ids, uint32_t n,
                          char *utf8, uint64_t cap, uint64_t *len);
} rlhf_tokenizer_service;

// "rlhf.reward_model/1": runs a reward model (as trained by bradley_terry.so), which has a trunk
// and one score per token. Rewards are gain * score + bias, with gain and bias from the model's
// config.json.
#define RLHF_SVC_REWARD_MODEL "rlhf.reward_model/1"
typedef struct rlhf_reward_model rlhf_reward_model;
typedef struct rlhf_reward_model_service {
    uint32_t size, reserved;
    // Loads a model directory. If path is NULL or "default", loads the embedded default reward
    // model. Fails if the model's vocabulary differs from the policy's, or if its context is
    // shorter than the longest prompt and response of the run together. Models from the same
    // directory are shared, also with the host, which may train them between phases. Free the model
    // with close. [main]
    rlhf_status (*open)(const rlhf_host *, const char *path, rlhf_reward_model **out);
    void (*close)(const rlhf_host *, rlhf_reward_model *); // NULL allowed [main]
    // Computes the rewards of n ragged rows (arrays as in rlhf_reward_in). `token` [total] gets the
    // reward after each response token, and 0 on the prompt; it may be NULL. `seq` [n] gets the
    // mean or the last of a row's token rewards; `pooling` (enum rlhf_pool) selects which (0 = as
    // the model was trained). For a row without response tokens, `seq` gets the reward after the
    // row's last prompt token. [alone]
    rlhf_status (*score)(const rlhf_host *, rlhf_reward_model *, uint32_t n, const int32_t *ids,
                         const int32_t *offset, const int32_t *prompt_len, int32_t pooling,
                         float *seq, float *token);
} rlhf_reward_model_service;

// "rlhf.row/1": values of a data row, e.g. of rlhf_reward_in.meta.
//
// A path is a key of the row ("answer") or, if it starts with a slash, a JSON Pointer (RFC 6901)
// such as "/steps/0/text", in which ~1 means a slash and ~0 a tilde. The path "" is the whole row.
// If the value is absent or of another type, the function returns RLHF_E_INVALID; the message to
// the user names the value and its actual type.
#define RLHF_SVC_ROW "rlhf.row/1"
enum rlhf_json_type {
    RLHF_JSON_ABSENT = 0,
    RLHF_JSON_NULL = 1,
    RLHF_JSON_BOOL = 2,
    RLHF_JSON_NUMBER = 3,
    RLHF_JSON_STRING = 4,
    RLHF_JSON_LIST = 5,
    RLHF_JSON_OBJECT = 6
};
typedef struct rlhf_row rlhf_row;
typedef struct rlhf_row_service {
    uint32_t size, reserved;
    // Parses one row. Returns RLHF_E_INVALID if the text is not a JSON object. If a prompt comes
    // without a data row, the text is empty, and this call fails. Free the row with close. [any]
    rlhf_status (*open)(const rlhf_host *, rlhf_str json, rlhf_row **out);
    void (*close)(const rlhf_host *, rlhf_row *); // NULL allowed [any]
    // Returns the type (enum rlhf_json_type) of the value at path. Use this for values that may be
    // absent. [any]
    int32_t (*type)(const rlhf_host *, const rlhf_row *, const char *path);
    // Gets a string with its escapes decoded. The string is borrowed until close. [any]
    rlhf_status (*string)(const rlhf_host *, const rlhf_row *, const char *path, rlhf_str *out);
    // Gets a number; one that is no double becomes the nearest double. [any]
    rlhf_status (*number)(const rlhf_host *, const rlhf_row *, const char *path, double *out);
    // Gets an integer exactly. A number with a fraction or an exponent is of another type, and so
    // is an integer beyond 64 bits, of which `json` gives the digits. [any]
    rlhf_status (*integer)(const rlhf_host *, const rlhf_row *, const char *path, int64_t *out);
    rlhf_status (*boolean)(const rlhf_host *, const rlhf_row *, const char *path,
                           int32_t *out); // [any]
    // Writes at most cap bytes of the value as JSON text on one line, and sets *len to the length
    // of the whole text. Integers of any size keep their digits. [any]
    rlhf_status (*json)(const rlhf_host *, const rlhf_row *, const char *path, char *utf8,
                        uint64_t cap, uint64_t *len);
    // Gets the number of entries of a list or of members of an object. [any]
    rlhf_status (*length)(const rlhf_host *, const rlhf_row *, const char *path, uint64_t *out);
    // Gets the key of member i of an object; members keep the order of the text. The key is
    // borrowed until close. [any]
    rlhf_status (*key)(const rlhf_host *, const rlhf_row *, const char *path, uint64_t i,
                       rlhf_str *out);
    // Opens entry i of a list, or the value of member i of an object, as a row of its own; its path
    // "" is the value. Free it with close. [any]
    rlhf_status (*item)(const rlhf_host *, const rlhf_row *, const char *path, uint64_t i,
                        rlhf_row **out);
} rlhf_row_service;

// "rlhf.limits/1": the limits of one call of a reward, from the settings rewards.*. They are for
// rewards that work outside the process. The table is plain data without functions; read it when
// needed.
#define RLHF_SVC_LIMITS "rlhf.limits/1"
typedef struct rlhf_limits {
    uint32_t size;
    int32_t retries;       // retries of a failed row, done by the host
    double timeout_s;      // time limit of a call in seconds, 0 = unlimited
    uint64_t memory_bytes; // limit of a process that works for the reward, 0 = unlimited
} rlhf_limits;

#endif
