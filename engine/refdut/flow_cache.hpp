// SPDX-License-Identifier: Apache-2.0
// The flows that the reference DUT knows: of a full cache the one that was not seen for longest is evicted (LRU).
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

namespace dutperf {

class FlowCache {
public:
    explicit FlowCache(std::size_t room) : room_(room) {}

    // Whether a flow is known. From then on it is.
    bool meet(std::uint64_t flow) {
        if (const auto known = places_.find(flow); known != places_.end()) {
            flows_.splice(flows_.begin(), flows_, known->second);
            return true;
        }
        if (room_ == 0) return false;
        if (flows_.size() == room_) {
            places_.erase(flows_.back());
            flows_.pop_back();
        }
        flows_.push_front(flow);
        places_.emplace(flow, flows_.begin());
        return false;
    }

private:
    std::size_t room_;
    std::list<std::uint64_t> flows_;  // the one that was seen last first
    std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> places_;
};

}  // namespace dutperf
