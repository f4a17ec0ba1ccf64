#define LOW(x) ((x) + LOW_BASE)
enum { LOW_BASE = 1 };
