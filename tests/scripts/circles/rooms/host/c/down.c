#include "b/mid.h"
int down_of(const struct mid *m) { return MID_CALL(m, 1); }
