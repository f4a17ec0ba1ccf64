// table.c: the rlhf_compute of the CPU backend: which function stands behind which member.
#include "context.h"
#include "products.h"
#include "rows.h"

void rlhf__cpu_fill_table(struct rlhf__cpu *cpu) {
    rlhf_compute *t = &cpu->table;
    t->alloc = rlhf__cpu_alloc;
    t->release = rlhf__cpu_release;
    t->bytes_in_use = rlhf__cpu_bytes_in_use;
    t->upload = rlhf__cpu_upload;
    t->download = rlhf__cpu_download;
    t->copy = rlhf__cpu_copy;
    t->zero = rlhf__cpu_zero;
    t->convert = rlhf__cpu_convert;
    t->sync = rlhf__cpu_sync;
    t->weight_create = rlhf__cpu_weight_create;
    t->weight_destroy = rlhf__cpu_weight_destroy;
    t->weight_pack = rlhf__cpu_weight_pack;
    t->linear = rlhf__cpu_linear;
    t->linear_dx = rlhf__cpu_linear_dx;
    t->linear_dw = rlhf__cpu_linear_dw;
    t->embed = rlhf__cpu_embed;
    t->embed_bwd = rlhf__cpu_embed_bwd;
    t->norm = rlhf__cpu_norm;
    t->norm_bwd = rlhf__cpu_norm_bwd;
    t->act = rlhf__cpu_act;
    t->act_bwd = rlhf__cpu_act_bwd;
    t->add = rlhf__cpu_add;
    t->gather = rlhf__cpu_gather;
    t->scatter_add = rlhf__cpu_scatter_add;
    t->pool = rlhf__cpu_pool;
    t->pool_bwd = rlhf__cpu_pool_bwd;
    t->kv_store = rlhf__cpu_kv_store;
    t->attention = rlhf__cpu_attention;
    t->attention_bwd = rlhf__cpu_attention_bwd;
    t->lm_head = rlhf__cpu_lm_head;
    t->lm_head_bwd = rlhf__cpu_lm_head_bwd;
    t->lm_sample = rlhf__cpu_lm_sample;
    t->sumsq = rlhf__cpu_sumsq;
    t->adamw = rlhf__cpu_adamw;
    t->muon = rlhf__cpu_muon;
}
