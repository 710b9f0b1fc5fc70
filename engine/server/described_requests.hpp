// SPDX-License-Identifier: Apache-2.0
// Reads described frames (protocol/request.schema.json: `frames`, `order`, `shares`).
#pragma once

#include "server/reader.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// The bytes of a text with two hexadecimal digits for each; it is the reader's member `name`.
std::vector<std::uint8_t> bytes_of(const Reader& reader, const std::string& name, const std::string& text);

// Where a frame of a list, a kind or an additional frame goes.
NextHop read_next_hop(Reader& frame);

// The choices of VLAN tags in `arrives_with`.
std::vector<VlanTags> read_vlan_tags(Reader& reader);

// The messages of PTP that may leave in place of a stream's stamped frames.
std::vector<DescribedFrame> read_ptp(Reader& stream, std::uint16_t max_frame_size);

// The described frames of a direction's stream; nothing if it has no `frames`.
std::optional<DescribedStream> read_described(Reader& stream, std::uint16_t max_frame_size);

// Checks the fields that hold a part of connections (`mode`: connection, learned). `path`: of the stream in the
// request. `connections`: nullptr if the trial has none. `initiates`: whether the frames are the Initiator's.
void check_connection_fields(const DescribedStream& stream, const std::string& path, const ConnectionSpec* connections,
                             bool initiates);

}  // namespace dutperf
