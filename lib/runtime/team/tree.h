// tree.h: the fixed binary tree in which the sums of a minibatch's shards are added.
//
// Node (level, index) is the sum of the shards [index << level, (index + 1) << level), as far as
// these exist. The sum is that of the left child plus that of the right child, or just that of the
// left child if the right one would be empty. The tree does not depend on the number of processes.
// So if a process pushes its shards in order, it adds the same numbers in the same order as any
// other process would.
//
// The tree only says what to add; the caller does it.
#ifndef RLHF_HOST_TEAM_TREE_H
#define RLHF_HOST_TEAM_TREE_H

#include <stdint.h>

#define RLHF__TREE_DEPTH 32

struct rlhf__tree_node {
    uint32_t level, index;
};

// The nodes that have not been added to their sibling yet ("waiting nodes"), in the order of their
// shards. To begin, set `shards`, and set `n` to 0.
struct rlhf__tree {
    uint32_t shards, n;
    struct rlhf__tree_node at[RLHF__TREE_DEPTH];
};

// Returns the number after the node's last shard. [any]
static inline uint32_t rlhf__tree_end(uint32_t shards, struct rlhf__tree_node x) {
    const uint64_t end = ((uint64_t)x.index + 1) << x.level;
    return end < shards ? (uint32_t)end : shards;
}

// Returns `x`, or the highest ancestor of `x` that has the same sum. A node whose right sibling
// would be empty has the same sum as its parent.
static inline struct rlhf__tree_node rlhf__tree_rise(uint32_t shards, struct rlhf__tree_node x) {
    while (!(x.index & 1) && x.index > 0 && x.level + 1 < RLHF__TREE_DEPTH &&
           rlhf__tree_end(shards, x) == shards)
        x = (struct rlhf__tree_node){x.level + 1, x.index / 2};
    return x;
}

// Push the next node. Nodes are pushed in the order of shards. Returns how many waiting nodes the
// caller must add to the pushed node, the last one first: left = left + right. The resulting node
// is t->at[t->n - 1]. [any]
static inline uint32_t rlhf__tree_push(struct rlhf__tree *t, struct rlhf__tree_node x) {
    uint32_t adds = 0;
    x = rlhf__tree_rise(t->shards, x);
    while (t->n > 0 && (x.index & 1) && t->at[t->n - 1].level == x.level &&
           t->at[t->n - 1].index == x.index - 1) {
        t->n--;
        adds++;
        x = rlhf__tree_rise(t->shards, (struct rlhf__tree_node){x.level + 1, x.index / 2});
    }
    t->at[t->n++] = x;
    return adds;
}

// Returns the nodes that remain after the shards [from, to) were pushed. [any]
static inline struct rlhf__tree rlhf__tree_of(uint32_t shards, uint32_t from, uint32_t to) {
    struct rlhf__tree t = {.shards = shards};
    for (uint32_t i = from; i < to; i++)
        rlhf__tree_push(&t, (struct rlhf__tree_node){0, i});
    return t;
}

// Returns the number of buffers that a caller with the shards [from, to) needs for waiting nodes,
// in addition to the buffer of the newest shard. [any]
static inline uint32_t rlhf__tree_asides(uint32_t shards, uint32_t from, uint32_t to) {
    struct rlhf__tree t = {.shards = shards};
    uint32_t most = 0;
    for (uint32_t i = from; i < to; i++) {
        if (t.n > most) most = t.n;
        rlhf__tree_push(&t, (struct rlhf__tree_node){0, i});
    }
    return most;
}

#endif
