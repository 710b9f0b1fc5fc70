// SPDX-License-Identifier: Apache-2.0
// Reads the additional frames of a stream (protocol/request.schema.json: `additional`).
#pragma once

#include "server/reader.hpp"
#include "trial/trial.hpp"

namespace dutperf {

std::vector<AdditionalFrames> read_additional(Reader& stream, std::uint16_t max_frame_size);

}  // namespace dutperf
