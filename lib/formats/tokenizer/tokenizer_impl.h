// tokenizer_impl.h: the parts of a tokenizer, for the code in text/ that loads and uses it.
//
// It is not an interface for other directories; they use tokenizer.h.
#ifndef RLHF_FORMATS_TOKENIZER_TOKENIZER_IMPL_H
#define RLHF_FORMATS_TOKENIZER_TOKENIZER_IMPL_H

#include "chat/chat.h"
#include "text/added.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/work.h"
#include "tokenizer/tokenizer.h"

#include <jansson.h>

// BERT's WordPiece. Each word is split from left to right, each time at the end of the longest
// token that fits. Tokens that do not begin a word start with "##".
struct rlhf__wordpiece {
    const struct rlhf__vocab *vocab; // borrowed
    int32_t unk; // id of words that tokens cannot spell, and of words of over 100 characters
};

// The greatest number of special tokens on one side of a text.
enum { RLHF__FRAME_MAX = 4 };
struct rlhf__tokenizer_frame {
    int32_t before[RLHF__FRAME_MAX], after[RLHF__FRAME_MAX];
    size_t n_before, n_after;
};

struct rlhf__tokenizer {
    struct rlhf__tokenizer_info info;
    struct rlhf__vocab vocab;
    struct rlhf__normalizer *normalizer;       // NULL = none
    struct rlhf__pre_tokenizer *pre_tokenizer; // NULL = a text is one word
    struct rlhf__works *works;                 // scratch memory for encoding
    struct rlhf__log *log;                     // NULL = none
    char *dir;                                 // as given to rlhf__tokenizer_open
    struct rlhf__bpe_opts bpe_opts;
    struct rlhf__merges merges;   // until `bpe` takes them
    struct rlhf__bpe *bpe;        // for kind BPE
    struct rlhf__wordpiece piece; // for kind WORDPIECE
    struct rlhf__added added;
    struct rlhf__tokenizer_frame frame;
    struct rlhf__decoder *decoder;
    json_t *vars;              // its special tokens as variables of a chat template
    struct rlhf__chat *chat;   // the directory's chat template, or one that was chosen by name
    int32_t prefix;            // enum rlhf__prefix
    int has_json, frame_given; // tokenizer.json was read; it has a post_processor
    int frame_changed;         // 1: rlhf__tokenizer_set_bos changed the frame
};

// Read the optional files: added tokens, roles of special tokens, letter case. Call this function
// after the vocabulary is loaded. [main]
rlhf_status rlhf__tokenizer_load_special(struct rlhf__tokenizer *tok, const char *dir,
                                         struct rlhf__error *err);

// Read tokenizer.json and no other file: vocabulary, added tokens, frame. If the file uses a
// feature that is not implemented, it is refused, and the message names the feature. [main]
rlhf_status rlhf__tokenizer_load_json(struct rlhf__tokenizer *tok, const char *dir,
                                      struct rlhf__error *err);

// Add the tokens {"token": id}. If byte_level is 1, the tokens are written with stand-ins for bytes
// (vocab.h). [main]
rlhf_status rlhf__tokenizer_add_vocab(struct rlhf__tokenizer *tok, json_t *vocab, int byte_level,
                                      struct rlhf__error *err);

// Add the merge of two tokens. If `bytes` is 1, the tokens are written with stand-ins for bytes.
// [main]
rlhf_status rlhf__tokenizer_add_merge(struct rlhf__tokenizer *tok, int bytes, const char *left,
                                      size_t n_left, const char *right, size_t n_right,
                                      uint32_t rank, struct rlhf__error *err);

// Read the frame from the post_processor of tokenizer.json. If that is NULL or null, the file has
// no frame. [main]
rlhf_status rlhf__frame_read(struct rlhf__tokenizer *tok, const json_t *post,
                             struct rlhf__error *err);

// Set the frame if no post_processor has defined it. For WordPiece, it is [CLS] and [SEP]. For BPE
// without a tokenizer.json, it depends on add_bos_token and add_eos_token of tokenizer_config.json.
// `config` is that file, or NULL. Call this function after the roles of special tokens are known.
// [main]
void rlhf__frame_default(struct rlhf__tokenizer *tok, const json_t *config);

// Create the normalizer and the pre-tokenizer from the members "normalizer" and "pre_tokenizer" of
// tokenizer.json. [main]
rlhf_status rlhf__tokenizer_read_cut(struct rlhf__tokenizer *tok, const json_t *file,
                                     struct rlhf__error *err);

// Returns a token as it is written in the files: the content of an added token, and the bytes in
// the vocabulary of any other token. ptr is NULL for an unused id. Borrowed. [any]
rlhf_str rlhf__tokenizer_written(const struct rlhf__tokenizer *tok, int32_t id);

// Append the ids of the normalized text s[0..n). Stops early when out->n >= stop_at. (It may append
// too many ids, because it encodes whole words.) at_start is 1 if s is the beginning of the whole
// text. Errors: RLHF_E_NOMEM, RLHF_E_UNSUPPORTED. [any, one thread per work]
rlhf_status rlhf__pipeline_words(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                                 const char *s, size_t n, int at_start, size_t stop_at,
                                 struct rlhf__ids *out, struct rlhf__error *err);

#endif
