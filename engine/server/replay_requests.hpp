// SPDX-License-Identifier: Apache-2.0
// Lists of frames: the request `load`, and the streams that send them (protocol/README.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "server/reader.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// The loaded list with the frames of another request, or a new one. All throw Error "bad_request".
std::shared_ptr<FrameList> read_load(Reader params, const std::shared_ptr<FrameList>& loaded);

// `loaded`: nullptr if there is no list.
std::optional<ReplayedStream> read_replay(Reader& stream, std::uint16_t max_frame_size,
                                          const std::shared_ptr<const FrameList>& loaded);

// A pattern with the times of the list; `replayed`: what the stream sends.
Recorded read_recorded(Reader& pattern, const std::optional<ReplayedStream>& replayed);

}  // namespace dutperf
