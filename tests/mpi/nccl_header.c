// nccl_header.c: compares our declarations of NCCL with NVIDIA's. Compiled if nccl.h is installed.
#include "../../plugins/collectives/nccl_api.h"

#include <nccl.h>
#include <stddef.h>

_Static_assert(NCCL_SUCCESS == ncclSuccess && NCCL_IN_PROGRESS == ncclInProgress &&
                   NCCL_INT8 == ncclInt8 && sizeof(ncclResult_t) == sizeof(int),
               "values");
_Static_assert(sizeof(struct nccl_id) == sizeof(ncclUniqueId), "ncclUniqueId");
_Static_assert(offsetof(struct nccl_config, magic) == offsetof(ncclConfig_t, magic) &&
                   offsetof(struct nccl_config, version) == offsetof(ncclConfig_t, version) &&
                   offsetof(struct nccl_config, blocking) == offsetof(ncclConfig_t, blocking) &&
                   sizeof(struct nccl_config) == 24 && sizeof(ncclConfig_t) >= 24,
               "ncclConfig_t");
_Static_assert(NCCL_UNSET == NCCL_CONFIG_UNDEF_INT, "a member that is not set");

typedef int nccl_header_is_compared;
