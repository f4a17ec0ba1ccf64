// other_compute.h: included before a plugin's source. The plugin then appears to be built against
// another minor of the compute contract.
#include <rlhf/compute.h>

#undef RLHF_COMPUTE_MINOR
#define RLHF_COMPUTE_MINOR 99
