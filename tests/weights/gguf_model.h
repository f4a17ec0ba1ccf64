// gguf_model.h: tiny models for tests of GGUF files, and a reader of such files.
#ifndef RLHF_TESTS_WEIGHTS_GGUF_MODEL_H
#define RLHF_TESTS_WEIGHTS_GGUF_MODEL_H

#include "support/scratch.h"

#include "base/file.h"
#include "base/json.h"
#include "gguf_write/gguf.h"

// ---- a reader ----

struct reader {
    const uint8_t *p, *end;
    struct rlhf__buf out; // the caller frees it
};

// Write the lines "key type value" and "tensor name shape type offset" of a file's head. Leaves
// r->p at the data.
const char *reader_head(struct reader *r, const uint8_t *bytes, size_t len);

// ---- models ----

#define MAX_TENSORS  32
#define MAX_ELEMENTS 2080
#define JSON_BYTES   ", \"%s%s\": %d"

struct model {
    struct scratch *s;
    struct rlhf__gguf_model m;
    struct rlhf__tensor tensor[MAX_TENSORS];
    const struct rlhf__tensor *list[MAX_TENSORS];
    float data[MAX_TENSORS][MAX_ELEMENTS];
    struct rlhf__buf file;
};

// Begins a model with the text of its config.json and of its tokenizer.json. In the latter, "@"
// stands for the tokens of all bytes.
void model_begin(struct model *m, struct scratch *s, const char *config, const char *tokenizer);
void model_end(struct model *m);

// Adds tensor k, whose element i is k + i / 64. If `columns` is 0, the tensor is a vector. If it is
// negative, the tensor is [rows, 1, -columns].
void model_add(struct model *m, const char *name, int64_t rows, int64_t columns);

// The tensors of LLAMA.
void model_add_llama(struct model *m);

// Returns the bytes of the file. They live as long as `m`.
const uint8_t *model_written(struct model *m, size_t *len);

// Checks that the model is refused, with `part` in the message. The status must be RLHF_E_INVALID
// unless another one is given.
void model_refused(const struct model *m, const char *part);
void model_refused_as(const struct model *m, rlhf_status status, const char *part);

// Writes a byte-level vocabulary with a token for every byte except a and b. Ids start at 5. `form`
// is the printf format of an entry: an escape ("\\" or ""), the character that represents the byte,
// and the id.
void put_bytes(struct rlhf__buf *out, const char *form);

// Writes a file of the tokenizer. An "@" in the text is replaced by the tokens of the bytes.
void tokenizer_text(struct scratch *s, const char *name, const char *text);

// Configs and a tokenizer that go together.
#define LLAMA_TIED(vocab, tied)                                                                    \
    "\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], \"vocab_size\": " vocab \
    ", \"tie_word_embeddings\": " tied ", \"hidden_size\": 4, \"intermediate_size\": 3, "          \
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, "           \
    "\"head_dim\": 4, \"max_position_embeddings\": 16, \"rms_norm_eps\": 0.5, "                    \
    "\"bos_token_id\": 1"
#define LLAMA_OF(vocab) LLAMA_TIED(vocab, "true")
#define LLAMA           LLAMA_OF("260")
#define BPE                                                                                        \
    "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"<s>\": 1, \"b\": 2, \"ab\": 3, "      \
    "\"<tool>\": 4@}, \"merges\": [[\"a\", \"b\"]]}, \"added_tokens\": [{\"id\": 1, \"content\": " \
    "\"<s>\", "                                                                                    \
    "\"special\": true}, {\"id\": 4, \"content\": \"<tool>\", \"special\": false}], "
#define BYTE_LEVEL "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": true}"
#define GPT2_FORM  BPE "\"pre_tokenizer\": " BYTE_LEVEL "}"

#endif
