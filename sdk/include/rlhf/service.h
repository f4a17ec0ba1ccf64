// rlhf/service.h: the service tables returned by host->service(id).
//
// Plugin contract 1.0, frozen: it only grows.
//
// Plugins share models, and a model computes with all threads. So an [alone] function may be called
// only while a function of the plugin runs, on the thread on which that function runs. An object
// whose open() is [main] is opened and closed only in functions of the plugin that are [main], such
// as create(), on their thread. The host refuses other calls. While a function of the plugin runs,
// any thread may call an [any] function, at the same time as other calls, also [alone] ones, but
// not during open or close of the same object.
//
// With two exceptions, the host does not run two plugins at once. First, with rewards.overlap, a
// thread of the host may call the score() of a reward with RLHF_REWARD_EXTERNAL while the model
// computes. Second, with rollout.ahead, a thread of the host generates text while other plugins
// run. This thread uses a second instance of the policy's model and a separate compute table. So
// instances and tables must not share data that they change.
//
// The first argument of every function is the rlhf_host that create() received.
//
// A call that computes takes structs, so that it can grow: one with its arguments, and one that
// says where its results go. The plugin makes both. The host keeps no pointer of either after the
// call. If a struct is shorter than in its first version, or has a member that the host does not
// know, the call fails with RLHF_E_INVALID or RLHF_E_UNSUPPORTED. A function that gives one value
// of an object (as of a row) takes plain arguments; a variant of it is another function.
//
// A failing call records a message with the host. If your function returns this call's status
// without calling host->fail, the user sees that message. A failing open() sets *out to NULL. After
// another failing call, the arrays for its results have any content.
//
// Each object that open() gives must be closed; a closed object must not be used. Objects of one
// directory share a model, which is freed with the last of them. The host closes what a plugin
// leaves open when the run ends, and `plugin check` reports it. [R:leak]
//
// Where a comment says that results do not depend on the other rows, or that they have the same
// bits as others, this holds if the compute backend has exact rows, as the CPU's has; otherwise
// they may differ by rounding.
//
// Errors of all calls: RLHF_E_NOMEM; RLHF_E_INVALID for arguments that break a rule below, such as
// an array that is NULL although it must have entries. Errors of [alone] functions and of an
// open() that loads a model: also RLHF_E_UNSUPPORTED for a reward with RLHF_REWARD_EXTERNAL, and
// those of the model, such as RLHF_E_DEVICE. Errors of an open() of a directory: also RLHF_E_IO;
// RLHF_E_INVALID if the directory does not have what is opened; RLHF_E_UNSUPPORTED for more than 64
// objects of a plugin in a worker.
#ifndef RLHF_SERVICE_H
#define RLHF_SERVICE_H

#include "heads.h"
#include "host.h"

// ---- classifiers ----

// "rlhf.classifier/1": runs the sequence classifier of any model directory (DistilBERT, or a
// decoder with a score head) with its tokenizer. If a text has more tokens than the model has
// positions, its last tokens are left out, and the special tokens around it are kept. Padding is
// never used.
#define RLHF_SVC_CLASSIFIER "rlhf.classifier/1"
typedef struct rlhf_classifier rlhf_classifier;

typedef struct rlhf_classifier_open {
    uint32_t size, reserved;
    const char *path; // a model directory or a run; NULL or "default": the embedded classifier
} rlhf_classifier_open;

// The pointers are borrowed until close.
typedef struct rlhf_classifier_info {
    uint32_t size, n_labels;
    // [n_labels] the names of id2label in config.json, e.g. "POSITIVE"
    const char *const *label;
} rlhf_classifier_info;

typedef struct rlhf_classifier_in {
    uint32_t size, n;     // n texts; 0: the call does nothing
    const rlhf_str *text; // [n] any bytes; they may be empty
} rlhf_classifier_in;

typedef struct rlhf_classifier_out {
    uint32_t size, reserved;
    float *logits; // [n, n_labels]
} rlhf_classifier_out;

typedef struct rlhf_classifier_service {
    uint32_t size, reserved;
    void *self; // the host's
    // Opens the classifier of a directory. Free it with close. [main]
    rlhf_status (*open)(const rlhf_host *, const rlhf_classifier_open *, rlhf_classifier **out);
    void (*close)(const rlhf_host *, rlhf_classifier *); // NULL allowed [main]
    rlhf_status (*info)(const rlhf_host *, const rlhf_classifier *,
                        rlhf_classifier_info *out); // [any]
    // Computes the logits of texts. Those of a text do not depend on the other texts. [alone]
    rlhf_status (*logits)(const rlhf_host *, rlhf_classifier *, const rlhf_classifier_in *,
                          const rlhf_classifier_out *);
} rlhf_classifier_service;

