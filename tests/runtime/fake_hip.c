/* A HIP runtime that runs nothing and writes down what it is asked for, one call per line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void forget(void);
static char record[1 << 16];
static const char *failing = "";
static int device = 0, functions = 0;

#define RECORD(...) snprintf(record + strlen(record), sizeof record - strlen(record), __VA_ARGS__)

const char *fake_record(void) { return record; }
void fake_reset(void) { record[0] = 0; failing = ""; device = 0; forget(); }
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

/* Memory of the device is the host's. A launch of a kernel prints what `fake_prints` says, into the buffer at its last
   parameter, the third. */
static unsigned fake_words[64];
static int fake_count = 0;
static void forget(void) { fake_count = 0; }
void fake_prints(const unsigned *words, int count) { memcpy(fake_words, words, 4 * count); fake_count = count; }

int hipMalloc(void **out, unsigned long size) { RECORD("malloc %lu\n", size); *out = malloc(size); return status("hipMalloc"); }
int hipFree(void *memory) { RECORD("free\n"); free(memory); return 0; }
int hipMemset(void *memory, int value, unsigned long size) { memset(memory, value, size); return status("hipMemset"); }
int hipMemcpy(void *to, const void *from, unsigned long size, int kind) {
  RECORD("copy kind %d\n", kind);
  memcpy(to, from, size);
  return status("hipMemcpy");
}
int hipMemcpyAsync(void *to, const void *from, unsigned long size, int kind, void *stream) {
  RECORD("copy %lu kind %d stream %lx\n", size, kind, (unsigned long)stream);
  memcpy(to, from, size);
  return status("hipMemcpyAsync");
}
int hipExtMallocWithFlags(void **out, unsigned long size, unsigned flags) {
  RECORD("malloc %lu flags %u\n", size, flags);
  *out = malloc(size);
  return status("hipExtMallocWithFlags");
}
int hipMemGetAddressRange(void **base, unsigned long *size, void *place) {
  *base = (void *)((unsigned long)place & ~255ul), *size = 1024;
  return status("hipMemGetAddressRange");
}

/* A handle holds the address, twice. */
typedef struct { unsigned long words[8]; } Handle;
int hipIpcGetMemHandle(Handle *handle, void *place) {
  memset(handle, 0, sizeof *handle);
  handle->words[0] = handle->words[7] = (unsigned long)place;
  return status("hipIpcGetMemHandle");
}
int hipIpcOpenMemHandle(void **out, Handle handle, unsigned flags) {
  RECORD("open %d flags %u\n", handle.words[0] == handle.words[7], flags);
  *out = (void *)handle.words[7];
  return status("hipIpcOpenMemHandle");
}
int hipIpcCloseMemHandle(void *place) { RECORD("close %lx\n", (unsigned long)place); return status("hipIpcCloseMemHandle"); }

int hipStreamSynchronize(void *stream) { RECORD("wait for %lx\n", (unsigned long)stream); return status("hipStreamSynchronize"); }
int hipDeviceSynchronize(void) { return status("hipDeviceSynchronize"); }

int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned lds_bytes, void *stream, void **params, void **extra) {
  RECORD("launch grid %u %u %u block %u %u %u lds %u stream %lx extra %d handle %d\n", gx, gy, gz, bx, by, bz, lds_bytes,
         (unsigned long)stream, extra != 0, (unsigned long)function > 0x7000000000000000);
  if (fake_count) {
    unsigned *buffer = *(unsigned **)params[2];
    *(unsigned long *)buffer = fake_count;
    memcpy(buffer + 6, fake_words, 4 * fake_count);
    return status("hipModuleLaunchKernel");
  }
  /* The kernel's parameters: a tensor's address, its size and strides, an i32, a float. */
  RECORD("params %lx %d %d %g\n", *(unsigned long *)params[0], *(int *)params[1], *(int *)params[2], *(float *)params[3]);
  return status("hipModuleLaunchKernel");
}
