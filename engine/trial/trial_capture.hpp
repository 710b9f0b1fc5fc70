// SPDX-License-Identifier: Apache-2.0
// The frames that a trial captures: as they arrive, and those that were lost.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "trial/capture.hpp"
#include "trial/collect.hpp"

namespace dutperf {

class TrialCapture {
public:
    TrialCapture(const TestBed& bed, const TrialSpec& spec) : bed_(bed), spec_(spec), lost_(bed.paths.size()) {}

    // For one receiver, of all in the order of ports and queues; nullptr: no frames are captured.
    CaptureBuffer* make_buffer();
    // For the receivers of a path whose frames have numbers; nullptr: lost frames are not captured.
    LostNumbers* make_lost(Direction direction);
    // Writes the file. `began_ns`: when the first frame was due, since 1970.
    CaptureWritten write(const TrialParts& parts, std::uint64_t began_ns);

private:
    struct Written {
        std::vector<CapturedFrame> frames;
        std::vector<std::vector<std::uint8_t>> made;
    };
    void add_lost(Direction direction, const TrialParts& parts, std::uint64_t began_ns, Written& into);

    const TestBed& bed_;
    const TrialSpec& spec_;
    std::vector<std::unique_ptr<CaptureBuffer>> captures_;
    PerDirection<std::optional<LostNumbers>> lost_;
};

}  // namespace dutperf
