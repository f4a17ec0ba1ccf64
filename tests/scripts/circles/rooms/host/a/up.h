typedef int (*up_call)(int n);
