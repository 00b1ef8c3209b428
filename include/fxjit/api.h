// FXJIT_API marks what libfxjit.so exports; everything else is hidden (-fvisibility=hidden).
#pragma once

#define FXJIT_API __attribute__((visibility("default")))
