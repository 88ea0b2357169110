// Which sources this library was built from.
#include "common.h"

EXPORT const char* envsched_sources() { return ENVSCHED_SOURCES; }
