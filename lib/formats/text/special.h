// special.h: which of a directory's files says what a special token is for.
//
// What it is not: it finds no ids and reads no files; special.c does that for the tokenizer.
#ifndef RLHF_HOST_TEXT_SPECIAL_H
#define RLHF_HOST_TEXT_SPECIAL_H

#include <jansson.h>

// The member `key` ("eos_token") of special_tokens_map.json or of tokenizer_config.json, whichever
// goes before the other as transformers reads them (PreTrainedTokenizerBase._from_pretrained):
// beside an added_tokens_decoder the map is not looked at, without one all that it names, null too,
// is instead of what tokenizer_config.json says. config, map: NULL allowed. NULL when neither has
// it. Borrowed. [any]
const json_t *rlhf__special_said(const json_t *config, const json_t *map, const char *key);

#endif
