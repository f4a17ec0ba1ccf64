#include "a/first.h"
#include "a/second.h"
int first_of(const struct first *f) { return second_of(f->n); }
