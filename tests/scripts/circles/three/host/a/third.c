#include "a/third.h"
#include "a/first.h"
int third_of(const struct first *f) { return f->n; }