// ---- tokenizers ----

// The arguments of encode() and decode(), also of language models.

typedef struct rlhf_encode_in {
    uint32_t size, reserved;
    // Any bytes. No special tokens are added, and the spelling of one, such as "<|im_end|>", is
    // encoded in ordinary tokens. Bytes for which there is no token become the unknown token, or
    // nothing.
    rlhf_str text;
} rlhf_encode_in;

typedef struct rlhf_encode_out {
    uint32_t size;
    uint32_t cap; // the length of `ids`; 0: only count
    int32_t *ids; // [cap] gets the first ids
    uint32_t n;   // the host sets it to the number of ids of the whole text, also if it exceeds cap
    uint32_t reserved;
} rlhf_encode_out;

typedef struct rlhf_decode_in {
    uint32_t size, n;
    const int32_t *ids; // [n] ids outside of the vocabulary are skipped
} rlhf_decode_in;

typedef struct rlhf_decode_out {
    uint32_t size, reserved;
    // [cap] gets the first bytes of the text, without a NUL; a character may be cut. The text is
    // UTF-8: special tokens are spelled out, and bytes that are not UTF-8 become U+FFFD.
    char *utf8;
    uint64_t cap; // 0: only count
    uint64_t len; // the host sets it to the length of the whole text, also if it exceeds cap
} rlhf_decode_out;

// "rlhf.tokenizer/1": tokenizers of model directories.
#define RLHF_SVC_TOKENIZER "rlhf.tokenizer/1"
typedef struct rlhf_tokenizer rlhf_tokenizer;

typedef struct rlhf_tokenizer_open {
    uint32_t size, reserved;
    // A model directory or a run. NULL: the policy's tokenizer; RLHF_E_INVALID in a command without
    // a policy.
    const char *path;
} rlhf_tokenizer_open;

typedef struct rlhf_tokenizer_info {
    uint32_t size;
    int32_t n_vocab; // ids are from 0 to n_vocab - 1
} rlhf_tokenizer_info;

typedef struct rlhf_tokenizer_service {
    uint32_t size, reserved;
    void *self; // the host's
    // Opens the tokenizer of a directory. Free it with close. [call]
    rlhf_status (*open)(const rlhf_host *, const rlhf_tokenizer_open *, rlhf_tokenizer **out);
    void (*close)(const rlhf_host *, rlhf_tokenizer *); // NULL allowed [call]
    rlhf_status (*info)(const rlhf_host *, const rlhf_tokenizer *,
                        rlhf_tokenizer_info *out); // [any]
    // Errors of encode: RLHF_E_UNSUPPORTED if the tokenizer's pattern takes too long on the text.
    // [any]
    rlhf_status (*encode)(const rlhf_host *, const rlhf_tokenizer *, const rlhf_encode_in *,
                          rlhf_encode_out *);
    rlhf_status (*decode)(const rlhf_host *, const rlhf_tokenizer *, const rlhf_decode_in *,
                          rlhf_decode_out *); // [any]
} rlhf_tokenizer_service;

// ---- reward models ----

// "rlhf.reward_model/1": runs a reward model (as trained by bradley_terry.so), which has a trunk
// and one score per token. Rewards are gain * score + bias, with gain and bias from the model's
// config.json.
#define RLHF_SVC_REWARD_MODEL "rlhf.reward_model/1"
typedef struct rlhf_reward_model rlhf_reward_model;

typedef struct rlhf_reward_model_open {
    uint32_t size, reserved;
    const char *path; // a model directory or a run; NULL or "default": the embedded reward model
} rlhf_reward_model_open;

typedef struct rlhf_reward_model_in {
    uint32_t size, n; // n ragged rows (arrays as in rlhf_reward_in); 0: the call does nothing
    // Rows have at least one token. The model reads a row with the BOS that its own tokenizer puts
    // before a text, or without, whatever the row has. If a row is then longer than the model's
    // positions, the call fails with RLHF_E_INVALID.
    const int32_t *ids;
    const int32_t *offset, *prompt_len; // prompt_len[i] is from 1 to the length of row i
    int32_t pooling; // enum rlhf_pool (mean or last); 0: as the model was trained
    uint32_t reserved;
} rlhf_reward_model_in;

typedef struct rlhf_reward_model_out {
    uint32_t size, reserved;
    // [n] the mean or the last of a row's token rewards, as `pooling` says; for a row without
    // response tokens, the reward after the row's last prompt token
    float *seq;
    // [total] the reward after each response token, and 0 on the prompt; NULL: not needed
    float *token;
} rlhf_reward_model_out;

