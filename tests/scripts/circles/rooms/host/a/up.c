#include "a/up.h"
#include "c/down.h"
int up_of(const struct mid *m) { return down_of(m); }
