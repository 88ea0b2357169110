#include "common.h"

#if defined(__AMX_INT8__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

EXPORT const char* envsched_sources() { return ENVSCHED_SOURCES; }

// 1 when this process may use the registers that this build needs; the system gives tiles to those who ask.
EXPORT int envsched_ready() {
#if defined(__AMX_INT8__)
  constexpr long REQUEST = 0x1023, TILE_DATA = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
  return 1;
#endif
}
