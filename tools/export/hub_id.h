// hub_id.h: names of models on the Hugging Face hub, OWNER/NAME.
#ifndef RLHF_HOST_HUB_ID_H
#define RLHF_HOST_HUB_ID_H

// 1 when text is what the hub calls a model: NAME or OWNER/NAME. [any]
int rlhf__is_hub_id(const char *text);

// The hub's name of a path in the hub's cache, .../models--OWNER--NAME/snapshots/...; 0 = none.
// [any]
int rlhf__hub_id_of_path(const char *path, char out[128]);

#endif
