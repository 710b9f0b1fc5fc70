// SPDX-License-Identifier: Apache-2.0
// What programs call in the engine's library. All else is hidden there: nothing can replace a function of the hot
// loops, so calls between them cost no more than in a program of its own.
#pragma once

#define DUTPERF_EXPORT __attribute__((visibility("default")))
