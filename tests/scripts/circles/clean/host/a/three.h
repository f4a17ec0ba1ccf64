#ifndef THREE_H
#define THREE_H
struct three;
int third(int n);
#endif
