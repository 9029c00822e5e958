// Of the standard library kernels have what hip_runtime.h declares.
#pragma once
#include <hip/hip_runtime.h>