typedef struct rlhf_reward_model_service {
    uint32_t size, reserved;
    void *self; // the host's
    // Opens the reward model of a directory. Free it with close. Fails with RLHF_E_INVALID if the
    // model's vocabulary differs from the policy's, or if it has fewer positions than the longest
    // prompt and response of the run together. The host, too, uses the model, and may train it
    // between phases. [main]
    rlhf_status (*open)(const rlhf_host *, const rlhf_reward_model_open *, rlhf_reward_model **out);
    void (*close)(const rlhf_host *, rlhf_reward_model *); // NULL allowed [main]
    // Computes the rewards of rows. Those of a row do not depend on the other rows. [alone]
    rlhf_status (*score)(const rlhf_host *, rlhf_reward_model *, const rlhf_reward_model_in *,
                         const rlhf_reward_model_out *);
} rlhf_reward_model_service;

// ---- language models ----

// "rlhf.language_model/1": runs the causal language model of any model directory with its tokenizer
// and chat template, in the run's dtype (compute.dtype). Log-probs and responses have the bits that
// a run with this model as its policy would have: they do not depend on the other rows of a call.
#define RLHF_SVC_LANGUAGE_MODEL "rlhf.language_model/1"
typedef struct rlhf_language_model rlhf_language_model;

typedef struct rlhf_language_open {
    uint32_t size;
    // Most tokens of a row of score(), and of a prompt of generate() with max_new. If a row needs
    // more, the call fails with RLHF_E_INVALID. 0: the model's context; more than that is
    // RLHF_E_INVALID. The memory estimate of a run counts rows of this length, or of the run's
    // longest row with 1024 more tokens if that is shorter.
    int32_t longest;
    // Responses that generate() samples at the same time, at most 4096; each takes memory for the
    // longest prompt of the call with max_new. More prompts wait for a free slot. 0: generate() is
    // not called; it would fail with RLHF_E_INVALID.
    int32_t slots;
    uint32_t reserved;
    // A model directory, a PEFT directory (the model is then its base with the adapter), or a run.
    // NULL or "default": the embedded default policy.
    const char *path;
} rlhf_language_open;

// The pointers are borrowed until close.
typedef struct rlhf_language_info {
    uint32_t size;
    int32_t n_vocab;
    int32_t longest;    // as in rlhf_language_open, with 0 replaced by the context
    int32_t templated;  // 1: there is a chat template, so prompts may be messages
    int32_t bos;        // the tokenizer's BOS; -1: none. prompt() adds it if the tokenizer does
    uint32_t n_ends;    // number of `end`
    const int32_t *end; // [n_ends] the tokens that end the model's responses
} rlhf_language_info;

// A prompt: a text or messages; the other one has len 0.
typedef struct rlhf_language_prompt {
    uint32_t size, reserved;
    // Encoded in ordinary tokens, after the tokens that the tokenizer puts before a text (BOS).
    rlhf_str text;
    // A JSON list such as [{"role": "user", "content": "..."}], rendered by the chat template up to
    // where the assistant's answer begins. Special tokens in a content that is a string are encoded
    // in ordinary tokens, so a content cannot end its own message. RLHF_E_INVALID if this is no
    // such list, or if there is no chat template.
    rlhf_str messages;
} rlhf_language_prompt;

// prompt_len[i] is from 1 to the length of row i. Adjacent rows with the same prompt are computed
// faster, with the same bits.
typedef struct rlhf_language_rows {
    uint32_t size, n; // n ragged rows (arrays as in rlhf_reward_in); 0: the call does nothing
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
    uint32_t size, n;      // n prompts; 0: the call does nothing
    const int32_t *ids;    // the prompts' tokens, ragged; each prompt has at least one
    const int32_t *offset; // [n + 1]
    int32_t max_new;       // most tokens of a response, from 1 to 65535
    int32_t top_k;         // 0 = off
    double temperature;    // 0: take the most probable token (the lowest id on a tie)
    double top_p, min_p;   // 0 = off
    // Needed for a temperature above 0. Token t of response i is drawn with the block
    // (rng->counter + i) * 65536 + t of the stream, so add n to your counter after each call.
    // rng->counter + n is meant to be at most 2^48: beyond that, the blocks begin again at 0.
    const rlhf_rng *rng;
    // [n_stop] more tokens of the vocabulary that end a response; they are kept in it
    const int32_t *stop;
    uint32_t n_stop; // at most 32
    uint32_t flags;  // bits of enum rlhf_language_flag
} rlhf_language_request;

