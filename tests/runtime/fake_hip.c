/* A HIP runtime that runs nothing and writes down what it is asked for, one call per line. */
#include <stdio.h>
#include <string.h>

static char record[1 << 16];
static const char *failing = "";
static int device = 0, functions = 0;

#define RECORD(...) snprintf(record + strlen(record), sizeof record - strlen(record), __VA_ARGS__)

const char *fake_record(void) { return record; }
void fake_reset(void) { record[0] = 0; failing = ""; device = 0; }
void fake_fail(const char *name) { static char kept[64]; strncpy(kept, name, 63); failing = kept; }

static int status(const char *name) { return strcmp(name, failing) ? 0 : 98; }
const char *hipGetErrorString(int error) { return error == 98 ? "invalid device function" : "no error"; }

int hipGetDevice(int *out) { *out = device; return status("hipGetDevice"); }
int hipSetDevice(int index) { device = index; RECORD("device %d\n", index); return status("hipSetDevice"); }

int hipModuleLoadData(void **module, const void *image) {
  RECORD("load %d\n", !memcmp(image, "\177ELF", 4));
  *module = (void *)0x1234567812345678;
  return status("hipModuleLoadData");
}

int hipModuleGetFunction(void **function, void *module, const char *name) {
  RECORD("function %s of %lx\n", name, (unsigned long)module);
  *function = (void *)(0x7000000000000000 + ++functions);
  return status("hipModuleGetFunction");
}

int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned lds_bytes, void *stream, void **params, void **extra) {
  RECORD("launch grid %u %u %u block %u %u %u lds %u stream %lx extra %d handle %d\n", gx, gy, gz, bx, by, bz, lds_bytes,
         (unsigned long)stream, extra != 0, (unsigned long)function > 0x7000000000000000);
  /* The kernel's parameters: a tensor's address, its size and strides, an i32, a float. */
  RECORD("params %lx %d %d %g\n", *(unsigned long *)params[0], *(int *)params[1], *(int *)params[2], *(float *)params[3]);
  return status("hipModuleLaunchKernel");
}
