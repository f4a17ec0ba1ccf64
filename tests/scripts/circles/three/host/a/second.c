#include "a/second.h"
#include "a/third.h"
int second_of(int n) { return THIRD(n); }