typedef struct rlhf_language_responses {
    uint32_t size, reserved;
    int32_t *ids;     // [n, max_new] 0 after `len` tokens
    int32_t *len;     // [n] tokens of each response
    uint8_t *stopped; // [n] 1 = ended by an end token, which is the response's last token; 0 = not
    float *logp;      // [n, max_new] as score() computes it, 0 after `len` tokens; NULL: not needed
} rlhf_language_responses;

typedef struct rlhf_language_model_service {
    uint32_t size, reserved;
    void *self; // the host's
    // Opens the language model of a directory. Free it with close. [main]
    rlhf_status (*open)(const rlhf_host *, const rlhf_language_open *, rlhf_language_model **out);
    void (*close)(const rlhf_host *, rlhf_language_model *); // NULL allowed [main]
    rlhf_status (*info)(const rlhf_host *, const rlhf_language_model *,
                        rlhf_language_info *out); // [any]
    // Encodes a prompt. Errors: as for encode. [any]
    rlhf_status (*prompt)(const rlhf_host *, const rlhf_language_model *,
                          const rlhf_language_prompt *, rlhf_encode_out *);
    // As in rlhf_tokenizer_service. [any]
    rlhf_status (*encode)(const rlhf_host *, const rlhf_language_model *, const rlhf_encode_in *,
                          rlhf_encode_out *);
    rlhf_status (*decode)(const rlhf_host *, const rlhf_language_model *, const rlhf_decode_in *,
                          rlhf_decode_out *);
    // Computes the log-probs of given tokens. Errors: RLHF_E_CANCELLED. [alone]
    rlhf_status (*score)(const rlhf_host *, rlhf_language_model *, const rlhf_language_rows *,
                         const rlhf_language_scores *out);
    // Samples a response to each prompt. Errors: RLHF_E_CANCELLED. [alone]
    rlhf_status (*generate)(const rlhf_host *, rlhf_language_model *, const rlhf_language_request *,
                            const rlhf_language_responses *out);
} rlhf_language_model_service;

// ---- data rows ----

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
    void *self; // the host's
    // Parses one row. Returns RLHF_E_INVALID if the text is not a JSON object, if one of its
    // objects has a key twice, or if it has a number that is too large: one with a fraction or an
    // exponent beyond the doubles, or an integer of more than 4300 digits. Text that is not UTF-8
    // and half of a surrogate pair (\ud800 alone) are not JSON. If a prompt comes without a data
    // row, the text is empty, and this call fails. Free the row with close. [any]
    rlhf_status (*open)(const rlhf_host *, rlhf_str json, rlhf_row **out);
    void (*close)(const rlhf_host *, rlhf_row *); // NULL allowed [any]
    // Returns the type (enum rlhf_json_type) of the value at path. Use this for values that may be
    // absent. [any]
    int32_t (*type)(const rlhf_host *, const rlhf_row *, const char *path);
    // Gets a string with its escapes decoded; it may contain NULs. The string is borrowed until
    // close. [any]
    rlhf_status (*string)(const rlhf_host *, const rlhf_row *, const char *path, rlhf_str *out);
    // Gets a number, rounded to the nearest double. Returns RLHF_E_INVALID for an integer that is
    // too large for a double. [any]
    rlhf_status (*number)(const rlhf_host *, const rlhf_row *, const char *path, double *out);
    // Gets an integer exactly. A number with a fraction or an exponent is of another type, and so
    // is an integer beyond 64 bits, of which `json` gives the digits. [any]
    rlhf_status (*integer)(const rlhf_host *, const rlhf_row *, const char *path, int64_t *out);
    rlhf_status (*boolean)(const rlhf_host *, const rlhf_row *, const char *path,
                           int32_t *out); // [any]
    // Writes the first bytes of the value as JSON text on one line, at most cap and without a NUL,
    // and sets *len to the length of the whole text. Integers of any size keep their digits; other
    // numbers are written anew, with a fraction or an exponent: 1e2 becomes 100.0. [any]
    rlhf_status (*json)(const rlhf_host *, const rlhf_row *, const char *path, char *utf8,
                        uint64_t cap, uint64_t *len);
    // Gets the number of entries of a list or of members of an object. [any]
    rlhf_status (*length)(const rlhf_host *, const rlhf_row *, const char *path, uint64_t *out);
    // Gets the key of member i of an object; members keep the order of the text. RLHF_E_INVALID
    // past the last. The key is borrowed until close. [any]
    rlhf_status (*key)(const rlhf_host *, const rlhf_row *, const char *path, uint64_t i,
                       rlhf_str *out);
    // Opens entry i of a list, or the value of member i of an object, as a row of its own; its path
    // "" is the value. RLHF_E_INVALID past the last. Free it with close; it may be closed after the
    // row that it comes from. [any]
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
