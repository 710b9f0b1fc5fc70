// SPDX-License-Identifier: Apache-2.0
#include "port/whole_frames.hpp"

#include <linux/ethtool.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "port/ethtool.hpp"
#include "port/left_changes.hpp"

namespace dutperf {

namespace {

struct Feature {
    std::string_view name;  // the kernel's
    bool packet, xdp;       // whether it changes what a packet socket receives, and what an AF_XDP socket receives
    const char* effect;
};

// A packet socket gets a VLAN tag back, whether the card or the kernel took it out; an AF_XDP socket does not. GRO
// follows XDP.
constexpr std::array kFeatures{
    Feature{"rx-gro", true, false, "merges frames"},
    Feature{"rx-gro-list", true, false, "merges frames"},
    Feature{"rx-udp-gro-forwarding", true, false, "merges frames"},
    Feature{"rx-gro-hw", true, true, "merges frames"},
    Feature{"rx-lro", true, true, "merges frames"},
    Feature{"rx-vlan-hw-parse", false, true, "takes the VLAN tag out of frames"},
    Feature{"rx-vlan-stag-hw-parse", false, true, "takes the VLAN tag out of frames"},
    Feature{"rx-fcs", true, true, "adds the FCS to frames"},
    Feature{"rx-all", true, true, "hands over frames with a wrong FCS"},
};

// An ethtool command with the bytes of its answer behind it.
template <class Command>
struct WithRoom {
    Command* operator->() { return reinterpret_cast<Command*>(bytes.data()); }
    void* data() { return bytes.data(); }

    explicit WithRoom(std::size_t room) : bytes(sizeof(Command) + room) {}
    std::vector<std::uint8_t> bytes;
};

// The names of all features of this kernel; a feature's number is its place.
std::vector<std::string> names_of_features(const std::string& interface) {
    WithRoom<ethtool_sset_info> sets(sizeof(std::uint32_t));
    sets->cmd = ETHTOOL_GSSET_INFO;
    sets->sset_mask = std::uint64_t{1} << unsigned{ETH_SS_FEATURES};
    if (!ask_ethtool(interface, sets.data()) || sets->sset_mask == 0) return {};
    std::uint32_t count = 0;
    std::memcpy(&count, sets->data, sizeof count);
    WithRoom<ethtool_gstrings> strings(std::size_t{count} * ETH_GSTRING_LEN);
    strings->cmd = ETHTOOL_GSTRINGS;
    strings->string_set = ETH_SS_FEATURES;
    strings->len = count;
    if (!ask_ethtool(interface, strings.data())) return {};
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto* name = reinterpret_cast<const char*>(strings->data) + std::size_t{i} * ETH_GSTRING_LEN;
        names.emplace_back(name, strnlen(name, ETH_GSTRING_LEN));
    }
    return names;
}

std::size_t blocks_for(std::size_t features) { return (features + 31) / 32; }

// Which features are on, a bit each.
std::vector<std::uint32_t> active_features(const std::string& interface, std::size_t count) {
    const std::size_t blocks = blocks_for(count);
    WithRoom<ethtool_gfeatures> answer(blocks * sizeof(ethtool_get_features_block));
    answer->cmd = ETHTOOL_GFEATURES;
    answer->size = static_cast<std::uint32_t>(blocks);
    std::vector<std::uint32_t> active(blocks);
    if (!ask_ethtool(interface, answer.data())) return active;
    std::transform(answer->features, answer->features + blocks, active.begin(),
                   [](const ethtool_get_features_block& block) { return block.active; });
    return active;
}

bool is_on(const std::vector<std::uint32_t>& active, unsigned number) {
    return ((active[number / 32] >> (number % 32)) & 1U) != 0;
}

void set_feature(const std::string& interface, std::size_t count, unsigned number, bool on) {
    const std::size_t blocks = blocks_for(count);  // the kernel takes no fewer
    WithRoom<ethtool_sfeatures> request(blocks * sizeof(ethtool_set_features_block));
    request->cmd = ETHTOOL_SFEATURES;
    request->size = static_cast<std::uint32_t>(blocks);
    ethtool_set_features_block& block = request->features[number / 32];
    block.valid = 1U << (number % 32);
    block.requested = on ? block.valid : 0;
    ask_ethtool(interface, request.data());
}

}  // namespace

WholeFrames::WholeFrames(const PortOptions& options) : WholeFrames(options.spec.argument) {
    const bool xdp = options.spec.kind == PortSpec::Kind::af_xdp;
    const std::vector<std::string> names = names_of_features(interface_);
    count_ = names.size();
    for (const Feature& feature : kFeatures) {
        const auto found = std::ranges::find(names, feature.name);
        const auto number = static_cast<unsigned>(found - names.begin());
        if (found == names.end() || !(xdp ? feature.xdp : feature.packet)) continue;
        const bool was_on = is_on(active_features(interface_, count_), number);
        kept_.push_back({number, std::string(feature.name), feature.effect, was_on});
        if (!was_on) continue;
        note_change(options, note_of_feature(kept_.back().name));
        set_feature(interface_, count_, number, false);
        if (is_on(active_features(interface_, count_), number)) {
            unavailable(options, interface_ + " " + feature.effect +
                                     " before the tester can receive them: switch it off (ethtool -K " + interface_ +
                                     " " + std::string(feature.name) + " off)");
        }
    }
}

std::vector<std::string> WholeFrames::switch_off_again() {
    const std::vector<std::uint32_t> active = active_features(interface_, count_);
    std::vector<std::string> on;
    for (const Kept& one : kept_) {
        if (!is_on(active, one.number)) continue;
        on.push_back(one.name + ", which " + one.effect);
        set_feature(interface_, count_, one.number, false);
    }
    return on;
}

WholeFrames::~WholeFrames() {
    for (const Kept& one : kept_) {
        if (one.was_on) set_feature(interface_, count_, one.number, true);
    }
}

bool switch_on(const std::string& interface, const std::string& feature) {
    const std::vector<std::string> names = names_of_features(interface);
    const auto found = std::ranges::find(names, feature);
    const auto number = static_cast<unsigned>(found - names.begin());
    if (found == names.end() || is_on(active_features(interface, names.size()), number)) return false;
    set_feature(interface, names.size(), number, true);
    return is_on(active_features(interface, names.size()), number);
}

}  // namespace dutperf
