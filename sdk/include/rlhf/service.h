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

// "rlhf.language_model/1": runs the causal language model of any model directory with its tokenizer
// and chat template, in the run's dtype (compute.dtype). Log-probs and responses have the bits that
// a run with this model as its policy would have: they do not depend on the other rows of a call.
#define RLHF_SVC_LANGUAGE_MODEL "rlhf.language_model/1"
typedef struct rlhf_language_model rlhf_language_model;

typedef struct rlhf_language_open {
    uint32_t size;
    // Most tokens of a row of score(), and of a prompt of generate() with its response. 0: the
    // model's context. Longer rows fail. The memory estimate of a run counts this number.
    int32_t longest;
    // Responses that generate() samples at the same time; each takes memory for `longest` tokens.
    // 0: generate() is not called.
    int32_t slots;
    uint32_t reserved;
    // A model directory, a PEFT directory (the model is then its base with the adapter), or a run.
    // NULL or "default": the embedded default policy.
    const char *path;
} rlhf_language_open;

typedef struct rlhf_language_info {
    uint32_t size;
    int32_t n_vocab;
    int32_t longest;    // as in rlhf_language_open, with 0 replaced by the context
    int32_t templated;  // 1: there is a chat template, so prompts may be messages
    int32_t bos;        // the token before a text; -1: none
    uint32_t n_ends;    // number of `end`
    const int32_t *end; // the tokens that end the model's responses; borrowed until close
} rlhf_language_info;

// A prompt: a text or messages; the other one has len 0.
typedef struct rlhf_language_prompt {
    uint32_t size, reserved;
    // Encoded in ordinary tokens, after the tokens that the tokenizer puts before a text (BOS).
    rlhf_str text;
    // A JSON list such as [{"role": "user", "content": "..."}], rendered by the chat template up to
    // where the assistant's answer begins. Special tokens in a content that is a string are encoded
    // in ordinary tokens, so a content cannot end its own message.
    rlhf_str messages;
} rlhf_language_prompt;

// n ragged rows (arrays as in rlhf_reward_in). prompt_len[i] is from 1 to the length of row i.
// Adjacent rows with the same prompt are computed faster, with the same bits.
typedef struct rlhf_language_rows {
    uint32_t size, n;
    const int32_t *ids, *offset, *prompt_len;
} rlhf_language_rows;

typedef struct rlhf_language_scores {
    uint32_t size, reserved;
    // [total] natural log-prob of each token from prompt_len onward, given the tokens before it, at
    // temperature 1 over the whole vocabulary; 0 on prompt tokens
    float *logp;
} rlhf_language_scores;

enum rlhf_language_flag {
    RLHF_LANGUAGE_PAST_ENDS = 1 // the model's own end tokens do not end a response
};

typedef struct rlhf_language_request {
    uint32_t size, n;      // n prompts
    const int32_t *ids;    // the prompts' tokens, ragged; each prompt has at least one
    const int32_t *offset; // [n + 1]
    int32_t max_new;       // most tokens of a response, from 1 to 65535
    int32_t top_k;         // 0 = off
    double temperature;    // 0: take the most probable token (the lowest id on a tie)
    double top_p, min_p;   // 0 = off
    // Needed for a temperature above 0. Token t of response i is drawn with the block
    // (rng->counter + i) * 65536 + t of the stream, so add n to your counter after each call.
    const rlhf_rng *rng;
    const int32_t *stop; // [n_stop] more tokens that end a response; they are kept in it
    uint32_t n_stop;     // at most 32
    uint32_t flags;      // bits of enum rlhf_language_flag
} rlhf_language_request;

typedef struct rlhf_language_responses {
    uint32_t size, reserved;
    int32_t *ids;     // [n, max_new]
    int32_t *len;     // [n] tokens of each response
    uint8_t *stopped; // [n] 1 = ended by an end token, which is the response's last token
    float *logp;      // [n, max_new] as score() computes it; NULL: not needed
} rlhf_language_responses;

typedef struct rlhf_language_model_service {
    uint32_t size, reserved;
    // Loads a model directory. Models from the same directory are shared. Free the model with
    // close. [main]
    rlhf_status (*open)(const rlhf_host *, const rlhf_language_open *, rlhf_language_model **out);
    void (*close)(const rlhf_host *, rlhf_language_model *); // NULL allowed [main]
    rlhf_status (*info)(const rlhf_host *, const rlhf_language_model *,
                        rlhf_language_info *out); // [any]
    // Encodes a prompt. Writes at most cap ids, and sets *n to their whole number. [any]
    rlhf_status (*prompt)(const rlhf_host *, const rlhf_language_model *,
                          const rlhf_language_prompt *, int32_t *ids, uint32_t cap, uint32_t *n);
    // As in rlhf_tokenizer_service: no special tokens are added or recognized. [any]
    rlhf_status (*encode)(const rlhf_host *, const rlhf_language_model *, rlhf_str text,
                          int32_t *ids, uint32_t cap, uint32_t *n);
    rlhf_status (*decode)(const rlhf_host *, const rlhf_language_model *, const int32_t *ids,
                          uint32_t n, char *utf8, uint64_t cap, uint64_t *len);
    // Computes the log-probs of given tokens. [alone]
    rlhf_status (*score)(const rlhf_host *, rlhf_language_model *, const rlhf_language_rows *,
                         const rlhf_language_scores *out);
    // Samples a response to each prompt. [alone]
    rlhf_status (*generate)(const rlhf_host *, rlhf_language_model *, const rlhf_language_request *,
                            const rlhf_language_responses *out);
} rlhf_language_model_service;

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
