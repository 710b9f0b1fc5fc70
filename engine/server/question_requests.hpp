// SPDX-License-Identifier: Apache-2.0
// Streams of DNS queries, and the name server (protocol/README.md).
#pragma once

#include <optional>
#include <vector>

#include "server/reader.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// All throw Error "bad_request".
std::optional<dns::Questions> read_questions(Reader& stream, std::uint16_t max_frame_size);
std::optional<ServerSpec> read_server(Reader& params, const std::vector<Path>& paths);

// What does not go with questions. To be called when the whole trial is read.
void check_questions(const std::vector<Path>& paths, const TrialSpec& spec);

}  // namespace dutperf
